package schedule

import (
	"strings"
	"testing"
	"time"
)

func TestParseRefuses(t *testing.T) {
	cases := map[string]struct{ reason, zone, want string }{
		"TZ=0":                       {"the parser panics", "", "CRON_TZ=Area/City"},
		"TZ=":                        {"the parser panics", "", "CRON_TZ=Area/City"},
		"CRON_TZ=UTC":                {"no fields after the zone", "", "CRON_TZ=Area/City"},
		"TZ=Nowhere/X * * * * *":     {"another prefix", "", "CRON_TZ=Area/City"},
		"CRON_TZ=No/Where * * * * *": {"an unknown zone", "", `"No/Where" is not known`},
		"@every 0s":                  {"would be every second", "", "below the minimum"},
		"@every -5m":                 {"would be every second", "", "below the minimum"},
		"@every 1ns":                 {"would be every second", "", "below the minimum"},
		"@every soon":                {"no duration", "", "not a duration"},
		"0 0 30 2 *":                 {"never fires", "", "never fires"},
		"0 0 31 4 *":                 {"never fires", "", "never fires"},
		"* * * * 7":                  {"Sunday is 0", "", "Sunday is 0"},
		"* * * * * *":                {"six fields", "", "expected 5 fields (minute hour day month weekday), found 6"},
		"@reboot":                    {"nothing boots", "", "no boot"},
		"* 7-24 * * 0-6":             {"out of range", "", "end of range (24) above maximum (23)"},
		"":                           {"empty", "", "empty"},
		"*/5 * * * *":                {"an unknown timeZone field", "Mars/Base", `"Mars/Base" is not known`},
	}
	for spec, c := range cases {
		t.Run(spec, func(t *testing.T) {
			_, err := Parse(spec, c.zone)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got error %v, want %q", c.reason, err, c.want)
			}
		})
	}
}

func TestNext(t *testing.T) {
	cases := []struct{ spec, zone, from, want string }{
		{"*/5 * * * *", "", "2026-01-02T03:04:05Z", "2026-01-02T03:05:00Z"},
		{"@every 1m30s", "", "2026-01-02T03:04:05Z", "2026-01-02T03:05:35Z"},
		{"0 9 * * *", "Europe/Berlin", "2026-07-01T00:00:00Z", "2026-07-01T07:00:00Z"},
		{"CRON_TZ=America/New_York 30 2 * * *", "Europe/Berlin", "2026-03-08T05:00:00Z", "2026-03-09T06:30:00Z"},
		{"@daily", "", "2026-01-02T03:04:05Z", "2026-01-03T00:00:00Z"},
	}
	for _, c := range cases {
		t.Run(c.spec, func(t *testing.T) {
			s, err := Parse(c.spec, c.zone)
			if err != nil {
				t.Fatal(err)
			}
			from, _ := time.Parse(time.RFC3339, c.from)
			if got := s.Next(from).UTC().Format(time.RFC3339); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	if !(Schedule{}).Next(time.Now()).IsZero() || len((Schedule{}).Upcoming(time.Now(), 3)) != 0 {
		t.Error("the zero Schedule fires")
	}
}

func TestUpcomingDaylightSaving(t *testing.T) {
	cases := map[string]struct {
		spec, from string
		want       []string
	}{
		"skipped": {"CRON_TZ=America/New_York 30 2 * * *", "2026-03-07T12:00:00Z", []string{
			"skipped: 02:30 does not exist on 2026-03-08 in America/New_York", "2026-03-09T06:30:00Z "}},
		"doubled": {"CRON_TZ=America/New_York 30 1 * * *", "2026-10-31T12:00:00Z", []string{
			"2026-11-01T05:30:00Z ", "2026-11-01T06:30:00Z doubled: 01:30 is twice on 2026-11-01 in America/New_York"}},
		"midnight": {"CRON_TZ=America/Sao_Paulo 0 0 * * *", "2018-11-03T12:00:00Z", []string{
			"skipped: 00:00 does not exist on 2018-11-04 in America/Sao_Paulo", "2018-11-05T02:00:00Z "}},
		"every": {"@every 1h", "2026-11-01T04:30:00Z", []string{"2026-11-01T05:30:00Z ", "2026-11-01T06:30:00Z "}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s, err := Parse(c.spec, "")
			if err != nil {
				t.Fatal(err)
			}
			from, _ := time.Parse(time.RFC3339, c.from)
			runs := s.Upcoming(from, len(c.want))
			for i, want := range c.want {
				got := runs[i].Note
				if !runs[i].Skipped {
					got = runs[i].At.UTC().Format(time.RFC3339) + " " + runs[i].Note
				}
				if got != want {
					t.Errorf("run %d: got %q, want %q", i, got, want)
				}
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	for spec, want := range map[string]string{"*/1000 * * * *": "first value", "@every 999999h": "once a year", "*/5 * * * *": ""} {
		s, err := Parse(spec, "")
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(s.Warnings(), "; "); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: got warnings %q, want %q", spec, got, want)
		}
	}
}
