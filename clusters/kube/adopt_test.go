package kube_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/clusters/kubetest"
)

// resourceOf is the client of a kind in a namespace.
func resourceOf(t *testing.T, cp *kubetest.ControlPlane, resource schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(cp.Client(t))
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(resource).Namespace(namespace)
}

var dsResource = appsv1.SchemeGroupVersion.WithResource("daemonsets")

// kubectlApply creates a DaemonSet as kubectl apply does without --server-side:
// as an update, with what it has applied in an annotation.
func kubectlApply(t *testing.T, cp *kubetest.ControlPlane, u *unstructured.Unstructured) {
	t.Helper()
	u.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}", "old": "x", "keep": "it"})
	if _, err := resourceOf(t, cp, dsResource, u.GetNamespace()).Create(t.Context(), u, metav1.CreateOptions{FieldManager: "kubectl-client-side-apply"}); err != nil {
		t.Fatal(err)
	}
}

func managersOf(u *unstructured.Unstructured) []string {
	var out []string
	for _, e := range u.GetManagedFields() {
		if e.Subresource == "" {
			out = append(out, e.Manager+" "+string(e.Operation))
		}
	}
	slices.Sort(out)
	return out
}

// gitDaemonSet is a DaemonSet as Git has it: without kubectl's annotation.
func gitDaemonSet(namespace, name string) string {
	return strings.ReplaceAll(daemonSet(namespace, name, ""), `  annotations: {kubectl.kubernetes.io/last-applied-configuration: "long", keep: "short"}`, "")
}

// What kubectl applied becomes ours: what is not in Git goes, and the template
// is not touched. kubectl's own annotation goes, too, for it is not kubectl's now.
func testAdopt(t *testing.T, cp *kubetest.ControlPlane) {
	git := strings.Replace(gitDaemonSet("default", "adopted"), "  namespace:", "  annotations: {keep: it}\n  namespace:", 1)
	kubectlApply(t, cp, objectOf(t, git))
	r := rollout{cp: cp, fleet: "adopt", commit: "c1", stages: []string{git}, change: func(c *clusters.Change) { c.Adopt = []string{"kubectl-client-side-apply"} }}
	before, err := resourceOf(t, cp, dsResource, "default").Get(t.Context(), "adopted", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r.apply(t, "DaemonSet default/adopted: configured")
	after, err := resourceOf(t, cp, dsResource, "default").Get(t.Context(), "adopted", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"rollcall Apply"}, managersOf(after)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if after.GetUID() != before.GetUID() || after.GetGeneration() != before.GetGeneration() {
		t.Errorf("got generation %d after %d, UID %s after %s", after.GetGeneration(), before.GetGeneration(), after.GetUID(), before.GetUID())
	}
	if diff := cmp.Diff(map[string]string{"deprecated.daemonset.template.generation": "1", "keep": "it"}, after.GetAnnotations()); diff != "" {
		t.Errorf("annotations: -want +got:\n%s", diff)
	}
	r.apply(t, "DaemonSet default/adopted: unchanged")
}

// Another manager's server-side apply is taken over, a third's share stays.
func testAdoptServerSide(t *testing.T, cp *kubetest.ControlPlane) {
	git := gitDaemonSet("default", "shared")
	cp.Apply(t, strings.Replace(git, "labels: {team: shared}", `labels: {team: shared, gone: soon}`, 1))
	client := resourceOf(t, cp, dsResource, "default")
	third := objectOf(t, "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: shared, namespace: default, labels: {third: stays}}\n")
	before, err := client.Apply(t.Context(), "shared", third, metav1.ApplyOptions{FieldManager: "third"})
	if err != nil {
		t.Fatal(err)
	}
	r := rollout{cp: cp, fleet: "adopt-ssa", commit: "c1", stages: []string{git}, change: func(c *clusters.Change) { c.Adopt = []string{"kubetest"} }}
	r.apply(t, "DaemonSet default/shared: configured")
	after, err := client.Get(t.Context(), "shared", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"rollcall Apply", "third Apply"}, managersOf(after)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"team": "shared", "third": "stays", clusters.FleetLabel: "adopt-ssa"}, after.GetLabels()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if after.GetGeneration() != before.GetGeneration() {
		t.Errorf("got generation %d after %d", after.GetGeneration(), before.GetGeneration())
	}
	r.apply(t, "DaemonSet default/shared: unchanged")
}
