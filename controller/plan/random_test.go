package plan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/plan"
)

// thing is one object of a random world: as Git has it, as it lives, and as the
// inventory knows it.
type thing struct {
	ref clusters.Reference

	git     *form // nil: not in Git
	adopt   bool
	replace bool

	live    *form // nil: not there
	uid     string
	label   string // of which fleet
	manager string
	update  bool // it wrote by an update, not by an apply
	kept    bool
	unread  bool

	item     bool
	itemUID  string
	replaced bool // the item has a selector: it was being replaced
}

// form is the content of an object; place and selector are a DaemonSet's.
type form struct {
	value    int
	place    place
	selector int
}

// world is everything that one random plan is made of.
type world struct {
	things []*thing
	nodes  []clusters.Node
	fleet  clusters.Fleet

	cluster, overlay, identity      string // as they are
	wasCluster, wasOverlay, carries string // as the inventory has them
	pending                         string
	stale, approved, inventory      bool
	generation                      int // of UIDs
}

var kinds = []clusters.Reference{
	{APIVersion: "v1", Kind: "ConfigMap", Namespace: "obs", Name: "a"}, {APIVersion: "v1", Kind: "ConfigMap", Namespace: "obs", Name: "b"},
	{APIVersion: "v1", Kind: "ConfigMap", Namespace: "obs", Name: "c"}, {APIVersion: "v1", Kind: "Namespace", Name: "obs"}, {APIVersion: "v1", Kind: "Secret", Namespace: "obs", Name: "key"},
	{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "rules.example.com"},
	{APIVersion: "apps/v1", Kind: "DaemonSet", Namespace: "obs", Name: "one"}, {APIVersion: "apps/v1", Kind: "DaemonSet", Namespace: "obs", Name: "three"},
	{APIVersion: "apps/v1", Kind: "DaemonSet", Namespace: "obs", Name: "two"}, {APIVersion: "example.com/v1", Kind: "Rule", Namespace: "obs", Name: "r"},
	{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "agent"},
}

const wanted = "cccccccccccccccccccccccccccccccccccccccc" // the commit of every random plan

func pick[T any](r *rand.Rand, all ...T) T { return all[r.IntN(len(all))] }

// often is true in most cases, else worlds would have nothing but faults.
func often(r *rand.Rand) bool { return r.IntN(8) > 0 }

func randomWorld(r *rand.Rand) *world {
	w := &world{cluster: "c1", overlay: "overlays/a", identity: "uid-of-cluster", wasCluster: "c1", wasOverlay: "overlays/a", inventory: often(r)}
	w.carries, w.approved, w.stale = pick(r, "", "old", wanted), r.IntN(3) == 0, !often(r)
	if !often(r) {
		w.identity = ""
	}
	if !often(r) {
		w.wasCluster = pick(r, "", "c0")
	}
	if !often(r) {
		w.wasOverlay, w.overlay = pick(r, "", "overlays/b"), pick(r, "", "overlays/a")
	}
	if r.IntN(3) == 0 {
		w.pending = pick(r, "old", wanted)
	}
	w.fleet = clusters.Fleet{Name: "p", Policy: clusters.Policy{MaxDeletes: pick(r, "0", "1", "3", "20"), Force: pick(r, "never", "fields")}}
	for _, power := range []string{"apply", "prune"} {
		if often(r) {
			w.fleet.Policy.May = append(w.fleet.Policy.May, power)
		}
	}
	if r.IntN(4) == 0 {
		w.fleet.Exclude = []clusters.Exclude{{Names: []string{"obs/two"}}}
	}
	if w.approved {
		w.fleet.Approvals = []clusters.Approval{{Commit: wanted, Clusters: []string{w.cluster}, Allow: []string{clusters.AllowPrune}}}
	}
	for _, ref := range kinds {
		w.things = append(w.things, randomThing(r, ref))
	}
	for i := range 5 {
		n := clusters.Node{Name: fmt.Sprintf("n-%d", i), Labels: map[string]string{"pool": pick(r, "a", "b")}}
		if r.IntN(3) == 0 {
			n.Taints = []corev1.Taint{{Key: pick(r, "gpu", "edge"), Effect: corev1.TaintEffectNoSchedule}}
		}
		w.nodes = append(w.nodes, n)
	}
	return w
}

func randomForm(r *rand.Rand) *form {
	f := &form{value: r.IntN(2), place: pick(r, places...)}
	if !often(r) {
		f.selector = 1
	}
	return f
}

func randomThing(r *rand.Rand, ref clusters.Reference) *thing {
	x := &thing{ref: ref, uid: "uid-" + ref.Kind + ref.Name, label: "p", manager: clusters.FieldManager}
	if r.IntN(2) == 0 {
		x.git, x.adopt, x.replace = randomForm(r), !often(r), r.IntN(2) == 0
	}
	if r.IntN(4) > 0 {
		x.live = randomForm(r)
	}
	if !often(r) {
		x.label = pick(r, "", "q")
	}
	if !often(r) {
		x.manager = pick(r, "helm", "some-operator", "kubectl-edit")
	}
	x.update, x.kept, x.unread = !often(r), !often(r), r.IntN(20) == 0
	if x.item = r.IntN(4) > 0; x.item {
		x.itemUID = pick(r, x.uid, x.uid, x.uid, "", "uid-of-another")
		x.replaced = isDaemonSet(ref) && !often(r)
	}
	return x
}

func isDaemonSet(r clusters.Reference) bool { return r.Kind == "DaemonSet" }

// looked tells kinds whose content is not compared.
func looked(r clusters.Reference) bool {
	return r.Kind == "Secret" || r.Kind == "Rule" || r.Kind == "CustomResourceDefinition"
}

// place is what a template says of nodes.
type place struct {
	pool     bool   // only where label pool is a
	tolerate string // a key; all; or nothing
}

var places = []place{{}, {pool: true}, {tolerate: "gpu"}, {tolerate: "all"}, {true, "gpu"}}

// runs is a plain second form of coverage's verdict.
func (p place) runs(n *clusters.Node) bool {
	tainted := len(n.Taints) > 0 && p.tolerate != "all" && n.Taints[0].Key != p.tolerate
	return !tainted && (!p.pool || n.Labels["pool"] == "a")
}

// fill writes it into a pod's spec, and into the fields that its writer owns.
func (p place) fill(spec, owned map[string]any) {
	if p.pool {
		spec["nodeSelector"], owned["f:nodeSelector"] = map[string]any{"pool": "a"}, map[string]any{"f:pool": map[string]any{}}
	}
	switch p.tolerate {
	case "all":
		spec["tolerations"], owned["f:tolerations"] = []any{map[string]any{"operator": "Exists"}}, map[string]any{}
	case "gpu":
		spec["tolerations"], owned["f:tolerations"] = []any{map[string]any{"key": "gpu", "operator": "Exists"}}, map[string]any{}
	}
}

// object writes a form out.
func (x *thing) object(f *form, labels, annotations map[string]any) unstructured.Unstructured {
	meta := map[string]any{"name": x.ref.Name, "labels": labels, "annotations": annotations}
	if x.ref.Namespace != "" {
		meta["namespace"] = x.ref.Namespace
	}
	labels["value"] = fmt.Sprint(f.value)
	object := map[string]any{"apiVersion": x.ref.APIVersion, "kind": x.ref.Kind, "metadata": meta}
	if isDaemonSet(x.ref) {
		delete(labels, "value")
		selected := map[string]any{"app": fmt.Sprintf("%s-%d", x.ref.Name, f.selector)}
		spec := map[string]any{"containers": []any{map[string]any{"name": "c", "image": fmt.Sprintf("i:%d", f.value)}}}
		f.place.fill(spec, map[string]any{})
		object["spec"] = map[string]any{"selector": map[string]any{"matchLabels": selected}, "template": map[string]any{"metadata": map[string]any{"labels": selected}, "spec": spec}}
	}
	return unstructured.Unstructured{Object: object}
}

func (x *thing) desired() unstructured.Unstructured {
	notes := map[string]any{}
	if x.adopt {
		notes[clusters.AdoptAnnotation] = "true"
	}
	if x.replace && isDaemonSet(x.ref) {
		notes[clusters.ReplaceAnnotation] = "orphan"
	}
	return x.object(x.git, map[string]any{}, notes)
}

func (x *thing) lives() unstructured.Unstructured {
	labels, notes := map[string]any{}, map[string]any{}
	if x.label != "" {
		labels[clusters.FleetLabel] = x.label
	}
	if x.kept {
		notes[clusters.PruneAnnotation] = "disabled"
	}
	if x.replace && isDaemonSet(x.ref) {
		notes[clusters.ReplaceAnnotation] = "orphan"
	}
	if x.adopt {
		notes[clusters.AdoptAnnotation] = "true"
	}
	u := x.object(x.live, labels, notes)
	meta := u.Object["metadata"].(map[string]any)
	meta["uid"] = x.uid
	operation := string(metav1.ManagedFieldsOperationApply)
	if x.update {
		operation = string(metav1.ManagedFieldsOperationUpdate)
	}
	owned := map[string]any{}
	x.live.place.fill(map[string]any{}, owned)
	owned = map[string]any{"f:spec": map[string]any{"f:template": map[string]any{"f:spec": owned}}}
	meta["managedFields"] = []any{map[string]any{"manager": x.manager, "operation": operation, "fieldsType": "FieldsV1", "fieldsV1": owned}}
	return u
}

// input is the world as a plan is made of it.
func (w *world) input(t testing.TB) plan.Input {
	live := &clusters.Live{Identity: w.identity, ObservedAt: noon, Nodes: w.nodes, Unread: map[string]string{}}
	in := plan.Input{Cluster: clusters.Cluster{Name: w.cluster, Policy: w.fleet.Policy}, Fleet: w.fleet, Live: live, Commit: wanted}
	if w.stale {
		in.Holds = []plan.Hold{{Code: "SourceStale", Message: "said so"}}
	}
	if w.inventory {
		live.Inventory = &clusters.Inventory{Fleet: "p", Cluster: w.wasCluster, Overlay: w.wasOverlay, Commit: w.carries, Pending: w.pending}
	}
	var git []unstructured.Unstructured
	for _, x := range w.things {
		if x.git != nil {
			git = append(git, x.desired())
		}
		if w.inventory && x.item {
			item := clusters.Item{Reference: x.ref, UID: x.itemUID}
			if x.replaced {
				item.Selector = map[string]string{"app": "before"}
			}
			live.Inventory.Items = append(live.Inventory.Items, item)
		}
		switch {
		case x.ref.Kind == "Secret":
			live.Unread[x.ref.Identity()] = "Secrets are not read"
		case x.unread && !isDaemonSet(x.ref):
			live.Unread[x.ref.Identity()] = "forbidden"
		case x.live != nil && isDaemonSet(x.ref):
			u := x.lives()
			live.DaemonSets = append(live.DaemonSets, daemonSetOf(t, &u))
		case x.live != nil:
			live.Objects = append(live.Objects, x.lives())
		}
	}
	in.To = side(t, w.fleet, w.overlay, git)
	in.Drift = compared(in)
	return in
}

// planned is what controller.Across makes of the one cluster.
func planned(in plan.Input) plan.Cluster {
	c := plan.Make(in)
	(&scene{in}).across(&c)
	return c
}

func (w *world) find(r clusters.Reference) *thing {
	at := slices.IndexFunc(w.things, func(x *thing) bool { return x.ref.Identity() == r.Identity() })
	return w.things[at]
}

// apply is what a cluster becomes of a batch, and its inventory.
func (w *world) apply(b clusters.Batch) {
	results := slices.Clone(b.Held)
	for _, c := range slices.Concat(b.Stages...) {
		x := w.find(c.Object)
		r := clusters.Result{Object: c.Object, Operation: clusters.OpConfigured}
		if c.Do == clusters.Delete {
			x.live, r.Operation = nil, clusters.OpPruned
			results = append(results, r)
			continue
		}
		if x.live == nil || c.Do == clusters.Replace {
			w.generation++
			x.uid, r.Operation = fmt.Sprintf("uid-new-%d", w.generation), clusters.OpCreated
		}
		x.live, x.label, x.manager, x.update, x.kept = x.git, "p", clusters.FieldManager, false, false
		r.UID = x.uid
		results = append(results, r)
	}
	i := b.Inventory.After(results, noon)
	w.inventory, w.wasCluster, w.wasOverlay, w.carries, w.pending = true, i.Cluster, i.Overlay, i.Commit, i.Pending
	for _, x := range w.things {
		at := slices.IndexFunc(i.Items, func(item clusters.Item) bool { return item.Identity() == x.ref.Identity() })
		if x.item = at >= 0; x.item {
			x.itemUID, x.replaced = i.Items[at].UID, i.Items[at].Selector != nil
		}
	}
}
