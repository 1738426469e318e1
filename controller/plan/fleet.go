package plan

import (
	"slices"
	"strings"
	"time"

	"rollcall.dev/rollcall/clusters"
)

// Scope is what a plan is of.
type Scope struct {
	Fleet    string
	At       time.Time
	From, To string
}

// New sums the plans of clusters up. In it they are by name.
func New(s Scope, all []Cluster) Plan {
	p := Plan{APIVersion: clusters.APIVersion, Kind: "Plan", Fleet: s.Fleet, GeneratedAt: s.At.UTC().Truncate(time.Second), From: s.From, To: s.To, Complete: true}
	p.Clusters = append([]Cluster{}, all...)
	slices.SortFunc(p.Clusters, func(a, b Cluster) int { return strings.Compare(a.Name, b.Name) })
	for i := range p.Clusters {
		p.Summary.add(&p.Clusters[i])
	}
	p.Complete = p.Summary.Unknown == 0
	return p
}

// Unknown is a cluster of which nothing can be planned.
func Unknown(c clusters.Cluster, why error) Cluster {
	return Cluster{Name: c.Name, Error: why.Error(), Actions: []Action{}, Nodes: []Effect{}, labels: c.Labels}
}

func (s *Summary) add(c *Cluster) {
	s.Clusters++
	if c.Error != "" {
		s.Unknown++
	}
	for i := range c.Actions {
		a := &c.Actions[i]
		switch a.Operation {
		case Create:
			s.Created++
		case Configure, Replace:
			s.Configured++
		case Prune:
			s.Pruned++
		}
		if a.Changes() && a.Held() && !a.Kept() {
			s.Held++
		}
	}
	for _, e := range c.Nodes {
		switch e.Effect {
		case Gains:
			s.Gains++
		case Loses:
			s.Loses++
		case Restarts:
			s.Restarts++
		case WontFit:
			s.WontFit++
		}
	}
}

// Harms tells whether nodes lose coverage or would not take their pod.
func (p Plan) Harms() bool { return p.Summary.Loses+p.Summary.WontFit > 0 }
