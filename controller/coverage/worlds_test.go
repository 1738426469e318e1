package coverage

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"rollcall.dev/rollcall/clusters"
)

// dice answers a number below n: from a seeded generator, or from the bytes
// that a fuzzer made up.
type dice func(n int) int

func (d dice) odds(of int) bool { return d(of) == 0 }

func pick[T any](d dice, from []T) T { return from[d(len(from))] }

// some returns up to most picks.
func some[T any](d dice, most int, one func() T) []T {
	var out []T
	for range d(most + 1) {
		out = append(out, one())
	}
	return out
}

// The words of small worlds: few, so that things meet.
var (
	worldNow    = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	worldKeys   = []string{"zone", "cores", "os", "metadata.name", "bad key"}
	worldValues = []string{"", "a", "b", "7", "8", "-1", "007", "a,b", "9223372036854775808"}
	worldTaints = []string{
		"gpu", "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable", "node.kubernetes.io/disk-pressure", "node.kubernetes.io/network-unavailable",
		"node.cilium.io/agent-not-ready", "readiness.k8s.io/x", "karpenter.sh/disrupted", "virtual-kubelet.io/provider", "fleet/passing",
	}
	worldEffects   = []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule, "Odd"}
	worldOperators = []corev1.NodeSelectorOperator{"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Odd"}
	worldTolerates = []corev1.TolerationOperator{"", "Equal", "Exists", "Gt", "Lt", "Odd"}
	worldPhases    = []corev1.PodPhase{corev1.PodRunning, corev1.PodRunning, corev1.PodRunning, corev1.PodRunning, corev1.PodPending, corev1.PodFailed, corev1.PodSucceeded, corev1.PodUnknown, ""}
	worldWaits     = []string{"", "", "", "ContainerCreating", "PodInitializing", "ErrImagePull", "CrashLoopBackOff", "Odd"}
)

// smallWorld makes a cluster of a few nodes, DaemonSets and pods, in which
// everything that a verdict reads may be odd.
func smallWorld(d dice) *scenario {
	s := &scenario{options: Options{
		Grace: time.Duration(d(3)) * 5 * time.Minute, ComparisonOperators: d.odds(3),
		Taints: clusters.Taints{Lifecycle: []string{"fleet/passing"}},
	}}
	s.live.ObservedAt = worldNow
	for i := range d(6) {
		s.live.Nodes = append(s.live.Nodes, worldNode(d, fmt.Sprintf("n%d", i)))
	}
	for i := range 1 + d(2) {
		ds := worldDaemonSet(d, fmt.Sprintf("ds%d", i))
		switch d(4) {
		case 0:
			s.desired = append(s.desired, ds)
			continue
		case 1:
			git := worldDaemonSet(d, ds.Name)
			s.desired = append(s.desired, git)
		}
		s.live.DaemonSets = append(s.live.DaemonSets, ds)
		for n := range d(4) {
			s.live.Revisions = append(s.live.Revisions, clusters.Revision{
				Namespace: ds.Namespace, Name: fmt.Sprintf("%s-%d", ds.Name, n), Number: int64(d(3)), Hash: pick(d, []string{"", "h1", "h2"}),
				Owner: clusters.Owner{Kind: "DaemonSet", Name: ds.Name, UID: string(ds.UID)}, Created: ago(d), Placement: worldPlacement(d, ds),
			})
		}
	}
	for i := range d(18) {
		s.live.Pods = append(s.live.Pods, worldPod(d, fmt.Sprintf("p%d", i)))
	}
	s.options.Agents = some(d, 2, func() clusters.Agent { return worldAgent(d) })
	s.options.Exceptions = some(d, 2, func() clusters.Exception { return worldException(d) })
	s.live.Events = some(d, 6, func() clusters.Event { return worldEvent(d) })
	if d.odds(6) {
		s.live.Blanks = []clusters.Blank{{Resource: "events", Reason: "forbidden"}}
	}
	return s
}

// worldPlacement is that of a revision: mostly the live one's.
func worldPlacement(d dice, ds appsv1.DaemonSet) clusters.Placement {
	if d.odds(3) {
		return clusters.PlacementOf(new(worldTemplate(d)))
	}
	return clusters.PlacementOf(&ds.Spec.Template.Spec)
}

func worldAgent(d dice) clusters.Agent {
	a := clusters.Agent{Name: pick(d, []string{"a", "b"}), Min: pick(d, []string{"100%", "50%", "2"}), Severity: "error", StartupGrace: time.Duration(d(3)) * 5 * time.Minute}
	a.Names = []string{"kube/" + pick(d, []string{"ds0", "ds1"})}
	if d.odds(2) {
		a.Nodes = &metav1.LabelSelector{MatchLabels: map[string]string{pick(d, worldKeys): pick(d, worldValues)}}
	}
	return a
}

func worldException(d dice) clusters.Exception {
	return clusters.Exception{
		Agent: pick(d, []string{"", "a"}), Code: pick(d, []string{"", "CoverageLost", "NodeNotReady", "UntoleratedTaint", "AgentUncovered"}),
		Nodes: pick(d, [][]string{nil, {"n0"}, {"n1", "n2"}}), Reason: "known", Owner: "o", Until: worldNow.Add(time.Duration(d(2)) * time.Hour),
	}
}

func ago(d dice) time.Time { return worldNow.Add(-time.Duration(d(20)-1) * time.Minute) }

func worldNode(d dice, name string) clusters.Node {
	n := clusters.Node{Name: name, Labels: map[string]string{}, Created: ago(d), Deleting: d.odds(12)}
	for range d(4) {
		n.Labels[pick(d, worldKeys)] = pick(d, worldValues)
	}
	if d.odds(8) {
		n.Labels["type"] = "virtual-kubelet"
	}
	n.Taints = some(d, 2, func() corev1.Taint {
		return corev1.Taint{Key: pick(d, worldTaints), Value: pick(d, worldValues), Effect: pick(d, worldEffects)}
	})
	if !d.odds(5) {
		n.Conditions = []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: pick(d, []corev1.ConditionStatus{"True", "True", "False", "Unknown"}), LastHeartbeatTime: metav1.NewTime(ago(d)),
		}}
	}
	return n
}

func worldDaemonSet(d dice, name string) appsv1.DaemonSet {
	ds := appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(ago(d)), Generation: int64(d(3))}}
	ds.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": pick(d, []string{"a", "b"})}}
	ds.Spec.Template.Labels = ds.Spec.Selector.MatchLabels
	ds.Spec.MinReadySeconds = int32(d(3)) * 60
	ds.Spec.UpdateStrategy.Type = pick(d, []appsv1.DaemonSetUpdateStrategyType{"", "RollingUpdate", "RollingUpdate", "OnDelete"})
	if d.odds(2) {
		share := func() *intstr.IntOrString {
			return new(pick(d, []intstr.IntOrString{intstr.FromInt32(0), intstr.FromInt32(1), intstr.FromInt32(2), intstr.FromString("50%"), intstr.FromString("odd")}))
		}
		ds.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{MaxUnavailable: share(), MaxSurge: share()}
	}
	if d.odds(10) {
		ds.DeletionTimestamp = new(metav1.NewTime(ago(d)))
	}
	ds.Spec.Template.Spec = worldTemplate(d)
	return ds
}

func worldTemplate(d dice) corev1.PodSpec {
	var spec corev1.PodSpec
	if d.odds(8) {
		spec.NodeName = pick(d, []string{"n0", "n1", "n9"})
	}
	if d.odds(3) {
		spec.NodeSelector = map[string]string{pick(d, worldKeys): pick(d, worldValues)}
	}
	spec.HostNetwork = d.odds(3)
	spec.Tolerations = some(d, 3, func() corev1.Toleration {
		t := corev1.Toleration{Operator: pick(d, worldTolerates), Value: pick(d, worldValues), Effect: pick(d, append([]corev1.TaintEffect{"", ""}, worldEffects...))}
		if !d.odds(3) {
			t.Key = pick(d, worldTaints)
		}
		return t
	})
	if d.odds(2) {
		spec.Affinity = &corev1.Affinity{}
		if !d.odds(6) {
			spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
			if !d.odds(6) {
				terms := some(d, 3, func() corev1.NodeSelectorTerm { return worldTerm(d) })
				spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: terms}
			}
		}
	}
	return spec
}

func worldTerm(d dice) corev1.NodeSelectorTerm {
	values := func() []string {
		if !d.odds(4) { // mostly what parses
			return []string{pick(d, worldValues)}
		}
		return some(d, 3, func() string { return pick(d, worldValues) })
	}
	var t corev1.NodeSelectorTerm
	for range d(3) {
		r := corev1.NodeSelectorRequirement{Key: pick(d, worldKeys), Operator: pick(d, worldOperators)}
		if r.Operator != "Exists" && r.Operator != "DoesNotExist" || d.odds(5) {
			r.Values = values()
		}
		t.MatchExpressions = append(t.MatchExpressions, r)
	}
	for range d(2) * d(3) {
		t.MatchFields = append(t.MatchFields, corev1.NodeSelectorRequirement{
			Key: pick(d, []string{"metadata.name", "metadata.name", "odd"}), Operator: pick(d, worldOperators[:3]), Values: some(d, 2, func() string { return pick(d, []string{"n0", "n1", "n2", ""}) }),
		})
	}
	return t
}

func worldPod(d dice, name string) clusters.Pod {
	p := clusters.Pod{
		Namespace: pick(d, []string{"kube", "kube", "kube", "other"}), Name: name, UID: name + "-uid", Created: ago(d), Bound: !d.odds(4),
		Labels: map[string]string{"app": pick(d, []string{"a", "a", "b"})}, Node: pick(d, []string{"n0", "n0", "n0", "n1", "n1", "n2", "n9", ""}),
		Phase: pick(d, worldPhases), Reason: pick(d, []string{"", "", "Evicted"}), Ready: d.odds(2),
	}
	if h := pick(d, []string{"", "h1", "h2"}); h != "" {
		p.Labels["controller-revision-hash"] = h
	}
	if owner := pick(d, []string{"ds0", "ds0", "ds0", "ds0", "ds1", "ds1", "before", ""}); owner != "" {
		p.Owner = clusters.Owner{Kind: pick(d, []string{"DaemonSet", "DaemonSet", "ReplicaSet"}), Name: owner, UID: owner}
	}
	if p.Ready && !d.odds(5) {
		p.ReadySince = ago(d)
	}
	if d.odds(5) {
		p.Deleting = ago(d)
	}
	if p.Phase == corev1.PodPending && d.odds(2) {
		p.Unschedulable = pick(d, []string{"0/3 nodes are available: 1 Insufficient cpu.", "free ports", "odd"})
	}
	p.Containers = some(d, 2, func() clusters.Container {
		return clusters.Container{Name: pick(d, []string{"c", "e"}), Image: "i:1", Init: d.odds(3), Ready: d.odds(2), Waiting: clusters.State{Reason: pick(d, worldWaits)}, Finished: clusters.State{Reason: pick(d, []string{"", "Error"})}, ExitCode: int32(d(3))}
	})
	return p
}

func worldEvent(d dice) clusters.Event {
	e := clusters.Event{Namespace: "kube", Kind: "DaemonSet", Name: "ds0", UID: pick(d, []string{"ds0", "ds1", ""}), Type: "Warning", Count: int32(d(3)), First: ago(d), Last: ago(d)}
	pod := pick(d, []string{"p0", "p1", "gone-1"})
	switch d(6) {
	case 0:
		e.Reason, e.Message = "FailedCreate", "Error creating: exceeded quota: q, requested: pods=1"
	case 1:
		e.Reason, e.Message = "SuccessfulCreate", "Created pod: "+pod
	case 2:
		e.Reason, e.Message = "SuccessfulDelete", "Deleted pod: "+pod
	case 3:
		e.Reason, e.Message = "FailedDaemonPod", "Found failed daemon pod kube/"+pod+" on node n0, will try to kill it"
	case 4:
		e.Kind, e.Name, e.UID, e.Reason, e.Message = "Pod", pod, pod+"-uid", "Scheduled", "Successfully assigned kube/"+pod+" to n1"
	default:
		e.Kind, e.Name, e.UID, e.Reason, e.Message = "Pod", pod, pod+"-uid", "Unhealthy", "Readiness probe failed"
	}
	return e
}
