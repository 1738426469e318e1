package gate

import (
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/coverage"
)

// Look is one observation of a cluster, with the verdicts on it.
type Look struct {
	Live     *clusters.Live
	Coverage coverage.Cluster
	Options  coverage.Options // that Coverage was computed with
}

// Ground is why a node is left out of the count.
type Ground string

// The grounds, in the order in which they are tried.
const (
	Leaving      Ground = "Leaving"
	Excused      Ground = "excused"
	NodeNotReady Ground = "NodeNotReady"
	Starting     Ground = "starting"
)

// Grounds lists them in that order.
func Grounds() []Ground { return []Ground{Leaving, Excused, NodeNotReady, Starting} }

// Progress is how far a DaemonSet or an agent has come in one cluster. UpToDate
// counts nodes that an available pod of the current revision covers.
type Progress struct {
	Target   string         `json:"target"` // namespace/name of a DaemonSet, or agent/NAME
	Met      bool           `json:"met"`
	Counted  int            `json:"counted"`
	Covered  int            `json:"covered"`
	UpToDate int            `json:"upToDate"`
	LeftOut  map[Ground]int `json:"leftOut,omitempty"`
	Blockers []Blocker      `json:"blockers,omitempty"` // in order of their names; none once it is met
	Note     string         `json:"note,omitempty"`     // of the whole
}

// Blocker is a node that is not yet as it is waited for.
type Blocker struct {
	Node    string        `json:"node"`
	State   string        `json:"state"`
	Code    coverage.Code `json:"code"`
	Message string        `json:"message"`
}

// Judge says how far each DaemonSet that is waited for has come, or the agent.
// It is empty where Git, or the agent, wants nothing of this cluster.
func Judge(l Look, c Condition) []Progress {
	j := &judge{Look: l, want: c, nodes: make(map[string]*clusters.Node, len(l.Live.Nodes))}
	for i := range l.Live.Nodes {
		j.nodes[l.Live.Nodes[i].Name] = &l.Live.Nodes[i]
	}
	if c.Agent != "" {
		return j.agents()
	}
	var out []Progress
	for i := range l.Coverage.DaemonSets {
		d := &l.Coverage.DaemonSets[i]
		if !c.InGit || c.Name != "" || d.Subject.Desired != nil {
			out = append(out, j.daemonSet(d))
		}
	}
	if len(out) == 0 && !c.InGit {
		out = append(out, Progress{Target: c.Name, Note: "there is no such DaemonSet in the cluster"})
	}
	return out
}

// judge is one look while it is judged.
type judge struct {
	Look
	want  Condition
	nodes map[string]*clusters.Node
}

// count is what the nodes amount to so far, with all that may block: of them
// only what the condition asks for does.
type count struct {
	Progress
	uncovered, outdated, lost []Blocker
	faults                    []string // why it is not met, whatever the nodes are
	remarks                   []string
}

// daemonSet judges one DaemonSet.
func (j *judge) daemonSet(d *coverage.DaemonSet) Progress {
	n := &count{Progress: Progress{Target: d.Namespace + "/" + d.Name, LeftOut: map[Ground]int{}}}
	now := j.current(d)
	for _, r := range d.Rows(func(s coverage.State) bool { return s != coverage.Excluded || d.Counts.Excused > 0 }) {
		if g, out := j.ground(d, r); out {
			n.LeftOut[g]++
		} else if r.Intended {
			n.add(r.Covered, runsCurrent(r, now), blockerOf(r), outdatedBlocker(r, d))
		}
	}
	j.addLost(n, d)
	n.faults = append(n.faults, j.faults(d)...)
	if n.Counted == 0 {
		n.empty(d.Lost)
	}
	if j.want.UpToDate && n.UpToDate < n.Counted && d.Rollout != nil {
		n.remarks = append(n.remarks, d.Rollout.Message)
	}
	return n.conclude(j.want.UpToDate, reached(n.Covered, n.Counted, j.want.Coverage))
}

// add counts a node.
func (n *count) add(covered, current bool, gap, old Blocker) {
	n.Counted++
	switch {
	case !covered:
		n.uncovered = append(n.uncovered, gap)
	case !current:
		n.Covered++
		n.outdated = append(n.outdated, old)
	default:
		n.Covered++
		n.UpToDate++
	}
}

// conclude decides, and keeps of what may block what does. covered tells
// whether enough nodes are.
func (n *count) conclude(upToDate, covered bool) Progress {
	current := !upToDate || n.UpToDate == n.Counted
	n.Met = covered && current && len(n.lost) == 0 && len(n.faults) == 0
	if !n.Met {
		n.Blockers = n.lost
		if !covered || !current {
			n.Blockers = append(n.Blockers, n.uncovered...)
		}
		if !current {
			n.Blockers = append(n.Blockers, n.outdated...)
		}
		sortBlockers(n.Blockers)
	}
	n.Note = strings.Join(append(n.faults, n.remarks...), "; ")
	return n.Progress
}

// ground is why a node of the DaemonSet is left out, if it is.
func (j *judge) ground(d *coverage.DaemonSet, r coverage.Row) (Ground, bool) {
	switch {
	case r.State == coverage.Leaving:
		return Leaving, r.ShouldRun || len(r.Pods) > 0
	case r.Excused != nil:
		return Excused, true
	case r.State == coverage.NodeNotReady:
		return NodeNotReady, r.Intended
	}
	return Starting, r.Intended && j.starting(d, r)
}

// starting tells whether a node is on its way because it has just joined. While
// the node itself is awaited it always is; else only where the DaemonSet has
// not changed since.
func (j *judge) starting(d *coverage.DaemonSet, r coverage.Row) bool {
	n := j.nodes[r.Node]
	if r.State != coverage.Starting || !j.young(n, j.grace(d)) {
		return false
	}
	awaited := len(r.Reasons) > 0 && (r.Reasons[0].Cause.Kind == "node" || r.Reasons[0].Cause.Kind == "taint")
	return awaited || n.Created.After(j.changed(d))
}

func (j *judge) young(n *clusters.Node, grace time.Duration) bool {
	return !n.Created.IsZero() && j.Live.ObservedAt.Sub(n.Created) < grace
}

// grace is how long a start may take: what the agents of the DaemonSet say, the
// longest of them, or the cluster. Those after the declared ones are of
// annotations, which say nothing of it.
func (j *judge) grace(d *coverage.DaemonSet) time.Duration {
	var grace time.Duration
	for _, a := range d.Agents {
		if a < len(j.Options.Agents) {
			grace = max(grace, j.Options.Agents[a].StartupGrace)
		} else {
			grace = max(grace, j.Options.Grace)
		}
	}
	if len(d.Agents) == 0 {
		return j.Options.Grace
	}
	return grace
}

// changed is when the DaemonSet itself last gave its pods a reason to start.
func (j *judge) changed(d *coverage.DaemonSet) time.Time {
	if d.Subject.Live == nil {
		return time.Time{}
	}
	t := d.Subject.Live.CreationTimestamp.Time
	if now := j.current(d); now != nil && now.Created.After(t) {
		t = now.Created
	}
	return t
}

// runsCurrent tells whether what covers a node is of the current revision: an
// older pod that is still ready beside it does not count.
func runsCurrent(r coverage.Row, now *clusters.Revision) bool {
	if now == nil || r.UpToDate == nil || !*r.UpToDate {
		return false
	}
	for _, p := range r.Pods {
		if p.Ready && p.Deleting.IsZero() && p.Labels[appsv1.ControllerRevisionHashLabelKey] == now.Hash {
			return true
		}
	}
	return false
}

func blockerOf(r coverage.Row) Blocker {
	b := Blocker{Node: r.Node, State: r.State.String()}
	if len(r.Reasons) > 0 {
		b.Code, b.Message = r.Reasons[0].Code, r.Reasons[0].Message
	}
	return b
}

// outdatedBlocker is a node that is covered, by a pod of an older revision.
func outdatedBlocker(r coverage.Row, d *coverage.DaemonSet) Blocker {
	b := Blocker{Node: r.Node, State: r.State.String(), Code: coverage.RollingUpdate, Message: "its pod is of an older revision"}
	if d.Rollout != nil {
		b.Code = d.Rollout.Code
	}
	return b
}

// addLost adds the nodes that were intended and no longer are. Where an agent
// says that they need not be covered, or the change is long ago, it is how
// things are.
func (j *judge) addLost(n *count, d *coverage.DaemonSet) {
	for _, l := range d.Lost {
		if l.Old || l.Unclaimed {
			continue
		}
		before := len(n.lost)
		for _, name := range l.Nodes {
			r, _ := d.Row(name) // a loss names nodes of the cluster
			switch {
			case r.Intended: // it counts already
			case r.State == coverage.NodeNotReady || down(j.nodes[name]):
				n.LeftOut[NodeNotReady]++
			default:
				n.lost = append(n.lost, Blocker{Node: name, State: r.State.String(), Code: l.Reason.Code, Message: l.Reason.Message})
			}
		}
		if lost := len(n.lost) - before; lost > 0 {
			n.remarks = append(n.remarks, fmt.Sprintf("%s no longer meant to run it: %s", areNodes(lost), l.Reason.Message))
		}
	}
}

func down(n *clusters.Node) bool {
	for _, c := range n.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status != corev1.ConditionTrue
		}
	}
	return false
}

// empty judges a DaemonSet for which no node counts: that passes only where
// none is meant to, and none was.
func (n *count) empty(lost []coverage.Loss) {
	waiting := n.LeftOut[NodeNotReady] + n.LeftOut[Starting]
	switch {
	case len(n.lost) > 0: // told above
	case len(lost) > 0:
		n.faults = append(n.faults, "no node is meant to run it any more: "+lost[0].Reason.Message)
	case waiting > 0:
		n.faults = append(n.faults, "nothing can be said of it: all of its nodes are left out")
	case n.LeftOut[Leaving]+n.LeftOut[Excused] > 0:
		n.remarks = append(n.remarks, "all of its nodes are left out")
	default:
		n.remarks = append(n.remarks, "no node is meant to run it")
	}
}

func areNodes(n int) string {
	if n == 1 {
		return "1 node is"
	}
	return fmt.Sprintf("%d nodes are", n)
}
