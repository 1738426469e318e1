package coverage

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"rollcall.dev/rollcall/clusters"
)

// Options are what a fleet may say about the verdicts of one cluster. The zero
// value has no startup grace and the built-in taint lists.
type Options struct {
	Grace            time.Duration   // how long a start may take
	ProgressDeadline time.Duration   // how long a rollout may stand still; zero: for ever
	Taints           clusters.Taints // extend the built-in lists
	Agents           []clusters.Agent
	Exceptions       []clusters.Exception
	Partial          bool   // not all DaemonSets are among the subjects: agents are not summed up
	Commit           string // that the desired DaemonSets are from
	// ComparisonOperators is the feature gate TaintTolerationComparisonOperators
	// (alpha and off in Kubernetes 1.37): tolerations with Gt and Lt.
	ComparisonOperators bool
}

// Subject is a DaemonSet to judge. Live is nil when it is not in the cluster,
// Desired when it is not in Git; one of them is there.
type Subject struct {
	Live    *appsv1.DaemonSet
	Desired *appsv1.DaemonSet
}

// judged is the DaemonSet whose template and pods are judged.
func (s Subject) judged() *appsv1.DaemonSet {
	if s.Live != nil {
		return s.Live
	}
	return s.Desired
}

// wanted is the DaemonSet whose template says where a pod is intended.
func (s Subject) wanted() *appsv1.DaemonSet {
	if s.Desired != nil {
		return s.Desired
	}
	return s.Live
}

// Cluster is the verdict on one cluster.
type Cluster struct {
	DaemonSets []DaemonSet // in order of namespace and name
	Agents     []Agent     // those of the options, then those of annotations by name
	Used       []bool      // of each exception of the options: it excused something
	Problems   []Reason    // annotations that cannot be read
}

// Agent is how far an agent is covered in one cluster. A node that is leaving
// or excused is not Intended; one that starts or is being updated is Waiting
// and not Missing.
type Agent struct {
	clusters.Agent
	DaemonSets                          []string // namespace/name of those that are here
	Intended, Covered, Waiting, Excused int      // nodes
	Missing                             []string // nodes
	Met                                 bool     // Min is reached
	Gaps                                []Gap    // missing nodes that no DaemonSet's own rows tell of, and that it has no DaemonSet at all

	wanted map[string]bool // nodes that it selects and that do not leave; true where it is excused
}

// Wants tells whether the agent must be covered on a node, and whether that it
// is not is excused.
func (a *Agent) Wants(node string) (wanted, excused bool) {
	excused, wanted = a.wanted[node]
	return wanted, excused
}

// Gap is nodes that an agent lacks for one reason.
type Gap struct {
	Reason Reason
	Nodes  []string
}

// Loss is nodes that were intended and no longer are, for one reason.
type Loss struct {
	Reason Reason
	Nodes  []string
	Old    bool // known only from a revision that was replaced more than a week ago
	// Unclaimed tells that the DaemonSet belongs to agents, none of which is to
	// cover one of the nodes.
	Unclaimed bool
}

// Excuse is why a gap is accepted.
type Excuse struct {
	Reason, Owner string
	Until         time.Time
	Node          string // whose annotation says so; empty: the fleet file
}

// State is what a DaemonSet's presence on a node amounts to.
type State uint8

// The states, in the order in which their rows are tried (see stateOf).
const (
	Leaving State = iota
	Excluded
	Starting
	NodeNotReady
	Misscheduled
	Duplicate
	Covered
	Updating
	NotReady
	Missing
	states = iota
)

var stateNames = [states]string{"Leaving", "Excluded", "Starting", "NodeNotReady", "Misscheduled", "Duplicate", "Covered", "Updating", "NotReady", "Missing"}

func (s State) String() string { return stateNames[s] }

// Attention tells whether a node in this state needs somebody's attention.
func (s State) Attention() bool { return s != Covered && s != Excluded && s != Leaving }

// States lists all states in order.
func States() []State {
	all := make([]State, states)
	for i := range all {
		all[i] = State(i)
	}
	return all
}

// Counts sum a DaemonSet up. Intended, Covered and UpToDate count nodes that
// are intended; ShouldRun counts by upstream's verdict.
type Counts struct {
	Nodes, Intended, ShouldRun, Covered, UpToDate int
	Excused                                       int  // gaps that are accepted; in none of Intended, Covered and UpToDate
	UpToDateKnown                                 bool // false where no ControllerRevision could be read
	States                                        [states]int
}

// Reason says why a node is in its state: a code, a sentence that names the
// very key, term, taint, container or event, and the cause that a finding is
// named by. Neither holds an age.
type Reason struct {
	Code    Code
	Message string
	Cause   Cause
	Since   time.Time // when it began, as far as one look can tell; zero when it cannot
}

// Cause is what a finding is about: its identity within a cluster. Key has no
// duration, counter or pod name in it.
type Cause struct {
	Kind string `json:"kind"` // node, taint, template, image, container, refused, unschedulable, controller, absent, …
	Key  string `json:"key"`
}

// Row is one node of a DaemonSet.
type Row struct {
	Node                             string
	State                            State
	ShouldRun, ShouldContinueRunning bool
	Intended, Covered                bool
	UpToDate                         *bool // nil where there is no pod, or no revision to compare with
	Pods                             []*clusters.Pod
	Reasons                          []Reason
	Excused                          *Excuse // nil: not excused
}

// Stray is a pod that belongs to no node of the cluster or not to the
// DaemonSet that selects it.
type Stray struct {
	Pod    *clusters.Pod
	Reason Reason
}

// DaemonSet is the verdict on one DaemonSet of one cluster.
type DaemonSet struct {
	Namespace, Name string
	Subject         Subject
	Counts          Counts
	Strays          []Stray
	Problems        []Reason // of the DaemonSet as a whole
	Outdated        []string // nodes whose pod waits for the current revision, with Rollout saying why
	Joined          []string // nodes that run the current revision because they joined after it, while others are outdated
	Rollout         *Reason  // nil while nothing holds a rollout up
	Lost            []Loss   // by cause
	Agents          []int    // that it belongs to, in Cluster.Agents

	set *set
}
