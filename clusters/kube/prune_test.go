package kube_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/clusters/kube"
	"rollcall.dev/rollcall/clusters/kubetest"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// Nothing is deleted that is not ours any more, whatever the inventory says.
func testGuards(t *testing.T, cp *kubetest.ControlPlane) {
	client := resourceOf(t, cp, configMaps, "default")
	patch := func(t *testing.T, name, metadata string) {
		t.Helper()
		if _, err := client.Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":`+metadata+`}`), metav1.PatchOptions{FieldManager: "someone"}); err != nil {
			t.Fatal(err)
		}
	}
	cases := map[string]struct {
		spoil func(t *testing.T, name string)
		words string // of the message; empty where it is deleted
	}{
		"plain":    {func(*testing.T, string) {}, ""},
		"label":    {func(t *testing.T, name string) { patch(t, name, `{"labels":{"rollcall.dev/fleet":null}}`) }, "its label rollcall.dev/fleet is gone"},
		"other":    {func(t *testing.T, name string) { patch(t, name, `{"labels":{"rollcall.dev/fleet":"x"}}`) }, `its label rollcall.dev/fleet is "x", so it is of another fleet`},
		"disabled": {func(t *testing.T, name string) { patch(t, name, `{"annotations":{"rollcall.dev/prune":"disabled"}}`) }, "its annotation rollcall.dev/prune is disabled"},
		"managers": {func(t *testing.T, name string) { patch(t, name, `{"managedFields":[{}]}`) }, "rollcall has not applied it"},
		"recreated": {func(t *testing.T, name string) {
			cp.Delete(t, configMap("default", name, "v"))
			cp.Apply(t, configMap("default", name, "v"))
		}, "another object of that name is there now"},
		"gone": {func(t *testing.T, name string) { cp.Delete(t, configMap("default", name, "v")) }, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object := ref("v1", "ConfigMap", "default", "guarded-"+name)
			r := rollout{cp: cp, fleet: "guards-" + name, commit: "c1", stages: []string{configMap("default", object.Name, "v")}}
			r.apply(t, object.String()+": created")
			tc.spoil(t, object.Name)
			r.commit, r.stages = "c2", nil
			if tc.words == "" {
				r.apply(t, object.String()+": pruned")
				r.inventory(t, "c2", "", 0)
				if r.live(t, object) != nil {
					t.Error("it is still there")
				}
				return
			}
			x := r.apply(t, object.String()+": held")[0]
			if reason := map[string]string{"disabled": "Kept"}[name]; x.Reason != cmp.Or(reason, "NotOurs") || !strings.Contains(x.Message, tc.words) {
				t.Errorf("got %+v", x)
			}
			if r.live(t, object) == nil {
				t.Error("it was deleted")
			}
			commit, pending := "c1", "c2"
			if name == "disabled" {
				commit, pending = "c2", "" // nothing waits for what is to stay
			}
			if i := r.observe(t).Inventory; i.Commit != commit || i.Pending != pending || len(i.Items) != 1 {
				t.Errorf("got %+v", i)
			}
		})
	}
}

// What went with its definition is gone, and a Delete that was not told which
// object is meant deletes none.
func testGone(t *testing.T, cp *kubetest.ControlPlane) {
	r := rollout{cp: cp, fleet: "gone", commit: "c1", stages: []string{configMap("default", "unnamed", "v")}}
	r.apply(t, "ConfigMap default/unnamed: created")
	live := r.observe(t)
	b := clusters.Batch{Inventory: *live.Inventory, Stages: [][]clusters.Change{{
		{Object: ref("gone.example.com/v1", "Widget", "default", "w"), Do: clusters.Delete, UID: "x"},
		{Object: ref("v1", "ConfigMap", "default", "unnamed"), Do: clusters.Delete},
	}}}
	results, err := new(kube.Observer).Apply(t.Context(), cluster(cp.Kubeconfig()), b, time.Now)
	if err != nil || results[0].Operation != clusters.OpPruned || results[1].Operation != clusters.OpHeld {
		t.Fatalf("got %+v, %v", results, err)
	}
}

// An inventory that no ConfigMap takes is in several, and old ones go.
func testSharded(t *testing.T, cp *kubetest.ControlPlane) {
	r := rollout{cp: cp, fleet: "sharded", commit: "c1", stages: []string{configMap("default", "sharded", "v")}}
	r.apply(t, "ConfigMap default/sharded: created")
	fill := func(n int) {
		t.Helper()
		live := r.observe(t)
		b := r.batch(t, live)
		b.Inventory.Items = b.Inventory.Items[:1:1]
		for i := range n {
			b.Inventory.Items = append(b.Inventory.Items, clusters.Item{Reference: ref("v1", "ConfigMap", "default", fmt.Sprintf("item-%06d-%s", i, strings.Repeat("x", 200))), UID: "x"})
		}
		b.Stages = b.Stages[:1]
		if _, err := new(kube.Observer).Apply(t.Context(), cluster(cp.Kubeconfig()), b, time.Now); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct{ items, maps int }{{3000, 3}, {5000, 4}, {10, 1}} {
		fill(tc.items)
		if i := r.observe(t).Inventory; len(i.Items) != tc.items+1 {
			t.Errorf("got %d items, want %d", len(i.Items), tc.items+1)
		}
		list, err := resourceOf(t, cp, configMaps, "rollcall").List(t.Context(), metav1.ListOptions{LabelSelector: clusters.FleetLabel + "=sharded"})
		if err != nil || len(list.Items) != tc.maps {
			t.Errorf("%d items: got %d ConfigMaps, %v, want %d", tc.items, len(list.Items), err, tc.maps)
		}
	}
	// One that is broken is said to be, and is not taken for an empty one.
	if _, err := resourceOf(t, cp, configMaps, "rollcall").Patch(t.Context(), clusters.InventoryName("sharded"), types.MergePatchType, []byte(`{"data":{"items":""}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	live := observe(t, cp.Kubeconfig(), clusters.Want{Inventory: "sharded"})
	if why, blank := live.Lacks("inventory"); live.Inventory != nil || !blank || !strings.Contains(why, "nothing is pruned until it is deleted") {
		t.Errorf("got %v, %q", live.Inventory, why)
	}
	_, err := new(kube.Observer).Apply(t.Context(), cluster(cp.Kubeconfig()), r.batch(t, live), time.Now)
	wantFault(t, err, clusters.Failed, "reading the inventory", "is broken")
}
