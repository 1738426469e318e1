package recorded

import (
	"compress/gzip"
	stdjson "encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"rollcall.dev/rollcall/clusters"
)

// snapshotKind is the kind of what `rollcall record` writes: a cluster as it was
// observed, in the short form in which it is judged, without what a report does
// not need. Format is raised when an older rollcall would misread a newer one's.
const (
	snapshotKind   = "Snapshot"
	snapshotFormat = 1
)

type snapshot struct {
	APIVersion  string              `json:"apiVersion"`
	Kind        string              `json:"kind"`
	Format      int                 `json:"format"`
	Cluster     string              `json:"cluster"`
	Recorder    string              `json:"recorder,omitempty"` // version of rollcall
	ObservedAt  time.Time           `json:"observedAt"`
	Identity    string              `json:"identity,omitempty"`
	Version     string              `json:"version,omitempty"` // of the API server
	Nodes       []clusters.Node     `json:"nodes"`
	Pods        []clusters.Pod      `json:"pods"`
	DaemonSets  []appsv1.DaemonSet  `json:"daemonSets"`
	Revisions   []clusters.Revision `json:"revisions,omitempty"`
	Events      []clusters.Event    `json:"events,omitempty"`
	Unavailable []clusters.Blank    `json:"unavailable,omitempty"`

	// Without a forecast there are none; [] is a cluster without pods.
	Claims     []clusters.Claim             `json:"claims,omitzero"`
	Priorities map[string]clusters.Priority `json:"priorities,omitzero"`
}

// Write writes an observation as a snapshot, compressed, and redacted: see
// Redact.
func Write(w io.Writer, cluster, recorder string, l clusters.Live) error {
	l = Redact(l)
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	s := snapshot{
		APIVersion: clusters.APIVersion, Kind: snapshotKind, Format: snapshotFormat, Cluster: cluster, Recorder: recorder,
		ObservedAt: l.ObservedAt, Identity: l.Identity, Version: l.Version,
		Nodes: l.Nodes, Pods: l.Pods, DaemonSets: l.DaemonSets, Revisions: l.Revisions, Events: l.Events, Unavailable: l.Blanks,
		Claims: l.Claims, Priorities: l.Priorities,
	}
	if s.Nodes == nil {
		s.Nodes = []clusters.Node{} // none, and not unknown
	}
	if s.Pods == nil {
		s.Pods = []clusters.Pod{}
	}
	if s.DaemonSets == nil {
		s.DaemonSets = []appsv1.DaemonSet{}
	}
	e := stdjson.NewEncoder(z)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return fmt.Errorf("writing the snapshot: %w", err)
	}
	return z.Close()
}

// snapshot takes in a whole snapshot, which is alone in a dump.
func (c *collector) snapshot(data []byte) error {
	var s snapshot
	if err := stdjson.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("decoding the %s: %w", snapshotKind, err)
	}
	switch {
	case s.APIVersion != clusters.APIVersion || s.Format > snapshotFormat:
		return fmt.Errorf("the %s is of version %q, format %d, which a newer rollcall wrote: this one knows format %d", snapshotKind, s.APIVersion, s.Format, snapshotFormat)
	case s.Nodes == nil || s.Pods == nil || s.DaemonSets == nil || s.ObservedAt.IsZero():
		return fmt.Errorf("the %s has no nodes, pods, daemonSets or observedAt: it was cut short or changed by hand", snapshotKind)
	case len(c.known) > 0:
		return fmt.Errorf("the %s is beside other files: it must be alone", snapshotKind)
	}
	c.taken = true
	c.header.ObservedAt.Time, c.header.Version, c.identity = s.ObservedAt, s.Version, s.Identity
	for _, r := range resources {
		c.known[r] = true
	}
	c.unavailable = c.load.restore(&s, c.want.Forecast)
	for _, n := range s.Nodes {
		c.nodes.put(n.Name, n)
		if !n.Lease.IsZero() {
			c.leases[n.Name] = n.Lease
		}
	}
	for _, p := range s.Pods {
		c.pods.put(p.Namespace+"/"+p.Name, c.shared.Pod(p))
	}
	for _, d := range s.DaemonSets {
		c.daemonSets.put(d.Namespace+"/"+d.Name, d)
	}
	for _, r := range s.Revisions {
		c.revisions.put(r.Namespace+"/"+r.Name, r)
	}
	for i, e := range s.Events {
		c.events.put(fmt.Sprint(i), e)
	}
	return nil
}

// IsLocation tells whether a recorded cluster is got from the network.
func IsLocation(recorded string) bool { return strings.Contains(recorded, "://") }
