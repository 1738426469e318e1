package coverage

import (
	"cmp"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollcall.dev/rollcall/clusters"
)

// Compute judges DaemonSets on every node of one cluster. The result refers to
// live, which must not change.
func Compute(live *clusters.Live, subjects []Subject, o Options) Cluster {
	compiled := make([]*predicate, 0, 2*len(subjects))
	for _, s := range subjects {
		judged := compileTemplate(s.judged(), o)
		wanted := judged
		if s.wanted() != s.judged() {
			wanted = compileTemplate(s.wanted(), o)
		}
		compiled = append(compiled, judged, wanted)
	}
	w := newWorld(live, compiled, o)
	out := make([]DaemonSet, len(subjects))
	for i, s := range subjects {
		out[i] = w.compute(s, compiled[2*i], compiled[2*i+1])
	}
	slices.SortFunc(out, func(a, b DaemonSet) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return Cluster{DaemonSets: out}
}

func compileTemplate(ds *appsv1.DaemonSet, o Options) *predicate {
	return compile(clusters.PlacementOf(&ds.Spec.Template.Spec), o.ComparisonOperators)
}

// set is one DaemonSet while it is being judged, and what its rows are made of.
type set struct {
	w        *world
	subject  Subject
	ds       *appsv1.DaemonSet // the live one, or the desired one where none is live
	liveP    *predicate        // of ds
	wantP    *predicate        // of the desired one, or ds
	selector labels.Selector
	current  *clusters.Revision // nil: unknown
	minReady int32
	slots    int // maxSurge, scaled; 0 without surge
	budget   int // maxUnavailable, scaled
	busy     int // nodes without a settled pod
	clock    time.Time

	flags  []flags
	state  []State
	start  []int32    // pods of node i are sorted[start[i]:start[i+1]]
	sorted []int32    // its visible pods, by node
	facts  []podFacts // of sorted
	gone   []int32    // pods whose node is not there
	lost   []string   // nodes that are not there and use up the budget by what is left of their pods
	freed  []int32    // pods that its selector no longer matches
	dead   []lostPod  // pods that it created and that are gone
}

func (w *world) compute(s Subject, liveP, wantP *predicate) DaemonSet {
	ds := s.judged()
	st := &set{w: w, subject: s, ds: ds, liveP: liveP, wantP: wantP, minReady: ds.Spec.MinReadySeconds}
	st.selector = selectorOf(ds)
	if s.Live != nil {
		st.current = current(w.revisions[string(ds.UID)])
	}
	st.clock = st.newest()
	st.flags = w.verdicts(liveP)
	st.intend()
	st.groupPods()
	st.dead = st.lostPods()
	summaries := st.plan()
	out := DaemonSet{Namespace: ds.Namespace, Name: ds.Name, Subject: s, set: st}
	st.decide(summaries, &out.Counts)
	out.Strays = st.strays()
	out.Problems = st.problems(out.Counts)
	out.Outdated, out.Rollout = st.rollout()
	return out
}

// selectorOf never fails: the API has validated the selector of a live
// DaemonSet, and one that does not parse selects nothing.
func selectorOf(ds *appsv1.DaemonSet) labels.Selector {
	sel, err := metav1.LabelSelectorAsSelector(ds.Spec.Selector)
	if err != nil {
		return labels.Nothing()
	}
	return sel
}

// current is the revision with the highest number; unknown as well while the
// controller has not labelled it yet with the hash that pods are matched by.
func current(revisions []*clusters.Revision) *clusters.Revision {
	if len(revisions) == 0 {
		return nil
	}
	r := slices.MaxFunc(revisions, func(a, b *clusters.Revision) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), strings.Compare(a.Name, b.Name))
	})
	if r.Hash == "" {
		return nil
	}
	return r
}

// newest is the DaemonSet's own part of the clock of a start.
func (s *set) newest() time.Time {
	t := s.ds.CreationTimestamp.Time
	if s.current != nil && s.current.Created.After(t) {
		t = s.current.Created
	}
	for _, e := range s.w.events[string(s.ds.UID)] {
		if e.Reason == "SuccessfulDelete" && e.Last.After(t) {
			t = e.Last
		}
	}
	return t
}

// intend replaces accepted and intended by what the desired template says.
func (s *set) intend() {
	if s.liveP == s.wantP {
		return
	}
	for i, f := range s.w.verdicts(s.wantP) {
		s.flags[i] = s.flags[i]&(shouldRun|shouldContinueRunning) | f&(accepted|intended)
	}
}

// groupPods sorts the DaemonSet's visible pods by node.
func (s *set) groupPods() {
	n := len(s.w.nodes)
	s.start = make([]int32, n+1)
	var owned []int32
	if s.subject.Live != nil {
		owned = s.w.owned[string(s.ds.UID)]
	}
	mine := make([]int32, 0, len(owned))
	for _, i := range owned {
		if !s.w.podFacts[i].has(visible) {
			continue
		}
		if !s.selector.Matches(labels.Set(s.w.live.Pods[i].Labels)) {
			s.freed = append(s.freed, i)
			continue
		}
		if s.w.podNode[i] < 0 {
			s.gone = append(s.gone, i)
			continue
		}
		mine = append(mine, i)
		s.start[s.w.podNode[i]+1]++
	}
	for i := range n {
		s.start[i+1] += s.start[i]
	}
	s.sorted, s.facts = make([]int32, len(mine)), make([]podFacts, len(mine))
	next := slices.Clone(s.start)
	for _, i := range mine {
		at := s.w.podNode[i]
		s.sorted[next[at]], s.facts[next[at]] = i, s.w.podFacts[i]
		if s.isCurrent(&s.w.live.Pods[i]) {
			s.facts[next[at]] |= latest
		}
		next[at]++
	}
}

func (s *set) podsOn(i int) []int32 { return s.sorted[s.start[i]:s.start[i+1]] }

// plan sums up the pods of each node and the budget of a rolling update.
func (s *set) plan() []podSummary {
	sums := make([]podSummary, len(s.w.nodes))
	wanted := 0
	for i := range sums {
		sums[i] = s.summarise(i)
		if s.flags[i].has(shouldRun) {
			wanted++
		}
	}
	s.slots = maxSurge(s.ds, wanted)
	for i := range sums {
		if s.slots > 0 && len(s.podsOn(i)) > 1 {
			sums[i] = s.summarise(i)
		}
		if (sums[i].present || s.flags[i].has(shouldRun)) && !sums[i].settled {
			s.busy++
			s.flags[i] |= unsettled
		}
	}
	s.lost = s.lostNodes()
	s.busy += len(s.lost)
	s.budget = maxUnavailable(s.ds, wanted)
	return sums
}

// lostNodes are nodes that no longer exist and whose pods do: upstream counts
// them for the budget like any other (rules U7 and U11).
func (s *set) lostNodes() []string {
	undeleted, steady := map[string]int{}, map[string]bool{}
	for _, i := range s.gone {
		if p := &s.w.live.Pods[i]; p.Node != "" && p.Deleting.IsZero() {
			undeleted[p.Node]++
			steady[p.Node] = available(p, s.minReady, s.w.now)
		} else if p.Node != "" {
			undeleted[p.Node] += 0
		}
	}
	var lost []string
	for node, n := range undeleted {
		if n != 1 || !steady[node] {
			lost = append(lost, node)
		}
	}
	slices.Sort(lost)
	return lost
}

// maxSurge and maxUnavailable scale with the nodes that want the pod, rounded
// up (pkg/controller/daemon/util/daemonset_util.go).
func maxSurge(ds *appsv1.DaemonSet, wanted int) int {
	ru := ds.Spec.UpdateStrategy.RollingUpdate
	if onDelete(ds) || ru == nil {
		return 0
	}
	return scaled(ru.MaxSurge, max(wanted, 1), 0)
}

func maxUnavailable(ds *appsv1.DaemonSet, wanted int) int {
	ru := ds.Spec.UpdateStrategy.RollingUpdate
	if ru == nil {
		return 1
	}
	n := scaled(ru.MaxUnavailable, wanted, 1)
	if n == 0 && wanted > 0 && scaled(ru.MaxSurge, wanted, 0) == 0 {
		return 1
	}
	return n
}

func scaled(v *intstr.IntOrString, of, otherwise int) int {
	if v == nil {
		return otherwise
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(v, of, true)
	if err != nil { // the API refuses such values
		return otherwise
	}
	return n
}

func onDelete(ds *appsv1.DaemonSet) bool {
	return ds.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType
}

// decide finds each node's state and counts.
func (s *set) decide(sums []podSummary, c *Counts) {
	common := s.common(sums)
	fresh := s.w.within(s.clock)
	s.state = make([]State, len(sums))
	c.Nodes, c.UpToDateKnown = len(sums), s.current != nil || s.subject.Live == nil
	for i, sum := range sums {
		f := facts{flags: s.flags[i], node: s.w.facts[i], pods: sum, set: common}
		f.set.starting = fresh || f.node&young != 0
		s.state[i] = stateOf(f)
		c.States[s.state[i]]++
		if sum.available && f.node&down == 0 && f.flags.has(intended) {
			s.flags[i] |= covered
		}
		if sum.current {
			s.flags[i] |= upToDate
		}
		count(c, s.flags[i])
	}
}

func count(c *Counts, f flags) {
	if f.has(shouldRun) {
		c.ShouldRun++
	}
	if !f.has(intended) {
		return
	}
	c.Intended++
	if f.has(covered) {
		c.Covered++
	}
	if f.has(upToDate) {
		c.UpToDate++
	}
}

// common are the facts that all nodes of the DaemonSet share.
func (s *set) common(sums []podSummary) setFacts {
	f := setFacts{absent: s.subject.Live == nil}
	if s.current == nil || onDelete(s.ds) || s.busy > s.budget {
		return f
	}
	for _, sum := range sums {
		f.updating = f.updating || sum.outdated
	}
	return f
}
