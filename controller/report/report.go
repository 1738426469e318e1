// Package report is what was found, as values with a stable JSON form, and the
// encoders that print it. It knows no client, no clock and no terminal.
//
// The JSON form is a contract: fields are added, never renamed. Lists are
// sorted and maps print by key, so that the same input gives the same bytes,
// generatedAt aside. sync, coverage and observation are three axes and never
// one word.
package report

import (
	"time"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/coverage"
	"rollcall.dev/rollcall/controller/drift"
	"rollcall.dev/rollcall/sync/source"
)

// Report is one look at a fleet.
type Report struct {
	APIVersion  string       `json:"apiVersion"`
	Kind        string       `json:"kind"`
	Fleet       string       `json:"fleet,omitempty"`
	GeneratedAt time.Time    `json:"generatedAt"`
	Complete    bool         `json:"complete"`    // the source was asked, and every cluster was read and rendered
	NodesListed string       `json:"nodesListed"` // attention or all
	Source      *Source      `json:"source,omitempty"`
	Summary     Summary      `json:"summary"`
	Agents      []AgentTotal `json:"agents"` // over all clusters
	Clusters    []Cluster    `json:"clusters"`
	Findings    []Finding    `json:"findings"`
}

// Source is the commit that the desired state was rendered from.
type Source struct {
	URL         string    `json:"url"`
	Ref         string    `json:"ref"`
	Commit      string    `json:"commit"`
	CommittedAt time.Time `json:"committedAt"`
	FetchedAt   time.Time `json:"fetchedAt"`
	State       string    `json:"state"`              // Current, or Stale: the repository could not be asked, or what it has is not trusted
	Error       string    `json:"error,omitempty"`    // why it is stale
	SignedBy    string    `json:"signedBy,omitempty"` // whose signature was verified
	Replaced    string    `json:"replaced,omitempty"` // the commit judged before, which history no longer has
}

// sourceOf tells which commit is judged, and whether it is the newest.
func sourceOf(s Scope) *Source {
	rev := s.Revision
	if rev.IsZero() {
		return nil
	}
	out := &Source{
		URL: rev.URL, Ref: rev.Ref, Commit: rev.Commit, CommittedAt: rev.CommittedAt.UTC(), FetchedAt: rev.FetchedAt.UTC().Truncate(time.Second),
		State: "Current", SignedBy: rev.SignedBy, Replaced: rev.Replaced,
	}
	if s.Stale != nil {
		out.State, out.Error = "Stale", s.Stale.Error()
	}
	return out
}

// Summary adds clusters up. Clusters that could not be read count as unknown
// and add nothing else: a sum of known nodes is never shown as the whole.
type Summary struct {
	Clusters   int        `json:"clusters"`
	Unknown    int        `json:"unknown"`
	DaemonSets int        `json:"daemonSets"`
	Nodes      int        `json:"nodes"`
	Intended   int        `json:"intended"`
	Covered    int        `json:"covered"`
	UpToDate   *int       `json:"upToDate"` // null where some cluster's revisions could not be read
	Excused    int        `json:"excused"`
	Findings   Severities `json:"findings"`
	Renders    *Renders   `json:"renders,omitempty"` // nil without a source
}

// Renders counts how the clusters' objects were come by.
type Renders struct {
	Built  int `json:"built"`  // builds of an overlay
	Reused int `json:"reused"` // clusters whose build was made before: for another cluster, or an earlier commit
}

// Severities count findings.
type Severities struct {
	Error   int `json:"error"`
	Warning int `json:"warning"`
	Info    int `json:"info"`
}

// Cluster is what was found about one cluster.
type Cluster struct {
	Name        string            `json:"name"`
	Labels      map[string]string `json:"labels,omitempty"`
	Version     string            `json:"version,omitempty"`
	Identity    string            `json:"identity,omitempty"`
	Nodes       *int              `json:"nodes"` // null when not read
	Sync        Sync              `json:"sync"`
	Observation Observation       `json:"observation"`
	DaemonSets  []DaemonSet       `json:"daemonSets"`
	Excluded    *Sample           `json:"excluded,omitempty"` // DaemonSets that the fleet file leaves out
	Agents      []Agent           `json:"agents"`
	Drift       []drift.Object    `json:"drift"`
	Compared    int               `json:"compared"`         // objects of Git that were compared with their live ones
	Unread      []drift.Unread    `json:"unread,omitempty"` // those that were not
	Held        []Held            `json:"held,omitempty"`   // changes that rollcall may make and does not

	findings []Finding
	judged   *Judged
	ahead    *Ahead
	managed  bool         // rollcall may change it
	used     map[int]bool // exceptions of the fleet file that excused something, by index
	ignored  map[int]bool // its rules of spec.drift.ignore that ignored something, by index
}

// SyncState is how live objects relate to Git.
type SyncState string

// The sync states.
const (
	InSync      SyncState = "InSync"
	OutOfSync   SyncState = "OutOfSync"
	SyncUnknown SyncState = "Unknown"
	SyncNone    SyncState = "None" // there is no source
)

// Sync is the first axis: is the cluster as Git says.
type Sync struct {
	State      SyncState `json:"state"`
	Overlay    string    `json:"overlay,omitempty"`
	Components []string  `json:"components,omitempty"`
	Error      string    `json:"error,omitempty"`
	Delivery   *Delivery `json:"delivery,omitempty"` // nil where rollcall applied nothing
}

// Delivery is what rollcall applied to a cluster: which commit, and whether that
// is the one that is judged, or one that would change nothing more. A cluster
// that is behind is OutOfSync by what is still to come, too.
type Delivery struct {
	Commit  string    `json:"commit"` // that was last applied whole; empty: none yet
	At      time.Time `json:"at,omitzero"`
	Pending string    `json:"pending,omitempty"` // commit that was not applied whole
	Behind  bool      `json:"behind"`
}

// Observation is the third axis: when was the cluster last seen.
type Observation struct {
	State clusters.ObserveState `json:"state"`
	At    *time.Time            `json:"at,omitempty"`
	// Recorded tells that At is the time of a dump, not of this run.
	Recorded bool `json:"recorded,omitempty"`
	// Intermittent tells that the cluster need not answer, so that its silence
	// makes nothing incomplete.
	Intermittent bool   `json:"intermittent,omitempty"`
	Stage        string `json:"stage,omitempty"`
	Error        string `json:"error,omitempty"`
}

// DaemonSet is the second axis, coverage, for one DaemonSet.
type DaemonSet struct {
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	InGit     *bool    `json:"inGit"` // null where the render failed: it is not known
	Live      bool     `json:"live"`
	Owner     string   `json:"owner,omitempty"`
	Counts    Counts   `json:"counts"`
	Agents    []string `json:"agents,omitempty"` // that it belongs to
	Outdated  *Sample  `json:"outdated,omitempty"`
	Joined    *Sample  `json:"joined,omitempty"` // nodes that are not outdated only because they joined later
	Lost      []Loss   `json:"lost,omitempty"`
	Nodes     []Node   `json:"nodes"`
	StrayPods []Stray  `json:"strayPods"`
	Notes     []Reason `json:"notes,omitempty"` // about the DaemonSet as a whole

	counts bool // in summary and exit status
}

// Key is namespace/name.
func (d DaemonSet) Key() string { return d.Namespace + "/" + d.Name }

// Counts sum a DaemonSet up; states sum up to nodes.
type Counts struct {
	Nodes     int            `json:"nodes"`
	Intended  int            `json:"intended"`
	ShouldRun int            `json:"shouldRun"`
	Covered   int            `json:"covered"`
	UpToDate  *int           `json:"upToDate"` // null where revisions could not be read
	Excused   int            `json:"excused"`
	States    map[string]int `json:"states"`
}

// Node is one node's row.
type Node struct {
	Name                  string   `json:"name"`
	State                 string   `json:"state"`
	ShouldRun             bool     `json:"shouldRun"`
	ShouldContinueRunning bool     `json:"shouldContinueRunning"`
	Intended              bool     `json:"intended"`
	Covered               bool     `json:"covered"`
	UpToDate              *bool    `json:"upToDate"`
	Excused               bool     `json:"excused"`
	Excuse                *Excuse  `json:"excuse,omitempty"`
	Pods                  []Pod    `json:"pods"`
	Reasons               []Reason `json:"reasons"`
}

// Excuse is why a gap or a finding is accepted, by whom and until when.
type Excuse struct {
	Reason string    `json:"reason"`
	Owner  string    `json:"owner"`
	Until  time.Time `json:"until"`
	Node   string    `json:"node,omitempty"` // whose annotation says so
}

// Loss is nodes that were intended and no longer are, by cause.
type Loss struct {
	Message string         `json:"message"`
	Cause   coverage.Cause `json:"cause"`
	Nodes   Sample         `json:"nodes"`
}

// Pod is a pod of a row.
type Pod struct {
	Name     string `json:"name"`
	Phase    string `json:"phase"`
	Ready    bool   `json:"ready"`
	Deleting bool   `json:"deleting,omitempty"`
	Revision string `json:"revision,omitempty"` // hash label
}

// Stray is a pod that belongs to no row.
type Stray struct {
	Name    string   `json:"name"`
	Node    string   `json:"node,omitempty"`
	Reasons []Reason `json:"reasons"`
}

// Reason is a code and a sentence.
type Reason struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Sample counts names and shows the first of them.
type Sample struct {
	Count  int      `json:"count"`
	Sample []string `json:"sample"`
}

const sampleSize = 5

func sampleOf(names []string) Sample {
	s := Sample{Count: len(names), Sample: names}
	if len(names) > sampleSize {
		s.Sample = names[:sampleSize]
	}
	if s.Sample == nil {
		s.Sample = []string{}
	}
	return s
}

// Finding is a cause and what it affects. Its ID stays the same as long as the
// cause does: it is made of the cluster, the kind of cause and its key.
type Finding struct {
	ID         string         `json:"id"`
	Severity   Severity       `json:"severity"`
	Cluster    string         `json:"cluster"`
	Code       string         `json:"code"`
	Message    string         `json:"message"`
	Cause      coverage.Cause `json:"cause"`
	DaemonSets []string       `json:"daemonSets"`
	Nodes      Sample         `json:"nodes"`
	Since      *time.Time     `json:"since,omitempty"`
	Remedy     string         `json:"remedy,omitempty"`
	Excuse     *Excuse        `json:"excuse,omitempty"` // accepted, and therefore information

	nodes []string // all of them
}

// Scope is what a report is about.
type Scope struct {
	Fleet       clusters.Fleet
	At          time.Time
	Revision    source.Revision // zero: without a source
	Stale       error           // why Revision is one fetched before; nil when it is the newest
	Renders     Renders         // counted where there is a source
	NodesListed string          // attention or all
	Narrowed    bool            // not all of the fleet's clusters or DaemonSets were looked at
}

// New sums clusters up. They are sorted here.
func New(s Scope, cs []Cluster, more []Finding) Report {
	r := Report{
		APIVersion: clusters.APIVersion, Kind: "Report", Fleet: s.Fleet.Name, GeneratedAt: s.At.UTC().Truncate(time.Second),
		NodesListed: s.NodesListed, Clusters: sortedClusters(cs),
	}
	r.Source = sourceOf(s)
	if r.Source != nil {
		r.Summary.Renders = new(s.Renders)
	}
	r.Complete = s.Stale == nil
	r.Findings = append(sourceFindings(s), more...)
	r.hold(s)
	for i := range r.Clusters {
		r.add(&r.Clusters[i])
	}
	r.Findings = append(r.Findings, duplicates(r.Clusters, s.Fleet.Name != "")...)
	used := r.excuse(s)
	r.Findings = append(append(r.Findings, exceptionFindings(s, r.Clusters, used)...), ignoreFindings(s, r.Clusters)...)
	r.Agents = agentTotals(s.Fleet, r.Clusters)
	sortFindings(r.Findings)
	for _, f := range r.Findings {
		r.Summary.Findings.add(f.Severity)
	}
	return r
}

// Failed tells whether the cluster could not be read or rendered.
func (c Cluster) Failed() bool {
	return c.Observation.State != clusters.Fresh && !c.Observation.Intermittent || c.Sync.Error != ""
}

func (r *Report) add(c *Cluster) {
	r.Summary.Clusters++
	r.Findings = append(r.Findings, c.findings...)
	if c.Failed() {
		r.Complete = false
	}
	if c.Observation.State != clusters.Fresh {
		r.Summary.Unknown++
		return
	}
	r.Summary.Nodes += *c.Nodes
	for _, d := range c.DaemonSets {
		if d.counts {
			r.Summary.addCounts(d.Counts)
		}
	}
}

func (s *Summary) addCounts(c Counts) {
	if s.DaemonSets == 0 {
		s.UpToDate = new(int)
	}
	s.DaemonSets++
	s.Intended += c.Intended
	s.Covered += c.Covered
	s.Excused += c.Excused
	if c.UpToDate == nil {
		s.UpToDate = nil
	}
	if s.UpToDate != nil {
		*s.UpToDate += *c.UpToDate
	}
}

func (s *Severities) add(v Severity) {
	switch v {
	case Error:
		s.Error++
	case Warning:
		s.Warning++
	default:
		s.Info++
	}
}

// AtLeast tells whether a finding is at or above a severity.
func (s Severities) AtLeast(at Severity) bool {
	return s.Error > 0 || at != Error && s.Warning > 0 || at == Info && s.Info > 0
}
