package coverage

import (
	"cmp"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/labels"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollcall.dev/rollcall/clusters"
)

// Compute judges DaemonSets on every node of one cluster. The result refers to
// live, which must not change.
func Compute(live *clusters.Live, subjects []Subject, o Options) Cluster {
	w := newWorld(live, o)
	problems := w.indexAgents(subjects)
	problems = append(problems, w.indexExcuses()...)
	sets := make([]*set, len(subjects))
	var predicates []*predicate
	for i, s := range subjects {
		sets[i] = w.prepare(s)
		predicates = append(predicates, sets[i].predicates()...)
	}
	w.indexLabels(predicates)
	out := Cluster{DaemonSets: make([]DaemonSet, len(subjects)), Problems: problems}
	for i, s := range sets {
		out.DaemonSets[i] = s.judge()
	}
	for i, s := range sets {
		out.DaemonSets[i].Lost = w.standing(s, sets)
	}
	slices.SortFunc(out.DaemonSets, func(a, b DaemonSet) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	if !o.Partial {
		out.Agents = w.sumUp(sets)
		out.Problems = append(out.Problems, w.unused()...)
	}
	out.Used = w.used()
	return out
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
	formers  []former           // earlier templates that placed pods otherwise, the newest first
	current  *clusters.Revision // nil: unknown
	minReady int32
	wanted   int // nodes that should run it
	slots    int // maxSurge, scaled; 0 without surge
	budget   int // maxUnavailable, scaled
	busy     int // nodes without a settled pod
	clock    time.Time
	grace    time.Duration // how long a start may take
	lag      string        // in what its own counters disagree with nodes and pods
	agents   []int         // that it belongs to
	excuses  []*excuse     // that may be for it

	flags     []flags
	state     []State
	start     []int32    // pods of node i are sorted[start[i]:start[i+1]]
	sorted    []int32    // its visible pods, by node
	facts     []podFacts // of sorted
	gone      []int32    // pods whose node is not there
	lost      []string   // nodes that are not there and use up the budget by what is left of their pods
	freed     []int32    // pods that its selector no longer matches
	dead      []lostPod  // pods that it created and that are gone
	losses    []loss
	lossOf    []int16   // by node, the loss that it belongs to plus 1; nil without losses
	excusedBy []*excuse // by node; nil where nothing is excused
}

// prepare reads everything of a DaemonSet but its nodes.
func (w *world) prepare(s Subject) *set {
	ds := s.judged()
	st := &set{w: w, subject: s, ds: ds, minReady: ds.Spec.MinReadySeconds, selector: selectorOf(ds)}
	st.liveP = compileTemplate(ds, w.options)
	st.wantP = st.liveP
	if s.wanted() != ds {
		st.wantP = compileTemplate(s.wanted(), w.options)
	}
	st.agents, st.grace = w.agentsOf(s)
	st.excuses = w.excusesOf(st)
	if s.Live != nil {
		revisions := w.revisions[string(ds.UID)]
		st.current = current(revisions)
		st.formers = st.formerTemplates(revisions)
	}
	st.clock = st.newest()
	return st
}

// predicates are all that it asks of nodes.
func (s *set) predicates() []*predicate {
	ps := []*predicate{s.liveP}
	if s.wantP != s.liveP {
		ps = append(ps, s.wantP)
	}
	for _, f := range s.formers {
		ps = append(ps, f.predicate)
	}
	return ps
}

// judge reads the nodes and their pods.
func (s *set) judge() DaemonSet {
	s.flags = s.w.verdicts(s.liveP, s.agents)
	s.intend()
	s.groupPods()
	s.dead = s.lostPods()
	out := DaemonSet{Namespace: s.ds.Namespace, Name: s.ds.Name, Subject: s.subject, Agents: s.agents, set: s}
	s.decide(s.plan())
	if s.subject.Live != nil {
		s.lag = s.statusDiff()
	}
	s.findLosses()
	s.findExcuses()
	out.Counts = s.count()
	out.Strays = s.strays()
	out.Problems = s.problems(out.Counts)
	out.Outdated, out.Joined, out.Rollout = s.rollout()
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

// intend replaces accepted and intended by what the desired template says, and
// leaves liveIntended.
func (s *set) intend() {
	if s.liveP == s.wantP { // verdicts has set both
		return
	}
	for i, f := range s.w.verdicts(s.wantP, s.agents) {
		s.flags[i] = s.flags[i]&^(accepted|intended) | f&(accepted|intended)
	}
}

// within tells whether t is less than the startup grace ago.
func (s *set) within(t time.Time) bool { return within(s.w.now, t, s.grace) }

// node is what the state of node i depends on: young by the DaemonSet's own
// grace.
func (s *set) node(i int) nodeFacts {
	f := s.w.facts[i]
	if s.grace == s.w.options.Grace {
		return f
	}
	if f &^= young; s.within(s.w.nodes[i].Created) {
		f |= young
	}
	return f
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
	for i := range sums {
		sums[i] = s.summarise(i)
		if s.flags[i].has(shouldRun) {
			s.wanted++
		}
	}
	s.slots = maxSurge(s.ds, s.wanted)
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
	s.budget = maxUnavailable(s.ds, s.wanted)
	return sums
}

// decide finds each node's state.
func (s *set) decide(sums []podSummary) {
	common := s.common(sums)
	fresh := s.within(s.clock)
	s.state = make([]State, len(sums))
	for i, sum := range sums {
		f := facts{flags: s.flags[i], node: s.node(i), pods: sum, set: common}
		f.set.starting = fresh || f.node&young != 0 || !sum.available && s.justMade(i, sum)
		s.state[i] = stateOf(f)
		if sum.available && f.node&down == 0 {
			if s.flags[i] |= running; f.flags.has(intended) {
				s.flags[i] |= covered
			}
		}
		if sum.current {
			s.flags[i] |= upToDate
		}
	}
}

// justMade tells whether the node has a pod that was created less than a grace
// ago to replace another one, and is not one of a series.
func (s *set) justMade(i int, sum podSummary) bool {
	if sum.onTheWay.IsZero() || !s.within(sum.onTheWay) {
		return false
	}
	lost, _ := s.vanished(&s.w.nodes[i])
	return lost < 2
}

// count sums the nodes up. An excused node is in no count but its own, its
// state's and ShouldRun.
func (s *set) count() Counts {
	c := Counts{Nodes: len(s.flags), UpToDateKnown: s.current != nil || s.subject.Live == nil}
	for i, f := range s.flags {
		c.States[s.state[i]]++
		if f.has(shouldRun) {
			c.ShouldRun++
		}
		if f.has(excused) {
			c.Excused++
			continue
		}
		if !f.has(intended) {
			continue
		}
		c.Intended++
		if f.has(covered) {
			c.Covered++
		}
		if f.has(upToDate) {
			c.UpToDate++
		}
	}
	return c
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
