package schedule_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rollcall.dev/rollcall/sync/schedule"
)

func mustParse(t *testing.T, spec, zone string) schedule.Schedule {
	t.Helper()
	s, err := schedule.Parse(spec, zone)
	if err != nil {
		t.Fatalf("Parse(%q, %q): %v", spec, zone, err)
	}
	return s
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestParseRefuses(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   string
		zone   string
		want   string
	}{
		"Empty":           {"nothing to go by", " \t", "", "is empty"},
		"TZ":              {"cron panics on it", "TZ=0", "", "TZ= is not accepted"},
		"TZNothing":       {"cron panics on it", "TZ=", "", "TZ= is not accepted"},
		"TZUnknown":       {"TZ= is not ours, whatever the zone", "TZ=Nowhere/X * * * * *", "", "CRON_TZ=Zone"},
		"ZoneOnly":        {"cron panics on it", "CRON_TZ=UTC", "", "a blank and a spec"},
		"ZoneEmpty":       {"no zone named", "CRON_TZ= * * * * *", "", "CRON_TZ needs a zone"},
		"ZoneTwice":       {"which of the two", "CRON_TZ=UTC CRON_TZ=UTC * * * * *", "", "one CRON_TZ"},
		"ZoneUnknown":     {"a typo in a zone", "CRON_TZ=Nowhere/X * * * * *", "", `"Nowhere/X" is not a time zone`},
		"ZoneSetting":     {"a typo in timeZone", "* * * * *", "Europe/Berlim", "IANA name"},
		"ZoneLocal":       {"depends on the machine", "* * * * *", "Local", `"Local" is not a time zone`},
		"ZonePath":        {"no file is opened by a spec", "* * * * *", "../../etc/passwd", "is not a time zone"},
		"EveryZero":       {"cron makes it one second", "@every 0s", "", "shortest interval is 10s"},
		"EveryNegative":   {"cron makes it one second", "@every -5m", "", "shortest interval is 10s"},
		"EveryNano":       {"cron makes it one second", "@every 1ns", "", "shortest interval is 10s"},
		"EveryJustBelow":  {"the limit itself is 10s", "@every 9999ms", "", "too often"},
		"EveryNothing":    {"no duration", "@every", "", "@every DURATION"},
		"EveryText":       {"not a duration", "@every minute", "", `"minute" is not a duration`},
		"NeverFebruary":   {"there is no 30 February", "0 0 30 2 *", "", "never due"},
		"NeverApril":      {"there is no 31 April", "0 0 31 4 *", "", "never due"},
		"Sunday7":         {"other crons take 7", "* * * * 7", "", "Sunday is 0, not 7"},
		"SixFields":       {"seconds are not ours", "* * * * * *", "", "found 6; there are no seconds"},
		"SixFieldsQuartz": {"field notes G7", "0 0 22 * * *", "", "expected exactly 5 fields, found 6"},
		"FourFields":      {"one is missing", "* * * *", "", "found 4; write minute, hour"},
		"Hour24":          {"field notes G7", "* 7-24 * * 0-6", "", "end of range (24) above maximum (23): 7-24; hours run from 0 to 23"},
		"Reboot":          {"nothing reboots", "@reboot", "", "@reboot has no meaning"},
		"Descriptor":      {"a typo", "@dayly", "", "known are @yearly"},
		"EmptyList":       {"cron takes it for no minute at all", ", * * * *", "", `minute field "," lists nothing`},
		"ZeroStep":        {"a step of nothing", "*/0 * * * *", "", "at least 1"},
		"Name":            {"quartz words", "0 0 L * *", "", "L, W and # are not known"},
		"DayZero":         {"days begin at 1", "0 0 0 * *", "", "begin at 1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, err := schedule.Parse(tc.spec, tc.zone)
			if err == nil {
				t.Fatalf("%s: Parse(%q, %q) was accepted", tc.reason, tc.spec, tc.zone)
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: Parse(%q, %q): %v, want it to say %q", tc.reason, tc.spec, tc.zone, err, tc.want)
			}
			if !s.Next(time.Now()).IsZero() {
				t.Errorf("%s: a refused schedule is due", tc.reason)
			}
		})
	}
}

// TestHostile holds the file of specs that were measured against cron: each is
// refused, warned of, or shown as what it is.
func TestHostile(t *testing.T) {
	data, err := os.ReadFile("testdata/hostile.txt")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for line := range strings.Lines(string(data)) {
		cols := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if strings.HasPrefix(line, "# spec") {
			continue
		}
		seen++
		spec, must := cols[0], cols[2]
		s, err := schedule.Parse(spec, "America/New_York")
		switch {
		case strings.HasPrefix(must, "reject"), must == "clear message":
			if err == nil {
				t.Errorf("%q: accepted, must: %s", spec, must)
			}
		case err != nil:
			t.Errorf("%q: %v, must: %s", spec, err, must)
		case must == "warn":
			if len(s.Warnings()) == 0 {
				t.Errorf("%q: no warning", spec)
			}
		case must == "default UTC; document":
			if !marked(s.Upcoming(at(t, "2026-01-01T00:00:00Z"), 365)) {
				t.Errorf("%q: a year of runs marks none", spec)
			}
		default:
			t.Errorf("%q: the test does not know %q", spec, must)
		}
	}
	if seen != 16 {
		t.Errorf("%d rows were tested, want 16", seen)
	}
}

func marked(runs []schedule.Run) bool {
	for _, r := range runs {
		if r.Skipped || r.Doubled {
			return true
		}
	}
	return false
}

func TestNext(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   string
		zone   string
		from   string
		want   string
	}{
		"DefaultUTC":    {"no zone means UTC, not the machine's", "0 3 * * *", "", "2026-03-07T04:00:00+02:00", "2026-03-07T03:00:00Z"},
		"Zone":          {"the setting counts", "0 3 * * *", "Europe/Berlin", "2026-01-01T00:00:00Z", "2026-01-01T02:00:00Z"},
		"ZoneOverrides": {"the spec's zone wins", "CRON_TZ=Asia/Tokyo 0 3 * * *", "Europe/Berlin", "2026-01-01T00:00:00Z", "2026-01-01T18:00:00Z"},
		"Every":         {"an interval counts from the time given", "@every  90s", "", "2026-01-01T00:00:00.5Z", "2026-01-01T00:01:30Z"},
		"EveryShortest": {"the limit is allowed", "@every 10s", "", "2026-01-01T00:00:00Z", "2026-01-01T00:00:10Z"},
		"Descriptor":    {"descriptors keep the zone", "@daily", "America/New_York", "2026-01-01T06:00:00Z", "2026-01-02T05:00:00Z"},
		"Skipped":       {"field notes G6", "CRON_TZ=America/New_York 30 2 * * *", "", "2026-03-07T08:00:00Z", "2026-03-09T06:30:00Z"},
		"DoubledFirst":  {"field notes G6", "CRON_TZ=America/New_York 30 1 * * *", "", "2026-11-01T00:00:00Z", "2026-11-01T05:30:00Z"},
		"DoubledSecond": {"field notes G6", "CRON_TZ=America/New_York 30 1 * * *", "", "2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z"},
		"NoMidnight":    {"field notes G6", "CRON_TZ=America/Sao_Paulo 0 0 * * *", "", "2018-11-03T12:00:00Z", "2018-11-05T02:00:00Z"},
		"NoonThatDay":   {"a day without a midnight still has a noon", "CRON_TZ=America/Sao_Paulo 0 12 * * 0", "", "2018-11-03T12:00:00Z", "2018-11-04T14:00:00Z"},
		"LeapDay":       {"once in four years is still due", "0 0 29 2 *", "", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := mustParse(t, tc.spec, tc.zone).Next(at(t, tc.from)).UTC().Format(time.RFC3339)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: Next(%s) of %q (-want +got):\n%s", tc.reason, tc.from, tc.spec, diff)
			}
		})
	}
}

type row struct {
	At      string
	Note    string
	Skipped bool
	Doubled bool
}

func rows(runs []schedule.Run) []row {
	var out []row
	for _, r := range runs {
		out = append(out, row{r.At.Format(time.RFC3339), r.Note, r.Skipped, r.Doubled})
	}
	return out
}

func TestUpcoming(t *testing.T) {
	const ny = "America/New_York"
	cases := map[string]struct {
		reason string
		spec   string
		zone   string
		from   string
		n      int
		want   []row
	}{
		"Skipped": {
			"the skipped run stands where the clock jumps", "30 2 * * *", ny, "2026-03-07T12:00:00Z", 1,
			[]row{
				{At: "2026-03-08T03:00:00-04:00", Skipped: true, Note: "skipped: 02:30 does not exist on 2026-03-08 in America/New_York"},
				{At: "2026-03-09T02:30:00-04:00"},
			},
		},
		"SkippedMany": {
			"a jump is one line however many runs it swallows", "*/20 2 * * *", ny, "2026-03-08T06:00:00Z", 1,
			[]row{
				{At: "2026-03-08T03:00:00-04:00", Skipped: true, Note: "skipped: 02:00 to 02:40 (3 runs) do not exist on 2026-03-08 in America/New_York"},
				{At: "2026-03-09T02:00:00-04:00"},
			},
		},
		"NoMidnight": {
			"a whole day is missed where midnight does not exist", "0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00Z", 1,
			[]row{
				{At: "2018-11-04T01:00:00-02:00", Skipped: true, Note: "skipped: 00:00 does not exist on 2018-11-04 in America/Sao_Paulo"},
				{At: "2018-11-05T00:00:00-02:00"},
			},
		},
		"Doubled": {
			"the second of the two is marked", "30 1 * * *", ny, "2026-11-01T00:00:00Z", 3,
			[]row{
				{At: "2026-11-01T01:30:00-04:00"},
				{At: "2026-11-01T01:30:00-05:00", Doubled: true, Note: "doubled: 01:30 comes twice on 2026-11-01 in America/New_York, and this is the second"},
				{At: "2026-11-02T01:30:00-05:00"},
			},
		},
		"DoubledAlone": {
			"also when one starts to look between the two", "30 1 * * *", ny, "2026-11-01T06:00:00Z", 1,
			[]row{{At: "2026-11-01T01:30:00-05:00", Doubled: true, Note: "doubled: 01:30 comes twice on 2026-11-01 in America/New_York, and this is the second"}},
		},
		"EveryHour": {
			"an hourly schedule keeps its interval", "30 * * * *", ny, "2026-03-08T06:00:00Z", 2,
			[]row{{At: "2026-03-08T01:30:00-05:00"}, {At: "2026-03-08T03:30:00-04:00"}},
		},
		"EveryHourBack": {
			"nor is it marked when the clock goes back", "30 * * * *", ny, "2026-11-01T05:00:00Z", 2,
			[]row{{At: "2026-11-01T01:30:00-04:00"}, {At: "2026-11-01T01:30:00-05:00"}},
		},
		"UTC":      {"UTC has no daylight saving", "30 2 * * *", "", "2026-03-08T00:00:00Z", 1, []row{{At: "2026-03-08T02:30:00Z"}}},
		"Every":    {"intervals know no clock", "@every 30m", ny, "2026-03-08T06:45:00Z", 1, []row{{At: "2026-03-08T03:15:00-04:00"}}},
		"None":     {"none asked for", "@hourly", "", "2026-03-08T06:45:00Z", 0, nil},
		"Negative": {"fewer than none", "@hourly", "", "2026-03-08T06:45:00Z", -1, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := rows(mustParse(t, tc.spec, tc.zone).Upcoming(at(t, tc.from), tc.n))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   string
		want   []string
	}{
		"Plain":     {"nothing to warn of", "*/5 8-18/2 * * mon-fri", nil},
		"BigStep":   {"only minute 0 is left", "*/1000 * * * *", []string{`"*/1000" in the minute field means minute 0 only: the step is larger than the range`}},
		"BigStepIn": {"of a range and a list too", "0 1,8-9/3 * * *", []string{`"8-9/3" in the hour field means hour 8 only: the step is larger than the range`}},
		"FromStep":  {"N/STEP runs to the end of the field", "50/10 * 25/7 * *", []string{`"50/10" in the minute field means minute 50 only: the step is larger than the range`, `"25/7" in the day of month field means day of month 25 only: the step is larger than the range`}},
		"BothDays":  {"cron ORs the two", "0 0 1 * mon", []string{"day of month and day of week are both given: it is due when either fits, not when both do"}},
		"LeapDay":   {"years without a run", "0 0 29 2 *", []string{`"0 0 29 2 *" is due less than once a year: the next run can be more than a year away`}},
		"Far":       {"a lifetime without a run", "@every 999999h", []string{`"@every 999999h" is due less than once a year: the next run can be more than a year away`}},
		"Fraction":  {"cron drops it", "@every 90500ms", []string{`"@every 90500ms" is rounded down to 1m30s`}},
		"Yearly":    {"once a year is fine", "@yearly", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, mustParse(t, tc.spec, "").Warnings()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestNextIsInTheZone(t *testing.T) {
	next := mustParse(t, "@daily", "Europe/Berlin").Next(at(t, "2026-01-01T12:00:00Z"))
	if got, want := next.Format(time.RFC3339), "2026-01-02T00:00:00+01:00"; got != want {
		t.Errorf("Next is shown as %s, want %s", got, want)
	}
}

func TestZeroSchedule(t *testing.T) {
	var s schedule.Schedule
	if !s.Next(time.Now()).IsZero() || s.Upcoming(time.Now(), 3) != nil || s.Warnings() != nil || s.String() != "" {
		t.Error("the zero Schedule is due or says something")
	}
}

func FuzzParse(f *testing.F) {
	data, err := os.ReadFile("testdata/hostile.txt")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		f.Add(strings.Split(line, "\t")[0], "America/New_York")
	}
	from := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, spec, zone string) {
		s, err := schedule.Parse(spec, zone)
		if err != nil {
			return
		}
		last := from
		for _, r := range s.Upcoming(from, 5) {
			if r.At.Before(last) {
				t.Fatalf("%q: %v comes after %v", spec, r.At, last)
			}
			last = r.At
		}
		s.Warnings()
	})
}
