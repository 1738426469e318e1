package plan

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/coverage"
	"rollcall.dev/rollcall/controller/drift"
)

func (a *Action) add(code, format string, args ...any) {
	a.Holds = append(a.Holds, Hold{code, fmt.Sprintf(format, args...)})
}

// hold finds what holds an action within its cluster.
func (m *maker) hold(a *Action) {
	if !a.Changes() {
		m.leftAlone(a)
		return
	}
	live := m.live(a.Object)
	if live != nil {
		a.uid = string(live.GetUID())
	}
	if a.Operation == Prune {
		m.holdPrune(a, live)
	} else {
		m.holdApply(a, live)
	}
	if m.identity() == "" {
		a.add("IdentityUnknown", "which cluster this is could not be told: its credential needs get on namespace kube-system")
	}
	a.Holds = append(a.Holds, m.Holds...)
	a.settle()
}

// leftAlone tells of drift that an apply would not mend.
func (m *maker) leftAlone(a *Action) {
	for _, f := range a.Fields {
		if !a.applies(f) && m.may("apply") {
			a.add("AddedByOthers", "%s; an apply leaves it: remove it by hand, or write it into Git or spec.drift.ignore", f)
		}
	}
}

func (m *maker) identity() string {
	if m.Cluster.Identity != "" {
		return m.Cluster.Identity
	}
	return m.Live.Identity
}

func (m *maker) may(power string) bool { return slices.Contains(m.Cluster.Policy.May, power) }

// live is an object as it is in the cluster, by its metadata.
func (m *maker) live(r clusters.Reference) metav1.Object {
	if isDaemonSet(r) {
		if ds := find(m.Live.DaemonSets, r); ds != nil {
			return ds
		}
		return nil
	}
	for i := range m.Live.Objects {
		u := &m.Live.Objects[i]
		if id := clusters.ReferenceOf(u).Identity(); id == r.Identity() || id == r.OfCluster().Identity() {
			return u
		}
	}
	return nil
}

func (m *maker) holdApply(a *Action, live metav1.Object) {
	if !m.may("apply") {
		a.add(NotAllowed, "policy.may of cluster %q does not have apply", m.Cluster.Name)
	}
	desired := m.desired[a.Object.Identity()]
	a.force = m.forced(desired)
	if live == nil || ours(live, m.Fleet.Name) {
		return
	}
	who, managers := deployer(live, m.Fleet.AppliedBy)
	if other := live.GetLabels()[clusters.FleetLabel]; other != "" && other != clusters.FleetLabelValue(m.Fleet.Name) {
		who = fmt.Sprintf("rollcall's fleet %q", other)
	}
	if who == "" && len(managers) == 0 {
		return // nobody's: a plain apply, which fails where it conflicts
	}
	if m.adopted(a.Object, desired) {
		a.Adopts = managers
		return
	}
	if who == "" {
		who = strings.Join(managers, ", ")
	}
	a.add("OtherDeployer", "it is deployed by %s: stop that one, then take it over with annotation %s: \"true\" in Git, or apply --adopt '%s'", who, clusters.AdoptAnnotation, name(a.Object))
}

// forced tells whether fields that others own with another value are taken.
func (m *maker) forced(desired *unstructured.Unstructured) bool {
	if v, ok := desired.GetAnnotations()[clusters.ForceAnnotation]; ok {
		return v == "fields"
	}
	return m.Cluster.Policy.Force == "fields"
}

func (m *maker) adopted(r clusters.Reference, desired *unstructured.Unstructured) bool {
	return desired.GetAnnotations()[clusters.AdoptAnnotation] == "true" || slices.Contains(m.Adopt, r.Identity()) || slices.Contains(m.Adopt, name(r))
}

// name is how an object is named on the command line.
func name(r clusters.Reference) string {
	if r.Namespace == "" {
		return r.Kind + "/" + r.Name
	}
	return r.Kind + "/" + r.Namespace + "/" + r.Name
}

// ours tells whether an object was applied by rollcall for the fleet: by its
// label and by who manages it.
func ours(o metav1.Object, fleet string) bool {
	return o.GetLabels()[clusters.FleetLabel] == clusters.FleetLabelValue(fleet) &&
		slices.ContainsFunc(o.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
			return e.Manager == clusters.FieldManager && e.Operation == metav1.ManagedFieldsOperationApply
		})
}

// deployer is who deploys an object, and its managers that deliver from Git or
// by kubectl, whose share would become ours.
func deployer(o metav1.Object, appliedBy []string) (who string, managers []string) {
	for _, e := range o.GetManagedFields() {
		if e.Subresource == "" && e.Manager != clusters.FieldManager && drift.Delivers(e.Manager, appliedBy) && !slices.Contains(managers, e.Manager) {
			managers = append(managers, e.Manager)
		}
	}
	meta := metav1.ObjectMeta{Labels: o.GetLabels(), Annotations: o.GetAnnotations(), OwnerReferences: o.GetOwnerReferences(), ManagedFields: o.GetManagedFields()}
	return coverage.Owner(meta), managers
}

// holdPrune holds whatever is not surely ours and surely gone from Git.
func (m *maker) holdPrune(a *Action, live metav1.Object) {
	if !m.may("prune") {
		a.add(NotAllowed, "policy.may of cluster %q does not have prune", m.Cluster.Name)
	}
	item, i := m.item(a.Object), m.Live.Inventory
	switch {
	case item != nil && item.UID != "" && isSecret(a.Object):
		a.uid, a.Note = item.UID, "it is not read: a last look, which shows no value, decides whether it is still ours"
	case live == nil || item == nil:
		a.add(NotObserved, "it is not known whether it is still there")
		return
	case live.GetAnnotations()[clusters.PruneAnnotation] == "disabled":
		a.add(Kept, "its annotation %s is disabled", clusters.PruneAnnotation)
	case !ours(live, m.Fleet.Name):
		a.add("NotOurs", "it does not carry label %s of this fleet and field manager %s any more: somebody else has it", clusters.FleetLabel, clusters.FieldManager)
	case item.UID != "" && item.UID != a.uid:
		a.add("NotOurs", "it is another object of this name than the one that was applied")
	}
	if i.Cluster != "" && i.Cluster != m.Cluster.Name {
		a.add(clusterRenamed, "what was applied was for cluster %q, and this is %q: if that is the same, delete by hand, or apply once more under the old name", i.Cluster, m.Cluster.Name)
	}
	if i.Overlay != "" && i.Overlay != m.To.Overlay {
		a.add(overlayMoved, "it came from overlay %q, and the cluster has %q now: moving an overlay deletes nothing by itself; approve it with the commit", i.Overlay, m.To.Overlay)
	}
}

// Codes of holds that an approval lifts.
const (
	overlayMoved   = "OverlayMoved"
	clusterRenamed = "ClusterRenamed"
)

// immutable is a DaemonSet whose selector would change.
func immutable(a *Action, desired *unstructured.Unstructured) {
	if desired.GetAnnotations()[clusters.ReplaceAnnotation] == "orphan" {
		a.Operation = Replace
		return
	}
	a.add("SelectorImmutable", "the selector of a DaemonSet cannot be changed. Either keep the old selector in Git, or annotate it with %s: orphan, which deletes the DaemonSet without its pods and creates it anew around them", clusters.ReplaceAnnotation)
}
