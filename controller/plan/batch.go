package plan

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rollcall.dev/rollcall/clusters"
)

// Labelled are objects with the label of their fleet, as they are applied. The
// objects themselves are left as they are.
func Labelled(all []unstructured.Unstructured, fleet string) []unstructured.Unstructured {
	out := make([]unstructured.Unstructured, len(all))
	for i := range all {
		object := make(map[string]any, len(all[i].Object))
		for k, v := range all[i].Object {
			object[k] = v
		}
		metadata := map[string]any{}
		if m, ok := object["metadata"].(map[string]any); ok {
			for k, v := range m {
				metadata[k] = v
			}
		}
		labels := map[string]any{}
		if m, ok := metadata["labels"].(map[string]any); ok {
			for k, v := range m {
				labels[k] = v
			}
		}
		labels[clusters.FleetLabel] = clusters.FleetLabelValue(fleet)
		metadata["labels"], object["metadata"] = labels, metadata
		out[i] = unstructured.Unstructured{Object: object}
	}
	return out
}

// BatchOf is what of a planned cluster is not held, in order; ok tells whether
// there is anything to do, if only to record that all was done.
func BatchOf(in Input, c Cluster) (b clusters.Batch, ok bool) {
	m := &maker{Input: in, desired: map[string]*unstructured.Unstructured{}}
	for i := range in.To.Objects {
		m.desired[clusters.ReferenceOf(&in.To.Objects[i]).Identity()] = &in.To.Objects[i]
	}
	stages := map[int][]clusters.Change{}
	b.Inventory = m.inventory(c)
	lacking := false
	for i := range c.Actions {
		a := &c.Actions[i]
		if a.Held() && a.Changes() {
			if a.Operation != Prune {
				b.Held = append(b.Held, clusters.Result{Object: a.Object, Operation: clusters.OpHeld, Reason: a.Holds[0].Code, Message: a.Holds[0].Message})
			}
			continue
		}
		if change, ok := m.change(a); ok {
			at := stageOf(a)
			stages[at] = append(stages[at], change)
			b.Inventory.Items = record(b.Inventory.Items, change)
			continue
		}
		if live := m.live(a.Object); live != nil && ours(live, in.Fleet.Name) {
			lacking = note(&b.Inventory, a.Object, string(live.GetUID())) || lacking
		}
	}
	for at := range lastStage + 1 {
		if len(stages[at]) > 0 {
			b.Stages = append(b.Stages, stages[at])
		}
	}
	pending := in.Live.Inventory != nil && in.Live.Inventory.Pending != ""
	if kept := slices.DeleteFunc(slices.Clone(b.Inventory.Items), m.gone); len(kept) < len(b.Inventory.Items) {
		b.Inventory.Items, lacking = kept, true
	}
	slices.SortFunc(b.Inventory.Items, func(a, b clusters.Item) int { return a.Compare(b.Reference) })
	return b, len(b.Stages) > 0 || lacking || pending && len(b.Held) == 0
}

// inventory is how it was before, with the commit as what is being applied. The
// overlay and name that things came from stay while any prune is held by them.
func (m *maker) inventory(c Cluster) clusters.Inventory {
	var i clusters.Inventory
	if was := m.Live.Inventory; was != nil {
		i = *was
		i.Items = slices.Clone(was.Items)
	}
	moved := slices.ContainsFunc(c.Actions, func(a Action) bool {
		return slices.ContainsFunc(a.Holds, func(h Hold) bool { return h.Code == overlayMoved || h.Code == clusterRenamed })
	})
	i.Fleet, i.Pending = m.Fleet.Name, m.Commit
	if !moved {
		i.Cluster, i.Overlay = m.Cluster.Name, m.To.Overlay
	}
	return i
}

func (m *maker) change(a *Action) (clusters.Change, bool) {
	c := clusters.Change{Object: a.Object, Desired: m.desired[a.Object.Identity()], Force: a.force, Adopt: a.Adopts, UID: a.uid, Keep: a.keep}
	switch a.Operation {
	case Create, Configure:
		c.Do = clusters.Apply
	case Replace:
		c.Do = clusters.Replace
	case Prune:
		c.Do, c.Desired = clusters.Delete, nil
	default:
		return c, false
	}
	return c, true
}

// gone tells whether an object of the inventory is neither wanted nor there any
// more, as far as it was looked for. Secrets are not.
func (m *maker) gone(i clusters.Item) bool {
	_, unread := m.Live.Unread[i.Identity()]
	return m.desired[i.Identity()] == nil && m.live(i.Reference) == nil && !unread && !isSecret(i.Reference)
}

// note makes an inventory know an object that is there as it should be: it may
// have been applied by a run that was broken off, or have been lost from it.
func note(i *clusters.Inventory, r clusters.Reference, uid string) (changed bool) {
	at := slices.IndexFunc(i.Items, func(x clusters.Item) bool { return x.Identity() == r.Identity() })
	if at < 0 {
		i.Items = append(i.Items, clusters.Item{Reference: r, UID: uid})
		return true
	}
	item := &i.Items[at]
	if item.UID != "" && item.Selector == nil {
		return false
	}
	if item.Selector = nil; item.UID == "" {
		item.UID = uid
	}
	return true
}

// record notes in an inventory what is about to be applied.
func record(items []clusters.Item, c clusters.Change) []clusters.Item {
	if c.Do == clusters.Delete {
		return items
	}
	at := slices.IndexFunc(items, func(i clusters.Item) bool { return i.Identity() == c.Object.Identity() })
	if at < 0 {
		items = append(items, clusters.Item{Reference: c.Object})
		at = len(items) - 1
	}
	if c.Do == clusters.Replace || c.UID == "" {
		items[at].UID = "" // it will be another object
	}
	if c.Do == clusters.Replace {
		items[at].Selector = c.Keep
	}
	return items
}

// The stages of an apply: what others need comes first, and is ready before
// they come; what goes, goes in the other order at the end.
const (
	foundations = iota // Namespaces, CustomResourceDefinitions, classes
	accounts           // ServiceAccounts and RBAC
	configuration
	workloads
	custom // custom resources, and what watches admission
	deletions
	lastStage = deletions + custom
)

var stages = map[string]int{
	"/Namespace": foundations, "apiextensions.k8s.io/CustomResourceDefinition": foundations,
	"scheduling.k8s.io/PriorityClass": foundations, "node.k8s.io/RuntimeClass": foundations, "storage.k8s.io/StorageClass": foundations, "storage.k8s.io/CSIDriver": foundations,
	"/ResourceQuota": foundations, "/LimitRange": foundations,
	"/ServiceAccount": accounts, "rbac.authorization.k8s.io/ClusterRole": accounts, "rbac.authorization.k8s.io/Role": accounts,
	"rbac.authorization.k8s.io/ClusterRoleBinding": accounts, "rbac.authorization.k8s.io/RoleBinding": accounts,
	"apps/DaemonSet": workloads, "apps/Deployment": workloads, "apps/StatefulSet": workloads, "batch/CronJob": workloads, "batch/Job": workloads,
	"admissionregistration.k8s.io/ValidatingWebhookConfiguration": custom, "admissionregistration.k8s.io/MutatingWebhookConfiguration": custom,
	"apiregistration.k8s.io/APIService": custom,
}

func stageOf(a *Action) int {
	at, known := stages[a.Object.Group()+"/"+a.Object.Kind]
	if !known {
		at = configuration
		if isCustom(a.Object) {
			at = custom
		}
	}
	if a.Operation == Prune {
		return deletions + custom - at
	}
	return at
}

// isCustom tells kinds that a CustomResourceDefinition makes from Kubernetes'
// own: the group of these has no dot, or ends in k8s.io.
func isCustom(r clusters.Reference) bool {
	g := r.Group()
	for i := range len(g) {
		if g[i] == '.' {
			return len(g) < 7 || g[len(g)-7:] != ".k8s.io"
		}
	}
	return false
}

// Compare orders actions as they are taken.
func (a *Action) Compare(b *Action) int {
	return cmp.Or(cmp.Compare(stageOf(a), stageOf(b)), a.Object.Compare(b.Object))
}
