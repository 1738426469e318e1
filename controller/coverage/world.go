package coverage

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"rollcall.dev/rollcall/clusters"
)

// world is one cluster, indexed once for all of its DaemonSets. It is read-only
// while they are judged, but for what its excuses were good for.
type world struct {
	live      *clusters.Live
	options   Options
	keys      taintKeys
	now       time.Time
	nodes     []clusters.Node // by name
	byName    map[string]int32
	facts     []nodeFacts
	taintSet  []int32
	taintSets [][]corev1.Taint
	columns   map[string]*column
	podFacts  []podFacts         // as live.Pods
	podNode   []int32            // target node, -1 when there is none
	owned     map[string][]int32 // pods by the UID of the DaemonSet that controls them
	loose     map[string][]int32 // by namespace: pods of no DaemonSet that was read
	revisions map[string][]*clusters.Revision
	events    map[string][]*clusters.Event // by UID of what they are about
	bound     map[string]string            // node by namespace/name of a pod, from its Scheduled event
	lastMade  time.Time                    // creation of the newest pod of any DaemonSet
	agents    []agent
	excuses   []*excuse
}

// nodeFacts are what a node's state depends on, the same for all DaemonSets.
type nodeFacts uint8

const (
	leaving nodeFacts = 1 << iota
	virtual
	young // created less than the grace ago
	startupTainted
	down // not heard from, or says that it is not ready
)

// heartbeatLimit is the age at which a kubelet that renews its status every
// five minutes is no longer heard from.
const heartbeatLimit = 15 * time.Minute

func newWorld(live *clusters.Live, o Options) *world {
	w := &world{live: live, options: o, keys: taintKeysOf(o.Taints), now: live.ObservedAt}
	w.nodes = slices.Clone(live.Nodes)
	slices.SortFunc(w.nodes, func(a, b clusters.Node) int { return strings.Compare(a.Name, b.Name) })
	w.byName = make(map[string]int32, len(w.nodes))
	w.facts = make([]nodeFacts, len(w.nodes))
	for i := range w.nodes {
		w.byName[w.nodes[i].Name] = int32(i)
		w.facts[i] = w.nodeFacts(&w.nodes[i])
	}
	w.indexTaints()
	w.indexPods()
	w.revisions = map[string][]*clusters.Revision{}
	for i := range live.Revisions {
		if r := &live.Revisions[i]; r.Owner.UID != "" {
			w.revisions[r.Owner.UID] = append(w.revisions[r.Owner.UID], r)
		}
	}
	w.indexEvents()
	return w
}

// indexEvents sorts events by what they are about, oldest first.
func (w *world) indexEvents() {
	w.events, w.bound = map[string][]*clusters.Event{}, map[string]string{}
	for i := range w.live.Events {
		e := &w.live.Events[i]
		w.events[e.UID] = append(w.events[e.UID], e)
		if _, node, ok := strings.Cut(e.Message, " to "); ok && e.Kind == "Pod" && e.Reason == "Scheduled" {
			w.bound[e.Namespace+"/"+e.Name] = node
		}
	}
	for _, es := range w.events {
		slices.SortStableFunc(es, func(a, b *clusters.Event) int {
			return cmp.Or(a.Last.Compare(b.Last), strings.Compare(a.Reason, b.Reason), strings.Compare(a.Message, b.Message))
		})
	}
}

func (w *world) nodeFacts(n *clusters.Node) nodeFacts {
	var f nodeFacts
	if _, ok := taintIn(w.keys.leaving, n.Taints); ok || n.Deleting {
		f |= leaving
	}
	if IsVirtual(n) {
		f |= virtual
	}
	if within(w.now, n.Created, w.options.Grace) {
		f |= young
	}
	if _, ok := taintIn(w.keys.startup, n.Taints); ok {
		f |= startupTainted
	}
	if r, ok := readyCondition(n); ok && (r.Status != corev1.ConditionTrue || w.stale(n, r)) {
		f |= down
	}
	return f
}

// within tells whether t is less than a grace before now; a missing time counts
// as long ago, and one ahead of the observation's clock as now.
func within(now, t time.Time, grace time.Duration) bool {
	return !t.IsZero() && max(now.Sub(t), 0) < grace
}

// stale tells whether a node that says Ready is not heard from: neither its
// status nor its lease, where that was read, is renewed.
func (w *world) stale(n *clusters.Node, ready corev1.NodeCondition) bool {
	late := func(t time.Time) bool { return w.now.Sub(t) > heartbeatLimit }
	return !ready.LastHeartbeatTime.IsZero() && late(ready.LastHeartbeatTime.Time) && late(n.Lease)
}

func readyCondition(n *clusters.Node) (corev1.NodeCondition, bool) {
	for _, c := range n.Conditions {
		if c.Type == corev1.NodeReady {
			return c, true
		}
	}
	return corev1.NodeCondition{}, false
}

// indexTaints gives nodes with the same taints the same number.
func (w *world) indexTaints() {
	seen := map[string]int32{}
	w.taintSet = make([]int32, len(w.nodes))
	var key strings.Builder
	for i := range w.nodes {
		key.Reset()
		for _, t := range w.nodes[i].Taints {
			key.WriteString(t.Key)
			key.WriteByte(0)
			key.WriteString(t.Value)
			key.WriteByte(0)
			key.WriteString(string(t.Effect))
			key.WriteByte(1)
		}
		id, ok := seen[key.String()]
		if !ok {
			id = int32(len(w.taintSets))
			seen[key.String()] = id
			w.taintSets = append(w.taintSets, w.nodes[i].Taints)
		}
		w.taintSet[i] = id
	}
}

// indexLabels makes a column of every label key that a predicate reads.
func (w *world) indexLabels(ps []*predicate) {
	w.columns = map[string]*column{}
	var keys []string
	add := func(key string) {
		if _, ok := w.columns[key]; !ok {
			w.columns[key] = newColumn(len(w.nodes))
			keys = append(keys, key)
		}
	}
	for _, p := range ps {
		for _, s := range p.selector {
			add(s.key)
		}
		for _, t := range p.terms {
			for _, r := range t.labels {
				add(r.Key())
			}
		}
	}
	for i := range w.nodes {
		for _, k := range keys {
			if v, ok := w.nodes[i].Labels[k]; ok {
				w.columns[k].set(i, v)
			}
		}
	}
}

// indexPods finds each pod's node and owner once.
func (w *world) indexPods() {
	pods := w.live.Pods
	w.podFacts = make([]podFacts, len(pods))
	w.podNode = make([]int32, len(pods))
	w.owned, w.loose = map[string][]int32{}, map[string][]int32{}
	at := make(map[string]int, len(w.live.DaemonSets))
	for i := range w.live.DaemonSets {
		at[string(w.live.DaemonSets[i].UID)] = i
	}
	owned := make([][]int32, len(w.live.DaemonSets))
	for i := range pods {
		p := &pods[i]
		w.podFacts[i] = podFactsOf(p)
		w.podNode[i] = -1
		if at, ok := w.byName[p.Node]; ok {
			w.podNode[i] = at
		}
		if ds, ok := at[p.Owner.UID]; ok && p.Owner.UID != "" {
			owned[ds] = append(owned[ds], int32(i))
			if p.Created.After(w.lastMade) {
				w.lastMade = p.Created
			}
		} else {
			w.loose[p.Namespace] = append(w.loose[p.Namespace], int32(i))
		}
	}
	for uid, ds := range at {
		w.owned[uid] = owned[ds]
	}
}
