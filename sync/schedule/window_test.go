package schedule_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/quick"
	"time"

	"rollcall.dev/rollcall/sync/schedule"
)

func compile(t *testing.T, ws ...schedule.Window) schedule.Windows {
	t.Helper()
	c, err := schedule.Compile(ws)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestWindows(t *testing.T) {
	const h = time.Hour
	nights := schedule.Window{Allow: "0 22 * * *", For: 4 * h, TimeZone: "Europe/Berlin", LastStart: 30 * time.Minute}
	office := schedule.Window{Deny: "0 8 * * 1-5", For: 10 * h, TimeZone: "Europe/Berlin"}
	cases := map[string]struct {
		reason  string
		windows []schedule.Window
		at      string
		open    bool
		until   string // empty: never
		why     string
	}{
		"None":         {"nothing is declared", nil, "2026-01-05T12:00:00Z", true, "", "no window is declared"},
		"DenyAway":     {"without an allow window all else is open", []schedule.Window{office}, "2026-01-05T06:59:59Z", true, "2026-01-05T07:00:00Z", "no deny window is in force"},
		"Deny":         {"its first moment is in it", []schedule.Window{office}, "2026-01-05T07:00:00Z", false, "2026-01-05T17:00:00Z", `deny window "0 8 * * 1-5" (Europe/Berlin, for 10h) is in force`},
		"DenyOver":     {"its last moment is not", []schedule.Window{office}, "2026-01-05T17:00:00Z", true, "2026-01-06T07:00:00Z", "no deny window is in force"},
		"Allow":        {"until no change begins any more", []schedule.Window{nights}, "2026-01-05T23:00:00Z", true, "2026-01-06T00:30:00Z", `allow window "0 22 * * *" (Europe/Berlin, for 4h) is open`},
		"LastStart":    {"the end by the zone's clock", []schedule.Window{nights}, "2026-01-06T00:30:00Z", false, "2026-01-06T21:00:00Z", `allow window "0 22 * * *" (Europe/Berlin, for 4h) ends at 02:00: no change begins in its last 30m`},
		"AllowOver":    {"closed in the day", []schedule.Window{nights}, "2026-01-06T01:00:00Z", false, "2026-01-06T21:00:00Z", "no allow window is open"},
		"DenyWins":     {"both", []schedule.Window{nights, {Deny: "0 0 6 1 *", For: 24 * h}}, "2026-01-06T00:00:00Z", false, "2026-01-07T00:00:00Z", `deny window "0 0 6 1 *" (UTC, for 24h) is in force`},
		"DenyInAllow":  {"the deny window ends it", []schedule.Window{nights, {Deny: "0 0 6 1 *", For: 24 * h}}, "2026-01-05T22:00:00Z", true, "2026-01-06T00:00:00Z", `allow window "0 22 * * *" (Europe/Berlin, for 4h) is open`},
		"TwoAllow":     {"several allow windows do not shut each other", []schedule.Window{{Allow: "0 1 * * *", For: h}, {Allow: "0 3 * * *", For: h}}, "2026-01-05T03:10:00Z", true, "2026-01-05T04:00:00Z", `allow window "0 3 * * *" (UTC, for 1h) is open`},
		"Touching":     {"one follows upon the other", []schedule.Window{{Allow: "0 1 * * *", For: h}, {Allow: "0 2 * * *", For: h}}, "2026-01-05T01:10:00Z", true, "2026-01-05T03:00:00Z", `allow window "0 1 * * *" (UTC, for 1h) is open`},
		"TouchingLast": {"a change may begin in the last part if another has opened", []schedule.Window{{Allow: "0 1 * * *", For: 2 * h, LastStart: h}, {Allow: "0 2 * * *", For: h}}, "2026-01-05T02:10:00Z", true, "2026-01-05T03:00:00Z", `allow window "0 2 * * *" (UTC, for 1h) is open`},
		"Always":       {"it never closes", []schedule.Window{{Allow: "@hourly", For: h}}, "2026-01-05T02:10:00Z", true, "", `allow window "@hourly" (UTC, for 1h) is open`},
		"NeverOpen":    {"it never opens", []schedule.Window{{Deny: "@hourly", For: h}}, "2026-01-05T02:10:00Z", false, "", `deny window "@hourly" (UTC, for 1h) is in force`},
		"NeverBoth":    {"each allow window is denied", []schedule.Window{{Allow: "0 1 * * *", For: h}, {Deny: "0 1 * * *", For: h}}, "2026-01-05T02:10:00Z", false, "", "no allow window is open"},
		"LeapDay":      {"far ahead is in sight", []schedule.Window{{Deny: "0 0 29 2 *", For: h}}, "2025-01-05T02:10:00Z", true, "2028-02-29T00:00:00Z", "no deny window is in force"},
		"SpringDeny":   {"02:00 does not exist that day: it begins where the clock jumps over it", []schedule.Window{{Deny: "0 2 * * *", For: 2 * h, TimeZone: "Europe/Berlin"}}, "2026-03-29T01:00:00Z", false, "2026-03-29T03:00:00Z", `deny window "0 2 * * *" (Europe/Berlin, for 2h) is in force`},
		"SpringAllow":  {"the maintenance of that night is not lost", []schedule.Window{{Allow: "30 2 * * *", For: 2 * h, TimeZone: "Europe/Berlin"}}, "2026-03-29T00:59:00Z", false, "2026-03-29T01:00:00Z", "no allow window is open"},
		"Autumn":       {"02:30 comes twice, so it begins twice", []schedule.Window{{Deny: "30 2 * * *", For: h, TimeZone: "Europe/Berlin"}}, "2026-10-25T00:30:00Z", false, "2026-10-25T02:30:00Z", `deny window "30 2 * * *" (Europe/Berlin, for 1h) is in force`},
		"HalfHour":     {"a clock that moves by half an hour loses no start", []schedule.Window{{Deny: "0 */5 * * *", For: h, TimeZone: "Australia/Lord_Howe"}}, "2026-04-04T18:30:00Z", false, "2026-04-04T19:30:00Z", `deny window "0 */5 * * *" (Australia/Lord_Howe, for 1h) is in force`},
		"Hourly":       {"one of every hour, too, begins where the clock jumps over it", []schedule.Window{{Allow: "30 * * * *", For: 10 * time.Minute, TimeZone: "Europe/Berlin"}}, "2026-03-29T01:00:00Z", true, "2026-03-29T01:10:00Z", `allow window "30 * * * *" (Europe/Berlin, for 10m) is open`},
		"Long":         {"starts lie denser than it lasts", []schedule.Window{{Allow: "*/5 1 * * *", For: 20 * time.Minute}}, "2026-01-05T01:32:00Z", true, "2026-01-05T02:15:00Z", `allow window "*/5 1 * * *" (UTC, for 20m) is open`},
		"Zone":         {"CRON_TZ of the spec counts", []schedule.Window{{Allow: "CRON_TZ=Asia/Tokyo 0 3 * * *", For: h, TimeZone: "Europe/Berlin"}}, "2026-01-05T18:30:00Z", true, "2026-01-05T19:00:00Z", `allow window "CRON_TZ=Asia/Tokyo 0 3 * * *" (Asia/Tokyo, for 1h) is open`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			open, until, why := compile(t, tc.windows...).Open(at(t, tc.at))
			got := ""
			if !until.IsZero() {
				got = until.Format(time.RFC3339)
			}
			if open != tc.open || got != tc.until || why != tc.why {
				t.Errorf("%s: got %v until %q: %s\nwant %v until %q: %s", tc.reason, open, got, why, tc.open, tc.until, tc.why)
			}
		})
	}
}

func TestCompileRefuses(t *testing.T) {
	const h = time.Hour
	cases := map[string]struct {
		reason string
		window schedule.Window
		want   string
	}{
		"Neither":   {"when?", schedule.Window{For: h}, "exactly one of allow and deny"},
		"Both":      {"which?", schedule.Window{Allow: "@daily", Deny: "@daily", For: h}, "exactly one of allow and deny"},
		"NoFor":     {"how long?", schedule.Window{Allow: "@daily"}, "it lasts 0s; it can last from 1m to 8784h"},
		"Short":     {"starts are whole minutes", schedule.Window{Allow: "@daily", For: 59 * time.Second}, "it lasts 59s"},
		"Long":      {"no end", schedule.Window{Allow: "@daily", For: 8785 * h}, "it lasts 8785h"},
		"LastStart": {"it would never open", schedule.Window{Allow: "@daily", For: h, LastStart: h}, "lastStart 1h is not shorter than the window, 1h"},
		"LastDeny":  {"nothing begins in it anyway", schedule.Window{Deny: "@daily", For: h, LastStart: 1}, "lastStart is of an allow window"},
		"Every":     {"it has no times of its own", schedule.Window{Deny: "@every 1h", For: h}, `"@every 1h" has no times by the clock`},
		"TZ":        {"as everywhere", schedule.Window{Deny: "TZ=UTC 0 0 * * *", For: h}, "TZ= is not accepted"},
		"NeverDue":  {"as everywhere", schedule.Window{Deny: "0 0 30 2 *", For: h}, "never due"},
		"Zone":      {"as everywhere", schedule.Window{Deny: "@daily", For: h, TimeZone: "Europe/Berlin "}, "is not a time zone"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := schedule.Compile([]schedule.Window{{Allow: "@daily", For: h}, tc.window})
			if err == nil || !strings.HasPrefix(err.Error(), "compiling window 2: ") || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: got %v, want %q of window 2", tc.reason, err, tc.want)
			}
		})
	}
	if _, err := schedule.Compile([]schedule.Window{{}, {For: h}}); err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("not every fault is told: %v", err)
	}
}

// clock is a second reading of a few specs, made of nothing but what the clock
// on the wall shows.
type clock struct{ minute, hour, day, month, weekday string }

func clockOf(spec string) clock {
	f := strings.Fields(spec)
	return clock{f[0], f[1], f[2], f[3], f[4]}
}

func shows(field string, v int) bool {
	if field == "*" {
		return true
	}
	for part := range strings.SplitSeq(field, ",") {
		if step, ok := strings.CutPrefix(part, "*/"); ok {
			n, _ := strconv.Atoi(step)
			if v%n == 0 {
				return true
			}
			continue
		}
		from, to, isRange := strings.Cut(part, "-")
		a, _ := strconv.Atoi(from)
		b, _ := strconv.Atoi(to)
		if v == a || isRange && a <= v && v <= b {
			return true
		}
	}
	return false
}

func (c clock) fits(r time.Time) bool {
	return shows(c.minute, r.Minute()) && shows(c.hour, r.Hour()) && shows(c.day, r.Day()) && shows(c.month, int(r.Month())) && shows(c.weekday, int(r.Weekday()))
}

// begun marks the minutes of a stretch of time that lie in a window: each reading
// that the clock shows or jumps over may begin one.
func begun(t *testing.T, spec, zone string, length time.Duration, from time.Time, minutes int) []bool {
	loc, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	c, in, left := clockOf(spec), make([]bool, minutes), 0
	before := int(length / time.Minute)
	wall := func(m time.Time) time.Time {
		_, offset := m.In(loc).Zone()
		return m.Add(time.Duration(offset) * time.Second).UTC()
	}
	last := wall(from.Add(-time.Duration(before+1) * time.Minute))
	for i := -before; i < minutes; i++ {
		now := wall(from.Add(time.Duration(i) * time.Minute))
		for r := minOf(now, last.Add(time.Minute)); !r.After(now); r = r.Add(time.Minute) {
			if c.fits(r) {
				left = before
			}
		}
		if last = now; left > 0 {
			left--
			if i >= 0 {
				in[i] = true
			}
		}
	}
	return in
}

func minOf(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// naive says of every minute whether it is open.
func naive(t *testing.T, ws []schedule.Window, from time.Time, minutes int) []bool {
	allowed, denied, any := make([]bool, minutes), make([]bool, minutes), false
	for _, w := range ws {
		into, length := denied, w.For
		if w.Allow != "" {
			into, length, any = allowed, w.For-w.LastStart, true
		}
		for i, in := range begun(t, w.Allow+w.Deny, w.TimeZone, length, from, minutes) {
			into[i] = into[i] || in
		}
	}
	open := make([]bool, minutes)
	for i := range open {
		open[i] = (allowed[i] || !any) && !denied[i]
	}
	return open
}

// agree holds Open against the naive reading: from change to change over all of
// it, so that no minute is left out, and by itself at every step-th.
func agree(t *testing.T, ws []schedule.Window, from time.Time, open []bool, step int) error {
	t.Helper()
	c := compile(t, ws...)
	minute := func(i int) time.Time { return from.Add(time.Duration(i) * time.Minute) }
	for i := 0; i < len(open); {
		got, until, why := c.Open(minute(i))
		if got != open[i] {
			return fmt.Errorf("at %s: got %v (%s)", minute(i), got, why)
		}
		next := i + 1
		for next < len(open) && open[next] == open[i] {
			next++
		}
		if next < len(open) && !until.Equal(minute(next)) || next == len(open) && !until.IsZero() && until.Before(minute(next)) {
			return fmt.Errorf("at %s (%v): got until %s, want %s", minute(i), got, until, minute(next))
		}
		i = next
	}
	for i := 0; i < len(open); i += step {
		if got, _, why := c.Open(minute(i).Add(59 * time.Second)); got != open[i] {
			return fmt.Errorf("within minute %s: got %v (%s)", minute(i), got, why)
		}
	}
	return nil
}

func TestWindowsMinuteByMinute(t *testing.T) {
	const h, m = time.Hour, time.Minute
	sets := map[string]struct {
		year    int
		windows []schedule.Window
	}{
		"Berlin": {2026, []schedule.Window{
			{Allow: "0 22 * * 1-5", For: 4 * h, TimeZone: "Europe/Berlin", LastStart: 30 * m},
			{Allow: "30 2 * * 0,6", For: 90 * m, TimeZone: "Europe/Berlin"},
			{Deny: "0 0 20 12 *", For: 14 * 24 * h, TimeZone: "Europe/Berlin"},
			{Deny: "15 2 * * 0", For: 20 * m, TimeZone: "Europe/Berlin"},
		}},
		"NewYork": {2026, []schedule.Window{
			{Deny: "30 1,2 * * *", For: 45 * m, TimeZone: "America/New_York"},
			{Deny: "0 9 * * 1-5", For: 8 * h, TimeZone: "America/New_York"},
		}},
		"LordHowe": {2026, []schedule.Window{ // its clock moves by half an hour
			{Allow: "*/20 1-3 * * *", For: 10 * m, TimeZone: "Australia/Lord_Howe"},
			{Deny: "10 2 * * *", For: 5 * m, TimeZone: "Australia/Lord_Howe"},
		}},
		"SaoPaulo": {2018, []schedule.Window{ // a day without a midnight
			{Allow: "0 0 * * *", For: 3 * h, TimeZone: "America/Sao_Paulo", LastStart: h},
			{Deny: "0 0 * * 0", For: 1 * h, TimeZone: "America/Sao_Paulo"},
		}},
		"Zones": {2026, []schedule.Window{
			{Allow: "0 */6 * * *", For: 5 * h, TimeZone: "UTC"},
			{Allow: "45 23 * * *", For: 3 * h, TimeZone: "Asia/Kathmandu", LastStart: 2 * h},
			{Deny: "0 1 1 * *", For: 40 * h, TimeZone: "America/New_York"},
		}},
	}
	for name, s := range sets {
		t.Run(name, func(t *testing.T) {
			from := time.Date(s.year, 1, 1, 0, 0, 0, 0, time.UTC)
			open := naive(t, s.windows, from, 365*24*60)
			if !slices.Contains(open, true) || !slices.Contains(open, false) {
				t.Fatal("a year of one state shows nothing")
			}
			if err := agree(t, s.windows, from, open, 241); err != nil {
				t.Error(err)
			}
		})
	}
}

// Any windows agree with the naive reading in the weeks round the changes of the
// clock.
func TestWindowsQuick(t *testing.T) {
	zones := []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC"}
	starts := []string{"30 2 * * *", "0 1,2,3 * * *", "*/15 0-4 * * *", "0 22 * * *", "59 1 * * 0", "0 8 * * 1-5", "0 */5 * * *", "30 * * * *", "0 0 * * *"}
	weeks := []time.Time{time.Date(2026, 3, 7, 0, 0, 0, 0, time.UTC), time.Date(2026, 3, 28, 0, 0, 0, 0, time.UTC), time.Date(2026, 10, 24, 0, 0, 0, 0, time.UTC), time.Date(2026, 10, 31, 0, 0, 0, 0, time.UTC), time.Date(2026, 4, 3, 0, 0, 0, 0, time.UTC), time.Date(2026, 10, 2, 0, 0, 0, 0, time.UTC)}
	property := func(week uint8, seeds [3]uint32) bool {
		var ws []schedule.Window
		for _, s := range seeds {
			w := schedule.Window{TimeZone: zones[s%4], For: time.Duration(1+s>>2%400) * time.Minute}
			start := starts[s>>11%9]
			if s>>16%2 == 0 {
				w.Allow, w.LastStart = start, w.For*time.Duration(s>>17%3)/4/time.Minute*time.Minute
			} else {
				w.Deny = start
			}
			ws = append(ws, w)
		}
		from := weeks[int(week)%len(weeks)]
		if err := agree(t, ws, from, naive(t, ws, from, 3*24*60), 61); err != nil {
			t.Errorf("%+v: %v", ws, err)
			return false
		}
		return true
	}
	if err := quick.Check(property, &quick.Config{MaxCount: 20}); err != nil {
		t.Error(err)
	}
}

func TestBrief(t *testing.T) {
	for d, want := range map[time.Duration]string{4 * time.Hour: "4h", 90 * time.Minute: "1h30m", 30 * time.Minute: "30m", 90 * time.Second: "1m30s", 0: "0s", time.Hour + time.Second: "1h0m1s"} {
		if got := schedule.Brief(d); got != want {
			t.Errorf("Brief(%v) is %q, want %q", d, got, want)
		}
	}
}
