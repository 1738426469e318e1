// Package schedule turns cron text into times. It knows robfig/cron and no
// clock: every question is asked with a time.
//
// # Daylight saving
//
// The default zone is UTC, which has none. In a zone that has, a run at a time
// that the spring change leaves out is skipped that day, and a run at a time
// that the autumn change repeats happens twice; Upcoming says so.
package schedule

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // zones must be known on machines that have no zoneinfo

	"github.com/robfig/cron/v3"
)

// Minimum is the shortest period of an @every.
const Minimum = 10 * time.Second

// Schedule is when something happens. The zero Schedule is never.
type Schedule struct {
	spec     string
	zone     *time.Location
	schedule cron.Schedule
	warnings []string
}

var prefix = regexp.MustCompile(`^(CRON_TZ|TZ)=`)

// Parse reads a cron text: five fields, a descriptor such as @hourly, or
// @every with a duration; CRON_TZ=Zone before it overrides timeZone, which is
// UTC when empty. A text that would never fire is an error.
func Parse(spec, timeZone string) (Schedule, error) {
	zone, text, err := zoned(spec, timeZone)
	if err != nil {
		return Schedule{}, err
	}
	if err := refused(text); err != nil {
		return Schedule{}, err
	}
	parsed, err := parse(text)
	if err != nil {
		return Schedule{}, fmt.Errorf("cron text %q: %s", spec, strings.TrimSpace(err.Error()))
	}
	if s, ok := parsed.(*cron.SpecSchedule); ok {
		s.Location = zone
	}
	s := Schedule{spec: spec, zone: zone, schedule: parsed}
	if s.Next(reference).IsZero() {
		return Schedule{}, fmt.Errorf("cron text %q never fires: no such day in any of the next five years", spec)
	}
	s.warnings = s.warn(text)
	return s, nil
}

// reference is any instant: whether a text ever fires does not depend on it.
var reference = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

// zoned takes the zone off a cron text.
func zoned(spec, timeZone string) (*time.Location, string, error) {
	text := strings.TrimSpace(spec)
	if text == "" {
		return nil, "", fmt.Errorf("cron text is empty: write five fields such as \"*/5 * * * *\", or \"@every 1m\"")
	}
	if m := prefix.FindString(text); m != "" {
		name, rest, found := strings.Cut(text[len(m):], " ")
		if m == "TZ=" || !found || name == "" || strings.TrimSpace(rest) == "" {
			return nil, "", fmt.Errorf("cron text %q: write the zone as CRON_TZ=Area/City before the five fields, or set timeZone", spec)
		}
		timeZone, text = name, strings.TrimSpace(rest)
	}
	if timeZone == "" {
		timeZone = "UTC"
	}
	zone, err := time.LoadLocation(timeZone)
	if err != nil || timeZone == "Local" {
		return nil, "", fmt.Errorf("cron text %q: time zone %q is not known: use a name such as Europe/Berlin", spec, timeZone)
	}
	return zone, text, nil
}

// refused finds what the parser takes, or refuses without saying why.
func refused(text string) error {
	if text == "@reboot" {
		return fmt.Errorf("cron text %q: there is no boot to wait for: use @hourly, @daily or \"@every 1m\"", text)
	}
	if every, ok := strings.CutPrefix(text, "@every "); ok {
		d, err := time.ParseDuration(strings.TrimSpace(every))
		if err != nil {
			return fmt.Errorf("cron text %q: %q is not a duration: write \"@every 1m30s\"", text, every)
		}
		if d < Minimum {
			return fmt.Errorf("cron text %q: the period is below the minimum of %s", text, Minimum)
		}
		return nil
	}
	if n := len(strings.Fields(text)); !strings.HasPrefix(text, "@") && n != 5 {
		return fmt.Errorf("cron text %q: expected 5 fields (minute hour day month weekday), found %d", text, n)
	}
	return nil
}

// parse guards against the parser's panics.
func parse(text string) (s cron.Schedule, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("cannot be parsed: %v", r)
		}
	}()
	s, err = cron.ParseStandard(text)
	if err != nil && strings.Contains(err.Error(), "above maximum (6)") {
		err = fmt.Errorf("%w (Sunday is 0)", err)
	}
	return s, err
}

// Next is the first run after t, in the schedule's zone; the zero time when
// there is none.
func (s Schedule) Next(t time.Time) time.Time {
	if s.schedule == nil {
		return time.Time{}
	}
	next := s.schedule.Next(t.In(s.zone))
	if next.IsZero() {
		return next
	}
	return next.In(s.zone)
}

// String is the cron text as written.
func (s Schedule) String() string { return s.spec }

// Warnings are about texts that are valid and probably not what was meant.
func (s Schedule) Warnings() []string { return s.warnings }

const farAway = 366 * 24 * time.Hour

func (s Schedule) warn(text string) []string {
	var out []string
	if next := s.Next(reference); next.Sub(reference) > farAway {
		out = append(out, fmt.Sprintf("cron text %q fires less than once a year", s.spec))
	}
	limits := []int{60, 24, 31, 12, 7}
	for i, field := range strings.Fields(text) {
		_, step, ok := strings.Cut(field, "*/")
		if n, err := strconv.Atoi(step); ok && err == nil && i < len(limits) && n >= limits[i] {
			out = append(out, fmt.Sprintf("cron text %q: the step %s is as long as its range, so that it means its first value", s.spec, field))
		}
	}
	return out
}

// Run is a time at which a schedule fires, or would but for daylight saving.
type Run struct {
	At      time.Time
	Skipped bool   // the clock leaves this time out; At is the instant of the change
	Doubled bool   // the clock shows this time twice; this is the second
	Note    string // why
}

// Upcoming lists the next n runs after from, with those that daylight saving
// skips or doubles.
func (s Schedule) Upcoming(from time.Time, n int) []Run {
	var out []Run
	shadow := s.wall()
	last := from
	for t := s.Next(from); !t.IsZero() && len(out) < n; t = s.Next(t) {
		out = append(out, s.skipped(shadow, last, t)...)
		out = append(out, s.run(t))
		last = t
	}
	return out[:min(n, len(out))]
}

func (s Schedule) run(t time.Time) Run {
	r := Run{At: t}
	earlier := t.Add(-time.Hour)
	if _, every := s.schedule.(cron.ConstantDelaySchedule); !every && sameWall(earlier, t) {
		r.Doubled = true
		r.Note = fmt.Sprintf("doubled: %s is twice on %s in %s", t.Format("15:04"), t.Format(time.DateOnly), s.zone)
	}
	return r
}

func sameWall(a, b time.Time) bool {
	return a.Format("2006-01-02 15:04") == b.Format("2006-01-02 15:04")
}

// wall is the same schedule on a clock without changes.
func (s Schedule) wall() cron.Schedule {
	spec, ok := s.schedule.(*cron.SpecSchedule)
	if !ok {
		return nil
	}
	plain := *spec
	plain.Location = time.UTC
	return &plain
}

// skipped finds runs between two real ones whose wall time does not exist.
func (s Schedule) skipped(shadow cron.Schedule, from, to time.Time) []Run {
	if shadow == nil {
		return nil
	}
	var out []Run
	end := onWall(to)
	for w := shadow.Next(onWall(from.In(s.zone))); !w.IsZero() && w.Before(end); w = shadow.Next(w) {
		real := time.Date(w.Year(), w.Month(), w.Day(), w.Hour(), w.Minute(), 0, 0, s.zone)
		if onWall(real).Equal(w) {
			continue
		}
		out = append(out, Run{At: real, Skipped: true, Note: fmt.Sprintf("skipped: %s does not exist on %s in %s", w.Format("15:04"), w.Format(time.DateOnly), s.zone)})
	}
	return out
}

// onWall reads a time's clock face as if it were UTC.
func onWall(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), 0, 0, time.UTC)
}
