package plan

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/drift"
)

// Plan is what would be done in each cluster, and to nodes.
type Plan struct {
	APIVersion  string    `json:"apiVersion"`
	Kind        string    `json:"kind"`
	Fleet       string    `json:"fleet,omitempty"`
	GeneratedAt time.Time `json:"generatedAt"`
	From        string    `json:"from"` // a commit or a folder, or live
	To          string    `json:"to"`
	Complete    bool      `json:"complete"` // every cluster is planned
	Clusters    []Cluster `json:"clusters"`
	Summary     Summary   `json:"summary"`
}

// Live is where a plan starts that is not between two revisions.
const Live = "live"

// Summary counts over all clusters.
type Summary struct {
	Clusters   int `json:"clusters"`
	Unknown    int `json:"unknown"` // clusters that could not be planned
	Created    int `json:"created"`
	Configured int `json:"configured"`
	Pruned     int `json:"pruned"`
	Held       int `json:"held"` // of these three
	Gains      int `json:"gains"`
	Loses      int `json:"loses"`
	Restarts   int `json:"restarts"`
	WontFit    int `json:"wontFit"`
}

// Cluster is what would be done in one cluster.
type Cluster struct {
	Name       string     `json:"name"`
	Overlay    string     `json:"overlay,omitempty"`
	ObservedAt *time.Time `json:"observedAt,omitempty"`
	Recorded   bool       `json:"recorded,omitempty"` // ObservedAt is the time of a dump
	Error      string     `json:"error,omitempty"`    // why there is no plan for it
	Actions    []Action   `json:"actions"`
	Nodes      []Effect   `json:"nodes"`
	Rollouts   []Rollout  `json:"rollouts,omitempty"`
	Notes      []string   `json:"notes,omitempty"` // what of it is not known

	labels map[string]string
}

// Operation is what would be done to an object.
type Operation string

// The operations. A DaemonSet that is replaced is deleted without its pods and
// created anew.
const (
	Create    Operation = "create"
	Configure Operation = "configure"
	Replace   Operation = "replace"
	Prune     Operation = "prune"
	Unchanged Operation = "unchanged"
)

// Action is what would be done to one object, unless something holds it.
type Action struct {
	Object    clusters.Reference `json:"object"`
	Operation Operation          `json:"operation"`
	Fields    []drift.Field      `json:"fields,omitempty"` // that change; of a plan between two revisions none are listed
	Holds     []Hold             `json:"holds"`
	Note      string             `json:"note,omitempty"`
	// Adopts are the field managers whose share becomes rollcall's first.
	Adopts []string `json:"adopts,omitempty"`

	ignored  []drift.Field // that are no drift by a rule; an apply sets them all the same
	restarts bool          // the pod template changes
	uid      string
	force    bool
	keep     map[string]string // labels of the pods that a Replace keeps
}

// Held tells whether anything holds the action.
func (a *Action) Held() bool { return len(a.Holds) > 0 }

// Kept tells whether the action is one that nobody waits for: the object itself
// says that it stays.
func (a *Action) Kept() bool {
	return slices.ContainsFunc(a.Holds, func(h Hold) bool { return h.Code == Kept })
}

// Kept is the code of what holds the prune of an object that says itself that it
// stays.
const Kept = clusters.ReasonKept

// Changes tells whether the action would change anything.
func (a *Action) Changes() bool { return a.Operation != Unchanged }

// applies tells whether the action would mend a difference. What others added it
// leaves alone, unless their share becomes ours or it is in a list that the API
// replaces as one.
func (a *Action) applies(f drift.Field) bool {
	applied := f.Manager == clusters.FieldManager && f.Operation == string(metav1.ManagedFieldsOperationApply)
	return f.Change != drift.Added || applied || slices.Contains(a.Adopts, f.Manager) || f.Atomic()
}

// Impact is what becomes of a node.
type Impact string

// The impacts.
const (
	Gains    Impact = "gains"
	Loses    Impact = "loses"
	Restarts Impact = "restarts"
	WontFit  Impact = "wontFit"
)

// Effect is what becomes of one node of a DaemonSet.
type Effect struct {
	DaemonSet string   `json:"daemonSet"` // namespace/name
	Node      string   `json:"node"`
	Effect    Impact   `json:"effect"`
	Reasons   []Reason `json:"reasons"`
}

// Reason is why a node is affected.
type Reason struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Rollout is how a changed template reaches the nodes.
type Rollout struct {
	DaemonSet string `json:"daemonSet"`
	Strategy  string `json:"strategy"` // RollingUpdate or OnDelete
	Nodes     int    `json:"nodes"`
	AtOnce    int    `json:"atOnce"` // nodes of one step, at most
	Steps     int    `json:"steps"`
	// AtLeast is minReadySeconds for each step, in seconds; the time that a pod
	// takes to start comes on top.
	AtLeast int    `json:"atLeastSeconds"`
	Message string `json:"message"`
}
