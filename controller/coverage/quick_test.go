package coverage

import (
	"math/rand"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"rollcall.dev/rollcall/clusters"
)

// TestSecondImplementation compares Compute with a plain second reading of
// rules N2 to N24, T1, T2, P3, P10, P11, S4 and of what intended and covered
// mean, on thousands of small random worlds. ROLLCALL_SEED repeats a run.
func TestSecondImplementation(t *testing.T) {
	seed := time.Now().UnixNano()
	if text := os.Getenv("ROLLCALL_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseInt(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("ROLLCALL_SEED=%d", seed)
	random := rand.New(rand.NewSource(seed))
	seen := map[State]int{}
	verdicts := map[[2]bool]int{}
	lost := 0
	for i := range 6000 {
		s := smallWorld(random.Intn)
		c := s.compute()
		checkInvariants(t, &s.live, c)
		compareAgents(t, s, c)
		all := c.DaemonSets
		for j := range all {
			compareWithPlain(t, s, &all[j], verdicts)
			compareLosses(t, s, &all[j])
			lost += len(all[j].Lost)
			for st, n := range all[j].Counts.States {
				seen[State(st)] += n
			}
		}
		if t.Failed() {
			t.Fatalf("in world %d", i)
		}
	}
	// A comparison that never met a case has not compared it.
	for _, st := range States() {
		if seen[st] < 10 {
			t.Errorf("only %d nodes were %s", seen[st], st)
		}
	}
	if lost < 500 {
		t.Errorf("only %d losses", lost)
	}
	for _, v := range [][2]bool{{false, false}, {false, true}, {true, true}} {
		if verdicts[v] < 500 {
			t.Errorf("only %d verdicts were %v", verdicts[v], v)
		}
	}
}

func compareWithPlain(t *testing.T, s *scenario, d *DaemonSet, verdicts map[[2]bool]int) {
	t.Helper()
	var want Counts
	for i := range s.live.Nodes {
		n := &s.live.Nodes[i]
		row, ok := d.Row(n.Name)
		if !ok {
			t.Fatalf("no row for node %q", n.Name)
		}
		run, stay := plainVerdict(&d.Subject.judged().Spec.Template.Spec, n, s.options.ComparisonOperators)
		verdicts[[2]bool{run, stay}]++
		if row.ShouldRun != run || row.ShouldContinueRunning != stay {
			t.Errorf("%s on %+v: got (%t, %t), the plain reading is (%t, %t)\n%+v", d.Name, n, row.ShouldRun, row.ShouldContinueRunning, run, stay, d.Subject.judged().Spec.Template.Spec)
		}
		intended := plainIntended(&d.Subject.wanted().Spec.Template.Spec, n, s.options)
		pods := plainPods(s, d, n.Name)
		covered := intended && !plainDown(n) && slices.ContainsFunc(pods, func(p *clusters.Pod) bool { return plainAvailable(p, d.Subject.judged()) })
		if row.Intended != intended || row.Covered != covered || len(row.Pods) != len(pods) {
			t.Errorf("%s on %+v: got intended %t, covered %t, %d pods; the plain reading is %t, %t, %d", d.Name, n, row.Intended, row.Covered, len(row.Pods), intended, covered, len(pods))
		}
		want.ShouldRun += toInt(run)
		if row.Excused != nil {
			want.Excused++
			continue
		}
		want.Intended += toInt(intended)
		want.Covered += toInt(covered)
	}
	if c := d.Counts; c.ShouldRun != want.ShouldRun || c.Intended != want.Intended || c.Covered != want.Covered || c.Excused != want.Excused {
		t.Errorf("%s: counts %+v, the rows sum to %+v", d.Name, c, want)
	}
}

// compareLosses: a lost node is one that the live or the desired template no
// longer intends, and that the live one, a revision or a pod that is there tells
// was intended; and a pod that should not run tells of a loss by itself.
func compareLosses(t *testing.T, s *scenario, d *DaemonSet) {
	t.Helper()
	lost := map[string]bool{}
	for _, l := range d.Lost {
		for _, n := range l.Nodes {
			lost[n] = true
		}
	}
	for i := range s.live.Nodes {
		n := &s.live.Nodes[i]
		row, _ := d.Row(n.Name)
		live := plainIntended(&d.Subject.judged().Spec.Template.Spec, n, s.options)
		was := live || row.State == Misscheduled || slices.ContainsFunc(s.live.Revisions, func(r clusters.Revision) bool {
			return plainIntended(&corev1.PodSpec{NodeName: r.Placement.NodeName, NodeSelector: r.Placement.NodeSelector, Affinity: &corev1.Affinity{NodeAffinity: r.Placement.Affinity}, Tolerations: r.Placement.Tolerations, HostNetwork: r.Placement.HostNetwork}, n, s.options)
		})
		if lost[n.Name] && (live && row.Intended || !was || row.State == Leaving || row.Excused != nil) {
			t.Errorf("%s on %+v: lost in state %s, intended %t, by the live template %t, before %t", d.Name, n, row.State, row.Intended, live, was)
		}
		virtual := n.Labels["type"] == "virtual-kubelet" || slices.ContainsFunc(n.Taints, func(t corev1.Taint) bool { return t.Key == "virtual-kubelet.io/provider" })
		if !lost[n.Name] && row.State == Misscheduled && !row.Intended && !virtual && row.Excused == nil && len(d.Agents) == 0 {
			t.Errorf("%s on %+v: a pod is left behind, and the node is not lost", d.Name, n)
		}
	}
}

// compareAgents: every node that an agent selects is in one of its numbers.
func compareAgents(t *testing.T, s *scenario, c Cluster) {
	t.Helper()
	for _, a := range c.Agents {
		want := 0
		for i := range s.live.Nodes {
			n := &s.live.Nodes[i]
			gone := n.Deleting || n.Labels["type"] == "virtual-kubelet" || slices.ContainsFunc(n.Taints, func(t corev1.Taint) bool {
				return t.Key == "virtual-kubelet.io/provider" || t.Key == "karpenter.sh/disrupted" || t.Key == "ToBeDeletedByClusterAutoscaler"
			})
			if a.NodeSelector().Matches(labels.Set(n.Labels)) && !gone {
				want++
			}
		}
		told := 0
		for _, g := range a.Gaps {
			told += len(g.Nodes)
		}
		if a.Intended+a.Excused != want || a.Covered+a.Waiting+len(a.Missing) != a.Intended || told > len(a.Missing) {
			t.Errorf("agent %s of %d nodes: %+v", a.Name, want, a)
		}
	}
}

func toInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// plainVerdict is N2 to N5.
func plainVerdict(spec *corev1.PodSpec, n *clusters.Node, gate bool) (run, stay bool) {
	if !plainPlaced(spec, n) {
		return false, false
	}
	run, stay = true, true
	for _, taint := range n.Taints {
		if taint.Effect != "NoSchedule" && taint.Effect != "NoExecute" {
			continue
		}
		if plainTolerated(spec, taint, gate) {
			continue
		}
		run = false
		if taint.Effect == "NoExecute" {
			stay = false
		}
	}
	return run, stay
}

// plainPlaced is N2, N10 to N13.
func plainPlaced(spec *corev1.PodSpec, n *clusters.Node) bool {
	if spec.NodeName != "" && spec.NodeName != n.Name {
		return false
	}
	for k, v := range spec.NodeSelector {
		if have, ok := n.Labels[k]; !ok || have != v {
			return false
		}
	}
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil {
		return true
	}
	required := spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil {
		return true
	}
	for _, term := range required.NodeSelectorTerms {
		if plainTerm(term, n) {
			return true
		}
	}
	return false
}

func plainTerm(term corev1.NodeSelectorTerm, n *clusters.Node) bool {
	if len(term.MatchExpressions) == 0 && len(term.MatchFields) == 0 {
		return false
	}
	all := true
	for _, e := range term.MatchExpressions {
		parses, matches := plainExpression(e, n.Labels)
		if !parses {
			return false
		}
		all = all && matches
	}
	for _, f := range term.MatchFields {
		if len(f.Values) != 1 || f.Operator != "In" && f.Operator != "NotIn" {
			return false
		}
		same := f.Key == "metadata.name" && f.Values[0] == n.Name || f.Key != "metadata.name" && f.Values[0] == ""
		all = all && same == (f.Operator == "In")
	}
	return all
}

// plainExpression is N15.
func plainExpression(e corev1.NodeSelectorRequirement, labels map[string]string) (parses, matches bool) {
	if len(validation.IsQualifiedName(e.Key)) > 0 {
		return false, false
	}
	for _, v := range e.Values {
		if len(validation.IsValidLabelValue(v)) > 0 {
			return false, false
		}
	}
	have, has := labels[e.Key]
	switch e.Operator {
	case "In":
		return len(e.Values) > 0, has && slices.Contains(e.Values, have)
	case "NotIn":
		return len(e.Values) > 0, !has || !slices.Contains(e.Values, have)
	case "Exists":
		return len(e.Values) == 0, has
	case "DoesNotExist":
		return len(e.Values) == 0, !has
	case "Gt", "Lt":
		if len(e.Values) != 1 {
			return false, false
		}
		bound, err := strconv.ParseInt(e.Values[0], 10, 64)
		if err != nil {
			return false, false
		}
		value, err := strconv.ParseInt(have, 10, 64)
		if !has || err != nil {
			return true, false
		}
		return true, e.Operator == "Gt" && value > bound || e.Operator == "Lt" && value < bound
	}
	return false, false
}

// plainTolerated is T1 (T2 changes no verdict) and N20 to N24.
func plainTolerated(spec *corev1.PodSpec, taint corev1.Taint, gate bool) bool {
	switch string(taint.Effect) + " " + taint.Key {
	case "NoExecute node.kubernetes.io/not-ready", "NoExecute node.kubernetes.io/unreachable", "NoSchedule node.kubernetes.io/disk-pressure",
		"NoSchedule node.kubernetes.io/memory-pressure", "NoSchedule node.kubernetes.io/pid-pressure", "NoSchedule node.kubernetes.io/unschedulable":
		return true
	case "NoSchedule node.kubernetes.io/network-unavailable":
		if spec.HostNetwork {
			return true
		}
	}
	for _, t := range spec.Tolerations {
		if (t.Effect == "" || t.Effect == taint.Effect) && (t.Key == "" || t.Key == taint.Key) && plainOperator(t, taint, gate) {
			return true
		}
	}
	return false
}

func plainOperator(t corev1.Toleration, taint corev1.Taint, gate bool) bool {
	switch t.Operator {
	case "", "Equal":
		return t.Value == taint.Value
	case "Exists":
		return true
	}
	if !gate || t.Operator != "Gt" && t.Operator != "Lt" {
		return false
	}
	numbers := make([]int64, 2)
	for i, text := range []string{t.Value, taint.Value} {
		digits := strings.TrimPrefix(text, "-")
		if digits == "" || strings.HasPrefix(digits, "0") && text != "0" || strings.Trim(digits, "0123456789") != "" {
			return false
		}
		var err error
		if numbers[i], err = strconv.ParseInt(text, 10, 64); err != nil {
			return false
		}
	}
	return t.Operator == "Gt" && numbers[1] > numbers[0] || t.Operator == "Lt" && numbers[1] < numbers[0]
}

// plainIntended is DESIGN's word: placed, not virtual, not leaving, and every
// taint that is not tolerated comes and goes by itself.
func plainIntended(spec *corev1.PodSpec, n *clusters.Node, o Options) bool {
	if !plainPlaced(spec, n) || n.Deleting || n.Labels["type"] == "virtual-kubelet" || n.Labels["eks.amazonaws.com/compute-type"] == "fargate" {
		return false
	}
	for _, taint := range n.Taints {
		switch taint.Key {
		case "virtual-kubelet.io/provider", "karpenter.sh/disrupted", "ToBeDeletedByClusterAutoscaler":
			return false
		case "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable", "node.kubernetes.io/memory-pressure", "node.kubernetes.io/disk-pressure", "node.kubernetes.io/pid-pressure",
			"node.kubernetes.io/network-unavailable", "node.kubernetes.io/unschedulable", "node.kubernetes.io/out-of-service", "node.cloudprovider.kubernetes.io/uninitialized",
			"node.cloudprovider.kubernetes.io/shutdown", "node.cilium.io/agent-not-ready", "ebs.csi.aws.com/agent-not-ready", "karpenter.sh/unregistered", "readiness.k8s.io/x", "fleet/passing":
			continue
		}
		if (taint.Effect == "NoSchedule" || taint.Effect == "NoExecute") && !plainTolerated(spec, taint, o.ComparisonOperators) {
			return false
		}
	}
	return true
}

func plainDown(n *clusters.Node) bool {
	for _, c := range n.Conditions {
		if c.Type == "Ready" {
			return c.Status != "True" || worldNow.After(c.LastHeartbeatTime.Add(15*time.Minute))
		}
	}
	return false
}

// plainPods are the visible pods of the live DaemonSet on a node (P3, P11).
func plainPods(s *scenario, d *DaemonSet, node string) []*clusters.Pod {
	var out []*clusters.Pod
	if d.Subject.Live == nil {
		return nil
	}
	for i := range s.live.Pods {
		p := &s.live.Pods[i]
		ended := p.Phase == "Failed" || p.Phase == "Succeeded"
		if p.Node != node || p.Owner.UID != string(d.Subject.Live.UID) || ended && !p.Deleting.IsZero() {
			continue
		}
		if p.Labels["app"] == d.Subject.Live.Spec.Selector.MatchLabels["app"] {
			out = append(out, p)
		}
	}
	return out
}

// plainAvailable is S4.
func plainAvailable(p *clusters.Pod, ds *appsv1.DaemonSet) bool {
	if !p.Ready {
		return false
	}
	if ds.Spec.MinReadySeconds == 0 {
		return true
	}
	return !p.ReadySince.IsZero() && worldNow.Sub(p.ReadySince) >= time.Duration(ds.Spec.MinReadySeconds)*time.Second
}
