package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// The shortest and the longest window. Starts are whole minutes; what is open
// for longer than a year needs no window.
const (
	ShortestWindow = time.Minute
	LongestWindow  = 366 * 24 * time.Hour
)

// Window is a time in which changes may be made, or must not be. It begins
// whenever the clock of its zone reaches or jumps over a time of its schedule,
// so that no window is lost in spring; what the clock shows twice begins twice.
// It lasts For in real time.
type Window struct {
	Allow, Deny string // when it begins: exactly one is set
	For         time.Duration
	TimeZone    string        // IANA name, UTC when empty
	LastStart   time.Duration // of an allow window: in this last part of it no change begins
}

// Windows are compiled windows. The zero Windows are always open.
type Windows struct {
	allow, deny []window
}

// window is a Window that is known to be sound.
type window struct {
	starts Schedule
	shown  cron.SpecSchedule // its times, as a clock without changes shows them
	open   time.Duration     // in which a change may begin; of a deny window all of it
	whole  time.Duration
}

// Compile makes Windows, or tells every fault of them.
func Compile(windows []Window) (Windows, error) {
	var out Windows
	var faults []error
	for i, w := range windows {
		c, err := w.compile()
		switch {
		case err != nil:
			faults = append(faults, fmt.Errorf("compiling window %d: %w", i+1, err))
		case w.Deny != "":
			out.deny = append(out.deny, c)
		default:
			out.allow = append(out.allow, c)
		}
	}
	if len(faults) > 0 {
		return Windows{}, errors.Join(faults...)
	}
	return out, nil
}

func (w Window) compile() (window, error) {
	switch {
	case (w.Allow == "") == (w.Deny == ""):
		return window{}, errors.New("exactly one of allow and deny is needed")
	case w.For < ShortestWindow || w.For > LongestWindow:
		return window{}, fmt.Errorf("it lasts %s; it can last from %s to %s", Brief(w.For), Brief(ShortestWindow), Brief(LongestWindow))
	case w.LastStart < 0 || w.LastStart >= w.For:
		return window{}, fmt.Errorf("lastStart %s is not shorter than the window, %s", Brief(w.LastStart), Brief(w.For))
	case w.Deny != "" && w.LastStart > 0:
		return window{}, errors.New("lastStart is of an allow window")
	}
	s, err := Parse(w.Allow+w.Deny, w.TimeZone)
	if err != nil {
		return window{}, err
	}
	shown, ok := s.plan.(*cron.SpecSchedule)
	if !ok {
		return window{}, fmt.Errorf("%q has no times by the clock: a window needs five fields or such as @daily", s)
	}
	ideal := *shown
	ideal.Location = time.UTC
	return window{starts: s, shown: ideal, open: w.For - w.LastStart, whole: w.For}, nil
}

// Fixed tells whether the schedule's times are the same from wherever one
// counts: those of @every are not.
func (s Schedule) Fixed() bool {
	_, ok := s.plan.(*cron.SpecSchedule)
	return ok
}

// Open tells whether a change may begin at a time, until when that stays so, and
// why it is so. A deny window that is in force closes; without an allow window
// all else is open. until is zero where no change of it comes within sight.
func (w Windows) Open(at time.Time) (open bool, until time.Time, why string) {
	budget := steps
	if d, denied := covering(w.deny, at); denied {
		return false, w.opens(at, &budget), fmt.Sprintf("deny window %s is in force", d)
	}
	if len(w.allow) == 0 {
		why = "no window is declared"
		if len(w.deny) > 0 {
			why = "no deny window is in force"
		}
		return true, begins(w.deny, at).UTC(), why
	}
	if a, allowed := covering(w.allow, at); allowed {
		return true, w.closes(at, &budget), fmt.Sprintf("allow window %s is open", a)
	}
	why = "no allow window is open"
	for _, a := range w.allow {
		if start, ok := a.last(at, a.whole); ok {
			why = fmt.Sprintf("allow window %s ends at %s: no change begins in its last %s", a, start.Add(a.whole).Format("15:04"), Brief(a.whole-a.open))
			break
		}
	}
	return false, w.opens(at, &budget), why
}

// steps bounds how far ahead a change of state is looked for: some windows never
// open, and no number of days shows it.
const steps = 500

// opens is the first time from t on at which a change may begin, zero where none
// is in sight.
func (w Windows) opens(t time.Time, budget *int) time.Time {
	for !t.IsZero() && *budget > 0 {
		*budget--
		if _, denied := covering(w.deny, t); denied {
			t = ends(w.deny, t, budget)
			continue
		}
		if _, allowed := covering(w.allow, t); allowed || len(w.allow) == 0 {
			return t.UTC()
		}
		t = begins(w.allow, t)
	}
	return time.Time{}
}

// closes is the first time after t, which is open, that is not.
func (w Windows) closes(t time.Time, budget *int) time.Time {
	end, denied := ends(w.allow, t, budget), begins(w.deny, t)
	if end.IsZero() || !denied.IsZero() && denied.Before(end) {
		end = denied
	}
	return end.UTC()
}

// covering finds the first window in which t is.
func covering(ws []window, t time.Time) (window, bool) {
	for _, w := range ws {
		if next := w.next(t.Add(-w.open)); !next.IsZero() && !next.After(t) {
			return w, true
		}
	}
	return window{}, false
}

// ends is the first time from t on that is in none of the windows, one that
// follows upon another included; zero where none is in sight.
func ends(ws []window, t time.Time, budget *int) time.Time {
	for ; *budget > 0; *budget-- {
		end := t
		for _, w := range ws {
			if start, ok := w.last(t, w.open); ok && start.Add(w.open).After(end) {
				end = start.Add(w.open)
			}
		}
		if end.Equal(t) {
			return t
		}
		t = end
	}
	return time.Time{}
}

// begins is when the next of the windows begins after t, zero for never.
func begins(ws []window, t time.Time) time.Time {
	var first time.Time
	for _, w := range ws {
		if n := w.next(t); first.IsZero() || !n.IsZero() && n.Before(first) {
			first = n
		}
	}
	return first
}

// next is the window's first start after t, zero where none is in sight. It goes
// from one change of the clock to the next, between which cron counts as in UTC:
// across one cron loses a start where the clock moves by half an hour.
func (w window) next(t time.Time) time.Time {
	for range changes {
		t = t.In(w.starts.zone)
		_, end := t.ZoneBounds()
		start := w.shown.Next(reading(t))
		if !start.IsZero() {
			start = start.Add(-offset(t)).In(w.starts.zone)
		}
		if end.IsZero() || !start.IsZero() && start.Before(end) {
			return start
		}
		if w.atChange(end) {
			return end
		}
		t = end
	}
	return time.Time{}
}

// changes bounds how many of the clock's are looked across: two a year, and eight
// years may lie between two leap days.
const changes = 20

// atChange tells whether a window begins where the clock changes: at a time that
// it shows then, or that it jumps over.
func (w window) atChange(change time.Time) bool {
	shows := reading(change.In(w.starts.zone))
	first := change.Add(min(offset(change.Add(-1).In(w.starts.zone)), offset(change.In(w.starts.zone)))).UTC()
	start := w.shown.Next(first.Add(-time.Second))
	return !start.IsZero() && !start.After(shows)
}

// last is the window's latest start that is no more than a length before t.
func (w window) last(t time.Time, length time.Duration) (start time.Time, ok bool) {
	passed := func(s time.Time) bool { return !s.IsZero() && !s.After(t) }
	if start = w.next(t.Add(-length)); !passed(start) {
		return time.Time{}, false
	}
	end := t // no start is known after it
	for {
		following := w.next(start)
		if !passed(following) {
			return start, true
		}
		middle := start.Add(end.Sub(start) / 2)
		if s := w.next(middle); passed(s) {
			start = s
			continue
		}
		start, end = following, middle
	}
}

// String names the window as it was written.
func (w window) String() string {
	return fmt.Sprintf("%q (%s, for %s)", w.starts.text, w.starts.zone, Brief(w.whole))
}

// Brief writes a duration as people do: 4h, not 4h0m0s.
func Brief(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
