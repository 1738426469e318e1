// Package schedule says when something is due: five-field cron, @descriptors
// and @every, each in a time zone, with every spec that cannot work refused
// when it is read. It does not know what is scheduled, nor what time it is.
//
// # Daylight saving
//
// The default zone is UTC, which has none. In a zone that has it, a schedule
// whose hour field is not * goes by the clock on the wall:
//
//   - a time that the clock jumps over is skipped that day and not made up
//     for: 02:30 in New York on the day that daylight saving begins;
//   - a time that the clock shows twice is due twice: 01:30 there on the day
//     that it ends. The second is marked Doubled, so that nobody is told twice.
//
// A schedule of every hour, and @every, keep their real interval through both
// and are never marked. Upcoming shows all of this before it happens. Windows
// are not skipped: they begin where the clock jumps.
package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // zones are known on machines and in images without them

	"github.com/robfig/cron/v3"
)

// Minimum is the least interval that @every accepts: below it every cluster
// would be asked without a pause.
const Minimum = 10 * time.Second

// starBit is how cron marks a field that was written * or ?.
const starBit = 1 << 63

// Schedule is a validated spec in its zone. The zero Schedule is never due.
type Schedule struct {
	text string         // as written
	rest string         // without CRON_TZ, blanks made single
	zone *time.Location // never time.Local
	plan cron.Schedule
}

// Parse reads a spec such as "*/5 * * * *", "@daily" or "@every 1m". timeZone
// is an IANA name, UTC when empty; CRON_TZ=Zone before the spec overrides it.
// A spec that would never be due, or too often, is an error.
func Parse(spec, timeZone string) (Schedule, error) {
	s, err := parse(spec, timeZone)
	if err != nil {
		return Schedule{}, fmt.Errorf("parsing schedule %q: %w", spec, err)
	}
	return s, nil
}

func parse(spec, timeZone string) (Schedule, error) {
	zone, rest, err := splitZone(spec, timeZone)
	if err != nil {
		return Schedule{}, err
	}
	loc, err := location(zone)
	if err != nil {
		return Schedule{}, err
	}
	if err := check(rest); err != nil {
		return Schedule{}, err
	}
	plan, err := parseCron(rest)
	if err != nil {
		return Schedule{}, explain(err)
	}
	if p, ok := plan.(*cron.SpecSchedule); ok {
		p.Location = loc
	}
	if plan.Next(reference()).IsZero() {
		return Schedule{}, errors.New("it is never due: no such day comes within five years; correct the day or the month")
	}
	return Schedule{text: spec, rest: rest, zone: loc, plan: plan}, nil
}

// Next returns when the schedule is first due after t, in the schedule's zone,
// or the zero time when that is more than five years away.
func (s Schedule) Next(t time.Time) time.Time {
	if s.plan == nil {
		return time.Time{}
	}
	return s.plan.Next(t.In(s.zone))
}

// String returns the spec as it was written.
func (s Schedule) String() string { return s.text }

// reference is a moment from which any day of the calendar, 29 February too,
// comes within five years. Whether a spec is ever due must not depend on when
// it is read.
func reference() time.Time { return time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC) }

// splitZone takes CRON_TZ=Zone off a spec. The parser would do it too, but
// panics where nothing follows the zone.
func splitZone(spec, timeZone string) (zone, rest string, err error) {
	fields := strings.Fields(spec)
	if len(fields) == 0 {
		return "", "", errors.New(`it is empty; write five fields such as "*/5 * * * *", or "@every 1m"`)
	}
	zone = timeZone
	if name, ok := strings.CutPrefix(fields[0], "CRON_TZ="); ok {
		if name == "" || len(fields) == 1 {
			return "", "", errors.New(`CRON_TZ needs a zone, a blank and a spec, such as "CRON_TZ=Europe/Berlin 0 3 * * *"`)
		}
		zone, fields = name, fields[1:]
	}
	for _, f := range fields {
		if strings.HasPrefix(f, "TZ=") || strings.HasPrefix(f, "CRON_TZ=") {
			return "", "", fmt.Errorf("%s is not accepted here; set timeZone, or begin the spec with one CRON_TZ=Zone", f[:strings.Index(f, "=")+1])
		}
	}
	return zone, strings.Join(fields, " "), nil
}

// location finds a zone. Local is refused: the same file would mean something
// else on the next machine.
func location(zone string) (*time.Location, error) {
	if zone == "" || zone == "UTC" {
		return time.UTC, nil
	}
	loc, err := time.LoadLocation(zone)
	if err != nil || loc == time.Local {
		return nil, fmt.Errorf("%q is not a time zone; write an IANA name such as Europe/Berlin, or UTC", zone)
	}
	return loc, nil
}

// check refuses what the parser accepts and should not, and what it refuses in
// words that help nobody.
func check(rest string) error {
	if strings.HasPrefix(rest, "@") {
		return checkDescriptor(rest)
	}
	fields := strings.Fields(rest)
	if n := len(fields); n != 5 {
		hint := "write minute, hour, day of month, month and day of week"
		if n == 6 {
			hint = "there are no seconds here: leave out the first field, or use @every 30s"
		}
		return fmt.Errorf("expected exactly 5 fields, found %d; %s", n, hint)
	}
	for i, f := range fields {
		if strings.Trim(f, ",") == "" {
			return fmt.Errorf("the %s field %q lists nothing; write * or a number", cronFields[i].name, f)
		}
	}
	return nil
}

func checkDescriptor(rest string) error {
	if rest == "@reboot" {
		return errors.New("@reboot has no meaning here: rollcall looks once when it starts anyway; write a time or @every 1m")
	}
	text, ok := strings.CutPrefix(rest, "@every ")
	if !ok {
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf(`%q is not a duration; write such as "@every 1m" or "@every 1h30m"`, text)
	}
	if d < Minimum {
		return fmt.Errorf("@every %s is too often; the shortest interval is %s", text, Minimum)
	}
	return nil
}

// parseCron calls cron's parser. It has panicked on texts that nobody foresaw,
// and a fleet file must not end the process.
func parseCron(rest string) (plan cron.Schedule, err error) {
	defer func() {
		if r := recover(); r != nil {
			plan, err = nil, fmt.Errorf("the text cannot be understood (%v)", r)
		}
	}()
	return cron.ParseStandard(rest)
}

// cronFields are the five fields in order, with their least and greatest values.
var cronFields = []struct {
	name        string
	first, last int
}{{"minute", 0, 59}, {"hour", 0, 23}, {"day of month", 1, 31}, {"month", 1, 12}, {"day of week", 0, 6}}

// remedies are what to say after an error of cron's parser that contains text.
var remedies = []struct{ text, remedy string }{
	{"above maximum (59)", "minutes run from 0 to 59"},
	{"above maximum (23)", "hours run from 0 to 23; midnight is 0"},
	{"above maximum (31)", "days run from 1 to 31"},
	{"above maximum (12)", "months run from 1 to 12"},
	{"above maximum (6)", "days of the week run from 0 to 6; Sunday is 0, not 7"},
	{"below minimum (1)", "days and months begin at 1"},
	{"beyond end of range", "write the smaller number first, or two ranges with a comma"},
	{"failed to parse int", "write numbers, or names of three letters in the month and day of week fields; L, W and # are not known"},
	{"negative number", "write a positive number"},
	{"unrecognized descriptor", "known are @yearly, @monthly, @weekly, @daily, @hourly and @every DURATION"},
	{"should be a positive number", "the number after / is at least 1"},
	{"too many hyphens", "write a range as FROM-TO"},
	{"too many slashes", "write a step as RANGE/STEP"},
}

// explain adds the remedy to an error of cron's parser.
func explain(err error) error {
	for _, r := range remedies {
		if strings.Contains(err.Error(), r.text) {
			return fmt.Errorf("%w; %s", err, r.remedy)
		}
	}
	return err
}
