package report

import (
	"fmt"
	"slices"
	"strings"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/coverage"
)

// Agent is how far one cluster is covered by an agent, whichever of its
// DaemonSets does it. Nodes that leave or are excused are not intended; those
// that start or are being updated are waiting, and neither covered nor missing.
type Agent struct {
	Name       string   `json:"name"`
	DaemonSets []string `json:"daemonSets"` // of it that are here
	Intended   int      `json:"intended"`
	Covered    int      `json:"covered"`
	Waiting    int      `json:"waiting"`
	Excused    int      `json:"excused"`
	Min        string   `json:"min"`
	Met        bool     `json:"met"`
	Severity   Severity `json:"severity"`
	Missing    Sample   `json:"missing"`
}

// AgentTotal is an agent over all clusters that it is for.
type AgentTotal struct {
	Name     string   `json:"name"`
	Clusters int      `json:"clusters"` // that could be read
	Unknown  int      `json:"unknown"`  // that could not
	Unmet    []string `json:"unmet"`    // clusters in which min is not reached
	Intended int      `json:"intended"`
	Covered  int      `json:"covered"`
	Waiting  int      `json:"waiting"`
	Excused  int      `json:"excused"`
	Min      string   `json:"min"`
	Severity Severity `json:"severity"`
	Missing  Sample   `json:"missing"` // cluster/node
}

func agentsOf(as []coverage.Agent) []Agent {
	out := []Agent{}
	for _, a := range as {
		out = append(out, Agent{
			Name: a.Name, DaemonSets: append([]string{}, a.DaemonSets...), Intended: a.Intended, Covered: a.Covered, Waiting: a.Waiting,
			Excused: a.Excused, Min: a.Min, Met: a.Met, Severity: Severity(a.Severity), Missing: sampleOf(a.Missing),
		})
	}
	return out
}

// agentTotals sums agents up: those of the fleet in its order, then those that
// DaemonSets declare of themselves, by name.
func agentTotals(f clusters.Fleet, cs []Cluster) []AgentTotal {
	out := []AgentTotal{}
	for _, a := range f.Agents {
		t := AgentTotal{Name: a.Name, Min: a.Min, Severity: Severity(a.Severity), Unmet: []string{}, Missing: sampleOf(nil)}
		for _, c := range cs {
			if c.Observation.State != clusters.Fresh && a.Clusters.Matches(c.Name, c.Labels) {
				t.Unknown++
			}
		}
		out = append(out, t)
	}
	declared := len(out)
	for _, c := range cs {
		for _, a := range c.Agents {
			at := slices.IndexFunc(out, func(t AgentTotal) bool { return t.Name == a.Name })
			if at < 0 {
				at = len(out)
				out = append(out, AgentTotal{Name: a.Name, Min: a.Min, Severity: a.Severity, Unmet: []string{}, Missing: sampleOf(nil)})
			}
			out[at].add(c.Name, a)
		}
	}
	slices.SortFunc(out[declared:], func(a, b AgentTotal) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func (t *AgentTotal) add(cluster string, a Agent) {
	t.Clusters++
	t.Intended += a.Intended
	t.Covered += a.Covered
	t.Waiting += a.Waiting
	t.Excused += a.Excused
	if !a.Met {
		t.Unmet = append(t.Unmet, cluster)
	}
	t.Missing.Count += a.Missing.Count
	for _, n := range a.Missing.Sample {
		if len(t.Missing.Sample) < sampleSize {
			t.Missing.Sample = append(t.Missing.Sample, cluster+"/"+n)
		}
	}
}

// agents prints how far each agent is covered, over all clusters.
func (p *printer) agents(r Report) {
	if len(r.Agents) == 0 {
		return
	}
	p.line("")
	p.line("%s", p.paint(bold, "AGENTS"))
	width := 0
	for _, a := range r.Agents {
		width = max(width, len(clean(a.Name)))
	}
	for _, a := range r.Agents {
		mark, color := "✓", green
		switch {
		case len(a.Unmet) > 0:
			mark, color = "✗", map[Severity]string{Error: red, Warning: yellow, Info: cyan}[a.Severity]
		case a.Unknown > 0 || a.Missing.Count > 0 || a.Clusters == 0:
			mark, color = "!", yellow
		}
		p.line("  %s %-*s  %s", p.paint(color, mark), width, clean(a.Name), clean(a.text()))
	}
}

func (a AgentTotal) text() string {
	text := fmt.Sprintf("%d/%d covered in %s, min %s", a.Covered, a.Intended, plural(a.Clusters, "cluster"), a.Min)
	for _, more := range []struct {
		n    int
		what string
	}{{a.Waiting, "waiting"}, {a.Excused, "excused"}} {
		if more.n > 0 {
			text += fmt.Sprintf(", %d %s", more.n, more.what)
		}
	}
	if a.Unknown > 0 {
		text += fmt.Sprintf("; %s UNKNOWN", plural(a.Unknown, "cluster"))
	}
	if len(a.Unmet) > 0 {
		text += "; not reached in " + listed(sampleOf(a.Unmet))
	}
	if a.Missing.Count > 0 {
		text += "; missing: " + listed(a.Missing)
	}
	return text
}
