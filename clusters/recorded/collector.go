package recorded

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"rollcall.dev/rollcall/clusters"
)

// resources are what is read of a dump: by API version and kind, the name by
// which kubectl asks for it.
var resources = map[typeOf]string{
	{"v1", "Node"}:                    "nodes",
	{"v1", "Pod"}:                     "pods",
	{"v1", "Namespace"}:               "namespaces",
	{"v1", "Event"}:                   "events",
	{"apps/v1", "DaemonSet"}:          "daemonsets",
	{"apps/v1", "ControllerRevision"}: "controllerrevisions",

	{"coordination.k8s.io/v1", "Lease"}: "leases",

	{"scheduling.k8s.io/v1", "PriorityClass"}: "priorityclasses",
}

const recording = "Recording" // the kind of a header

type typeOf struct{ APIVersion, Kind string }

// collector gathers the objects of dumps in their short form.
type collector struct {
	want    clusters.Want
	reading string   // the file that is being read
	empty   []string // files with nothing in them
	known   map[string]bool

	header   header
	latest   time.Time // no time in a dump is later: what says so comes from a wrong clock
	newest   time.Time
	beats    map[string]time.Time // each node's newest heartbeat, by the node's own clock
	leases   map[string]time.Time // when each node's Lease was renewed
	identity string
	from     string // the file that the identity is from

	taken       bool // all is from a snapshot
	unavailable []clusters.Blank

	nodes      store[clusters.Node]
	pods       store[clusters.Pod]
	shared     clusters.Shared
	daemonSets store[appsv1.DaemonSet]
	revisions  store[clusters.Revision]
	events     store[clusters.Event]
	others     store[unstructured.Unstructured] // by Identity

	wanted, wantedKinds map[string]bool // of others: identities, and group/kind

	load load // only where Want asks for a forecast
}

func newCollector(want clusters.Want) *collector {
	c := &collector{want: want, known: map[string]bool{}, beats: map[string]time.Time{}, leases: map[string]time.Time{}, latest: time.Now().Add(time.Minute)}
	c.wantObjects()
	return c
}

// header is the document that a recorder writes before what it recorded.
type header struct {
	ObservedAt metav1.Time `json:"observedAt"`
	Version    string      `json:"version"`
	Kinds      []string    `json:"kinds"`
}

// kindOf peeks at an object.
func kindOf(data []byte) (typeOf, error) {
	var t typeOf
	if len(data) == 0 || data[0] != '{' {
		return t, errors.New("want an object")
	}
	err := stdjson.Unmarshal(data, &t)
	return t, err
}

// sawList takes note of a list of one kind: if it is empty, that is known.
func (c *collector) sawList(apiVersion, kind string) {
	if resource, ok := resources[typeOf{apiVersion, kind}]; ok {
		c.known[resource] = true
	}
}

// object collects one object. In a list of one kind the items need not name
// theirs.
func (c *collector) object(data []byte, apiVersion, kind string) error {
	t, err := kindOf(data)
	if err != nil {
		return err
	}
	if t.Kind == "" {
		t.Kind, t.APIVersion = kind, apiVersion
	}
	if t.Kind == "" {
		return errors.New("the object has no kind")
	}
	switch {
	case c.taken:
		return fmt.Errorf("a %s is beside other objects: it must be alone", snapshotKind)
	case t.Kind == snapshotKind:
		return c.snapshot(data)
	case t.Kind == recording:
		return c.record(data, t.APIVersion)
	}
	resource, ok := resources[t]
	if !ok {
		return c.other(t, data)
	}
	if err := c.other(t, data); err != nil { // a Namespace is both
		return err
	}
	c.known[resource] = true
	return c.take(resource, data)
}

func (c *collector) record(data []byte, apiVersion string) error {
	if apiVersion != clusters.APIVersion {
		return fmt.Errorf("the %s is of version %q: this rollcall knows %q", recording, apiVersion, clusters.APIVersion)
	}
	var h header
	if err := json.Unmarshal(data, &h); err != nil {
		return fmt.Errorf("decoding the %s: %w", recording, err)
	}
	if h.ObservedAt.After(c.header.ObservedAt.Time) {
		c.header.ObservedAt = h.ObservedAt
	}
	if h.Version != "" {
		c.header.Version = h.Version
	}
	for _, kind := range h.Kinds {
		c.known[strings.ToLower(kind)] = true
	}
	return nil
}

func (c *collector) take(resource string, data []byte) error {
	switch resource {
	case "nodes":
		return decode(data, c.node)
	case "pods":
		return decode(data, c.pod)
	case "namespaces":
		return decode(data, c.namespace)
	case "events":
		return decode(data, c.event)
	case "daemonsets":
		return decode(data, c.daemonSet)
	case "leases":
		return decode(data, c.lease)
	case "priorityclasses":
		return decode(data, c.priorityClass)
	}
	return decode(data, c.revision)
}

// decode reads a typed object and hands it on.
func decode[T any](data []byte, take func(*T) error) error {
	o := new(T)
	if err := json.Unmarshal(data, o); err != nil {
		return fmt.Errorf("decoding %T %s: %w", *o, nameOf(data), err)
	}
	if m, ok := any(o).(metav1.Object); ok && m.GetName() == "" {
		return fmt.Errorf("decoding %T: it has no name", *o)
	}
	return take(o)
}

func nameOf(data []byte) string {
	var o struct {
		Metadata struct{ Namespace, Name string }
	}
	if err := stdjson.Unmarshal(data, &o); err != nil {
		return "of unknown name"
	}
	return fmt.Sprintf("%q", strings.TrimPrefix(o.Metadata.Namespace+"/"+o.Metadata.Name, "/"))
}

func (c *collector) node(n *corev1.Node) error {
	c.sawMeta(n.ObjectMeta)
	c.beat(n.Name, time.Time{})
	for _, cond := range n.Status.Conditions {
		c.saw(cond.LastTransitionTime.Time)
		c.beat(n.Name, cond.LastHeartbeatTime.Time)
	}
	c.nodes.put(n.Name, clusters.NodeOf(n))
	return nil
}

// lease takes what a node's kubelet says of itself beside its conditions, and
// more often. Other Leases say nothing of nodes.
func (c *collector) lease(l *coordinationv1.Lease) error {
	c.sawMeta(l.ObjectMeta)
	if l.Namespace == corev1.NamespaceNodeLease && l.Spec.RenewTime != nil {
		c.beat(l.Name, l.Spec.RenewTime.Time)
		c.leases[l.Name] = l.Spec.RenewTime.UTC()
	}
	return nil
}

// beat notes when a node was heard of, also if that is not known.
func (c *collector) beat(node string, at time.Time) {
	if at.After(c.latest) {
		at = time.Time{}
	}
	if before, ok := c.beats[node]; !ok || at.After(before) {
		c.beats[node] = at
	}
}

func (c *collector) pod(p *corev1.Pod) error {
	c.sawMeta(p.ObjectMeta)
	if p.Status.StartTime != nil {
		c.saw(p.Status.StartTime.Time)
	}
	for _, cond := range p.Status.Conditions {
		c.saw(cond.LastProbeTime.Time, cond.LastTransitionTime.Time)
	}
	for _, all := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses, p.Status.EphemeralContainerStatuses} {
		for _, s := range all {
			c.sawState(s.State)
			c.sawState(s.LastTerminationState)
		}
	}
	c.pods.put(p.Namespace+"/"+p.Name, c.shared.Pod(clusters.PodOf(p)))
	c.claim(p)
	return nil
}

// namespace takes the identity of the cluster, of which there is one: the pods
// of one cluster on the nodes of another would pass for missing.
func (c *collector) namespace(n *corev1.Namespace) error {
	c.sawMeta(n.ObjectMeta)
	if n.Name != metav1.NamespaceSystem || n.UID == "" {
		return nil
	}
	uid := string(n.UID)
	if c.identity != "" && c.identity != uid {
		return fmt.Errorf("it is of another cluster than %q: the namespace kube-system has the UID %q here and %q there", c.from, uid, c.identity)
	}
	c.identity, c.from = uid, c.reading
	return nil
}

func (c *collector) daemonSet(ds *appsv1.DaemonSet) error {
	c.sawMeta(ds.ObjectMeta)
	for _, cond := range ds.Status.Conditions {
		c.saw(cond.LastTransitionTime.Time)
	}
	ds.TypeMeta = metav1.TypeMeta{}
	delete(ds.Annotations, corev1.LastAppliedConfigAnnotation)
	c.daemonSets.put(ds.Namespace+"/"+ds.Name, *ds)
	return nil
}

// revision takes a ControllerRevision of a DaemonSet; those of a StatefulSet,
// and of nobody, are passed over.
func (c *collector) revision(r *appsv1.ControllerRevision) error {
	c.sawMeta(r.ObjectMeta)
	if owner := metav1.GetControllerOf(r); owner == nil || owner.Kind != "DaemonSet" {
		return nil
	}
	rev, err := clusters.RevisionOf(r)
	if err != nil {
		return err
	}
	c.revisions.put(r.Namespace+"/"+r.Name, rev)
	return nil
}

func (c *collector) event(e *corev1.Event) error {
	c.sawMeta(e.ObjectMeta)
	c.saw(e.FirstTimestamp.Time, e.LastTimestamp.Time, e.EventTime.Time)
	if e.Series != nil {
		c.saw(e.Series.LastObservedTime.Time)
	}
	if kind := e.InvolvedObject.Kind; kind == "DaemonSet" || kind == "Pod" {
		c.events.put(e.Namespace+"/"+e.Name, clusters.EventOf(e))
	}
	return nil
}

// saw dates the dump: it is not older than any time in it. When a deletion
// will be over is no such time.
func (c *collector) saw(times ...time.Time) {
	for _, t := range times {
		if t.After(c.newest) && !t.After(c.latest) {
			c.newest = t
		}
	}
}

// skew is how far one node's clock may run ahead of all others.
const skew = 10 * time.Minute

// heartbeat is the newest of the nodes' heartbeats. One node of several whose
// clock runs far ahead does not count: by its time all others would be late.
func heartbeat(beats iter.Seq[time.Time]) time.Time {
	sorted := slices.SortedFunc(beats, func(a, b time.Time) int { return b.Compare(a) })
	switch {
	case len(sorted) == 0:
		return time.Time{}
	case len(sorted) > 2 && sorted[0].Sub(sorted[1]) > skew:
		return sorted[1]
	}
	return sorted[0]
}

func (c *collector) sawMeta(m metav1.ObjectMeta) {
	c.saw(m.CreationTimestamp.Time)
	for _, f := range m.ManagedFields {
		if f.Time != nil {
			c.saw(f.Time.Time)
		}
	}
}

func (c *collector) sawState(s corev1.ContainerState) {
	if s.Running != nil {
		c.saw(s.Running.StartedAt.Time)
	}
	if s.Terminated != nil {
		c.saw(s.Terminated.StartedAt.Time, s.Terminated.FinishedAt.Time)
	}
}

// live returns what was collected and is wanted.
func (c *collector) live() (clusters.Live, error) {
	if err := c.missing(); err != nil {
		return clusters.Live{}, err
	}
	l := clusters.Live{ObservedAt: c.header.ObservedAt.Time, Identity: c.identity, Version: c.header.Version, Nodes: c.nodes.list, Blanks: c.blanks(), Snapshot: c.taken}
	if l.ObservedAt.IsZero() {
		c.saw(heartbeat(maps.Values(c.beats)))
		l.ObservedAt = c.newest
	}
	l.ObservedAt = l.ObservedAt.UTC()
	l.Objects, l.Unread = c.objects()
	if c.want.Forecast {
		c.forecast(&l)
	}
	for i := range l.Nodes {
		l.Nodes[i].Lease = c.leases[l.Nodes[i].Name]
	}
	wanted, within := map[string]bool{}, map[string]bool{}
	for i := range c.daemonSets.list {
		if ds := &c.daemonSets.list[i]; c.want.Matches(ds) {
			wanted[ds.Namespace+"/"+ds.Name], within[ds.Namespace] = true, true
			l.DaemonSets = append(l.DaemonSets, *ds)
		}
	}
	l.Pods = slices.DeleteFunc(c.pods.list, func(p clusters.Pod) bool { return !within[p.Namespace] })
	l.Revisions = slices.DeleteFunc(c.revisions.list, func(r clusters.Revision) bool { return !within[r.Namespace] })
	l.Events = slices.DeleteFunc(c.events.list, func(e clusters.Event) bool {
		return !within[e.Namespace] || !c.want.All() && e.Kind == "DaemonSet" && !wanted[e.Namespace+"/"+e.Name]
	})
	return l, nil
}

// store is a list in the order of first sight, in which an object that is seen
// again takes the place of itself.
type store[T any] struct {
	index map[string]int
	list  []T
}

func (s *store[T]) put(key string, v T) {
	if i, ok := s.index[key]; ok {
		s.list[i] = v
		return
	}
	if s.index == nil {
		s.index = map[string]int{}
	}
	s.index[key] = len(s.list)
	s.list = append(s.list, v)
}
