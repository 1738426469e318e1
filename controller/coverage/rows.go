package coverage

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"rollcall.dev/rollcall/clusters"
)

// Rows returns the nodes that keep accepts, in order of their names.
func (d *DaemonSet) Rows(keep func(State) bool) []Row {
	var rows []Row
	for i, st := range d.set.state {
		if keep(st) {
			rows = append(rows, d.set.row(i))
		}
	}
	return rows
}

// Row returns one node by its name.
func (d *DaemonSet) Row(node string) (Row, bool) {
	i, ok := d.set.w.byName[node]
	if !ok {
		return Row{}, false
	}
	return d.set.row(int(i)), true
}

func (s *set) row(i int) Row {
	f := s.flags[i]
	r := Row{
		Node: s.w.nodes[i].Name, State: s.state[i],
		ShouldRun: f.has(shouldRun), ShouldContinueRunning: f.has(shouldContinueRunning),
		Intended: f.has(intended), Covered: f.has(covered),
	}
	for _, p := range s.podsOn(i) {
		r.Pods = append(r.Pods, &s.w.live.Pods[p])
	}
	slices.SortFunc(r.Pods, func(a, b *clusters.Pod) int { return strings.Compare(a.Name, b.Name) })
	if s.current != nil && len(r.Pods) > 0 {
		up := f.has(upToDate)
		r.UpToDate = &up
	}
	r.Reasons = s.reasons(i, r)
	if loss, lost := s.lossAt(i); lost && r.State != Covered {
		r.Reasons = append(r.Reasons, loss)
	}
	r.Excused = s.excuseOf(i)
	return r
}

// reasons says why node i is in its state; the first one is the cause.
func (s *set) reasons(i int, r Row) []Reason {
	n := &s.w.nodes[i]
	switch r.State {
	case Covered:
		return nil
	case Leaving:
		return []Reason{s.leaving(n)}
	case Excluded:
		return []Reason{s.exclusion(i)}
	case NodeNotReady:
		return []Reason{s.down(n)}
	case Misscheduled:
		return []Reason{s.misscheduled(i)}
	case Duplicate:
		return []Reason{s.duplicate(r.Pods)}
	case Starting:
		return s.starting(i, r)
	case Updating:
		return append([]Reason{s.updating()}, s.podReasons(r.Pods)...)
	case NotReady:
		return s.podReasons(r.Pods)
	}
	return []Reason{s.missing(i)}
}

func nodeCause(n *clusters.Node) Cause { return Cause{"node", n.Name} }

// template is the cause of what the DaemonSet's own template says.
func (s *set) template(field string) Cause {
	return Cause{"template", s.ds.Namespace + "/" + s.ds.Name + " " + field}
}

// pods is the cause of what its pods do as a whole.
func (s *set) pods(c Code) Cause { return s.template("pods " + string(c)) }

func because(c Code, message string, cause Cause) Reason {
	return Reason{Code: c, Message: message, Cause: cause}
}

func (r Reason) since(t time.Time) Reason {
	r.Since = t
	return r
}

func (s *set) leaving(n *clusters.Node) Reason {
	if t, ok := taintIn(s.w.keys.leaving, n.Taints); ok {
		return because(NodeLeaving, fmt.Sprintf("the node is on its way out: taint %s", taintText(t)), nodeCause(n))
	}
	return because(NodeLeaving, "the node is being deleted", nodeCause(n))
}

// down says how it is known that a node is not heard from.
func (s *set) down(n *clusters.Node) Reason {
	r, ok := readyCondition(n)
	switch {
	case !ok:
		return because(NodeIsNotReady, "the node has no Ready condition", nodeCause(n))
	case r.Status == corev1.ConditionUnknown:
		return because(NodeUnreachable, "the node's Ready condition is Unknown"+since(r.LastTransitionTime.Time)+said(r.Reason, r.Message), nodeCause(n)).since(r.LastTransitionTime.Time)
	case r.Status != corev1.ConditionTrue:
		return because(NodeIsNotReady, "the node's Ready condition is "+string(r.Status)+since(r.LastTransitionTime.Time)+said(r.Reason, r.Message), nodeCause(n)).since(r.LastTransitionTime.Time)
	}
	return because(HeartbeatStale, "the kubelet's last heartbeat was at "+stamp(r.LastHeartbeatTime.Time)+", more than "+heartbeatLimit.String()+" before the observation"+leaseText(n), nodeCause(n)).since(r.LastHeartbeatTime.Time)
}

func leaseText(n *clusters.Node) string {
	if n.Lease.IsZero() {
		return ""
	}
	return ", and its lease was last renewed at " + stamp(n.Lease)
}

func since(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return " since " + stamp(t)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func said(reason, message string) string {
	switch {
	case reason == "" && message == "":
		return ""
	case message == "":
		return " (" + reason + ")"
	case reason == "":
		return ": " + message
	}
	return " (" + reason + "): " + message
}

// exclusion is the first ground on which the node is none of the DaemonSet's.
func (s *set) exclusion(i int) Reason {
	n := &s.w.nodes[i]
	if s.w.facts[i]&virtual != 0 && s.flags[i].has(accepted) {
		return because(VirtualNode, "a virtual node: no node agent can run there", nodeCause(n))
	}
	if r, ok := s.refusal(s.wantP, n); ok {
		return r
	}
	return because(VirtualNode, "a virtual node: no node agent can run there", nodeCause(n))
}

// refusal finds why a template does not want a node, in upstream's order. Of
// several taints it is one that stays, rather than one that comes and goes by
// itself.
func (s *set) refusal(p *predicate, n *clusters.Node) (Reason, bool) {
	return decisive(s.placementChecks(p, n), func(c Check) bool { return c.lasting })
}

// eviction is refusal for a pod that may not stay, where NoExecute decides.
func (s *set) eviction(p *predicate, n *clusters.Node) (Reason, bool) {
	return decisive(s.placementChecks(p, n), func(c Check) bool { return c.evicts })
}

// decisive is the first failed check, or the first one preferred where the
// first one is a taint: a name or label that does not fit outweighs any taint.
func decisive(cs []Check, preferred func(Check) bool) (Reason, bool) {
	cs = slices.DeleteFunc(cs, func(c Check) bool { return c.OK })
	if len(cs) == 0 {
		return Reason{}, false
	}
	at := max(slices.IndexFunc(cs, preferred), 0)
	if cs[0].Name != "taint" {
		at = 0
	}
	return because(cs[at].code, cs[at].Message, cs[at].cause).since(cs[at].since), true
}

func (s *set) misscheduled(i int) Reason {
	n := &s.w.nodes[i]
	end, why := "; it may stay, but once deleted it will not come back", s.refusal
	if !s.flags[i].has(shouldContinueRunning) {
		end, why = "; the controller will delete it", s.eviction
	}
	r, _ := why(s.liveP, n) // never without: a misscheduled node is one that the live template refuses
	r.Message = "a pod is there and should not run" + s.behindGit(n, r) + ": " + r.Message + end
	return s.ofLoss(i, r)
}

// ofLoss puts what a lost node shows under the cause of its loss.
func (s *set) ofLoss(i int, r Reason) Reason {
	if loss, lost := s.lossAt(i); lost {
		r.Cause = loss.Cause
	}
	return r
}

func (s *set) duplicate(pods []*clusters.Pod) Reason {
	names := make([]string, 0, len(pods))
	for _, p := range pods {
		names = append(names, p.Name)
	}
	return because(ExtraPod, fmt.Sprintf("%d pods where one should run: %s", len(pods), strings.Join(names, ", ")), s.pods(ExtraPod))
}

// starting names what is awaited and since when; it is information.
func (s *set) starting(i int, r Row) []Reason {
	n, facts := &s.w.nodes[i], s.node(i)
	joining := facts&young != 0 && facts&(down|startupTainted) != 0
	from, what := s.clock, "the DaemonSet last changed"
	if joining || n.Created.After(from) {
		from, what = n.Created, "the node was created"
	}
	for _, p := range r.Pods {
		if !joining && p.Created.After(from) && p.Deleting.IsZero() {
			from, what = p.Created, "its pod was created"
		}
	}
	grace := fmt.Sprintf("starting: %s at %s, and a start may take %s", what, stamp(from), s.grace)
	var why []Reason
	switch {
	case facts&down != 0:
		why = []Reason{s.down(n)}
	case joining && slices.ContainsFunc(r.Pods, func(p *clusters.Pod) bool { return available(p, s.minReady, s.w.now) }):
		why = []Reason{s.startupTaint(n)}
	case len(r.Pods) > 0:
		why = s.podReasons(r.Pods)
	default:
		why = []Reason{s.missing(i)}
	}
	why[0].Message = grace + "; " + why[0].Message
	return why
}

// startupTaint is what a joining node waits for while its pod runs already.
func (s *set) startupTaint(n *clusters.Node) Reason {
	if r, ok := s.refusal(s.liveP, n); ok {
		return r
	}
	t, _ := taintIn(s.w.keys.startup, n.Taints)
	return because(NodeIsNotReady, fmt.Sprintf("its pod is ready, and the node still has the startup taint %s", taintText(t)), Cause{"taint", taintText(t)})
}

func (s *set) updating() Reason {
	return because(RollingUpdate, fmt.Sprintf("a rolling update to revision %d is under way: %d of at most %d nodes unavailable", s.current.Number, s.busy, s.budget), s.template("revision"))
}
