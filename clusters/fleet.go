// Package clusters holds what users declare (Fleet, Cluster, Policy) and what
// crosses the edge of a cluster (Want, Live). It parses strictly and knows
// nothing of how a cluster is reached or what is decided about it.
package clusters

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"rollcall.dev/rollcall/sync/schedule"
)

// APIVersion of all files that users write.
const APIVersion = "rollcall.dev/v1alpha1"

// Fleet is a validated rollcall.yaml: no later code needs to check it again.
// Defaults are filled in. Paths are as written, relative to the file.
type Fleet struct {
	Name       string
	Source     *Source // nil: what is live is judged
	Directory  string  // of Cluster files; empty: a hub alone registers clusters
	Hub        *Hub    // nil: there is none
	Targets    []Target
	Components []Component
	Agents     []Agent
	Exceptions []Exception
	Exclude    []Exclude
	Ignore     []Ignore // differences that are no drift
	Taints     Taints
	AppliedBy  []string
	Policy     Policy
	Rollout    *Rollout // nil: a commit goes to all clusters at once
	Approvals  []Approval
}

// Source is a Git repository and what of it to follow.
type Source struct {
	URL      string
	Ref      Ref // zero: the remote's HEAD
	Path     string
	Poll     string
	TimeZone string
	Auth     Auth
	Verify   *Verify // nil: any commit is taken
}

// Ref is a branch, a tag, a range of versions over the tags, a full ref name or
// a commit; at most one is set, but a commit may have its branch beside it.
type Ref struct {
	Branch, Tag, Semver, Name, Commit string
}

// Auth is how to log in to the Git server. The zero Auth is anonymous.
// Secrets are named by file, never written in the fleet file.
type Auth struct {
	TokenFile         string // bearer token
	Username          string // basic
	PasswordFile      string // basic
	CAFile            string // what signs the server's certificate, in place of the system's
	CertFile, KeyFile string // client certificate
	SSH               *SSH
	GitHubApp         *GitHubApp
}

// SSH is a login by key: from a file or from the agent at SSH_AUTH_SOCK. The
// server must be in KnownHostsFile.
type SSH struct {
	KeyFile        string
	PassphraseFile string
	Agent          bool
	KnownHostsFile string
}

// GitHubApp is a login as an installed GitHub App.
type GitHubApp struct {
	AppID, InstallationID int64
	KeyFile               string // private key in PEM
	APIURL                string // empty: that of the host of the source's URL
}

// Verify says whose signature the commit or the tag must have. At least one of
// the files is set.
type Verify struct {
	Object             string // commit or tag
	AllowedSignersFile string // SSH, as ssh-keygen(1) has it
	OpenPGPKeysFile    string // armored public keys
}

// Target chooses the overlay of the clusters it selects; the first match wins.
type Target struct {
	Name      string
	Clusters  Selection
	Overlay   string
	Namespace string // given to namespaced objects that have none
}

// Component is a kustomize component for the clusters it selects.
type Component struct {
	Clusters Selection
	Path     string
}

// Selection picks clusters by name and by label; both must hold. The zero
// Selection, written {}, is all clusters.
type Selection struct {
	Names    []string
	Selector *metav1.LabelSelector // nil: any labels
	compiled labels.Selector
}

// Agent is what must be covered, whoever deploys it: several DaemonSets may
// share the nodes between them.
type Agent struct {
	Name         string
	Names        []string // namespace/name of DaemonSets
	Match        *metav1.LabelSelector
	Clusters     Selection
	Nodes        *metav1.LabelSelector // nil: all but virtual ones
	Min          string                // a percentage of the nodes, or a number of them
	Severity     string                // of a gap
	Severities   map[string]string     // by code, where it is another
	StartupGrace time.Duration

	daemonSets, nodes labels.Selector // of Match and Nodes
}

// Exclude picks DaemonSets that are not judged.
type Exclude struct {
	Names []string              // namespace/name, either part a pattern of path.Match; or
	Match *metav1.LabelSelector // by their labels

	labels labels.Selector // of Match
}

// Exception is a gap that is known and accepted until a day.
type Exception struct {
	Agent    string
	Code     string
	Clusters Selection
	Nodes    []string
	Reason   string
	Owner    string
	Until    time.Time
}

// Taints are taint keys that extend the built-in lists.
type Taints struct {
	Lifecycle []string
	Startup   []string
	Leaving   []string
}

// Policy says what rollcall may do to a cluster, when it looks, and how long
// it waits before it calls something wrong.
type Policy struct {
	May          []string
	Observe      string
	Windows      []Window
	StartupGrace time.Duration
	// ProgressDeadline is how long a rollout may stand still before it counts as
	// stuck.
	ProgressDeadline time.Duration
	StaleAfter       time.Duration
	MaxDeletes       string // a number of objects, or a percentage of the managed ones
	Force            string // fields: take those that others own; never: report the conflict
}

// Window is a time in which changes may or must not be made.
type Window = schedule.Window

// Cluster is a registered cluster. Exactly one of Kubeconfig and Recorded is
// set, but for one whose kubeconfig a hub's Secret is to supply. Paths are
// absolute or relative to the working directory.
type Cluster struct {
	Name         string
	Labels       map[string]string
	File         string // that declares it, empty when found otherwise
	Kubeconfig   *Kubeconfig
	Recorded     []string // dump files or folders, or one https location of a snapshot
	RecordedAuth RecordedAuth
	Intermittent bool
	Identity     string // overrides the UID of kube-system
	Policy       Policy
	Settings     Settings // for a Secret's kubeconfig
	Registered   Registered
}

// RecordedAuth is how to get a snapshot from its https location.
type RecordedAuth struct {
	TokenFile string // bearer token, read each time
	CAFile    string // what signs the server's certificate, in place of the system's
}

// Registered is what `rollcall cluster add` found; zero where a file was written
// by hand.
type Registered struct {
	Identity string // UID of kube-system
	Version  string
	At       time.Time
}

// Kubeconfig names a context of kubeconfig files, or holds what a hub's Secret
// supplied, or stands for the cluster that this process runs in.
type Kubeconfig struct {
	Paths     []string // merged as kubectl merges $KUBECONFIG
	Context   string   // empty: the current context
	Inline    *Inline
	InCluster bool
}
