package coverage

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"rollcall.dev/rollcall/clusters"
)

// rollout lists the nodes whose pods lag behind the current revision, those
// that have it only because they joined since, and why nothing moves the others
// on. A rolling update that merely takes its time has no reason here: its nodes
// are Updating.
func (s *set) rollout() (outdated, joined []string, why *Reason) {
	if s.current == nil {
		return nil, nil, nil
	}
	stuck := true // no outdated node is one that an update could move on
	for i, st := range s.state {
		switch n := &s.w.nodes[i]; {
		case st == Leaving || st == Excluded:
		case s.lags(i):
			outdated = append(outdated, n.Name)
			stuck = stuck && (st == NodeNotReady || st == Misscheduled)
		case s.flags[i].has(upToDate) && n.Created.After(s.current.Created):
			joined = append(joined, n.Name)
		}
	}
	if len(outdated) == 0 {
		return nil, nil, nil
	}
	return outdated, joined, s.hold(len(outdated), len(joined), stuck)
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
func (s *set) hold(outdated, joined int, stuck bool) *Reason {
	cause, rest := s.template("revision"), s.progress(outdated, joined)
	if onDelete(s.ds) {
		return new(because(WaitingForDelete, fmt.Sprintf("updateStrategy is OnDelete: pods of older revisions stay until somebody deletes them; revision %d is current, %s", s.current.Number, rest), cause))
	}
	holders := s.holders()
	switch last := s.lastProgress(); {
	case s.slots > 0 && len(holders) >= s.slots:
		return new(because(SurgeSlotHeld, fmt.Sprintf("the rolling update to revision %d waits for nodes that hold its surge slots, %s: %s; %s", s.current.Number, s.scaledText("maxSurge", s.slots), first(holders, 3), rest), cause))
	case s.slots == 0 && len(holders) >= s.budget:
		return new(because(RolloutBlocked, fmt.Sprintf("the rolling update to revision %d is blocked: %s unavailable, %s: %s; %s; with maxUnavailable %d it would go on", s.current.Number, nodes(s.busy), s.scaledText("maxUnavailable", s.budget), first(holders, 3), rest, s.busy+1), cause))
	case !stuck && s.w.options.ProgressDeadline > 0 && s.w.now.Sub(last) > s.w.options.ProgressDeadline+time.Duration(s.minReady)*time.Second:
		return new(because(ProgressDeadlineExceeded, fmt.Sprintf("the rolling update to revision %d has not moved since %s and nothing holds its budget: the DaemonSet controller may not be running; %s", s.current.Number, stamp(last), rest), cause).since(last))
	}
	return nil
}

// progress is how far the current revision has come.
func (s *set) progress(outdated, joined int) string {
	done := 0
	for i, f := range s.flags {
		if st := s.state[i]; f.has(upToDate) && st != Leaving && st != Excluded {
			done++
		}
	}
	text := fmt.Sprintf("%d of %d nodes run it", done, done+outdated)
	if joined > 0 {
		text += fmt.Sprintf(", %d of them because they joined after it", joined)
	}
	return text
}

func nodes(n int) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
}

// scaledText shows a budget, and what it was scaled from where that is a
// percentage.
func (s *set) scaledText(field string, n int) string {
	text := fmt.Sprintf("%s %d", field, n)
	ru := s.ds.Spec.UpdateStrategy.RollingUpdate
	if ru == nil {
		return text
	}
	if v := map[string]*intstr.IntOrString{"maxSurge": ru.MaxSurge, "maxUnavailable": ru.MaxUnavailable}[field]; v != nil && v.Type == intstr.String {
		text += fmt.Sprintf(" (%s of %d that should run it)", v.StrVal, s.wanted)
	}
	return text
}

// lastProgress is when the update was last seen to move: a revision or a pod
// was made, or a pod deleted.
func (s *set) lastProgress() time.Time {
	last := s.clock
	for _, i := range s.sorted {
		last = newer(last, &s.w.live.Pods[i])
	}
	return last
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
	return s.grace == 0 || s.w.now.Sub(t) < s.grace+time.Duration(s.minReady)*time.Second
}

func first(names []string, n int) string {
	if len(names) <= n {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:n], ", ") + fmt.Sprintf(" and %d more", len(names)-n)
}
