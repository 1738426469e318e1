package clusters

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

func podOf(t *testing.T, text string) *corev1.Pod {
	t.Helper()
	var p corev1.Pod
	if err := yaml.UnmarshalStrict([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	return &p
}

func words(list corev1.ResourceList) map[string]string {
	out := map[string]string{}
	for name, q := range list {
		out[string(name)] = q.String()
	}
	return out
}

func TestClaimRequests(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, pod string
		want        map[string]string
	}{
		"Sum":         {"containers run together", "spec: {containers: [{resources: {requests: {cpu: 100m, memory: 1Gi}}}, {resources: {requests: {cpu: 200m}}}]}", map[string]string{"cpu": "300m", "memory": "1Gi"}},
		"Limits":      {"a limit stands for a request that is not there", "spec: {containers: [{resources: {requests: {cpu: 100m}, limits: {cpu: 1, memory: 1Gi}}}]}", map[string]string{"cpu": "100m", "memory": "1Gi"}},
		"Extended":    {"no resource is left out", "spec: {containers: [{resources: {limits: {nvidia.com/gpu: 1, hugepages-2Mi: 4Mi, ephemeral-storage: 1Gi}}}]}", map[string]string{"nvidia.com/gpu": "1", "hugepages-2Mi": "4Mi", "ephemeral-storage": "1Gi"}},
		"Init":        {"init containers run one after the other, before the rest", "spec: {initContainers: [{resources: {requests: {cpu: 1}}}, {resources: {requests: {cpu: 2, memory: 1Mi}}}], containers: [{resources: {requests: {cpu: 500m, memory: 2Mi}}}]}", map[string]string{"cpu": "2", "memory": "2Mi"}},
		"Sidecar":     {"a sidecar runs beside what follows it, and beside the containers", "spec: {initContainers: [{resources: {requests: {cpu: 3}}}, {restartPolicy: Always, resources: {requests: {cpu: 1}}}, {resources: {requests: {cpu: 4}}}], containers: [{resources: {requests: {cpu: 3}}}]}", map[string]string{"cpu": "5"}},
		"Sidecars":    {"sidecars and containers may be the most", "spec: {initContainers: [{restartPolicy: Always, resources: {requests: {cpu: 1}}}, {restartPolicy: Always, resources: {requests: {cpu: 1}}}], containers: [{resources: {requests: {cpu: 3}}}]}", map[string]string{"cpu": "5"}},
		"Overhead":    {"overhead is added", "spec: {overhead: {cpu: 250m, memory: 10Mi}, containers: [{resources: {requests: {cpu: 1}}}]}", map[string]string{"cpu": "1250m", "memory": "10Mi"}},
		"Whole":       {"requests of the pod stand for those of containers, in cpu, memory and huge pages", "spec: {resources: {requests: {cpu: 2, hugepages-2Mi: 8Mi}}, overhead: {cpu: 1}, containers: [{resources: {requests: {cpu: 1, memory: 1Gi, ephemeral-storage: 1Gi}}}]}", map[string]string{"cpu": "3", "memory": "1Gi", "ephemeral-storage": "1Gi", "hugepages-2Mi": "8Mi"}},
		"WholeLimits": {"limits of the pod stand for requests only where containers have none", "spec: {resources: {limits: {cpu: 4, memory: 2Gi}}, containers: [{resources: {requests: {cpu: 1}}}]}", map[string]string{"cpu": "1", "memory": "2Gi"}},
		"Growing":     {"a resize counts as soon as it is asked for", "{spec: {containers: [{name: c, resources: {requests: {cpu: 2}}}]}, status: {containerStatuses: [{name: c, allocatedResources: {cpu: 1}, resources: {requests: {cpu: 1}}}]}}", map[string]string{"cpu": "2"}},
		"Shrinking":   {"what is to be given back counts until it is", "{spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}, status: {containerStatuses: [{name: c, allocatedResources: {cpu: 1}, resources: {requests: {cpu: 3}}}]}}", map[string]string{"cpu": "3"}},
		"Infeasible":  {"a resize that will not come does not count", "{spec: {containers: [{name: c, resources: {requests: {cpu: 9}}}]}, status: {conditions: [{type: PodResizePending, reason: Infeasible}], containerStatuses: [{name: c, allocatedResources: {cpu: 1}, resources: {requests: {cpu: 1}}}]}}", map[string]string{"cpu": "1"}},
		"WholeHas":    {"so of the pod as a whole", "{spec: {resources: {requests: {memory: 1Gi}}, containers: [{name: c}]}, status: {resources: {requests: {memory: 2Gi}}, allocatedResources: {memory: 1Gi}}}", map[string]string{"memory": "2Gi"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, words(ClaimOf(podOf(t, tc.pod)).Requests)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRequestsAreReadOnly(t *testing.T) {
	p := podOf(t, "spec: {overhead: {cpu: 1}, initContainers: [{restartPolicy: Always, resources: {limits: {cpu: 1}}}], containers: [{resources: {requests: {cpu: 100m}}}, {resources: {requests: {cpu: 1500m}}}]}")
	before := p.DeepCopy()
	first, second := words(RequestsOf(&p.Spec)), words(RequestsOf(&p.Spec))
	if diff := cmp.Diff(before, p) + cmp.Diff(first, second) + cmp.Diff(map[string]string{"cpu": "3600m"}, first); diff != "" {
		t.Error(diff)
	}
}

func TestHostPorts(t *testing.T) {
	for name, tc := range map[string]struct {
		spec string
		want []HostPort
	}{
		"OnlyHost":    {"{containers: [{ports: [{containerPort: 1}, {containerPort: 2, hostPort: 3}]}]}", []HostPort{{"", "TCP", 3}}},
		"HostNetwork": {"{hostNetwork: true, containers: [{ports: [{containerPort: 1, protocol: UDP}, {containerPort: 2, hostPort: 2, hostIP: 0.0.0.0}]}]}", []HostPort{{"", "UDP", 1}, {"", "TCP", 2}}},
		"Sidecar":     {"{initContainers: [{ports: [{containerPort: 1, hostPort: 1}]}, {restartPolicy: Always, ports: [{containerPort: 2, hostPort: 2, hostIP: 10.0.0.1}]}]}", []HostPort{{"10.0.0.1", "TCP", 2}}},
	} {
		if diff := cmp.Diff(tc.want, HostPortsOf(&podOf(t, "spec: "+tc.spec).Spec)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
	all := []HostPort{{"", "TCP", 1}, {"10.0.0.1", "TCP", 1}, {"10.0.0.2", "TCP", 1}, {"", "UDP", 1}, {"", "TCP", 2}}
	want := []string{"xxx..", "xx...", "x.x..", "...x.", "....x"}
	for i, p := range all {
		got := ""
		for _, o := range all {
			mark := "."
			if p.Conflicts(o) {
				mark = "x"
			}
			got += mark
		}
		if got != want[i] {
			t.Errorf("%v: got %s, want %s", p, got, want[i])
		}
	}
}

func TestClaimOf(t *testing.T) {
	p := podOf(t, "{metadata: {namespace: ns, name: p, uid: u, ownerReferences: [{uid: x}, {uid: o, controller: true}]}, spec: {nodeName: m, priority: 7, containers: [{ports: [{hostPort: 1}]}]}}")
	want := Claim{Namespace: "ns", Name: "p", UID: "u", Owner: "o", Node: "m", Priority: 7, Requests: corev1.ResourceList{}, HostPorts: []HostPort{{"", "TCP", 1}}}
	if diff := cmp.Diff(want, ClaimOf(p)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAddPriority(t *testing.T) {
	class := func(name string, value int32, byDefault bool, policy corev1.PreemptionPolicy) *schedulingv1.PriorityClass {
		return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value, GlobalDefault: byDefault, PreemptionPolicy: &policy}
	}
	got := map[string]Priority{}
	for _, c := range []*schedulingv1.PriorityClass{class("a", 5, true, corev1.PreemptNever), class("b", 9, true, corev1.PreemptLowerPriority), class("c", 1, false, corev1.PreemptLowerPriority)} {
		AddPriority(got, c)
	}
	want := map[string]Priority{"a": {5, true}, "b": {9, false}, "c": {1, false}, "": {5, true}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Equal requests are held once; different ones never pass for each other.
func TestSharedClaim(t *testing.T) {
	var s Shared
	claim := func(cpu string) Claim {
		return s.Claim(ClaimOf(podOf(t, "{metadata: {namespace: ns}, spec: {nodeName: m, containers: [{resources: {requests: {cpu: "+cpu+", memory: 1Gi}}}]}}")))
	}
	a, b, c := claim("100m"), claim("0.1"), claim("200m")
	a.Requests["mark"] = a.Requests["cpu"]
	if _, shared := b.Requests["mark"]; !shared {
		t.Error("equal requests are held twice")
	}
	if diff := cmp.Diff(map[string]string{"cpu": "200m", "memory": "1Gi"}, words(c.Requests)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestNodeKeepsAllResources(t *testing.T) {
	n := &corev1.Node{}
	if err := yaml.UnmarshalStrict([]byte("status: {allocatable: {cpu: 1, nvidia.com/gpu: 2, hugepages-1Gi: 1Gi}}"), n); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"cpu": "1", "nvidia.com/gpu": "2", "hugepages-1Gi": "1Gi"}, words(NodeOf(n).Allocatable)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
