package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/coverage"
)

// excuse makes information of the findings that an exception of the fleet names
// by their code. Gaps were excused where they were judged and are no findings.
// It returns which exceptions were of use, by index.
func (r *Report) excuse(s Scope) map[int]bool {
	used := map[int]bool{}
	for _, c := range r.Clusters {
		for i := range c.used {
			used[i] = true
		}
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		at := slices.IndexFunc(r.Clusters, func(c Cluster) bool { return c.Name == f.Cluster })
		if at < 0 {
			continue
		}
		for k, e := range s.Fleet.Exceptions {
			if !e.Expired(s.At) && excuses(e, *f, r.Clusters[at]) {
				f.Severity, f.Excuse = Info, &Excuse{Reason: e.Reason, Owner: e.Owner, Until: e.Until}
				used[k] = true
				break
			}
		}
	}
	return used
}

// excuses tells whether an exception is for a finding as a whole.
func excuses(e clusters.Exception, f Finding, c Cluster) bool {
	if e.Code != f.Code || !e.Applies(c.Name, c.Labels) {
		return false
	}
	if len(e.Nodes) > 0 && (len(f.nodes) == 0 || slices.ContainsFunc(f.nodes, func(n string) bool { return !e.OnNode(n) })) {
		return false
	}
	if e.Agent == "" {
		return true
	}
	at := slices.IndexFunc(c.Agents, func(a Agent) bool { return a.Name == e.Agent })
	return at >= 0 && len(f.DaemonSets) > 0 && !slices.ContainsFunc(f.DaemonSets, func(d string) bool {
		return !slices.Contains(c.Agents[at].DaemonSets, d)
	})
}

// exceptionFindings are the exceptions of the fleet that are over, and those
// that excuse nothing: as far as everything that they are for could be seen.
func exceptionFindings(s Scope, cs []Cluster, used map[int]bool) []Finding {
	var out []Finding
	for i, e := range s.Fleet.Exceptions {
		what := fmt.Sprintf("spec.exceptions[%d] (%s: %s)", i, exceptionText(e), e.Reason)
		cause := coverage.Cause{Kind: "fleet", Key: "exception " + exceptionText(e)}
		switch {
		case e.Expired(s.At):
			out = append(out, NewFinding("", string(coverage.ExceptionExpired), fmt.Sprintf("%s ended on %s, owner %s", what, e.Until.Format(time.DateOnly), e.Owner), cause))
		case !used[i] && !s.Narrowed && allSeen(e, cs):
			out = append(out, NewFinding("", string(coverage.ExceptionUnused), fmt.Sprintf("%s excuses nothing, owner %s, until %s", what, e.Owner, e.Until.Format(time.DateOnly)), cause))
		}
	}
	return out
}

func allSeen(e clusters.Exception, cs []Cluster) bool {
	return !slices.ContainsFunc(cs, func(c Cluster) bool { return c.Failed() && e.Applies(c.Name, c.Labels) })
}

func exceptionText(e clusters.Exception) string {
	var words []string
	for _, w := range []struct{ name, value string }{
		{"agent", e.Agent}, {"code", e.Code}, {"clusters", strings.Join(e.Clusters.Names, ",")}, {"nodes", strings.Join(e.Nodes, ",")},
	} {
		if w.value != "" {
			words = append(words, w.name+" "+w.value)
		}
	}
	return strings.Join(words, ", ")
}

func excuseText(e *Excuse) string {
	return fmt.Sprintf("%s (%s, until %s)", e.Reason, e.Owner, e.Until.Format(time.DateOnly))
}

func excuseOf(e *coverage.Excuse) *Excuse {
	if e == nil {
		return nil
	}
	return &Excuse{Reason: e.Reason, Owner: e.Owner, Until: e.Until, Node: e.Node}
}
