package plan_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/quick"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/plan"
)

// list is a list of resources: list("cpu", "1", "memory", "2Gi").
func list(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

func node(pairs ...string) *clusters.Node {
	return &clusters.Node{Name: "n7", Allocatable: list(append([]string{"pods", "10"}, pairs...)...)}
}

func claim(name string, priority int32, pairs ...string) clusters.Claim {
	return clusters.Claim{Namespace: "ns", Name: name, UID: "uid-" + name, Node: "n7", Priority: priority, Requests: list(pairs...)}
}

func ports(c clusters.Claim, all ...clusters.HostPort) clusters.Claim {
	c.HostPorts = all
	return c
}

func TestFit(t *testing.T) {
	web, webOf := clusters.HostPort{Protocol: "TCP", Port: 8080}, clusters.HostPort{IP: "10.0.0.1", Protocol: "TCP", Port: 8080}
	for name, tc := range map[string]struct {
		reason string
		want   plan.Pod
		node   *clusters.Node
		claims []clusters.Claim
		text   string
		fits   bool
	}{
		"Exactly":    {"what is free may be used up", plan.Pod{Requests: list("memory", "100Mi")}, node("memory", "200Mi"), []clusters.Claim{claim("a", 0, "memory", "100Mi")}, "", true},
		"Memory":     {"the design's own words", plan.Pod{Requests: list("memory", "200Mi")}, node("memory", "1Gi"), []clusters.Claim{claim("a", 0, "memory", "904Mi")}, "would stay pending: needs 200Mi memory, 120Mi free", false},
		"Several":    {"all that lacks is told, in order", plan.Pod{Requests: list("memory", "2Gi", "cpu", "1500m", "nvidia.com/gpu", "1", "ephemeral-storage", "1Gi")}, node("cpu", "2", "memory", "1Gi", "ephemeral-storage", "1Gi"), []clusters.Claim{claim("a", 0, "cpu", "800m")}, "would stay pending: needs 1500m cpu, 1200m free; needs 2Gi memory, 1Gi free; needs 1 nvidia.com/gpu, 0 free", false},
		"OddBytes":   {"what is free is rounded down", plan.Pod{Requests: list("memory", "200Mi")}, node("memory", "209715199"), nil, "would stay pending: needs 200Mi memory, 199Mi free", false},
		"Overdrawn":  {"static pods may take more than there is", plan.Pod{Requests: list("cpu", "1")}, node("cpu", "1"), []clusters.Claim{claim("a", 0, "cpu", "2")}, "would stay pending: needs 1 cpu, 0 free", false},
		"NoRequest":  {"a pod that asks for nothing fits a node without anything left", plan.Pod{Requests: list("cpu", "0")}, node("cpu", "1"), []clusters.Claim{claim("a", 0, "cpu", "2")}, "", true},
		"Rounding":   {"every claim is rounded up to a thousandth of a CPU", plan.Pod{Requests: list("cpu", "998m")}, node("cpu", "1"), []clusters.Claim{claim("a", 0, "cpu", "500u"), claim("b", 0, "cpu", "500u"), claim("c", 0, "cpu", "500u")}, "would stay pending: needs 998m cpu, 997m free", false},
		"Pods":       {"the number of pods counts without any request", plan.Pod{}, &clusters.Node{Allocatable: list("pods", "1")}, []clusters.Claim{claim("a", 0)}, "would stay pending: needs room for 1 more pod, 0 free", false},
		"NoStatus":   {"a node whose kubelet has said nothing takes no pod", plan.Pod{}, &clusters.Node{}, nil, "would stay pending: needs room for 1 more pod, 0 free", false},
		"Replaces":   {"the pod that goes first leaves its room, its place and its ports", plan.Pod{Requests: list("memory", "200Mi"), HostPorts: []clusters.HostPort{web}, Replaces: "uid-a"}, &clusters.Node{Allocatable: list("pods", "1", "memory", "200Mi")}, []clusters.Claim{ports(claim("a", 0, "memory", "200Mi"), web)}, "", true},
		"Surges":     {"under maxSurge it stays beside", plan.Pod{Requests: list("memory", "200Mi")}, node("memory", "300Mi"), []clusters.Claim{claim("a", 0, "memory", "200Mi")}, "would stay pending: needs 200Mi memory, 100Mi free", false},
		"Port":       {"a port of all addresses conflicts with that of one", plan.Pod{HostPorts: []clusters.HostPort{web}}, node(), []clusters.Claim{ports(claim("b", 0), webOf), ports(claim("a", 0), webOf)}, "would stay pending: needs host port 8080/TCP, which ns/a has", false},
		"PortOf":     {"and the other way round", plan.Pod{HostPorts: []clusters.HostPort{webOf}}, node(), []clusters.Claim{ports(claim("a", 0), web)}, "would stay pending: needs host port 8080/TCP of 10.0.0.1, which ns/a has", false},
		"PortOther":  {"another address, protocol or port is free", plan.Pod{HostPorts: []clusters.HostPort{webOf}}, node(), []clusters.Claim{ports(claim("a", 0), clusters.HostPort{IP: "10.0.0.2", Protocol: "TCP", Port: 8080}, clusters.HostPort{Protocol: "UDP", Port: 8080}, clusters.HostPort{Protocol: "TCP", Port: 8081})}, "", true},
		"Nameless":   {"a snapshot leaves names out", plan.Pod{HostPorts: []clusters.HostPort{web}}, node(), []clusters.Claim{{Namespace: "ns", HostPorts: []clusters.HostPort{web}}}, "would stay pending: needs host port 8080/TCP, which a pod in namespace ns has", false},
		"Preempts":   {"as few go as must, the least important ones", plan.Pod{Requests: list("memory", "300Mi"), Priority: 9}, node("memory", "1Gi"), []clusters.Claim{claim("a", 1, "memory", "200Mi"), claim("b", 8, "memory", "600Mi"), claim("c", 2, "memory", "200Mi"), claim("d", 9, "memory", "24Mi")}, "would preempt 2 pods of lower priority: needs 300Mi memory, 0 free", true},
		"PreemptOne": {"one is told as one", plan.Pod{Requests: list("cpu", "1"), Priority: 1}, node("cpu", "1"), []clusters.Claim{claim("a", 0, "cpu", "500m"), claim("b", 0)}, "would preempt 1 pod of lower priority: needs 1 cpu, 500m free", true},
		"PreemptPort": {"who has the port goes, and with it enough memory", plan.Pod{Requests: list("memory", "1Gi"), HostPorts: []clusters.HostPort{web}, Priority: 1}, node("memory", "2Gi"),
			[]clusters.Claim{ports(claim("a", 0, "memory", "1Gi"), web), claim("b", -1, "memory", "1Gi")}, "would preempt 1 pod of lower priority: needs 1Gi memory, 0 free; needs host port 8080/TCP, which ns/a has", true},
		"PreemptPods": {"room for one more pod, too", plan.Pod{Priority: 1}, &clusters.Node{Allocatable: list("pods", "2")}, []clusters.Claim{claim("a", 0), claim("b", 1)}, "would preempt 1 pod of lower priority: needs room for 1 more pod, 0 free", true},
		"Equals":      {"pods of equal priority stay", plan.Pod{Requests: list("cpu", "1"), Priority: 1}, node("cpu", "1"), []clusters.Claim{claim("a", 1, "cpu", "500m")}, "would stay pending: needs 1 cpu, 500m free", false},
		"InVain":      {"nobody goes where that would not be enough", plan.Pod{Requests: list("cpu", "1"), Priority: 1}, node("cpu", "1"), []clusters.Claim{claim("a", 0, "cpu", "500m"), claim("b", 2, "cpu", "1m")}, "would stay pending: needs 1 cpu, 499m free", false},
		"Never":       {"preemptionPolicy Never waits", plan.Pod{Requests: list("cpu", "1"), Priority: 1, Never: true}, node("cpu", "1"), []clusters.Claim{claim("a", 0, "cpu", "500m")}, "would stay pending: needs 1 cpu, 500m free", false},
		"NotItself":   {"the pod that it replaces is no victim", plan.Pod{Requests: list("cpu", "1"), Priority: 1, Replaces: "uid-a"}, node("cpu", "1"), []clusters.Claim{claim("a", 0, "cpu", "500m"), claim("b", 1, "cpu", "500m")}, "would stay pending: needs 1 cpu, 500m free", false},
	} {
		t.Run(name, func(t *testing.T) {
			lacks := plan.Fit(tc.want, tc.node, tc.claims)
			text, refused := plan.Text(lacks)
			if text != tc.text || refused == tc.fits {
				t.Errorf("%s: got %q, refused: %v, want %q, %v", tc.reason, text, refused, tc.text, !tc.fits)
			}
		})
	}
}

func TestPodOf(t *testing.T) {
	priorities := map[string]clusters.Priority{"": {Value: 5}, "high": {Value: 100}, "polite": {Value: 100, Never: true}}
	for name, tc := range map[string]struct {
		spec     string
		known    map[string]clusters.Priority
		priority int32
		never    bool
	}{
		"Default":     {"{}", priorities, 5, false},
		"Class":       {"{priorityClassName: high}", priorities, 100, false},
		"Polite":      {"{priorityClassName: polite}", priorities, 100, true},
		"Template":    {"{priorityClassName: high, preemptionPolicy: Never}", priorities, 100, true},
		"Critical":    {"{priorityClassName: system-node-critical}", nil, 2000001000, false},
		"Unknown":     {"{priorityClassName: gone}", priorities, 0, false},
		"NothingSaid": {"{}", nil, 0, false},
	} {
		var spec corev1.PodSpec
		if err := yaml.UnmarshalStrict([]byte(tc.spec), &spec); err != nil {
			t.Fatal(err)
		}
		got := plan.PodOf(&spec, tc.known, "uid")
		if got.Priority != tc.priority || got.Never != tc.never || got.Replaces != "uid" {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	spec := corev1.PodSpec{HostNetwork: true, Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{ContainerPort: 9100}}, Resources: corev1.ResourceRequirements{Limits: list("cpu", "1")}}}}
	want := plan.Pod{Requests: list("cpu", "1"), HostPorts: []clusters.HostPort{{Protocol: "TCP", Port: 9100}}}
	if diff := cmp.Diff(want, plan.PodOf(&spec, nil, "")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Two DaemonSets of one commit do not both get the last room.
func TestPlace(t *testing.T) {
	loads := plan.NewLoads([]clusters.Claim{claim("a", 0, "memory", "100Mi"), {Node: "other", Requests: list("memory", "9Gi")}})
	n := node("memory", "300Mi")
	one := plan.Pod{Requests: list("memory", "150Mi"), HostPorts: []clusters.HostPort{{Protocol: "TCP", Port: 1}}}
	if lacks := loads.Fit(one, n); lacks != nil {
		t.Fatal(lacks)
	}
	loads.Place(one, n.Name)
	text, _ := plan.Text(loads.Fit(one, n))
	if want := "would stay pending: needs 150Mi memory, 50Mi free; needs host port 1/TCP, which another pod has"; text != want {
		t.Errorf("got %q, want %q", text, want)
	}
	loads.Place(plan.Pod{Requests: list("memory", "10Mi"), Replaces: "uid-a"}, n.Name)
	two := plan.Pod{Requests: list("memory", "140Mi")}
	if lacks := loads.Fit(two, n); lacks != nil {
		t.Errorf("the pod that was replaced still counts: %v", lacks)
	}
	if lacks := loads.Fit(plan.Pod{Requests: list("memory", "141Mi")}, n); lacks == nil {
		t.Error("the pod that came does not count")
	}
}

// Nothing that is less fits worse, and preemption is never needed where it was
// not allowed and it fitted.
func TestFitQuick(t *testing.T) {
	law := func(total, need, less uint16, held []uint16, priorities []int8, mine int8) bool {
		n := node("memory", fmt.Sprint(total))
		var claims []clusters.Claim
		for i, m := range held {
			priority := int32(0)
			if i < len(priorities) {
				priority = int32(priorities[i])
			}
			claims = append(claims, claim(fmt.Sprint(i), priority, "memory", fmt.Sprint(m/8)))
		}
		before := slices.Clone(claims)
		ask := func(need uint16, never bool) []plan.Lack {
			return plan.Fit(plan.Pod{Requests: list("memory", fmt.Sprint(need)), Priority: int32(mine), Never: never}, n, claims)
		}
		less = min(less, need)
		_, refused := plan.Text(ask(need, false))
		_, refusedLess := plan.Text(ask(less, false))
		polite, greedy := ask(need, true), ask(need, false)
		lower := 0
		for _, c := range claims {
			if c.Priority < int32(mine) {
				lower++
			}
		}
		return (refused || !refusedLess) && (polite == nil) == (greedy == nil) && cmp.Equal(before, claims) &&
			!slices.ContainsFunc(greedy, func(l plan.Lack) bool { return l.Preempts > lower }) &&
			cmp.Equal(greedy, plan.NewLoads(claims).Fit(plan.Pod{Requests: list("memory", fmt.Sprint(need)), Priority: int32(mine)}, n))
	}
	if err := quick.Check(law, &quick.Config{MaxCount: 2000}); err != nil {
		t.Error(err)
	}
}

// A large cluster is indexed once, and asked for each DaemonSet:
// go test -bench Fit -run - ./controller/plan
func BenchmarkFit(b *testing.B) {
	const nodes, pods = 5000, 30
	var all []clusters.Node
	var claims []clusters.Claim
	requests := list("cpu", "100m", "memory", "200Mi")
	for i := range nodes {
		name := fmt.Sprintf("n%d", i)
		all = append(all, clusters.Node{Name: name, Allocatable: list("cpu", "4", "memory", "8Gi", "pods", "110")})
		for j := range pods {
			claims = append(claims, clusters.Claim{Namespace: "ns", Name: fmt.Sprint(j), UID: fmt.Sprintf("%d-%d", i, j), Node: name, Priority: int32(j), Requests: requests})
		}
	}
	b.Run("index", func(b *testing.B) {
		for b.Loop() {
			plan.NewLoads(claims)
		}
	})
	loads := plan.NewLoads(claims)
	for name, want := range map[string]plan.Pod{
		"fits":     {Requests: list("cpu", "100m", "memory", "100Mi")},
		"preempts": {Requests: list("cpu", "2", "memory", "100Mi"), Priority: 20},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				for i := range all {
					if lacks := loads.Fit(want, &all[i]); (lacks == nil) != (name == "fits") {
						b.Fatal(lacks)
					}
				}
			}
		})
	}
}
