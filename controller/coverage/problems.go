package coverage

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/labels"

	"rollcall.dev/rollcall/clusters"
)

// problems are findings about the DaemonSet as a whole.
func (s *set) problems(c Counts) []Reason {
	var rs []Reason
	if i, err := s.wantP.unparseable(); err != nil {
		rs = append(rs, because(AffinityUnparseable, fmt.Sprintf("required node affinity term %d is accepted by the API and matches nothing: %v", i+1, err), s.template("affinity")))
	}
	rs = append(rs, s.lints()...)
	if s.subject.Live == nil {
		rs = append(rs, s.absent())
		return rs
	}
	if c.Intended == 0 && c.ShouldRun == 0 {
		rs = append(rs, because(NoEligibleNodes, "no node is meant to run it", s.template("nodes")))
	}
	if other := s.overlaps(); other != "" {
		rs = append(rs, because(ForeignPod, "its selector also matches the pods of "+other+": each keeps its own, and one pod without an owner goes to either", s.template("selector")))
	}
	if at := s.ds.DeletionTimestamp; at != nil { // its controller neither acts nor writes a status
		return append(rs, because(Terminating, "the DaemonSet is being deleted since "+stamp(at.Time)+finalizers(s.ds.Finalizers), s.template("deletionTimestamp")))
	}
	if s.ds.Status.ObservedGeneration < s.ds.Generation {
		// Who removes a field leaves no time: the last write may be later than it
		// seems, and a controller that makes pods is none that has stopped.
		if at, ok := s.lastSpecWrite(); ok && !s.within(at) && !s.within(s.w.lastMade) {
			rs = append(rs, because(ControllerStalled, fmt.Sprintf("the DaemonSet controller has seen generation %d, the DaemonSet is at %d since %s", s.ds.Status.ObservedGeneration, s.ds.Generation, stamp(at)), s.controllerCause()))
		}
		return rs
	}
	if s.lag != "" {
		rs = append(rs, because(StatusStale, "the DaemonSet's own counters disagree with nodes and pods: "+s.lag+" (a second look in 10 s tells whether they merely lag)", s.template("status")))
	}
	return rs
}

func finalizers(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return " and waits for its finalizers " + strings.Join(names, ", ")
}

// overlaps names the other DaemonSets whose pods this selector matches too.
func (s *set) overlaps() string {
	var names []string
	for i := range s.w.live.DaemonSets {
		ds := &s.w.live.DaemonSets[i]
		if ds.Namespace == s.ds.Namespace && ds.Name != s.ds.Name && !s.selector.Empty() && s.selector.Matches(labels.Set(ds.Spec.Template.Labels)) {
			names = append(names, "DaemonSet "+ds.Name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " and ")
}

// lastSpecWrite is when a manager last wrote anything but the status.
func (s *set) lastSpecWrite() (at time.Time, ok bool) {
	for _, f := range s.ds.ManagedFields {
		if f.Subresource == "" && f.Time != nil && f.Time.After(at) {
			at, ok = f.Time.Time, true
		}
	}
	return at, ok
}

// counters are the numbers of a DaemonSet's status, by rules S1 to S7.
type counters struct{ desired, current, ready, available, updated, misscheduled, unavailable int32 }

// statusDiff recomputes the status as upstream does (updateDaemonSetStatus)
// and names what differs.
func (s *set) statusDiff() string {
	have := s.ds.Status
	want := s.counters()
	var diffs []string
	add := func(name string, have, want int32) {
		if have != want {
			diffs = append(diffs, fmt.Sprintf("%s is %d, counted %d", name, have, want))
		}
	}
	add("desiredNumberScheduled", have.DesiredNumberScheduled, want.desired)
	add("currentNumberScheduled", have.CurrentNumberScheduled, want.current)
	add("numberReady", have.NumberReady, want.ready)
	add("numberAvailable", have.NumberAvailable, want.available)
	if s.current != nil {
		add("updatedNumberScheduled", have.UpdatedNumberScheduled, want.updated)
	}
	add("numberMisscheduled", have.NumberMisscheduled, want.misscheduled)
	add("numberUnavailable", have.NumberUnavailable, want.unavailable)
	return strings.Join(diffs, ", ")
}

func (s *set) counters() counters {
	var c counters
	for i := range s.flags {
		pods := s.podsOn(i)
		if !s.flags[i].has(shouldRun) {
			if len(pods) > 0 {
				c.misscheduled++
			}
			continue
		}
		c.desired++
		if len(pods) == 0 {
			continue
		}
		c.current++
		at := s.first(i)
		first := &s.w.live.Pods[s.sorted[at]]
		if first.Ready {
			c.ready++
		}
		if available(first, s.minReady, s.w.now) {
			c.available++
		}
		if s.facts[at].has(latest) || s.sameGeneration(first) {
			c.updated++
		}
	}
	c.unavailable = c.desired - c.available
	return c
}

// first is the pod that upstream looks at: bound before unbound, then older,
// then the smaller name (rule M8).
func (s *set) first(node int) int32 {
	best := s.start[node]
	for at := best + 1; at < s.start[node+1]; at++ {
		p, q := &s.w.live.Pods[s.sorted[at]], &s.w.live.Pods[s.sorted[best]]
		earlier := cmp.Or(p.Created.Compare(q.Created), strings.Compare(p.Name, q.Name)) < 0
		if p.Bound && !q.Bound || p.Bound == q.Bound && earlier {
			best = at
		}
	}
	return best
}

// sameGeneration is the second clause of upstream's rule U1: a pod with the
// DaemonSet's template generation counts as updated whatever its hash.
func (s *set) sameGeneration(p *clusters.Pod) bool {
	generation, err := strconv.ParseInt(s.ds.Annotations[appsv1.DeprecatedTemplateGeneration], 10, 64)
	return err == nil && p.Labels[generationLabel] == strconv.FormatInt(generation, 10)
}
