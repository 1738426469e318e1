package clusters

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// Want is what to observe of a cluster. The zero Want is every DaemonSet.
type Want struct {
	Namespace string          // one namespace, or all when empty
	Selector  labels.Selector // of DaemonSets by their labels, or all when nil
	Name      string          // of one DaemonSet, or all when empty
	Powers    bool            // also what the credential may change
	Objects   []Reference     // also these, of other kinds than DaemonSets; Secrets are never read
	Inventory string          // also what was applied for the fleet of this name; not when empty
	Forecast  bool            // also what all pods claim of their nodes; not followed
}

// Matches tells whether a DaemonSet is wanted.
func (w Want) Matches(ds *appsv1.DaemonSet) bool {
	return (w.Namespace == "" || w.Namespace == ds.Namespace) &&
		(w.Name == "" || w.Name == ds.Name) &&
		(w.Selector == nil || w.Selector.Matches(labels.Set(ds.Labels)))
}

// All tells whether every DaemonSet is wanted.
func (w Want) All() bool { return w.Namespace == "" && w.Name == "" && w.Selector == nil }

// Live is one observation of a cluster: everything that coverage needs and
// nothing else. Lists are in no order; DaemonSets hold what Want asked for.
type Live struct {
	ObservedAt time.Time
	Identity   string // UID of the kube-system Namespace, empty when unknown
	Version    string // of the API server, such as v1.34.2, empty when unknown
	Nodes      []Node
	Pods       []Pod // of every namespace that holds one of the DaemonSets
	DaemonSets []appsv1.DaemonSet
	Revisions  []Revision
	Events     []Event // about the DaemonSets and the pods of their namespaces
	Blanks     []Blank
	Credential Credential // zero for a recorded cluster
	Snapshot   bool       // recorded by `rollcall record`, so that its age is how old it is
	// Objects are those of Want that are there; of custom resources only the
	// metadata.
	Objects   []unstructured.Unstructured
	Unread    map[string]string // Identity of those of Want that could not be read: why
	Inventory *Inventory        // nil: there is none, or it is a Blank
	// Claims are of every pod of all namespaces that has a node and has not
	// ended. Without Want.Forecast there are none, nor with a Blank "claims":
	// then nothing is known of how full a node is.
	Claims     []Claim
	Priorities map[string]Priority // by the PriorityClass; the default's is under ""; or the Blank "priorityclasses"
}

// Credential is what is known of the login that a cluster was observed with.
type Credential struct {
	Powers        []string      // of a policy, that it has; only where Want asks
	Because       []string      // what gives them, such as "delete pods"
	Administrator bool          // it may do everything
	Issued        time.Time     // zero when not known
	Expires       time.Time     // zero when not known
	Unverified    bool          // the server's certificate is not checked
	Skew          time.Duration // of the server's clock against ours, zero up to two seconds
}

// Blank is an optional resource that could not be read, because reading it is
// forbidden or a dump lacks it. What depends on it is left blank in a report.
type Blank struct {
	Resource string `json:"resource,omitzero"` // claims, controllerrevisions, events, inventory, leases, namespaces or priorityclasses
	Reason   string `json:"reason,omitzero"`   // "forbidden: …" or "not in the dump"
}

// Lacks tells whether an optional resource is blank, and why.
func (l *Live) Lacks(resource string) (reason string, blank bool) {
	for _, b := range l.Blanks {
		if b.Resource == resource {
			return b.Reason, true
		}
	}
	return "", false
}

// Node is what a DaemonSet's presence on a node depends on.
type Node struct {
	Name       string                 `json:"name,omitzero"`
	Labels     map[string]string      `json:"labels,omitzero"`
	Taints     []corev1.Taint         `json:"taints,omitzero"`
	Conditions []corev1.NodeCondition `json:"conditions,omitzero"`
	Created    time.Time              `json:"created,omitzero"`
	Deleting   bool                   `json:"deleting,omitzero"`
	Excuse     string                 `json:"excuse,omitzero"` // annotation ExcuseAnnotation, as written
	Lease      time.Time              `json:"lease,omitzero"`  // when the kubelet last renewed its lease; read only of a node whose heartbeat is late, zero when not known
	// Allocatable is what pods compete for, extended resources and the number of
	// pods among it.
	Allocatable corev1.ResourceList `json:"allocatable,omitzero"`
	Writers     []Writer            `json:"writers,omitzero"` // who wrote its taints and labels
}

// ExcuseAnnotation of a node excuses its gaps: a reason, an owner and an end.
const ExcuseAnnotation = "rollcall.dev/excuse"

// ExpectAnnotation of a DaemonSet is a node selector: it must be covered there.
const ExpectAnnotation = "rollcall.dev/expect"

// Writer is a field manager's share in an object, from managedFields: what it
// was the last to write, not later than NotAfter.
type Writer struct {
	Manager  string    `json:"manager,omitzero"`
	NotAfter time.Time `json:"notAfter,omitzero"` // zero when not known
	Taints   bool      `json:"taints,omitzero"`
	Labels   []string  `json:"labels,omitzero"` // keys
	// Operation is Apply or Update, and Itself as Owners says; set of a field's
	// owner only.
	Operation string `json:"operation,omitzero"`
	Itself    bool   `json:"-"`
}

// TaintWriter is who last wrote the node's taints, which are one list.
func (n *Node) TaintWriter() (Writer, bool) {
	return n.writer(func(w Writer) bool { return w.Taints })
}

// LabelWriter is who last wrote one of the node's labels.
func (n *Node) LabelWriter(key string) (Writer, bool) {
	return n.writer(func(w Writer) bool { return slices.Contains(w.Labels, key) })
}

// writer is the last one that wrote what is asked for.
func (n *Node) writer(wrote func(Writer) bool) (last Writer, ok bool) {
	for _, w := range n.Writers {
		if wrote(w) && (!ok || w.NotAfter.After(last.NotAfter)) {
			last, ok = w, true
		}
	}
	return last, ok
}

// Pod is what a daemon pod, or one that looks like it, says of itself.
type Pod struct {
	Namespace string            `json:"namespace,omitzero"`
	Name      string            `json:"name,omitzero"`
	UID       string            `json:"uid,omitzero"`
	Labels    map[string]string `json:"labels,omitzero"`
	Owner     Owner             `json:"owner,omitzero"` // the controller reference, zero for an orphan
	Node      string            `json:"node,omitzero"`  // target: spec.nodeName, else the node its affinity pins it to; empty when neither names one
	Bound     bool              `json:"bound,omitzero"` // spec.nodeName is set
	Created   time.Time         `json:"created,omitzero"`
	Deleting  time.Time         `json:"deleting,omitzero"` // deletionTimestamp: when the grace period ends, zero when not deleting

	Phase   corev1.PodPhase `json:"phase,omitzero"`
	Reason  string          `json:"reason,omitzero"`  // status.reason: Evicted, NodeAffinity, …
	Message string          `json:"message,omitzero"` // status.message

	Ready         bool        `json:"ready,omitzero"`
	ReadySince    time.Time   `json:"readySince,omitzero"`    // lastTransitionTime of the Ready condition
	Unschedulable string      `json:"unschedulable,omitzero"` // message of PodScheduled=False, empty when scheduled or not tried
	Placement     *Placement  `json:"placement,omitzero"`     // as admission left it; kept only of a pod that has no node yet or that failed
	Containers    []Container `json:"containers,omitzero"`
}

// Owner is a controller reference.
type Owner struct {
	Kind string `json:"kind,omitzero"`
	Name string `json:"name,omitzero"`
	UID  string `json:"uid,omitzero"`
}

// Container is the state of one container of a pod.
type Container struct {
	Name     string `json:"name,omitzero"`
	Image    string `json:"image,omitzero"` // of the spec
	Init     bool   `json:"init,omitzero"`
	Ready    bool   `json:"ready,omitzero"`
	Waiting  State  `json:"waiting,omitzero"`  // zero when it does not wait
	Finished State  `json:"finished,omitzero"` // the current terminated state, else the last one
	ExitCode int32  `json:"exitCode,omitzero"` // of Finished
	Restarts int32  `json:"restarts,omitzero"`
}

// State is a container's waiting or terminated reason, in the kubelet's words.
type State struct {
	Reason  string `json:"reason,omitzero"`
	Message string `json:"message,omitzero"`
}

// Revision is a ControllerRevision of a DaemonSet.
type Revision struct {
	Namespace string    `json:"namespace,omitzero"`
	Name      string    `json:"name,omitzero"`
	Owner     Owner     `json:"owner,omitzero"`
	Number    int64     `json:"number,omitzero"`
	Hash      string    `json:"hash,omitzero"` // label controller-revision-hash
	Created   time.Time `json:"created,omitzero"`
	Placement Placement `json:"placement,omitzero"`
}

// Placement is the part of a pod template that decides where its pods go.
type Placement struct {
	NodeName     string               `json:"nodeName,omitzero"`
	NodeSelector map[string]string    `json:"nodeSelector,omitzero"`
	Affinity     *corev1.NodeAffinity `json:"affinity,omitzero"`
	Tolerations  []corev1.Toleration  `json:"tolerations,omitzero"`
	HostNetwork  bool                 `json:"hostNetwork,omitzero"`
}

// PlacementOf returns the placement fields of a pod template's spec.
func PlacementOf(spec *corev1.PodSpec) Placement {
	p := Placement{NodeName: spec.NodeName, NodeSelector: spec.NodeSelector, Tolerations: spec.Tolerations, HostNetwork: spec.HostNetwork}
	if spec.Affinity != nil {
		p.Affinity = spec.Affinity.NodeAffinity
	}
	return p
}

// Event is a Kubernetes Event about a DaemonSet or a pod.
type Event struct {
	Namespace string    `json:"namespace,omitzero"`
	Kind      string    `json:"kind,omitzero"` // DaemonSet or Pod
	Name      string    `json:"name,omitzero"`
	UID       string    `json:"uid,omitzero"`  // of the object that it is about
	Type      string    `json:"type,omitzero"` // Normal or Warning
	Reason    string    `json:"reason,omitzero"`
	Message   string    `json:"message,omitzero"`
	Count     int32     `json:"count,omitzero"`
	First     time.Time `json:"first,omitzero"`
	Last      time.Time `json:"last,omitzero"`
}

// ObserveState is how an observation ended.
type ObserveState string

// The observation states of a report.
const (
	Fresh       ObserveState = "Fresh"
	Stale       ObserveState = "Stale"
	Unreachable ObserveState = "Unreachable"
	Denied      ObserveState = "Denied"
	Failed      ObserveState = "Failed"
)

// ObserveError tells why a cluster could not be observed: the state that its
// report shows and what was being done, such as "listing pods".
type ObserveError struct {
	State ObserveState
	Stage string
	Err   error
}

func (e *ObserveError) Error() string { return fmt.Sprintf("%s: %v", e.Stage, e.Err) }

func (e *ObserveError) Unwrap() error { return e.Err }
