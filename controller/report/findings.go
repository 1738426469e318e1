package report

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/coverage"
)

// NewFinding makes a finding of a cause that is not a node's or a pod's: of a
// render, a declaration or an observation.
func NewFinding(cluster, code, message string, cause coverage.Cause) Finding {
	c := codeOf(code)
	return Finding{
		ID: findingID(cluster, cause), Severity: c.Severity, Cluster: cluster, Code: code, Message: message, Cause: cause,
		DaemonSets: []string{}, Nodes: sampleOf(nil), Remedy: c.Remedy,
	}
}

// findingID holds while the cause does: no duration, counter or pod is in it.
func findingID(cluster string, c coverage.Cause) string {
	sum := sha256.Sum256([]byte(cluster + "\x00" + c.Kind + "\x00" + c.Key))
	return hex.EncodeToString(sum[:8])
}

// IDUnder is the identity that the finding had while its cluster went by another
// name: who a cluster is does not change with that.
func (f Finding) IDUnder(name string) string {
	cause := f.Cause
	if rest, ok := strings.CutPrefix(cause.Key, f.Cluster); ok && cause.Kind == "observation" {
		cause.Key = name + rest
	}
	return findingID(name, cause)
}

// gathering collects what hangs below one cause.
type gathering struct {
	finding    Finding
	counted    bool // at least one DaemonSet that counts
	daemonSets map[string]bool
	nodes      map[string]bool
	since      time.Time
}

// gather holds the findings of one cluster while they are collected.
type gather struct {
	cluster string
	agents  []coverage.Agent
	blind   bool // without events it is not known what was tried
	by      map[coverage.Cause]*gathering
}

// subject is what a reason is about: DaemonSets, and whether they count.
type subject struct {
	keys   []string
	counts bool
}

func (g *gather) add(s subject, r coverage.Reason, severity Severity, nodes ...string) {
	f := NewFinding(g.cluster, string(r.Code), r.Message, r.Cause)
	f.Severity = severity
	at := g.by[r.Cause]
	if at == nil {
		at = &gathering{finding: f, daemonSets: map[string]bool{}, nodes: map[string]bool{}, since: r.Since}
		g.by[r.Cause] = at
	}
	// What counts decides the words; among equals the first in order stays.
	if s.counts && (!at.counted || f.Severity.rank() < at.finding.Severity.rank()) {
		at.finding = f
	}
	at.counted = at.counted || s.counts
	for _, key := range s.keys {
		at.daemonSets[key] = true
	}
	for _, n := range nodes {
		at.nodes[n] = true
	}
	if !r.Since.IsZero() && (at.since.IsZero() || r.Since.Before(at.since)) {
		at.since = r.Since
	}
}

// daemonSet groups what is wrong with a DaemonSet by its cause. A node that
// starts or is being updated is no finding, and neither is an excused one.
func (g *gather) daemonSet(at DaemonSet, d *coverage.DaemonSet, rows []coverage.Row) {
	s := subject{[]string{at.Key()}, at.counts}
	for _, l := range d.Lost {
		g.add(s, l.Reason, g.lossSeverity(d, l), l.Nodes...)
	}
	for _, p := range d.Problems {
		g.add(s, p, g.severity(d, p.Code, codeOf(string(p.Code)).Severity))
	}
	for _, row := range rows {
		if st := row.State; st.Attention() && st != coverage.Starting && st != coverage.Updating && row.Excused == nil {
			g.add(s, g.cause(row.Reasons[0]), g.rowSeverity(d, row), row.Node)
		}
	}
	if d.Rollout != nil {
		g.add(s, *d.Rollout, g.severity(d, d.Rollout.Code, codeOf(string(d.Rollout.Code)).Severity), d.Outdated...)
	}
	for _, stray := range d.Strays {
		g.add(s, stray.Reason, g.severity(d, stray.Reason.Code, codeOf(string(stray.Reason.Code)).Severity))
	}
}

// cause is what a node's reason is a sign of: where nobody tried to create its
// pod, of a controller that does not work.
func (g *gather) cause(r coverage.Reason) coverage.Reason {
	if r.Code == coverage.NotAttempted && r.Cause.Kind == "controller" && !g.blind {
		r.Code = coverage.ControllerStalled
	}
	return r
}

// whole adds what is about no single DaemonSet: what agents lack, and
// annotations.
func (g *gather) whole(c coverage.Cluster) {
	for _, a := range c.Agents {
		for _, gap := range a.Gaps {
			severity := agentSeverity(a, gap.Reason.Code, codeOf(string(gap.Reason.Code)).Severity)
			if a.Met {
				severity = Info
			}
			g.add(subject{a.DaemonSets, true}, gap.Reason, severity, gap.Nodes...)
		}
	}
	for _, p := range c.Problems {
		g.add(subject{counts: true}, p, codeOf(string(p.Code)).Severity)
	}
}

// severity is a code's own one, or what the agents of the DaemonSet make of it:
// the highest of theirs.
func (g *gather) severity(d *coverage.DaemonSet, c coverage.Code, own Severity) Severity {
	return g.highest(d, own, func(a coverage.Agent) Severity { return agentSeverity(a, c, own) })
}

func (g *gather) highest(d *coverage.DaemonSet, own Severity, of func(coverage.Agent) Severity) Severity {
	if len(d.Agents) == 0 || len(g.agents) == 0 {
		return own
	}
	severity := Info
	for _, i := range d.Agents {
		if s := of(g.agents[i]); s.rank() < severity.rank() {
			severity = s
		}
	}
	return severity
}

// agentSeverity is what an agent says of a code, else the code's own severity
// and no higher than a gap of the agent is.
func agentSeverity(a coverage.Agent, c coverage.Code, own Severity) Severity {
	if s, ok := a.Severities[string(c)]; ok {
		return Severity(s)
	}
	if s := Severity(a.Severity); s.rank() > own.rank() {
		return s
	}
	return own
}

// rowSeverity is the severity of a node that needs attention. An intended node
// without a pod is an error whatever the reason, and one that is covered is
// none; where an agent is covered as far as it must be, what is missing is
// information.
func (g *gather) rowSeverity(d *coverage.DaemonSet, row coverage.Row) Severity {
	own := codeOf(string(row.Reasons[0].Code)).Severity
	switch {
	case row.State == coverage.Missing:
		own = Error
	case row.State == coverage.Misscheduled && row.Covered: // by a taint that goes by itself
		return Info
	}
	return g.highest(d, own, func(a coverage.Agent) Severity {
		if gap := row.State == coverage.Missing || row.State == coverage.NotReady || row.State == coverage.NodeNotReady; gap && a.Met {
			return Info
		}
		return agentSeverity(a, row.Reasons[0].Code, own)
	})
}

// lossSeverity: what was replaced long ago, or what no agent of the DaemonSet
// asks for, is information.
func (g *gather) lossSeverity(d *coverage.DaemonSet, l coverage.Loss) Severity {
	if l.Old || l.Unclaimed {
		return Info
	}
	return g.severity(d, l.Reason.Code, codeOf(string(l.Reason.Code)).Severity)
}

// clusterFindings are about the cluster as a whole: who changed its objects,
// and what of it could not be read.
func clusterFindings(cluster string, j Judged) []Finding {
	var out []Finding
	out = append(out, driftFindings(cluster, j.Drift)...)
	for _, b := range j.Live.Blanks {
		out = append(out, NewFinding(cluster, "TierMissing", fmt.Sprintf("%s could not be read (%s): what depends on them is left blank", b.Resource, b.Reason), coverage.Cause{Kind: "observation", Key: b.Resource}))
	}
	return out
}

func (g *gather) findings() []Finding {
	var out []Finding
	for _, at := range g.by {
		f := at.finding
		if !at.counted {
			f.Severity = Info
		}
		f.DaemonSets = slices.Sorted(maps.Keys(at.daemonSets))
		f.nodes = slices.Sorted(maps.Keys(at.nodes))
		f.Nodes = sampleOf(f.nodes)
		if !at.since.IsZero() {
			f.Since = new(at.since.UTC())
		}
		out = append(out, f)
	}
	return out
}

func asObserveError(err error) (*clusters.ObserveError, bool) {
	return errors.AsType[*clusters.ObserveError](err)
}

func observationFinding(c Cluster) Finding {
	code := string(c.Observation.State)
	if c.Observation.State == clusters.Failed {
		code = "ObservationFailed"
	}
	message := c.Observation.Error
	if c.Observation.Stage != "" {
		message = c.Observation.Stage + ": " + message
	}
	f := NewFinding(c.Name, code, message, coverage.Cause{Kind: "observation", Key: c.Name})
	if c.Observation.Intermittent {
		f.Severity, f.Message = Info, message+"; it is declared as intermittent"
	}
	return f
}

// staleFinding is that of a snapshot which is not renewed.
func staleFinding(j Judged) Finding {
	message := fmt.Sprintf("the snapshot of %s is older than the %s allowed: rollcall record does not run there, or cannot push", j.Live.ObservedAt.UTC().Format(time.RFC3339), j.Cluster.Policy.StaleAfter)
	return NewFinding(j.Cluster.Name, "ObservationStale", message, coverage.Cause{Kind: "observation", Key: j.Cluster.Name})
}

// duplicates finds one cluster under two names. Registered twice in a fleet it
// is counted and judged twice, an error on both; several contexts of a
// kubeconfig often lead to one cluster, which is information.
func duplicates(cs []Cluster, registered bool) []Finding {
	by := map[string][]string{}
	for _, c := range cs {
		if c.Identity != "" {
			by[c.Identity] = append(by[c.Identity], c.Name)
		}
	}
	var out []Finding
	for _, id := range slices.Sorted(maps.Keys(by)) {
		if names := by[id]; len(names) > 1 {
			for _, n := range names {
				f := NewFinding(n, "DuplicateIdentity", fmt.Sprintf("clusters %s are one, counted once each: the UID of kube-system is %s", strings.Join(names, " and "), id), coverage.Cause{Kind: "fleet", Key: "identity " + id})
				if !registered {
					f.Severity = Info
				}
				out = append(out, f)
			}
		}
	}
	return out
}

func sortFindings(fs []Finding) {
	slices.SortStableFunc(fs, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Severity.rank(), b.Severity.rank()), strings.Compare(a.Cluster, b.Cluster),
			strings.Compare(a.Code, b.Code), strings.Compare(a.Cause.Kind, b.Cause.Kind), strings.Compare(a.Cause.Key, b.Cause.Key))
	})
}
