package coverage

import (
	appsv1 "k8s.io/api/apps/v1"

	"rollcall.dev/rollcall/clusters"
)

// Placing is what becomes of one node when a template takes the place of
// another one: whether a pod is intended there before and after, whether or not
// one runs.
type Placing struct {
	Node          string
	Before, After bool
	Refusal       Reason // why the second template does not intend it; zero where it does
}

// Place judges pairs of templates on every node of a cluster that either of
// them intends; Before or After of a pair is nil where there is no DaemonSet
// then. Nodes are in order of their names.
func Place(live *clusters.Live, pairs []Pair, o Options) [][]Placing {
	w := newWorld(live, o)
	subjects := make([]Subject, len(pairs))
	for i, p := range pairs {
		subjects[i] = Subject{Live: p.Before, Desired: p.After}
	}
	w.indexAgents(subjects)
	sets := make([]*set, len(pairs))
	var predicates []*predicate
	for i, s := range subjects {
		st := &set{w: w, subject: s, ds: s.judged()}
		st.liveP = compileTemplate(st.ds, o)
		if st.wantP = st.liveP; s.Desired != nil && s.Live != nil {
			st.wantP = compileTemplate(s.Desired, o)
		}
		st.agents, _ = w.agentsOf(s)
		sets[i] = st
		predicates = append(predicates, st.predicates()...)
	}
	w.indexLabels(predicates)
	out := make([][]Placing, len(pairs))
	for i, s := range sets {
		out[i] = s.place(pairs[i])
	}
	return out
}

// Pair is a DaemonSet before and after a change.
type Pair struct{ Before, After *appsv1.DaemonSet }

func (s *set) place(p Pair) []Placing {
	none := make([]flags, len(s.w.nodes))
	before, after := none, none
	if p.Before != nil {
		before = s.w.verdicts(s.liveP, s.agents)
	}
	if p.After != nil {
		after = s.w.verdicts(s.wantP, s.agents)
	}
	var out []Placing
	for i := range s.w.nodes {
		x := Placing{Node: s.w.nodes[i].Name, Before: before[i].has(intended), After: after[i].has(intended)}
		if !x.Before && !x.After {
			continue
		}
		if !x.After && p.After != nil {
			x.Refusal, _ = s.refusal(s.wantP, &s.w.nodes[i])
		}
		out = append(out, x)
	}
	return out
}
