package coverage

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"rollcall.dev/rollcall/clusters"
)

// agent is what must be covered, with the nodes that it selects.
type agent struct {
	clusters.Agent
	selected []bool
	virtual  bool // it asks for virtual nodes as such
}

// indexAgents lists the agents of the fleet, then those that DaemonSets declare
// of themselves, by name. It returns the declarations that cannot be read.
func (w *world) indexAgents(subjects []Subject) (problems []Reason) {
	declared := slices.Clone(w.options.Agents)
	var own []clusters.Agent
	for _, s := range subjects {
		a, bad, ok := w.ownAgent(s.wanted())
		if bad != nil {
			problems = append(problems, *bad)
		}
		if ok {
			own = append(own, a)
		}
	}
	slices.SortFunc(own, func(a, b clusters.Agent) int { return strings.Compare(a.Name, b.Name) })
	for _, a := range append(declared, own...) {
		w.agents = append(w.agents, w.choose(a))
	}
	return problems
}

// ownAgent is the short form of an agent: a DaemonSet's annotation that selects
// the nodes where it must be.
func (w *world) ownAgent(ds *appsv1.DaemonSet) (a clusters.Agent, bad *Reason, ok bool) {
	text, has := ds.Annotations[clusters.ExpectAnnotation]
	if !has {
		return a, nil, false
	}
	name := ds.Namespace + "/" + ds.Name
	nodes, err := nodesOf(text)
	if err != nil {
		message := fmt.Sprintf("annotation %s of DaemonSet %s is no selector of nodes such as kubernetes.io/os=linux: %.200s", clusters.ExpectAnnotation, name, err)
		return a, new(because(InvalidAnnotation, message, Cause{"template", name + " " + clusters.ExpectAnnotation})), false
	}
	return clusters.Agent{Name: name, Names: []string{name}, Nodes: nodes, Min: "100%", Severity: "error", StartupGrace: w.options.Grace}, nil, true
}

// nodesOf reads a selector as kubectl takes it.
func nodesOf(text string) (*metav1.LabelSelector, error) {
	parsed, err := labels.Parse(text)
	if err != nil {
		return nil, err
	}
	var out metav1.LabelSelector
	requirements, _ := parsed.Requirements()
	for _, r := range requirements {
		e := metav1.LabelSelectorRequirement{Key: r.Key(), Values: r.ValuesUnsorted()}
		switch r.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
			e.Operator = metav1.LabelSelectorOpIn
		case selection.NotEquals, selection.NotIn:
			e.Operator = metav1.LabelSelectorOpNotIn
		case selection.Exists:
			e.Operator = metav1.LabelSelectorOpExists
		case selection.DoesNotExist:
			e.Operator = metav1.LabelSelectorOpDoesNotExist
		default:
			return nil, fmt.Errorf("%s: a selector of labels knows no %q", r.Key(), r.Operator())
		}
		out.MatchExpressions = append(out.MatchExpressions, e)
	}
	if len(out.MatchExpressions) == 0 {
		return nil, errors.New("it is empty")
	}
	return &out, nil
}

// choose finds the nodes of an agent. A virtual node is one of them only if the
// agent asks for such: every Fargate node runs Linux, too.
func (w *world) choose(a clusters.Agent) agent {
	out := agent{Agent: a, selected: make([]bool, len(w.nodes)), virtual: asksForVirtual(a.Nodes)}
	nodes := a.NodeSelector()
	for i := range w.nodes {
		out.selected[i] = (out.virtual || w.facts[i]&virtual == 0) && nodes.Matches(labels.Set(w.nodes[i].Labels))
	}
	return out
}

// asksForVirtual tells whether a selector reads a label that makes nodes
// virtual, or names nodes one by one.
func asksForVirtual(s *metav1.LabelSelector) bool {
	if s == nil {
		return false
	}
	reads := func(key string) bool { _, ok := virtualLabels[key]; return ok || key == corev1.LabelHostname }
	for key := range s.MatchLabels {
		if reads(key) {
			return true
		}
	}
	return slices.ContainsFunc(s.MatchExpressions, func(e metav1.LabelSelectorRequirement) bool { return reads(e.Key) })
}

// agentsOf are the agents that a DaemonSet belongs to, and the startup grace
// that it has from them: the longest one, or that of the cluster.
func (w *world) agentsOf(s Subject) (at []int, grace time.Duration) {
	ds := s.wanted()
	for i, a := range w.agents {
		if a.Has(ds.Namespace, ds.Name, ds.Labels) || s.Live != nil && a.Has(ds.Namespace, ds.Name, s.Live.Labels) {
			at, grace = append(at, i), max(grace, a.StartupGrace)
		}
	}
	if len(at) == 0 {
		return nil, w.options.Grace
	}
	return at, grace
}

// asked tells whether one of the agents asks for a virtual node.
func (w *world) asked(node int, agents []int) bool {
	return slices.ContainsFunc(agents, func(a int) bool { return w.agents[a].virtual && w.agents[a].selected[node] })
}

// sumUp says how far each agent is covered, by whichever of its DaemonSets.
func (w *world) sumUp(sets []*set) []Agent {
	members := make([][]*set, len(w.agents))
	for _, s := range sets {
		for _, a := range s.agents {
			members[a] = append(members[a], s)
		}
	}
	out := make([]Agent, len(w.agents))
	for i := range w.agents {
		slices.SortFunc(members[i], func(a, b *set) int { return strings.Compare(a.key(), b.key()) })
		out[i] = w.sumUpOne(w.agents[i], members[i])
	}
	return out
}

func (s *set) key() string { return s.ds.Namespace + "/" + s.ds.Name }

func (w *world) sumUpOne(a agent, members []*set) Agent {
	out := Agent{Agent: a.Agent, wanted: map[string]bool{}}
	for _, s := range members {
		out.DaemonSets = append(out.DaemonSets, s.key())
	}
	var untold []int // missing nodes that no row tells of
	for i := range w.nodes {
		if !a.selected[i] || w.facts[i]&leaving != 0 {
			continue
		}
		is := w.presence(a, members, i)
		out.wanted[w.nodes[i].Name] = is.excused
		switch {
		case is.excused:
			out.Excused++
			continue
		case is.running:
			out.Covered++
		case is.waiting:
			out.Waiting++
		default:
			out.Missing = append(out.Missing, w.nodes[i].Name)
			if !is.told {
				untold = append(untold, i)
			}
		}
		out.Intended++
	}
	out.Met = a.Reached(out.Covered+out.Waiting, out.Intended)
	out.Gaps = w.gaps(a, members, untold)
	if !out.Met && len(out.Missing) == 0 { // a number of nodes that there are not
		out.Gaps = append(out.Gaps, Gap{Reason: because(AgentUncovered, fmt.Sprintf("agent %q runs on %d nodes, and min is %s", a.Name, out.Covered, a.Min), Cause{"agent", a.Name})})
	}
	return out
}

// presence is what an agent's DaemonSets amount to on one node together.
type presence struct {
	running, waiting, excused bool
	told                      bool // a row of theirs needs attention here
}

func (w *world) presence(a agent, members []*set, node int) presence {
	is := presence{waiting: within(w.now, w.nodes[node].Created, a.StartupGrace)}
	for _, s := range members {
		is.running = is.running || s.flags[node].has(running)
		is.told = is.told || s.state[node].Attention()
		is.waiting = is.waiting || s.state[node] == Starting || s.state[node] == Updating
		is.excused = is.excused || s.flags[node].has(excused)
	}
	is.excused = !is.running && (is.excused || w.excusesAgent(a.Name, w.nodes[node].Name))
	return is
}

// gaps say why no DaemonSet of the agent is on nodes that they all leave out by
// design: what is wrong with one that should be there, its own rows tell.
func (w *world) gaps(a agent, members []*set, nodes []int) []Gap {
	if len(nodes) == 0 {
		return nil
	}
	if len(members) == 0 {
		return []Gap{{because(AgentAbsent, fmt.Sprintf("agent %q has no DaemonSet here", a.Name), Cause{"agent", a.Name}), w.names(nodes)}}
	}
	var out []Gap
	for _, i := range nodes {
		r := leftOut(a, members, i)
		at := slices.IndexFunc(out, func(g Gap) bool { return g.Reason.Cause == r.Cause })
		if at < 0 {
			at = len(out)
			out = append(out, Gap{Reason: r})
		}
		out[at].Nodes = append(out[at].Nodes, w.nodes[i].Name)
	}
	slices.SortFunc(out, func(x, y Gap) int {
		return cmp.Or(strings.Compare(x.Reason.Cause.Kind, y.Reason.Cause.Kind), strings.Compare(x.Reason.Cause.Key, y.Reason.Cause.Key))
	})
	return out
}

// leftOut is why none of the DaemonSets is meant for a node. The only one's
// ground is the cause; where there are several the agent is.
func leftOut(a agent, members []*set, node int) Reason {
	lead := fmt.Sprintf("agent %q must be covered here, and ", a.Name)
	if len(members) == 1 {
		r := members[0].exclusion(node)
		return because(AgentUncovered, lead+members[0].key()+" leaves the node out: "+r.Message, r.Cause).since(r.Since)
	}
	var grounds []string
	for _, s := range members {
		grounds = append(grounds, s.key()+" ("+s.exclusion(node).Message+")")
	}
	return because(AgentUncovered, lead+"all of its DaemonSets leave the node out: "+strings.Join(grounds, ", "), Cause{"agent", a.Name})
}

func (w *world) names(nodes []int) []string {
	out := make([]string, len(nodes))
	for i, n := range nodes {
		out[i] = w.nodes[n].Name
	}
	return out
}
