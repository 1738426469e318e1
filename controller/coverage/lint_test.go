package coverage

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"rollcall.dev/rollcall/clusters"
)

// daemonSetOf has the template that change leaves.
func daemonSetOf(change func(*appsv1.DaemonSetSpec)) *appsv1.DaemonSet {
	ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube", Name: "agent", UID: "ds"}}
	ds.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}}
	ds.Spec.Template.Labels = map[string]string{"app": "agent"}
	change(&ds.Spec)
	return ds
}

func tolerating(ts ...corev1.Toleration) *appsv1.DaemonSet {
	return daemonSetOf(func(s *appsv1.DaemonSetSpec) { s.Template.Spec.Tolerations = ts })
}

func selecting(labels map[string]string) *appsv1.DaemonSet {
	return daemonSetOf(func(s *appsv1.DaemonSetSpec) { s.Template.Spec.NodeSelector = labels })
}

// notOnFargate is the affinity that BlanketToleration asks for.
func notOnFargate(ds *appsv1.DaemonSet) *appsv1.DaemonSet {
	terms := []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "eks.amazonaws.com/compute-type", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"fargate"}}}}}
	ds.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
	return ds
}

// surging holds a port by a container of the given kind.
func surging(init bool, restart *corev1.ContainerRestartPolicy) *appsv1.DaemonSet {
	return daemonSetOf(func(s *appsv1.DaemonSetSpec) {
		s.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{MaxSurge: new(intstr.FromInt32(1))}
		cs := []corev1.Container{{Name: "c", RestartPolicy: restart, Ports: []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}}}
		if init {
			s.Template.Spec.InitContainers = cs
			return
		}
		s.Template.Spec.Containers = cs
	})
}

// networkDaemon mounts the folder of network plug-ins.
func networkDaemon() *appsv1.DaemonSet {
	return daemonSetOf(func(s *appsv1.DaemonSetSpec) {
		s.Template.Spec.HostNetwork = true
		s.Template.Spec.Volumes = []corev1.Volume{{Name: "cni", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/opt/cni/bin"}}}}
		s.Template.Spec.NodeSelector = map[string]string{"none": "such"}
	})
}

func TestLints(t *testing.T) {
	blanket := corev1.Toleration{Operator: corev1.TolerationOpExists}
	limited := func(key string, op corev1.TolerationOperator, value string) corev1.Toleration {
		return corev1.Toleration{Key: key, Operator: op, Value: value, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))}
	}
	unlimited := func(t corev1.Toleration) corev1.Toleration { t.TolerationSeconds = nil; return t }
	exists, equal := limited("a", corev1.TolerationOpExists, ""), limited("a", "", "x")
	plain := clusters.Node{Name: "n1", Labels: map[string]string{"kubernetes.io/os": "linux"}}
	windows := clusters.Node{Name: "w1", Labels: map[string]string{"kubernetes.io/os": "windows"}}
	fargate := clusters.Node{Name: "f1", Labels: map[string]string{"eks.amazonaws.com/compute-type": "fargate"}}
	tainted := fargate
	tainted.Taints = []corev1.Taint{{Key: "eks.amazonaws.com/compute-type", Value: "fargate", Effect: corev1.TaintEffectNoSchedule}}
	evicting := fargate
	evicting.Taints = []corev1.Taint{{Key: "eks.amazonaws.com/compute-type", Value: "fargate", Effect: corev1.TaintEffectNoExecute}}
	goes := clusters.Node{Name: "g1", Taints: []corev1.Taint{{Key: "ToBeDeletedByClusterAutoscaler", Effect: corev1.TaintEffectNoSchedule}}}
	cases := map[string]struct {
		reason        string
		live, desired *appsv1.DaemonSet
		nodes         []clusters.Node
		want          []Code
	}{
		"BlanketDecides":        {"nothing else tolerates the taint", tolerating(blanket), nil, []clusters.Node{plain, tainted}, []Code{BlanketToleration}},
		"BlanketNotToBlame":     {"without it the node would be wanted as well", tolerating(blanket), nil, []clusters.Node{plain, fargate}, nil},
		"BlanketMendedInGit":    {"the wanted template leaves the node out, only the live one does not yet", tolerating(blanket), notOnFargate(tolerating(blanket)), []clusters.Node{plain, tainted}, nil},
		"BlanketComesByGit":     {"the wanted template takes the node in", tolerating(), tolerating(blanket), []clusters.Node{plain, tainted}, []Code{BlanketToleration}},
		"BlanketNotEnough":      {"a NoExecute taint keeps it away all the same", tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}), nil, []clusters.Node{plain, evicting}, nil},
		"BlanketOnMachine":      {"a node that leaves is not virtual", tolerating(blanket), nil, []clusters.Node{plain, goes}, nil},
		"MixedMendedInGit":      {"the wanted template selects one system", selecting(nil), selecting(map[string]string{"kubernetes.io/os": "linux"}), []clusters.Node{plain, windows}, nil},
		"MixedComesByGit":       {"the wanted template no longer selects one", selecting(map[string]string{"kubernetes.io/os": "linux"}), selecting(nil), []clusters.Node{plain, windows}, []Code{MixedOS}},
		"SurgeOfContainer":      {"a container holds the port", surging(false, nil), nil, []clusters.Node{plain}, []Code{HostPortSurge}},
		"SurgeOfSidecar":        {"an init container that goes on holds it as well", surging(true, new(corev1.ContainerRestartPolicyAlways)), nil, []clusters.Node{plain}, []Code{HostPortSurge}},
		"SurgeOfInit":           {"one that ends does not", surging(true, nil), nil, []clusters.Node{plain}, nil},
		"SurgeNowhere":          {"without a node for it there is nothing to wait for", surging(false, nil), nil, nil, nil},
		"NetworkNowhere":        {"no node of this cluster is selected", networkDaemon(), nil, []clusters.Node{plain}, nil},
		"Seconds":               {"the pod goes after 300 s", tolerating(exists), nil, []clusters.Node{plain}, []Code{TolerationSeconds}},
		"SecondsBeforeAll":      {"the first that matches counts, which is the limited one", tolerating(exists, blanket), nil, []clusters.Node{plain}, []Code{TolerationSeconds}},
		"SecondsBehindAll":      {"the first that matches counts, which is the blanket one", tolerating(blanket, exists), nil, []clusters.Node{plain}, nil},
		"SecondsBehindKey":      {"the one before tolerates any value of the key for good", tolerating(unlimited(exists), equal), nil, []clusters.Node{plain}, nil},
		"SecondsBehindEqual":    {"the one before tolerates the same value for good", tolerating(unlimited(equal), equal), nil, []clusters.Node{plain}, nil},
		"SecondsBehindValue":    {"the one before tolerates another value only", tolerating(unlimited(limited("a", "", "y")), equal), nil, []clusters.Node{plain}, []Code{TolerationSeconds}},
		"SecondsBehindNarrow":   {"the one before tolerates one value, the limited one all", tolerating(unlimited(equal), exists), nil, []clusters.Node{plain}, []Code{TolerationSeconds}},
		"SecondsBehindCompared": {"the one before tolerates one value, the limited one those above", tolerating(unlimited(limited("a", "", "5")), limited("a", corev1.TolerationOpGt, "5")), nil, []clusters.Node{plain}, []Code{TolerationSeconds}},
		"SecondsBehindEffect":   {"the one before tolerates no NoExecute taint", tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}, exists), nil, []clusters.Node{plain}, []Code{TolerationSeconds}},
		"SecondsBehindOther":    {"the one before is of another key", tolerating(unlimited(limited("b", corev1.TolerationOpExists, "")), exists), nil, []clusters.Node{plain}, []Code{TolerationSeconds}},
		"SecondsBehindLimited":  {"both are limited", tolerating(exists, equal), nil, []clusters.Node{plain}, []Code{TolerationSeconds}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			live := &clusters.Live{ObservedAt: worldNow, Nodes: tc.nodes, DaemonSets: []appsv1.DaemonSet{*tc.live}}
			got := lintCodes(Compute(live, []Subject{{Live: &live.DaemonSets[0], Desired: tc.desired}}, Options{}))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRuntimeClassUnseen(t *testing.T) {
	gvisor := "gvisor"
	cases := map[string]struct {
		reason        string
		unschedulable string
		placement     clusters.Placement
		want          []Code
	}{
		"Placement": {"the class may be to blame", "0/1 nodes are available: 1 node(s) had untolerated taint(s).", clusters.Placement{}, []Code{RuntimeClassUnseen}},
		"Volume":    {"a volume is no matter of the class", "0/1 nodes are available: 1 node(s) had volume node affinity conflict.", clusters.Placement{}, nil},
		"Memory":    {"nor is memory", "0/1 nodes are available: 1 Insufficient memory.", clusters.Placement{}, []Code{LowPriority}},
		"Drift":     {"the pod's own reason already tells", "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.", clusters.Placement{NodeSelector: map[string]string{"a": "b"}}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			live := pendingPod(daemonSetOf(func(s *appsv1.DaemonSetSpec) { s.Template.Spec.RuntimeClassName = &gvisor }), tc.placement)
			live.Pods[0].Unschedulable = tc.unschedulable
			got := lintCodes(Compute(live, []Subject{{Live: &live.DaemonSets[0]}}, Options{}))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// pendingPod is a cluster of one node, for which a pod waits.
func pendingPod(ds *appsv1.DaemonSet, placement clusters.Placement) *clusters.Live {
	pod := clusters.Pod{
		Namespace: ds.Namespace, Name: "agent-1", UID: "pod", Labels: map[string]string{"app": "agent"},
		Owner: clusters.Owner{Kind: "DaemonSet", Name: ds.Name, UID: string(ds.UID)}, Node: "n1",
		Created: worldNow.Add(-time.Hour), Phase: corev1.PodPending, Placement: &placement,
	}
	return &clusters.Live{ObservedAt: worldNow, Nodes: []clusters.Node{{Name: "n1"}}, DaemonSets: []appsv1.DaemonSet{*ds}, Pods: []clusters.Pod{pod}}
}

func lintCodes(c Cluster) []Code {
	lints := []Code{BlanketToleration, MixedOS, HostPortSurge, NotReadyNotTolerated, TolerationSeconds, NoPriorityClass, LowPriority, RuntimeClassUnseen}
	var out []Code
	for _, r := range c.DaemonSets[0].Problems {
		if slices.Contains(lints, r.Code) {
			out = append(out, r.Code)
		}
	}
	return out
}
