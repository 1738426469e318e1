package plan

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"

	"rollcall.dev/rollcall/clusters"
)

// forecast estimates which of the nodes that would gain or restart a pod of one
// DaemonSet could not take it. What fits is there for the next one.
func (m *maker) forecast(c *change, effects []Effect) {
	if _, blank := m.Live.Lacks("claims"); blank || c.after == nil || c.orphaned {
		return
	}
	template := &c.after.Spec.Template.Spec
	for i := range effects {
		e := &effects[i]
		if e.DaemonSet != c.key || e.Effect != Gains && e.Effect != Restarts {
			continue
		}
		node := m.node(e.Node)
		if node == nil || len(node.Allocatable) == 0 { // what it can take is not known
			continue
		}
		want := PodOf(template, m.Live.Priorities, m.replaced(c, e.Node))
		text, refused := Text(m.loads.Fit(want, node))
		if !refused {
			m.loads.Place(want, e.Node)
		}
		switch {
		case refused:
			e.Effect = WontFit
			e.Reasons = append(e.Reasons, Reason{"WouldNotFit", text + " (estimate)"})
		case text != "":
			e.Reasons = append(e.Reasons, Reason{"WouldPreempt", text + " (estimate)"})
		}
	}
}

func (m *maker) node(name string) *clusters.Node {
	if m.nodes == nil {
		m.nodes = make(map[string]*clusters.Node, len(m.Live.Nodes))
		for i := range m.Live.Nodes {
			m.nodes[m.Live.Nodes[i].Name] = &m.Live.Nodes[i]
		}
	}
	return m.nodes[name]
}

// replaced is the UID of the pod that goes before the new one comes: none under
// maxSurge, nor where there is no pod of the DaemonSet now.
func (m *maker) replaced(c *change, node string) string {
	live := find(m.Live.DaemonSets, clusters.Reference{Namespace: c.after.Namespace, Name: c.after.Name})
	if live == nil || surges(c.after) {
		return ""
	}
	at := slices.IndexFunc(m.loads.claimsOn(node), func(x clusters.Claim) bool { return x.Owner == string(live.UID) })
	if at < 0 {
		return ""
	}
	return m.loads.claimsOn(node)[at].UID
}

func surges(ds *appsv1.DaemonSet) bool {
	surge, _ := budgets(ds, 100)
	return surge > 0
}

func (l *Loads) claimsOn(node string) []clusters.Claim {
	if on := l.nodes[node]; on != nil {
		return on.claims
	}
	return nil
}
