package coverage

import (
	"fmt"
	"strings"
	"time"

	"rollcall.dev/rollcall/clusters"
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
	return outdated, s.hold()
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
func (s *set) hold() *Reason {
	cause := s.template("revision")
	if onDelete(s.ds) {
		return new(because(WaitingForDelete, fmt.Sprintf("updateStrategy is OnDelete: pods of older revisions stay until somebody deletes them; revision %d is current", s.current.Number), cause))
	}
	holders := s.holders()
	switch {
	case len(holders) == 0:
		return nil
	case s.slots > 0 && len(holders) >= s.slots:
		return new(because(SurgeSlotHeld, fmt.Sprintf("the rolling update to revision %d waits for nodes that hold its surge slots, maxSurge %d: %s", s.current.Number, s.slots, first(holders, 3)), cause))
	case s.slots == 0 && len(holders) >= s.budget:
		return new(because(RolloutBlocked, fmt.Sprintf("the rolling update to revision %d is blocked: unavailable nodes %d, maxUnavailable %d: %s", s.current.Number, s.busy, s.budget, first(holders, 3)), cause))
	}
	return nil
}

// holders names the nodes that use up the budget of a rolling update and are
// not on their way.
func (s *set) holders() []string {
	var out []string
	for i, st := range s.state {
		if s.holds(i) && !s.onItsWay(i) {
			out = append(out, fmt.Sprintf("%s (%s)", s.w.nodes[i].Name, st))
		}
	}
	if s.slots == 0 && !s.recent(s.clock) { // the pod garbage collector needs a minute
		for _, name := range s.lost {
			out = append(out, name+" (gone)")
		}
	}
	return out
}

// holds tells whether a node takes of the budget: without surge by not having
// exactly one available pod (rules U10 to U12), with surge by a new pod that is
// not available beside an old one, or by more pods than these (U20, U24).
func (s *set) holds(i int) bool {
	if s.slots == 0 {
		return s.flags[i].has(unsettled)
	}
	old, current, unavailable := 0, 0, 0
	for at := s.start[i]; at < s.start[i+1]; at++ {
		p := &s.w.live.Pods[s.sorted[at]]
		switch {
		case !p.Deleting.IsZero():
		case !s.facts[at].has(latest):
			old++
		default:
			current++
			if !available(p, s.minReady, s.w.now) {
				unavailable++
			}
		}
	}
	return old > 1 || current > 1 || old == 1 && unavailable == 1
}

// onItsWay tells whether a node that takes of the budget may still give it
// back by itself: it is heard from, nothing here waits on an error, and what
// happened here last is no longer ago than a start may take.
func (s *set) onItsWay(i int) bool {
	if st := s.state[i]; st == Leaving || st == Excluded || st == NodeNotReady || st == Misscheduled {
		return false
	}
	last := s.clock
	for at := s.start[i]; at < s.start[i+1]; at++ {
		if s.facts[at].has(failing) {
			return false
		}
		last = newer(last, &s.w.live.Pods[s.sorted[at]])
	}
	return s.recent(last)
}

// newer is when something last happened to a pod, if that is after t.
func newer(t time.Time, p *clusters.Pod) time.Time {
	for _, at := range []time.Time{p.Created, p.Deleting} {
		if at.After(t) {
			t = at
		}
	}
	return t
}

// recent tells whether a start that began at t may still be under way. Without
// a grace there is no telling that it is not.
func (s *set) recent(t time.Time) bool {
	grace := s.w.options.Grace
	return grace == 0 || s.w.now.Sub(t) < grace+time.Duration(s.minReady)*time.Second
}

func first(names []string, n int) string {
	if len(names) <= n {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:n], ", ") + fmt.Sprintf(" and %d more", len(names)-n)
}
