package coverage

import (
	"fmt"
	"slices"

	"rollcall.dev/rollcall/clusters"
)

// excuse is an exception that holds at the time of the observation.
type excuse struct {
	clusters.Exception
	node string // whose annotation it is; empty: the fleet's
	used bool
}

// indexExcuses lists what is excused: the exceptions of the fleet, then the
// annotations of nodes. It returns the annotations that excuse nothing, since
// they cannot be read or are over.
func (w *world) indexExcuses() (problems []Reason) {
	for _, e := range w.options.Exceptions {
		w.excuses = append(w.excuses, &excuse{Exception: e})
	}
	for i := range w.nodes {
		n := &w.nodes[i]
		if n.Excuse == "" {
			continue
		}
		e, err := clusters.ParseExcuse(n.Excuse)
		at := Cause{"node", n.Name + " " + clusters.ExcuseAnnotation}
		switch {
		case err != nil:
			problems = append(problems, because(InvalidAnnotation, fmt.Sprintf("annotation %s of node %s: %.200s", clusters.ExcuseAnnotation, n.Name, err), at))
		case e.Expired(w.now):
			problems = append(problems, because(ExceptionExpired, fmt.Sprintf("annotation %s of node %s ended at %s: %s (%s)", clusters.ExcuseAnnotation, n.Name, stamp(e.Until), e.Reason, e.Owner), at))
		default:
			w.excuses = append(w.excuses, &excuse{Exception: e, node: n.Name})
		}
	}
	return problems
}

// unused are the annotations of nodes that excuse nothing: their nodes have no
// gap.
func (w *world) unused() (problems []Reason) {
	for _, e := range w.excuses {
		if e.node != "" && !e.used {
			problems = append(problems, because(ExceptionUnused, fmt.Sprintf("annotation %s of node %s excuses nothing: %s (%s, until %s)", clusters.ExcuseAnnotation, e.node, e.Reason, e.Owner, stamp(e.Until)), Cause{"node", e.node + " " + clusters.ExcuseAnnotation}))
		}
	}
	return problems
}

// used tells of each exception of the options whether it excused anything.
func (w *world) used() []bool {
	out := make([]bool, len(w.options.Exceptions))
	for i := range out {
		out[i] = w.excuses[i].used
	}
	return out
}

// active tells whether it holds now. One without a time to judge by holds.
func (e *excuse) active(w *world) bool { return w.now.IsZero() || !e.Expired(w.now) }

func (e *excuse) onNode(name string) bool {
	return (e.node == "" || e.node == name) && e.OnNode(name)
}

// excusesOf are those that may be for a DaemonSet: of any agent, or of one that
// it belongs to.
func (w *world) excusesOf(s *set) []*excuse {
	var out []*excuse
	for _, e := range w.excuses {
		mine := e.Agent == "" || slices.ContainsFunc(s.agents, func(a int) bool { return w.agents[a].Name == e.Agent })
		if mine && e.active(w) {
			out = append(out, e)
		}
	}
	return out
}

// findExcuses marks the gaps that are accepted: rows that need attention, and
// nodes that were lost.
func (s *set) findExcuses() {
	if len(s.excuses) == 0 {
		return
	}
	for i, st := range s.state {
		_, lost := s.lossAt(i)
		if !lost && !st.Attention() {
			continue
		}
		name := s.w.nodes[i].Name
		at := slices.IndexFunc(s.excuses, func(e *excuse) bool {
			return e.onNode(name) && (e.Code == "" || s.says(i, Code(e.Code)))
		})
		if at < 0 {
			continue
		}
		if s.excusedBy == nil {
			s.excusedBy = make([]*excuse, len(s.state))
		}
		s.excusedBy[i] = s.excuses[at]
		s.excuses[at].used = true
		s.flags[i] |= excused
	}
}

// says tells whether a node's row has a code, as its state or as a reason.
func (s *set) says(i int, c Code) bool {
	return s.state[i].String() == string(c) || slices.ContainsFunc(s.row(i).Reasons, func(r Reason) bool { return r.Code == c })
}

// excuseOf is why node i is excused, nil where it is not.
func (s *set) excuseOf(i int) *Excuse {
	if s.excusedBy == nil || s.excusedBy[i] == nil {
		return nil
	}
	e := s.excusedBy[i]
	return &Excuse{Reason: e.Reason, Owner: e.Owner, Until: e.Until, Node: e.node}
}

// excusesAgent tells whether an agent need not be covered on a node where none
// of its DaemonSets is meant to run.
func (w *world) excusesAgent(name, node string) bool {
	for _, e := range w.excuses {
		if (e.Agent == "" || e.Agent == name) && (e.Code == "" || e.Code == string(AgentUncovered) || e.Code == string(AgentAbsent)) && e.onNode(node) && e.active(w) {
			e.used = true
			return true
		}
	}
	return false
}
