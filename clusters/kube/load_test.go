package kube_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/clusters/kube"
	"rollcall.dev/rollcall/clusters/kubetest"
	"rollcall.dev/rollcall/clusters/rbac"
)

// What pods claim is read of all namespaces, whatever DaemonSets are wanted, in
// pages, and without those that have ended or have no node.
func testForecast(t *testing.T, cp *kubetest.ControlPlane) {
	bound := func(name, status string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: default}\nspec: {nodeName: full, priorityClassName: first, containers: [{name: c, image: i, resources: {limits: {example.com/gpu: 1}}, ports: [{containerPort: 1, hostPort: 2, hostIP: 10.0.0.1}]}]}\n%s---\n", name, status)
	}
	cp.Apply(t, "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: first}\nvalue: 5\nglobalDefault: true\npreemptionPolicy: Never\n---\n"+
		"apiVersion: v1\nkind: Node\nmetadata: {name: full}\nstatus: {allocatable: {cpu: 1, example.com/gpu: 3}, capacity: {cpu: 1, example.com/gpu: 3}}\n---\n"+
		bound("claims-1", "")+bound("claims-2", "status: {phase: Running}\n")+bound("succeeded", "status: {phase: Succeeded}\n")+bound("failed", "status: {phase: Failed}\n"))
	want := func(name string) clusters.Claim {
		return clusters.Claim{
			Namespace: "default", Name: name, Node: "full", Priority: 5, Requests: corev1.ResourceList{"example.com/gpu": resource.MustParse("1")},
			HostPorts: []clusters.HostPort{{IP: "10.0.0.1", Protocol: "TCP", Port: 2}},
		}
	}
	live, err := (&kube.Observer{PageSize: 3}).Observe(t.Context(), cluster(cp.Kubeconfig()), clusters.Want{Name: "other", Forecast: true})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]clusters.Claim{want("claims-1"), want("claims-2")}, live.Claims, cmpopts.IgnoreFields(clusters.Claim{}, "UID"), cmpopts.SortSlices(func(a, b clusters.Claim) bool { return a.Name < b.Name })); diff != "" {
		t.Errorf("claims -want +got:\n%s", diff)
	}
	first := clusters.Priority{Value: 5, Never: true}
	if diff := cmp.Diff(map[string]clusters.Priority{"": first, "first": first, "system-node-critical": {Value: 2000001000}, "system-cluster-critical": {Value: 2000000000}}, live.Priorities); diff != "" {
		t.Errorf("priorities -want +got:\n%s", diff)
	}
	for _, n := range live.Nodes {
		if gpus := n.Allocatable["example.com/gpu"]; n.Name == "full" && gpus.Value() != 3 {
			t.Errorf("got allocatable %v", n.Allocatable)
		}
	}
	if live := observe(t, cp.Kubeconfig(), clusters.Want{}); live.Claims != nil || live.Priorities != nil {
		t.Error("what nobody wants is read")
	}
	testForecastTier(t, cp)
}

// The tier is enough, and without it is said what is not known.
func testForecastTier(t *testing.T, cp *kubetest.ControlPlane) {
	rules, err := rbac.Rules("forecast", nil)
	if err != nil {
		t.Fatal(err)
	}
	var tier []string
	for _, r := range rules {
		if r.Namespace == "" {
			tier = append(tier, fmt.Sprintf("{apiGroups: [%q], resources: [%s], verbs: [%s]}", r.APIGroups[0], strings.Join(r.Resources, ", "), strings.Join(r.Verbs, ", ")))
		}
	}
	least := rule("", "nodes", "namespaces", "events") + "," + rule("apps", "daemonsets", "controllerrevisions")
	for name, tc := range map[string]struct {
		rules  string
		blanks map[string]string
	}{
		"forecaster": {strings.Join(tier, ","), nil},
		"no-claims":  {least, map[string]string{"claims": `cannot list resource "pods" in API group "" at the cluster scope`, "priorityclasses": `cannot list resource "priorityclasses"`}},
	} {
		path := cp.User(t, name)
		cp.Apply(t, grant(name, tc.rules))
		var live clusters.Live
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(100 * time.Millisecond) { // until the authorizer has seen it
			live, err = new(kube.Observer).Observe(t.Context(), cluster(path), clusters.Want{Name: "other", Forecast: true})
			if err == nil || time.Now().After(deadline) {
				break
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		for resource, words := range tc.blanks {
			if reason, blank := live.Lacks(resource); !blank || !strings.HasPrefix(reason, "forbidden: User ") || !strings.Contains(reason, words) {
				t.Errorf("%s: got %q of %s", name, reason, resource)
			}
		}
		if len(live.Blanks) != len(tc.blanks) || (live.Claims == nil) != (tc.blanks != nil) {
			t.Errorf("%s: got blanks %v, %d claims", name, live.Blanks, len(live.Claims))
		}
	}
}
