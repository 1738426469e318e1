package coverage

import (
	"fmt"
	"strings"
)

// rollout lists the nodes whose pods lag behind the current revision, and why
// nothing moves them on. A rolling update that merely takes its time has no
// reason here: its nodes are Updating.
func (s *set) rollout() (outdated []string, why *Reason) {
	if s.current == nil {
		return nil, nil
	}
	for i, st := range s.state {
		if st != Leaving && st != Excluded && s.lags(i) {
			outdated = append(outdated, s.w.nodes[i].Name)
		}
	}
	if len(outdated) == 0 {
		return nil, nil
	}
	return outdated, s.hold(s.stuck())
}

// stuck names the nodes that use up the budget and are not on their way.
func (s *set) stuck() []string {
	var out []string
	for i, st := range s.state {
		if s.flags[i].has(unsettled) && st != Leaving && st != Excluded && st != Updating && st != Starting {
			out = append(out, fmt.Sprintf("%s (%s)", s.w.nodes[i].Name, st))
		}
	}
	return out
}

// lags tells whether a node runs an older revision only.
func (s *set) lags(i int) bool {
	for _, f := range s.facts[s.start[i]:s.start[i+1]] {
		if f.has(latest) {
			return false
		}
	}
	return s.start[i] < s.start[i+1]
}

// hold is what keeps a rollout from going on, nil when nothing does.
func (s *set) hold(stuck []string) *Reason {
	cause := s.template("revision")
	switch {
	case onDelete(s.ds):
		return new(because(WaitingForDelete, fmt.Sprintf("updateStrategy is OnDelete: pods of older revisions stay until somebody deletes them; revision %d is current", s.current.Number), cause))
	case len(stuck) == 0:
		return nil
	case s.surge:
		return new(because(SurgeSlotHeld, fmt.Sprintf("the rolling update to revision %d waits for nodes that hold its surge slots: %s", s.current.Number, first(stuck, 3)), cause))
	case s.busy >= s.budget:
		return new(because(RolloutBlocked, fmt.Sprintf("the rolling update to revision %d is blocked: unavailable nodes %d, maxUnavailable %d: %s", s.current.Number, s.busy, s.budget, first(stuck, 3)), cause))
	}
	return nil
}

func first(names []string, n int) string {
	if len(names) <= n {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:n], ", ") + fmt.Sprintf(" and %d more", len(names)-n)
}
