package gate

import (
	"slices"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/coverage"
)

// agents judges the agent of the cluster that is waited for; none where it is
// not for this cluster.
func (j *judge) agents() []Progress {
	var out []Progress
	for i := range j.Coverage.Agents {
		if j.Coverage.Agents[i].Name == j.want.Agent {
			out = append(out, j.agent(i))
		}
	}
	return out
}

// agentNodes is an agent while its nodes are counted.
type agentNodes struct {
	*judge
	agent   *coverage.Agent
	members []*coverage.DaemonSet
	gaps    map[string]coverage.Reason
}

// agent judges an agent: on every node that it selects any of its DaemonSets
// will do.
func (j *judge) agent(at int) Progress {
	a := &agentNodes{judge: j, agent: &j.Coverage.Agents[at], gaps: map[string]coverage.Reason{}}
	n := &count{Progress: Progress{Target: "agent/" + a.agent.Name, LeftOut: map[Ground]int{}}}
	live := false
	for i := range j.Coverage.DaemonSets {
		if d := &j.Coverage.DaemonSets[i]; slices.Contains(d.Agents, at) {
			a.members = append(a.members, d)
			live = live || d.Subject.Live != nil
			for _, why := range j.faults(d) {
				n.faults = append(n.faults, d.Namespace+"/"+d.Name+": "+why)
			}
		}
	}
	if !live {
		n.faults = []string{"no DaemonSet of the agent is in the cluster"}
	}
	for _, g := range a.agent.Gaps {
		for _, name := range g.Nodes {
			a.gaps[name] = g.Reason
		}
	}
	for i := range j.Live.Nodes {
		if node := &j.Live.Nodes[i]; a.leaves(node) {
			n.LeftOut[Leaving]++
		} else if wanted, excused := a.agent.Wants(node.Name); wanted {
			a.count(n, node, excused)
		}
	}
	if n.Counted == 0 {
		n.empty(nil)
	}
	return n.conclude(j.want.UpToDate, a.enough(n))
}

// enough tells whether as many nodes are covered as are asked for: by the
// agent's own min where nothing else is.
func (a *agentNodes) enough(n *count) bool {
	if a.want.Coverage > 0 {
		return reached(n.Covered, n.Counted, a.want.Coverage)
	}
	return a.agent.Reached(n.Covered, n.Counted)
}

// leaves tells whether a node of one of the DaemonSets is on its way out.
func (a *agentNodes) leaves(n *clusters.Node) bool {
	return slices.ContainsFunc(a.members, func(d *coverage.DaemonSet) bool {
		r, _ := d.Row(n.Name)
		return r.State == coverage.Leaving && len(r.Pods) > 0
	})
}

// site is what the DaemonSets of an agent amount to on one node.
type site struct {
	covered, current bool
	intended         bool // for one of them
	starting         bool // just joined
	states           []coverage.State
	gap, old         Blocker
}

// count counts one node that the agent wants, or leaves it out.
func (a *agentNodes) count(n *count, node *clusters.Node, excused bool) {
	s := a.site(node)
	if g, out := a.ground(node, s, excused); out {
		n.LeftOut[g]++
		return
	}
	n.add(s.covered, s.current, s.gap, s.old)
}

func (a *agentNodes) site(node *clusters.Node) site {
	s := site{gap: Blocker{Node: node.Name, State: coverage.Excluded.String(), Code: coverage.AgentUncovered}}
	if r, ok := a.gaps[node.Name]; ok {
		s.gap.Code, s.gap.Message = r.Code, r.Message
	}
	for _, d := range a.members {
		r, _ := d.Row(node.Name) // a node of the cluster has a row
		s.states = append(s.states, r.State)
		if runsOn(r) {
			s.covered, s.old = true, outdatedBlocker(r, d)
			s.current = s.current || runsCurrent(r, a.current(d))
		}
		s.intended = s.intended || r.Intended
		s.starting = s.starting || a.starting(d, r)
		if r.State.Attention() {
			s.gap = blockerOf(r)
		}
	}
	return s
}

// runsOn tells whether a pod serves the node, meant to or not: a misscheduled
// one does as well.
func runsOn(r coverage.Row) bool {
	if r.Covered || r.State == coverage.Covered {
		return true
	}
	return r.State == coverage.Misscheduled && slices.ContainsFunc(r.Pods, func(p *clusters.Pod) bool { return p.Ready })
}

// ground is why a node of the agent is left out, if it is.
func (a *agentNodes) ground(node *clusters.Node, s site, excused bool) (Ground, bool) {
	switch {
	case s.covered:
		return "", false
	case excused:
		return Excused, true
	case slices.Contains(s.states, coverage.NodeNotReady) || down(node):
		return NodeNotReady, true
	}
	return Starting, s.starting || !s.intended && a.young(node, a.agent.StartupGrace)
}
