package recorded

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"

	"rollcall.dev/rollcall/clusters"
)

// load is what a dump tells of how full nodes are.
type load struct {
	claims     store[clusters.Claim]
	priorities map[string]clusters.Priority

	// A list of some namespaces would make nodes look emptier than they are,
	// and does not say of which it is: only a list with pods of several is one
	// of all.
	namespaces map[string]bool // of the pods in the list that is being read
	whole      bool            // one of the lists was of all namespaces
}

func (l *load) begin() { l.namespaces = map[string]bool{} }

func (l *load) end() { l.whole = l.whole || len(l.namespaces) > 1 }

// claim takes what a pod claims, also of one that was seen before and had not
// ended then.
func (c *collector) claim(p *corev1.Pod) {
	if !c.want.Forecast {
		return
	}
	if c.load.namespaces != nil {
		c.load.namespaces[p.Namespace] = true
	}
	claim := clusters.Claim{} // of no node
	if p.Spec.NodeName != "" && !clusters.Terminal(p) {
		claim = c.shared.Claim(clusters.ClaimOf(p))
	}
	c.load.claims.put(p.Namespace+"/"+p.Name, claim)
}

func (c *collector) priorityClass(p *schedulingv1.PriorityClass) error {
	c.sawMeta(p.ObjectMeta)
	if c.load.priorities == nil {
		c.load.priorities = map[string]clusters.Priority{}
	}
	clusters.AddPriority(c.load.priorities, p)
	return nil
}

// restore takes what a snapshot has, and returns its blanks: of a forecast only
// where one is wanted.
func (l *load) restore(s *snapshot, wanted bool) []clusters.Blank {
	ofForecast := func(b clusters.Blank) bool { return b.Resource == "claims" || b.Resource == "priorityclasses" }
	if !wanted {
		return slices.DeleteFunc(s.Unavailable, ofForecast)
	}
	l.claims.list, l.priorities = s.Claims, s.Priorities
	has := map[string]bool{"claims": s.Claims != nil, "priorityclasses": s.Priorities != nil}
	for _, b := range s.Unavailable {
		has[b.Resource] = true // or it is said why not
	}
	all := s.Unavailable
	for _, resource := range []string{"claims", "priorityclasses"} {
		if !has[resource] {
			all = append(all, clusters.Blank{Resource: resource, Reason: "not in the snapshot"})
		}
	}
	return all
}

// forecast puts what is known into an observation, and what is not among its
// blanks.
func (c *collector) forecast(l *clusters.Live) {
	l.Priorities = c.load.priorities
	if c.taken {
		l.Claims = c.load.claims.list
		return
	}
	if !c.known["priorityclasses"] {
		l.Blanks = append(l.Blanks, clusters.Blank{Resource: "priorityclasses", Reason: "not in the dump"})
	}
	if !c.load.whole {
		l.Blanks = append(l.Blanks, clusters.Blank{Resource: "claims", Reason: "the dump does not hold the pods of all namespaces in one list: record them with kubectl get pods -A"})
		return
	}
	l.Claims = []clusters.Claim{} // none, and not unknown
	for _, claim := range c.load.claims.list {
		if claim.Node != "" {
			l.Claims = append(l.Claims, claim)
		}
	}
}
