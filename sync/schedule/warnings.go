package schedule

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// year is how far apart two runs may be before that looks like a mistake.
const year = 366 * 24 * time.Hour

// Warnings returns what is accepted and probably not meant, one sentence each.
func (s Schedule) Warnings() []string {
	if s.plan == nil {
		return nil
	}
	var out []string
	if text, ok := strings.CutPrefix(s.rest, "@every "); ok {
		if d, err := time.ParseDuration(text); err == nil && d%time.Second != 0 {
			out = append(out, fmt.Sprintf("%q is rounded down to %s", s.text, d.Truncate(time.Second)))
		}
	} else if !strings.HasPrefix(s.rest, "@") {
		out = s.fieldWarnings()
	}
	first := s.plan.Next(reference())
	if second := s.plan.Next(first); second.IsZero() || second.Sub(first) > year {
		out = append(out, fmt.Sprintf("%q is due less than once a year: the next run can be more than a year away", s.text))
	}
	return out
}

func (s Schedule) fieldWarnings() []string {
	var out []string
	for i, field := range strings.Fields(s.rest) {
		for item := range strings.SplitSeq(field, ",") {
			if only, ok := loneStep(item, i); ok {
				out = append(out, fmt.Sprintf("%q in the %s field means %s %s only: the step is larger than the range", item, cronFields[i].name, cronFields[i].name, only))
			}
		}
	}
	if p, ok := s.plan.(*cron.SpecSchedule); ok && (p.Dom|p.Dow)&starBit == 0 {
		out = append(out, "day of month and day of week are both given: it is due when either fits, not when both do")
	}
	return out
}

// loneStep tells whether a step leaves only the first value of its range.
func loneStep(item string, field int) (only string, lone bool) {
	span, text, ok := strings.Cut(item, "/")
	step, err := strconv.Atoi(text)
	if !ok || err != nil || step < 2 {
		return "", false
	}
	from, to, isRange := strings.Cut(span, "-")
	if from == "*" || from == "?" {
		from = strconv.Itoa(cronFields[field].first)
		isRange = false
	}
	end := cronFields[field].last
	low, err := strconv.Atoi(from)
	if err != nil { // a name: its step is judged by its reader
		return "", false
	}
	if isRange {
		if end, err = strconv.Atoi(to); err != nil {
			return "", false
		}
	}
	return from, low+step > end
}
