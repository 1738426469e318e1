package schedule

import (
	"fmt"
	"time"

	"github.com/robfig/cron/v3"
)

// most bounds the times looked at between two runs: no change of a clock is
// longer than a day.
const most = 24 * 60

// Run is one time at which a schedule is due, or would have been.
type Run struct {
	At      time.Time // in the schedule's zone; of a skipped run, when the clock jumps over it
	Note    string    // why it is skipped or doubled, else empty
	Skipped bool      // it does not take place
	Doubled bool      // the clock shows this time for the second time
}

// Upcoming returns the next n runs after from. Runs that daylight saving skips
// are listed between them and not counted.
func (s Schedule) Upcoming(from time.Time, n int) []Run {
	if s.plan == nil {
		return nil
	}
	var runs []Run
	for at := from.In(s.zone); n > 0; n-- {
		next := s.Next(at)
		if next.IsZero() {
			break
		}
		if p, ok := s.byTheClock(); ok {
			runs = append(runs, s.skipped(p, at, next)...)
		}
		runs = append(runs, s.run(next))
		at = next
	}
	return runs
}

// byTheClock returns the plan if a change of the clock moves its runs: when
// every hour is due, none is missed and none comes too soon.
func (s Schedule) byTheClock() (*cron.SpecSchedule, bool) {
	p, ok := s.plan.(*cron.SpecSchedule)
	return p, ok && p.Hour&starBit == 0 && !everyHour(p.Hour)
}

func everyHour(hours uint64) bool { return hours&(1<<24-1) == 1<<24-1 }

// run is the run at a time, marked when the clock had shown it before.
func (s Schedule) run(at time.Time) Run {
	r := Run{At: at}
	if _, ok := s.byTheClock(); !ok {
		return r
	}
	begin, _ := at.ZoneBounds()
	if begin.IsZero() {
		return r
	}
	if back := offset(begin.Add(-1)) - offset(at); at.Sub(begin) < back {
		r.Doubled = true
		r.Note = fmt.Sprintf("doubled: %s comes twice on %s in %s, and this is the second", at.Format("15:04"), at.Format(time.DateOnly), s.zone)
	}
	return r
}

// skipped returns the run that is jumped over between two real ones, if any.
// It walks the plan in clock readings, as if every reading existed.
func (s Schedule) skipped(p *cron.SpecSchedule, after, before time.Time) []Run {
	ideal := *p
	ideal.Location = time.UTC
	end := reading(before)
	var runs []Run
	var first, last, jump time.Time
	count := 0
	w := ideal.Next(reading(after))
	for i := 0; i < most && !w.IsZero() && w.Before(end); i, w = i+1, ideal.Next(w) {
		j, missing := s.jumpOver(w)
		if !missing {
			continue
		}
		if count > 0 && !j.Equal(jump) {
			runs = append(runs, s.skip(first, last, jump, count))
			count = 0
		}
		if count == 0 {
			first = w
		}
		last, jump = w, j
		count++
	}
	if count > 0 {
		runs = append(runs, s.skip(first, last, jump, count))
	}
	return runs
}

func (s Schedule) skip(first, last, jump time.Time, count int) Run {
	what := first.Format("15:04") + " does"
	if count > 1 {
		what = fmt.Sprintf("%s to %s (%d runs) do", first.Format("15:04"), last.Format("15:04"), count)
	}
	return Run{At: jump, Skipped: true, Note: fmt.Sprintf("skipped: %s not exist on %s in %s", what, first.Format(time.DateOnly), s.zone)}
}

// jumpOver tells whether a clock reading does not exist in the zone, and when
// the clock jumps over it.
func (s Schedule) jumpOver(w time.Time) (jump time.Time, missing bool) {
	t := time.Date(w.Year(), w.Month(), w.Day(), w.Hour(), w.Minute(), 0, 0, s.zone)
	r := reading(t)
	if r.Equal(w) {
		return time.Time{}, false
	}
	begin, end := t.ZoneBounds()
	if r.After(w) { // t was put behind the jump, else before it
		return begin, true
	}
	return end, true
}

// reading is what the clock on the wall shows, as if it hung in UTC.
func reading(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

func offset(t time.Time) time.Duration {
	_, seconds := t.Zone()
	return time.Duration(seconds) * time.Second
}
