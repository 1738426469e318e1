package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/coverage"
	"rollcall.dev/rollcall/controller/drift"
)

// Judged is all that is known of a cluster after one pass of the line. Where a
// stage failed its error is set and what it would have given is empty.
type Judged struct {
	Cluster    clusters.Cluster
	Overlay    string
	Components []string
	HasSource  bool
	Commit     string                      // of Git that is judged
	Retain     bool                        // keep all of this in the report, and so in memory
	Objects    []unstructured.Unstructured // all that Git wants
	Desired    []appsv1.DaemonSet
	RenderErr  error
	Live       clusters.Live
	ObserveErr error
	Coverage   coverage.Cluster
	Excluded   []string // namespace/name of DaemonSets that are not judged
	Exceptions []int    // those of Coverage.Used, by their index in the fleet
	Ignore     []int    // those of Drift.Used, by their index in the fleet
	Drift      drift.Outcome
	Ahead      *Ahead    // what the commit would change; nil where nobody asks
	Findings   []Finding // of the render and the cluster's declaration
	// Age is how old a snapshot is, and how long a cluster that does not answer
	// was not seen; zero where that is not known.
	Age time.Duration
}

// quiet tells that a cluster need not answer: it is declared as intermittent, and
// was not silent for longer than it may be.
func (j Judged) quiet() bool { return j.Cluster.Intermittent && j.Age <= j.Cluster.Policy.StaleAfter }

// stale tells that what is judged is older than it may be.
func (j Judged) stale() bool {
	return j.Live.Snapshot && j.Cluster.Policy.StaleAfter > 0 && j.Age > j.Cluster.Policy.StaleAfter
}

// NewCluster writes the report of one cluster. keep selects the node rows.
func NewCluster(j Judged, keep func(coverage.State) bool) Cluster {
	c := Cluster{
		Name: j.Cluster.Name, Labels: j.Cluster.Labels, Sync: syncOf(j), Observation: observationOf(j),
		DaemonSets: []DaemonSet{}, Agents: []Agent{}, Drift: []drift.Object{}, findings: j.Findings,
	}
	if j.ObserveErr != nil {
		c.findings = append(c.findings, observationFinding(c))
		return c
	}
	if j.stale() {
		c.findings = append(c.findings, staleFinding(j))
	}
	c.findings = append(c.findings, credentialFindings(j)...)
	c.Version, c.Identity = j.Live.Version, cmp.Or(j.Cluster.Identity, j.Live.Identity)
	c.Nodes = new(len(j.Live.Nodes))
	c.Drift, c.Unread, c.Compared = append(c.Drift, j.Drift.Objects...), j.Drift.Unread, j.Drift.Compared
	c.ignored, c.ahead = j.ignored(), j.Ahead
	c.managed = slices.Contains(j.Cluster.Policy.May, "apply") || slices.Contains(j.Cluster.Policy.May, "prune")
	if j.Retain {
		c.judged = &j
	}
	c.Sync.Delivery = deliveryOf(j)
	c.Agents = agentsOf(j.Coverage.Agents)
	if len(j.Excluded) > 0 {
		c.Excluded = new(sampleOf(slices.Sorted(slices.Values(j.Excluded))))
	}
	c.used = map[int]bool{}
	for i, used := range j.Coverage.Used {
		if used {
			c.used[j.Exceptions[i]] = true
		}
	}
	_, blind := j.Live.Lacks("events")
	g := &gather{cluster: c.Name, agents: j.Coverage.Agents, blind: blind, by: map[coverage.Cause]*gathering{}}
	for i := range j.Coverage.DaemonSets {
		d := &j.Coverage.DaemonSets[i]
		// Rows are the dear part: made once, for the lists and for the findings.
		rows := d.Rows(func(s coverage.State) bool { return s.Attention() || keep(s) })
		out := daemonSetOf(d, j)
		for _, row := range rows {
			if st := row.State; keep(st) {
				out.Nodes = append(out.Nodes, nodeOf(row))
			}
		}
		g.daemonSet(out, d, rows)
		c.DaemonSets = append(c.DaemonSets, out)
	}
	g.whole(j.Coverage)
	c.findings = slices.Concat(c.findings, g.findings(), clusterFindings(c.Name, j))
	return c
}

// Invalid is the report of a cluster whose declaration is wrong: nothing of it
// is known.
func Invalid(name, file string, err error) Cluster {
	text := strings.ReplaceAll(err.Error(), "\n", "; ") // faults come a line each
	c := Cluster{
		Name: name, Sync: Sync{State: SyncUnknown}, DaemonSets: []DaemonSet{}, Agents: []Agent{}, Drift: []drift.Object{},
		Observation: Observation{State: clusters.Failed, Stage: "reading its declaration", Error: text},
	}
	c.findings = []Finding{NewFinding(name, "InvalidCluster", text, coverage.Cause{Kind: "fleet", Key: file})}
	return c
}

func syncOf(j Judged) Sync {
	s := Sync{Overlay: j.Overlay, Components: j.Components}
	switch {
	case !j.HasSource || j.Overlay == "" && j.RenderErr == nil:
		s.State = SyncNone
	case j.RenderErr != nil:
		s.State, s.Error = SyncUnknown, j.RenderErr.Error()
	case j.ObserveErr != nil:
		s.State = SyncUnknown
	case slices.ContainsFunc(j.Drift.Objects, func(o drift.Object) bool { return o.Drifted() }):
		s.State = OutOfSync
	default:
		s.State = InSync
	}
	return s
}

func deliveryOf(j Judged) *Delivery {
	i := j.Live.Inventory
	if i == nil || !j.HasSource {
		return nil
	}
	return &Delivery{Commit: i.Commit, At: i.AppliedAt.UTC(), Pending: i.Pending, Behind: i.Commit != j.Commit && j.Ahead != nil && j.Ahead.Progress.Changes}
}

func observationOf(j Judged) Observation {
	if j.ObserveErr == nil {
		o := Observation{State: clusters.Fresh, Recorded: len(j.Cluster.Recorded) > 0}
		if at := j.Live.ObservedAt; !at.IsZero() { // a dump may hold no time at all
			o.At = new(at.UTC())
		}
		if j.stale() {
			o.State, o.Error = clusters.Stale, fmt.Sprintf("the snapshot is older than %s", j.Cluster.Policy.StaleAfter)
		}
		return o
	}
	o := Observation{State: clusters.Failed, Error: j.ObserveErr.Error(), Intermittent: j.quiet()}
	if e, ok := asObserveError(j.ObserveErr); ok {
		o.State, o.Stage, o.Error = e.State, e.Stage, e.Err.Error()
	}
	return o
}

func daemonSetOf(d *coverage.DaemonSet, j Judged) DaemonSet {
	out := DaemonSet{
		Namespace: d.Namespace, Name: d.Name, InGit: inGit(d, j), Live: d.Subject.Live != nil,
		Counts: countsOf(d.Counts), Nodes: []Node{}, StrayPods: []Stray{},
	}
	for _, a := range d.Agents {
		if a < len(j.Coverage.Agents) { // none are summed up where not all DaemonSets were read
			out.Agents = append(out.Agents, j.Coverage.Agents[a].Name)
		}
	}
	out.counts = !j.HasSource || out.InGit == nil || *out.InGit || len(d.Agents) > 0
	if d.Subject.Live != nil {
		out.Owner = coverage.Owner(d.Subject.Live.ObjectMeta)
	}
	if len(d.Outdated) > 0 {
		out.Outdated = new(sampleOf(d.Outdated))
	}
	if len(d.Joined) > 0 {
		out.Joined = new(sampleOf(d.Joined))
	}
	for _, l := range d.Lost {
		out.Lost = append(out.Lost, Loss{l.Reason.Message, l.Reason.Cause, sampleOf(l.Nodes)})
	}
	for _, s := range d.Strays {
		out.StrayPods = append(out.StrayPods, Stray{s.Pod.Name, s.Pod.Node, reasonsOf([]coverage.Reason{s.Reason})})
	}
	if d.Rollout != nil {
		out.Notes = reasonsOf([]coverage.Reason{*d.Rollout})
	}
	out.Notes = append(out.Notes, reasonsOf(d.Problems)...)
	return out
}

// inGit is not known where Git's side could not be rendered; such a DaemonSet
// counts, since nothing may be hidden by a render that failed.
func inGit(d *coverage.DaemonSet, j Judged) *bool {
	if j.RenderErr != nil {
		return nil
	}
	return new(d.Subject.Desired != nil)
}

func countsOf(c coverage.Counts) Counts {
	out := Counts{Nodes: c.Nodes, Intended: c.Intended, ShouldRun: c.ShouldRun, Covered: c.Covered, Excused: c.Excused, States: map[string]int{}}
	if c.UpToDateKnown {
		out.UpToDate = new(c.UpToDate)
	}
	for st, n := range c.States {
		if n > 0 {
			out.States[coverage.State(st).String()] = n
		}
	}
	return out
}

func nodeOf(r coverage.Row) Node {
	n := Node{
		Name: r.Node, State: r.State.String(), ShouldRun: r.ShouldRun, ShouldContinueRunning: r.ShouldContinueRunning,
		Intended: r.Intended, Covered: r.Covered, UpToDate: r.UpToDate, Pods: []Pod{}, Reasons: reasonsOf(r.Reasons),
		Excused: r.Excused != nil, Excuse: excuseOf(r.Excused),
	}
	for _, p := range r.Pods {
		n.Pods = append(n.Pods, Pod{p.Name, string(p.Phase), p.Ready, !p.Deleting.IsZero(), p.Labels[appsv1.ControllerRevisionHashLabelKey]})
	}
	slices.SortFunc(n.Pods, func(a, b Pod) int { return strings.Compare(a.Name, b.Name) })
	return n
}

func reasonsOf(rs []coverage.Reason) []Reason {
	out := []Reason{}
	for _, r := range rs {
		out = append(out, Reason{string(r.Code), r.Message})
	}
	return out
}

func sortedClusters(cs []Cluster) []Cluster {
	out := append([]Cluster{}, cs...)
	slices.SortFunc(out, func(a, b Cluster) int { return strings.Compare(a.Name, b.Name) })
	return out
}
