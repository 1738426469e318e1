package kube_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/clusters/kube"
	"rollcall.dev/rollcall/clusters/kubetest"
)

var applyTime = time.Date(2026, 6, 6, 6, 6, 6, 0, time.UTC)

// rollout is what a test applies to a cluster for a fleet.
type rollout struct {
	cp     *kubetest.ControlPlane
	path   string // kubeconfig that it is applied with; the administrator's when empty
	fleet  string
	commit string
	stages []string // manifests, one after the other
	change func(*clusters.Change)
	held   []clusters.Result
}

// batch is what a plan would make of it: everything is applied, what the
// inventory has beside it is deleted, and a DaemonSet whose selector changes or
// was changing is replaced.
func (r rollout) batch(t *testing.T, live clusters.Live) clusters.Batch {
	t.Helper()
	b := clusters.Batch{Inventory: clusters.Inventory{}, Held: r.held}
	if live.Inventory != nil {
		b.Inventory = *live.Inventory
		b.Inventory.Items = slices.Clone(live.Inventory.Items)
	}
	b.Inventory.Fleet, b.Inventory.Cluster, b.Inventory.Overlay, b.Inventory.Pending = r.fleet, "c", "overlays/c", r.commit
	wanted := map[string]bool{}
	for _, stage := range r.stages {
		var changes []clusters.Change
		for _, u := range objectsOf(t, stage) {
			labels := u.GetLabels()
			if labels == nil {
				labels = map[string]string{}
			}
			labels[clusters.FleetLabel] = clusters.FleetLabelValue(r.fleet)
			u.SetLabels(labels)
			c := clusters.Change{Object: clusters.ReferenceOf(&u), Do: clusters.Apply, Desired: &u}
			wanted[c.Object.Identity()] = true
			b.Inventory.Items = record(b.Inventory.Items, &c, live)
			if r.change != nil {
				r.change(&c)
			}
			changes = append(changes, c)
		}
		b.Stages = append(b.Stages, changes)
	}
	var gone []clusters.Change
	for _, item := range b.Inventory.Items {
		if wanted[item.Identity()] {
			continue
		}
		if item.UID == "" { // it was about to be applied, by a run that was broken off
			if u := r.live(t, item.Reference); u != nil {
				item.UID = string(u.GetUID())
			}
		}
		gone = append(gone, clusters.Change{Object: item.Reference, Do: clusters.Delete, UID: item.UID})
	}
	if gone != nil {
		b.Stages = append(b.Stages, gone)
	}
	return b
}

// record notes in an inventory what is about to be applied, and sees whether it
// takes a Replace.
func record(items []clusters.Item, c *clusters.Change, live clusters.Live) []clusters.Item {
	at := slices.IndexFunc(items, func(i clusters.Item) bool { return i.Identity() == c.Object.Identity() })
	if at < 0 {
		items, at = append(items, clusters.Item{Reference: c.Object}), len(items)
	}
	selector, _, _ := unstructured.NestedStringMap(c.Desired.Object, "spec", "selector", "matchLabels")
	for _, ds := range live.DaemonSets {
		if ds.Name == c.Object.Name && ds.Namespace == c.Object.Namespace && c.Object.Kind == "DaemonSet" {
			c.UID = string(ds.UID)
			if !cmp.Equal(ds.Spec.Selector.MatchLabels, selector) {
				items[at].Selector = ds.Spec.Selector.MatchLabels
			}
		}
	}
	if c.Keep = items[at].Selector; c.Keep != nil {
		c.Do, items[at].UID = clusters.Replace, "" // of the one that will be there
	}
	return items
}

func (r rollout) observe(t *testing.T) clusters.Live {
	t.Helper()
	live := observe(t, r.cp.Kubeconfig(), clusters.Want{Inventory: r.fleet})
	if len(live.Blanks) > 0 {
		t.Fatal(live.Blanks)
	}
	return live
}

func (r rollout) run(ctx context.Context, t *testing.T) ([]clusters.Result, error) {
	t.Helper()
	path := r.path
	if path == "" {
		path = r.cp.Kubeconfig()
	}
	return new(kube.Observer).Apply(ctx, cluster(path), r.batch(t, r.observe(t)), func() time.Time { return applyTime })
}

// apply wants the results, each "Kind namespace/name: operation", and returns
// them.
func (r rollout) apply(t *testing.T, want ...string) []clusters.Result {
	t.Helper()
	results, err := r.run(t.Context(), t)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, x := range results {
		got = append(got, fmt.Sprintf("%s: %s", x.Object, x.Operation))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("-want +got:\n%s\n%+v", diff, results)
	}
	return results
}

// inventory wants it to be at a commit, with the UIDs of what is there.
func (r rollout) inventory(t *testing.T, commit, pending string, items int) {
	t.Helper()
	i := r.observe(t).Inventory
	if i == nil || i.Commit != commit || i.Pending != pending || len(i.Items) != items {
		t.Fatalf("got inventory %+v, want commit %q, pending %q, %d items", i, commit, pending, items)
	}
	for _, item := range i.Items {
		if u := r.live(t, item.Reference); u != nil && item.UID != "" && string(u.GetUID()) != item.UID {
			t.Errorf("%s: got UID %s, and it has %s", item.Reference, item.UID, u.GetUID())
		}
	}
}

// live is an object as the administrator sees it; nil if it is not there.
func (r rollout) live(t *testing.T, ref clusters.Reference) *unstructured.Unstructured {
	t.Helper()
	live := observe(t, r.cp.Kubeconfig(), clusters.Want{Objects: []clusters.Reference{ref}})
	if ref.Kind == "DaemonSet" {
		for i := range live.DaemonSets {
			if ds := &live.DaemonSets[i]; ds.Name == ref.Name && ds.Namespace == ref.Namespace {
				return unstructuredOf(t, ds)
			}
		}
		return nil
	}
	if len(live.Objects) == 0 {
		return nil
	}
	return &live.Objects[0]
}

// Applying to a real API server without controllers.
func TestRealApply(t *testing.T) {
	cp := kubetest.Start(t, kubetest.Options{})
	t.Run("Stages", func(t *testing.T) { testStages(t, cp) })
	t.Run("Conflict", func(t *testing.T) { testConflict(t, cp) })
	t.Run("PartialFailure", func(t *testing.T) { testPartialFailure(t, cp) })
	t.Run("Secret", func(t *testing.T) { testApplySecret(t, cp) })
	t.Run("Retries", func(t *testing.T) { testRetries(t, cp) })
	t.Run("Another", func(t *testing.T) { testAnother(t, cp) })
	t.Run("Adopt", func(t *testing.T) { testAdopt(t, cp) })
	t.Run("AdoptServerSide", func(t *testing.T) { testAdoptServerSide(t, cp) })
	t.Run("Guards", func(t *testing.T) { testGuards(t, cp) })
	t.Run("Gone", func(t *testing.T) { testGone(t, cp) })
	t.Run("Sharded", func(t *testing.T) { testSharded(t, cp) })
	t.Run("LeastRole", func(t *testing.T) { testLeastRole(t, cp) })
	t.Run("Kills", func(t *testing.T) { testKills(t, cp) })
}

func widget(group, namespace, name string) string {
	return fmt.Sprintf("apiVersion: %s/v1\nkind: Widget\nmetadata: {name: %s, namespace: %s}\nspec: {a: b}\n---\n", group, name, namespace)
}

func crdOf(group string) string { return strings.ReplaceAll(widgetCRD, "example.com", group) }

// A definition and its objects, a namespace and its content go in one batch, and
// a second run writes nothing.
func testStages(t *testing.T, cp *kubetest.ControlPlane) {
	p := through(t, cp.Kubeconfig())
	r := rollout{cp: cp, path: p.path, fleet: "stages", commit: "c1", stages: []string{
		namespace("stages") + crdOf("stages.example.com"),
		configMap("stages", "settings", "one") + widget("stages.example.com", "stages", "w") + daemonSet("stages", "agent", ""),
	}}
	first := r.apply(t, "Namespace stages: created", "CustomResourceDefinition widgets.stages.example.com: created",
		"ConfigMap stages/settings: created", "Widget stages/w: created", "DaemonSet stages/agent: created")
	for _, x := range first {
		if len(x.UID) != 36 {
			t.Errorf("%s has UID %q", x.Object, x.UID)
		}
	}
	r.inventory(t, "c1", "", 5)
	before := versions(t, r)
	p.requests(every)
	r.apply(t, "Namespace stages: unchanged", "CustomResourceDefinition widgets.stages.example.com: unchanged",
		"ConfigMap stages/settings: unchanged", "Widget stages/w: unchanged", "DaemonSet stages/agent: unchanged")
	for _, w := range p.requests(writes) {
		if strings.Contains(w, "/namespaces/rollcall/") {
			t.Errorf("the inventory was written: %s", w)
		}
	}
	if diff := cmp.Diff(before, versions(t, r)); diff != "" {
		t.Errorf("a second run wrote: -before +after:\n%s", diff)
	}
	// The status of a DaemonSet changes without our doing.
	r.commit, r.stages[1] = "c2", strings.ReplaceAll(r.stages[1], `key: "one"`, `key: "two"`)
	r.apply(t, "Namespace stages: unchanged", "CustomResourceDefinition widgets.stages.example.com: unchanged",
		"ConfigMap stages/settings: configured", "Widget stages/w: unchanged", "DaemonSet stages/agent: unchanged")
	r.inventory(t, "c2", "", 5)
}

// versions are the resourceVersions of all that a fleet has applied, and of its
// inventory.
func versions(t *testing.T, r rollout) map[string]string {
	t.Helper()
	i := r.observe(t).Inventory
	out := map[string]string{"inventory": i.Version}
	for _, item := range i.Items {
		out[item.String()] = r.live(t, item.Reference).GetResourceVersion()
	}
	return out
}

// A conflict names who owns the field, and is resolved only by force.
func testConflict(t *testing.T, cp *kubetest.ControlPlane) {
	cp.Apply(t, configMap("default", "contested", "theirs")+configMap("default", "other", "x"))
	r := rollout{cp: cp, fleet: "conflict", commit: "c1", stages: []string{configMap("default", "contested", "ours") + configMap("default", "free", "v")}}
	results := r.apply(t, "ConfigMap default/contested: failed", "ConfigMap default/free: created")
	if x := results[0]; x.Reason != "Conflict" || !strings.Contains(x.Message, `"kubetest" owns data.key; to take the fields`) || !strings.Contains(x.Message, "rollcall.dev/force: fields") {
		t.Errorf("got %+v", x)
	}
	r.inventory(t, "", "c1", 2)
	r.change = func(c *clusters.Change) { c.Force = true }
	r.apply(t, "ConfigMap default/contested: configured", "ConfigMap default/free: unchanged")
	r.inventory(t, "c1", "", 2)
	if got := r.live(t, ref("v1", "ConfigMap", "default", "contested")).Object["data"]; !cmp.Equal(got, map[string]any{"key": "ours"}) {
		t.Errorf("got %v", got)
	}
}

// What is denied, invalid or not served fails alone. What is held keeps the
// commit pending.
func testPartialFailure(t *testing.T, cp *kubetest.ControlPlane) {
	path := cp.User(t, "partial")
	cp.Apply(t, namespace("rollcall")+grant("partial", `{apiGroups: [""], resources: [configmaps], verbs: [get, create, update, patch]}`))
	allowed(t, cp, path)
	r := rollout{cp: cp, path: path, fleet: "partial", commit: "c1", stages: []string{
		configMap("default", "first", "v") + "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: denied, namespace: default}\n---\n" + configMap("nowhere", "lost", "v"),
		"apiVersion: nowhere.example.com/v1\nkind: Thing\nmetadata: {name: t, namespace: default}\n---\n" + configMap("default", "Bad_Name", "v") + configMap("default", "last", "v"),
	}}
	results := r.apply(t, "ConfigMap default/first: created", "ServiceAccount default/denied: failed", "ConfigMap nowhere/lost: failed",
		"Thing default/t: failed", "ConfigMap default/Bad_Name: failed", "ConfigMap default/last: created")
	for i, words := range map[int]string{1: `Forbidden may not get serviceaccounts: serviceaccounts "denied" is forbidden: User "partial" cannot get`, 2: `NotFound namespaces "nowhere" not found`, 3: "NotServed the server does not serve kind Thing of nowhere.example.com/v1", 4: "Invalid "} {
		if got := results[i].Reason + " " + results[i].Message; !strings.HasPrefix(got, words) {
			t.Errorf("%s: got %q, want %q", results[i].Object, got, words)
		}
	}
	r.inventory(t, "", "c1", 6)
	r.stages = []string{configMap("default", "first", "v") + configMap("default", "last", "v")}
	r.path = ""
	r.held = []clusters.Result{{Object: ref("v1", "ConfigMap", "default", "held"), Operation: clusters.OpHeld}}
	r.apply(t, "ConfigMap default/first: unchanged", "ConfigMap default/last: unchanged", "ConfigMap default/Bad_Name: pruned",
		"ConfigMap nowhere/lost: pruned", "ServiceAccount default/denied: pruned", "Thing default/t: pruned")
	r.inventory(t, "", "c1", 2)
	r.held = nil
	r.apply(t, "ConfigMap default/first: unchanged", "ConfigMap default/last: unchanged")
	r.inventory(t, "c1", "", 2)
}

// allowed waits until a user may read ConfigMaps.
func allowed(t *testing.T, cp *kubetest.ControlPlane, path string) {
	t.Helper()
	eventually(t, func() error {
		c, err := new(kube.Observer).Confirm(t.Context(), cluster(path), pointers(objectsOf(t, configMap("default", "probe", "v"))))
		if err == nil && c[0].After == nil {
			err = errors.New(c[0].Unconfirmed)
		}
		return err
	})
}

// A Secret is applied without ever being read, and no fault shows its values.
func testApplySecret(t *testing.T, cp *kubetest.ControlPlane) {
	p := through(t, cp.Kubeconfig())
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: token, namespace: default}\nstringData: {token: CANARY}\n---\n"
	r := rollout{cp: cp, path: p.path, fleet: "secret", commit: "c1", stages: []string{secret}}
	r.apply(t, "Secret default/token: created")
	r.apply(t, "Secret default/token: unchanged")
	r.stages = []string{strings.ReplaceAll(secret, "token: CANARY", "token: CANARY2")}
	r.apply(t, "Secret default/token: configured")
	r.stages = []string{strings.ReplaceAll(secret, "stringData: {token: CANARY}", `data: {token: "CANARY?"}`)}
	if x := r.apply(t, "Secret default/token: failed")[0]; strings.Contains(x.Message, "CANARY") || x.Message == "" {
		t.Errorf("got %+v", x)
	}
	r.stages = nil
	r.apply(t, "Secret default/token: pruned")
	for _, a := range p.requests(func(a string) bool { return strings.Contains(a, "/secrets") }) {
		if !writes(a) {
			t.Errorf("a Secret was read: %s", a)
		}
	}
}

// What passes is tried again: a server that is busy, answers that are lost, and
// another writer of the same moment.
func testRetries(t *testing.T, cp *kubetest.ControlPlane) {
	p := through(t, cp.Kubeconfig())
	seen := map[string]bool{}
	faults := []fault{busy, loseAnswer, refuse, race}
	p.breaks(func(_ int, r *http.Request) fault {
		key := r.Method + r.URL.Path
		if seen[key] {
			return none
		}
		seen[key] = true
		f := faults[len(seen)%len(faults)]
		if f == race && r.Method != http.MethodPatch {
			f = busy
		}
		return f
	})
	var all string
	for i := range 8 {
		all += configMap("default", fmt.Sprintf("retried-%d", i), "v")
	}
	r := rollout{cp: cp, path: p.path, fleet: "retries", commit: "c1", stages: []string{all}}
	results, err := r.run(t.Context(), t)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range results {
		if x.Operation != clusters.OpCreated {
			t.Errorf("got %+v", x)
		}
	}
	r.inventory(t, "c1", "", 8)
}

// Of two who have observed the same, one is told to look again.
func testAnother(t *testing.T, cp *kubetest.ControlPlane) {
	r := rollout{cp: cp, fleet: "another", commit: "c1", stages: []string{configMap("default", "a", "v")}}
	stale := r.batch(t, r.observe(t))
	r.apply(t, "ConfigMap default/a: created")
	results, err := new(kube.Observer).Apply(t.Context(), cluster(cp.Kubeconfig()), stale, time.Now)
	wantFault(t, err, clusters.Failed, "reading the inventory", "another apply of this fleet", "observe it again")
	if results != nil {
		t.Errorf("got %v", results)
	}
}
