package coverage

import (
	"k8s.io/apimachinery/pkg/labels"
)

// flags are one node's verdicts on one DaemonSet.
type flags uint16

const (
	shouldRun flags = 1 << iota
	shouldContinueRunning
	accepted // by name, nodeSelector and affinity
	intended
	covered
	upToDate
	unsettled    // wanted or occupied, and not by exactly one available pod
	liveIntended // as intended, by the live template
	running      // an available pod is there, and the node is heard from
	excused      // a gap that is accepted
)

func (f flags) has(x flags) bool { return f&x != 0 }

// verdicts decides a template for every node of the world: shouldRun and
// shouldContinueRunning as upstream does, accepted and intended of our own. A
// virtual node is intended only where one of the agents asks for it.
func (w *world) verdicts(p *predicate, agents []int) []flags {
	ok := w.accepts(p)
	byTaints := make([]taintVerdict, len(w.taintSets))
	for i, taints := range w.taintSets {
		byTaints[i] = p.judge(taints, w.keys)
	}
	out := make([]flags, len(w.nodes))
	for i := range out {
		if !ok[i] {
			continue
		}
		t := byTaints[w.taintSet[i]]
		f := accepted
		if t.run {
			f |= shouldRun
		}
		if t.stay {
			f |= shouldContinueRunning
		}
		if t.intended && w.facts[i]&leaving == 0 && (w.facts[i]&virtual == 0 || w.asked(i, agents)) {
			f |= intended | liveIntended
		}
		out[i] = f
	}
	return out
}

// accepts decides name, nodeSelector and required affinity for every node.
func (w *world) accepts(p *predicate) []bool {
	ok := make([]bool, len(w.nodes))
	for i := range ok {
		ok[i] = true
	}
	if p.nodeName != "" {
		w.only(ok, p.nodeName)
	}
	for _, s := range p.selector {
		c := w.columns[s.key]
		want, known := c.ids[s.value]
		for i, v := range c.node {
			ok[i] = ok[i] && known && v == want
		}
	}
	if p.hasTerms {
		w.acceptTerms(ok, p.terms)
	}
	return ok
}

func (w *world) only(ok []bool, name string) {
	at, known := w.byName[name]
	for i := range ok {
		ok[i] = ok[i] && known && i == int(at)
	}
}

// acceptTerms leaves the nodes that at least one term matches.
func (w *world) acceptTerms(ok []bool, terms []term) {
	matched := make([]bool, len(ok))
	one := make([]bool, len(ok))
	for _, t := range terms {
		if t.dead() {
			continue
		}
		copy(one, ok)
		for _, r := range t.labels {
			w.require(one, r)
		}
		for _, f := range t.names {
			for i := range one {
				one[i] = one[i] && f.matches(w.nodes[i].Name)
			}
		}
		for i := range matched {
			matched[i] = matched[i] || one[i]
		}
	}
	copy(ok, matched)
}

// require decides a label requirement once per distinct value.
func (w *world) require(ok []bool, r labels.Requirement) {
	c := w.columns[r.Key()]
	by := make([]bool, len(c.values))
	one := labels.Set{}
	by[0] = r.Matches(one)
	for id := 1; id < len(by); id++ {
		one[r.Key()] = c.values[id]
		by[id] = r.Matches(one)
	}
	for i, v := range c.node {
		ok[i] = ok[i] && by[v]
	}
}

// column holds one label key of all nodes: value 0 is "no such label".
type column struct {
	ids    map[string]int32
	values []string
	node   []int32
}

func newColumn(n int) *column {
	return &column{ids: map[string]int32{}, values: []string{""}, node: make([]int32, n)}
}

func (c *column) set(i int, value string) {
	id, ok := c.ids[value]
	if !ok {
		id = int32(len(c.values))
		c.ids[value] = id
		c.values = append(c.values, value)
	}
	c.node[i] = id
}
