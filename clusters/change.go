package clusters

import (
	"cmp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// FieldManager is who rollcall is to an API server when it applies.
const FieldManager = "rollcall"

// FleetLabel is on every object that rollcall applies: the fleet's name.
const FleetLabel = "rollcall.dev/fleet"

// Annotations of an object in Git that say what may be done with it.
const (
	PruneAnnotation   = "rollcall.dev/prune"   // disabled: never deleted
	ForceAnnotation   = "rollcall.dev/force"   // fields or never: take fields that others own
	AdoptAnnotation   = "rollcall.dev/adopt"   // "true": take it over from who deploys it
	ReplaceAnnotation = "rollcall.dev/replace" // orphan: recreate a DaemonSet whose selector changes, with its pods kept
)

// Reference names an object of a cluster.
type Reference struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

// ReferenceOf names an object. A namespace that Git gives to one of Kubernetes'
// own kinds that have none is left out, as the API server leaves it out.
func ReferenceOf(u *unstructured.Unstructured) Reference {
	r := Reference{u.GetAPIVersion(), u.GetKind(), u.GetNamespace(), u.GetName()}
	if r.Namespace != "" && clusterScoped[r.Group()+"/"+r.Kind] {
		r.Namespace = ""
	}
	return r
}

// clusterScoped are Kubernetes' own kinds that have no namespace, by group and
// kind, as far as they are in repositories.
var clusterScoped = map[string]bool{
	"/Namespace": true, "/Node": true, "/PersistentVolume": true,
	"admissionregistration.k8s.io/MutatingAdmissionPolicy": true, "admissionregistration.k8s.io/MutatingAdmissionPolicyBinding": true,
	"admissionregistration.k8s.io/MutatingWebhookConfiguration": true, "admissionregistration.k8s.io/ValidatingAdmissionPolicy": true,
	"admissionregistration.k8s.io/ValidatingAdmissionPolicyBinding": true, "admissionregistration.k8s.io/ValidatingWebhookConfiguration": true,
	"apiextensions.k8s.io/CustomResourceDefinition": true, "apiregistration.k8s.io/APIService": true,
	"flowcontrol.apiserver.k8s.io/FlowSchema": true, "flowcontrol.apiserver.k8s.io/PriorityLevelConfiguration": true,
	"networking.k8s.io/IngressClass": true, "node.k8s.io/RuntimeClass": true,
	"rbac.authorization.k8s.io/ClusterRole": true, "rbac.authorization.k8s.io/ClusterRoleBinding": true,
	"resource.k8s.io/DeviceClass": true, "scheduling.k8s.io/PriorityClass": true,
	"storage.k8s.io/CSIDriver": true, "storage.k8s.io/StorageClass": true, "storage.k8s.io/VolumeAttributesClass": true,
}

// Group is the API group, empty for the core one.
func (r Reference) Group() string {
	group, _, found := strings.Cut(r.APIVersion, "/")
	if !found {
		return ""
	}
	return group
}

// Identity tells an object from all others of a cluster, in whatever version.
func (r Reference) Identity() string {
	return strings.Join([]string{r.Group(), r.Kind, r.Namespace, r.Name}, "/")
}

// OfCluster is the reference without a namespace. What Git gives a namespace
// lives without one if its kind is the whole cluster's: the API server drops it.
func (r Reference) OfCluster() Reference {
	r.Namespace = ""
	return r
}

// String is "Kind namespace/name", or "Kind name".
func (r Reference) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// Compare orders references by group, kind, namespace and name.
func (r Reference) Compare(o Reference) int {
	return cmp.Or(cmp.Compare(r.Group(), o.Group()), cmp.Compare(r.Kind, o.Kind), cmp.Compare(r.Namespace, o.Namespace), cmp.Compare(r.Name, o.Name))
}

// Change is one thing to do to one object of a cluster.
type Change struct {
	Object Reference
	Do     Do
	// Desired is the object to apply, as Git has it with the fleet's label. It
	// is read-only.
	Desired *unstructured.Unstructured
	Force   bool     // take fields from managers that own them with another value
	Adopt   []string // managers whose share in the object becomes ours before it is applied
	// UID is the object's that Delete and Replace are for; another one of its
	// name is left alone.
	UID string
	// Keep tells of Replace which pods are the DaemonSet's: those of its
	// selector until now. They get the labels that the new one asks for.
	Keep map[string]string
}

// Do is what a Change does.
type Do string

// What a Change may do.
const (
	Apply   Do = "apply"   // server-side apply; creates what is not there
	Delete  Do = "delete"  // with the UID as its precondition
	Replace Do = "replace" // delete a DaemonSet without its pods, and apply it anew
)

// Result is what became of a Change.
type Result struct {
	Object    Reference `json:"object"`
	Operation Operation `json:"operation"`
	Reason    string    `json:"reason,omitempty"`
	Message   string    `json:"message,omitempty"`
	UID       string    `json:"-"` // of the object as it is now
}

// ReasonKept is why an object is not deleted that says itself that it stays.
const ReasonKept = "Kept"

// Operation is what a Change came to.
type Operation string

// The operations of a Result.
const (
	OpCreated    Operation = "created"
	OpConfigured Operation = "configured"
	OpUnchanged  Operation = "unchanged"
	OpPruned     Operation = "pruned"
	OpHeld       Operation = "held"
	OpFailed     Operation = "failed"
)

// Confirmed is what a cluster says it would make of an object, if it were
// applied now.
type Confirmed struct {
	Object      Reference
	After       *unstructured.Unstructured // as it would be; nil if Refused or Unconfirmed
	Refused     string                     // why the cluster would not take it: reason and message
	Unconfirmed string                     // why that could not be asked
}

// Batch is everything to do in one cluster, in order: the stages one after the
// other, what is in one of them in any order. Before the first the inventory is
// recorded as Before; after the last as what has become of it.
type Batch struct {
	Inventory Inventory // how it was before, with all that the stages will apply and the commit as Pending
	Stages    [][]Change
	Held      []Result // what was to be applied and is held: the commit is not applied whole
}

// Inventory is what was applied to a cluster for a fleet, and may be pruned.
type Inventory struct {
	Fleet     string    `json:"fleet"`
	Cluster   string    `json:"cluster"` // its name when it was applied
	Overlay   string    `json:"overlay"`
	Commit    string    `json:"commit"`            // that was last applied with nothing held or failed
	AppliedAt time.Time `json:"appliedAt"`         // when Commit first was
	Pending   string    `json:"pending,omitempty"` // commit that is being applied, or that was not applied whole
	Items     []Item    `json:"-"`                 // in order of Reference.Compare
	// Version is the resourceVersion of the ConfigMap that it was read from,
	// empty where there was none. Who writes it must find this one.
	Version string `json:"-"`
}

// Item is an object that was applied, or was about to be.
type Item struct {
	Reference
	UID string `json:"uid,omitempty"` // empty while it is about to be
	// Selector is the DaemonSet's own before it began to be replaced: its pods
	// have no other mark.
	Selector map[string]string `json:"selector,omitempty"`
}
