package drift_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"rollcall.dev/rollcall/clusters/kubetest"
	"rollcall.dev/rollcall/controller/drift"
)

// first are kinds that others need.
var first = []string{"Namespace", "CustomResourceDefinition", "PriorityClass", "ServiceAccount"}

// TestAgents compares the manifests of public agents, below ROLLCALL_AGENTS a
// folder each, with what a real API server has made of them, delivered in each
// way. testdata/agents.txt has what it found.
func TestAgents(t *testing.T) {
	dir := os.Getenv("ROLLCALL_AGENTS")
	if dir == "" {
		t.Skip("ROLLCALL_AGENTS names no folder")
	}
	cp := kubetest.Start(t, kubetest.Options{})
	config, err := clientcmd.BuildConfigFromFlags("", cp.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	found, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(found))
	agents, err := os.ReadDir(dir)
	if err != nil || len(agents) == 0 {
		t.Fatal("there are no agents", err)
	}
	for _, agent := range agents {
		for _, way := range []string{"server-side apply of Flux", "client-side apply of kubectl", "Helm", "a program that nobody knows"} {
			t.Run(agent.Name()+"/"+way, func(t *testing.T) {
				a := api{t: t, client: client, mapper: mapper}
				a.agent(filepath.Join(dir, agent.Name()), deliverers[way], mapper.Reset)
			})
		}
	}
}

// agent delivers one, compares it and takes it away again.
func (a api) agent(dir string, deliver func(api, *unstructured.Unstructured) error, anew func()) {
	a.t.Helper()
	var taken []unstructured.Unstructured
	var refusals []string
	all := a.manifests(dir)
	for i := range all {
		a.namespace(all[i].GetNamespace())
		err := deliver(a, &all[i])
		if all[i].GetKind() == "Namespace" && apierrors.IsAlreadyExists(err) {
			continue // from another agent; it is not as this one says
		}
		if err != nil {
			refusals = append(refusals, fmt.Sprintf("%s %s: %v", all[i].GetKind(), all[i].GetName(), err))
			continue
		}
		taken = append(taken, all[i])
		if all[i].GetKind() == "CustomResourceDefinition" {
			a.established(&all[i])
			anew()
		}
	}
	defer a.takeAway(taken)
	dss, _ := daemonSets(a.t, taken)
	out := drift.NewTypes().Compare(drift.Input{DaemonSets: dss, Objects: taken, Live: a.live(taken)})
	a.t.Logf("agent: %d objects, %d DaemonSets, %d compared, %d differ, %d refused by the server", len(all), len(dss), out.Compared, len(out.Objects), len(refusals))
	for _, r := range refusals {
		a.t.Logf("refused: %s", r)
	}
	if len(dss) == 0 || len(out.Objects) > 0 || len(out.Unused) > 0 {
		a.t.Errorf("found what is none, or no DaemonSet:\n%s", print(out))
	}
}

// manifests are all objects below a folder, in an order in which they can be
// delivered.
func (a api) manifests(dir string) []unstructured.Unstructured {
	a.t.Helper()
	var all []unstructured.Unstructured
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		a.t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			a.t.Fatal(err)
		}
		for doc := range strings.SplitSeq("\n"+string(data), "\n---") {
			var u unstructured.Unstructured
			if err := yaml.Unmarshal([]byte(strings.TrimPrefix(doc, " ")), &u.Object); err != nil {
				a.t.Fatalf("%s: %v", file, err)
			}
			if u.GetKind() == "List" {
				if err := u.EachListItem(func(o runtime.Object) error { all = append(all, *o.(*unstructured.Unstructured)); return nil }); err != nil {
					a.t.Fatal(err)
				}
				continue
			}
			if u.GetKind() != "" {
				all = append(all, u)
			}
		}
	}
	for i := range all {
		gvk := all[i].GroupVersionKind()
		m, err := a.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if all[i].GetNamespace() == "" && err == nil && m.Scope.Name() == "namespace" {
			all[i].SetNamespace("agents")
		}
	}
	rank := func(u unstructured.Unstructured) int {
		if at := slices.Index(first, u.GetKind()); at >= 0 {
			return at
		}
		return len(first)
	}
	slices.SortStableFunc(all, func(x, y unstructured.Unstructured) int { return rank(x) - rank(y) })
	return all
}

func (a api) namespace(name string) {
	a.t.Helper()
	if name == "" {
		return
	}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}
	if _, err := a.resource(u).Create(a.t.Context(), u, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		a.t.Fatal(err)
	}
}

func (a api) established(crd *unstructured.Unstructured) {
	a.t.Helper()
	for range 100 {
		u, err := a.resource(crd).Get(a.t.Context(), crd.GetName(), metav1.GetOptions{})
		if err != nil {
			a.t.Fatal(err)
		}
		conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		for _, c := range conditions {
			if c := c.(map[string]any); c["type"] == "Established" && c["status"] == "True" {
				return
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	a.t.Fatalf("%s is not established", crd.GetName())
}

// takeAway deletes objects, the first made last, and waits until none is left.
func (a api) takeAway(all []unstructured.Unstructured) {
	a.t.Helper()
	for _, u := range slices.Backward(all) {
		if u.GetKind() == "Namespace" {
			continue
		}
		err := a.resource(&u).Delete(context.WithoutCancel(a.t.Context()), u.GetName(), metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
		if err != nil && !apierrors.IsNotFound(err) {
			a.t.Fatal(err)
		}
		for i := 0; u.GetKind() == "CustomResourceDefinition" && i < 100; i++ {
			if _, err := a.resource(&u).Get(context.WithoutCancel(a.t.Context()), u.GetName(), metav1.GetOptions{}); apierrors.IsNotFound(err) {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
}
