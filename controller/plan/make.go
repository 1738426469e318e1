package plan

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/coverage"
	"rollcall.dev/rollcall/controller/drift"
)

// Side is what a revision wants of a cluster.
type Side struct {
	Overlay    string
	Objects    []unstructured.Unstructured // in order of Reference.Compare
	DaemonSets []appsv1.DaemonSet
}

// Input is all that is known of one cluster.
type Input struct {
	Cluster clusters.Cluster
	Fleet   clusters.Fleet
	Live    *clusters.Live
	Options coverage.Options
	From    *Side // nil: what lives
	To      Side
	Commit  string        // of To
	Drift   drift.Outcome // of To against what lives; not read where From is given
	Holds   []Hold        // of all that changes in the cluster
	Adopt   []string      // identities of objects that are taken over, beside those annotated so
}

// Make plans one cluster.
func Make(in Input) Cluster {
	out := Cluster{Name: in.Cluster.Name, Overlay: in.To.Overlay, Recorded: len(in.Cluster.Recorded) > 0, Actions: []Action{}, Nodes: []Effect{}, labels: in.Cluster.Labels}
	if at := in.Live.ObservedAt; !at.IsZero() {
		out.ObservedAt = new(at.UTC())
	}
	m := &maker{Input: in, desired: map[string]*unstructured.Unstructured{}}
	for i := range in.To.Objects {
		m.desired[clusters.ReferenceOf(&in.To.Objects[i]).Identity()] = &in.To.Objects[i]
	}
	if in.From != nil {
		out.Actions = m.between()
	} else {
		out.Actions = m.fromLive()
		for i := range out.Actions {
			m.hold(&out.Actions[i])
		}
	}
	slices.SortFunc(out.Actions, func(a, b Action) int { return a.Object.Compare(b.Object) })
	out.Nodes, out.Rollouts = m.effects(out.Actions)
	out.Notes = m.notes(len(out.Nodes) > 0)
	return out
}

// maker is one Make at work.
type maker struct {
	Input
	desired map[string]*unstructured.Unstructured
	loads   *Loads
	nodes   map[string]*clusters.Node // by name, made when first asked for
}

func isDaemonSet(r clusters.Reference) bool { return r.Kind == "DaemonSet" && r.Group() == "apps" }

func isSecret(r clusters.Reference) bool { return r.Kind == "Secret" && r.Group() == "" }

// between compares what two revisions want.
func (m *maker) between() []Action {
	before := map[string]*unstructured.Unstructured{}
	var out []Action
	for i := range m.From.Objects {
		u := &m.From.Objects[i]
		ref := clusters.ReferenceOf(u)
		before[ref.Identity()] = u
		if isDaemonSet(ref) && find(m.From.DaemonSets, ref) == nil {
			continue // excluded by the fleet
		}
		if m.desired[ref.Identity()] == nil {
			out = append(out, Action{Object: ref, Operation: Prune, Holds: []Hold{}})
		}
	}
	for i := range m.To.Objects {
		u := &m.To.Objects[i]
		a := Action{Object: clusters.ReferenceOf(u), Operation: Create, Holds: []Hold{}}
		if isDaemonSet(a.Object) && find(m.To.DaemonSets, a.Object) == nil {
			continue // excluded by the fleet
		}
		if was := before[a.Object.Identity()]; was != nil {
			a.Operation = Configure
			if equality.Semantic.DeepEqual(was.Object, u.Object) {
				a.Operation = Unchanged
			}
			if isDaemonSet(a.Object) {
				m.compareSets(&a)
			}
		}
		out = append(out, a)
	}
	return out
}

// compareSets looks closer at a DaemonSet of both revisions.
func (m *maker) compareSets(a *Action) {
	was, is := find(m.From.DaemonSets, a.Object), find(m.To.DaemonSets, a.Object)
	if was == nil || is == nil {
		return
	}
	a.restarts = !equality.Semantic.DeepEqual(was.Spec.Template, is.Spec.Template)
	if !equality.Semantic.DeepEqual(was.Spec.Selector, is.Spec.Selector) {
		immutable(a, m.desired[a.Object.Identity()])
	}
}

// fromLive compares what the revision wants with what lives. Secrets, which are
// not read, and kinds that are not known are applied once at each commit.
func (m *maker) fromLive() []Action {
	differ := map[string]*drift.Object{}
	for i := range m.Drift.Objects {
		differ[m.Drift.Objects[i].Object.Identity()] = &m.Drift.Objects[i]
	}
	unread, unknown := map[string]string{}, map[string]bool{}
	for _, r := range m.Drift.Unknown {
		unknown[r.Identity()] = true
	}
	for _, u := range m.Drift.Unread {
		unread[u.Object.Identity()] = u.Reason
	}
	var out []Action
	for i := range m.To.Objects {
		ref := clusters.ReferenceOf(&m.To.Objects[i])
		id := ref.Identity()
		if isDaemonSet(ref) && find(m.To.DaemonSets, ref) == nil {
			continue // excluded by the fleet
		}
		a := Action{Object: ref, Operation: Unchanged, Holds: []Hold{}}
		switch why, blind := unread[id]; {
		case isSecret(ref), unknown[id]:
			if m.item(ref) == nil || m.Live.Inventory.Commit != m.Commit {
				a.Operation, a.Note = Configure, "its content is not compared: applied once at each commit"
			}
		case blind:
			a.Operation = Configure
			a.add(NotObserved, "it could not be read: %s", why)
		}
		if d := differ[id]; d != nil {
			m.differs(&a, d)
		}
		out = append(out, a)
	}
	for _, d := range m.Drift.Objects {
		if d.State == drift.Extra && !m.excluded(d.Object) {
			out = append(out, Action{Object: d.Object, Operation: Prune, Holds: []Hold{}})
		}
	}
	return out
}

// excluded tells of a live DaemonSet that the fleet leaves out: rollcall does
// nothing to it, whoever applied it.
func (m *maker) excluded(r clusters.Reference) bool {
	if !isDaemonSet(r) {
		return false
	}
	ds := find(m.Live.DaemonSets, r)
	return ds != nil && m.Fleet.Excluded(ds.Namespace, ds.Name, ds.Labels)
}

// differs takes what drift says of an object into its action.
func (m *maker) differs(a *Action, d *drift.Object) {
	a.Fields, a.ignored = d.Fields, d.Ignored
	switch d.State {
	case drift.Absent:
		a.Operation = Create
		if item := m.item(a.Object); item != nil && len(item.Selector) > 0 {
			a.Operation, a.keep = Replace, item.Selector // it was being replaced
		}
	case drift.Invalid:
		if a.Operation = Configure; !d.Immutable { // else that is why
			a.add("Refused", "the API server would not take it: %s", d.Message)
		}
	case drift.Modified:
		for _, f := range d.Fields {
			if a.applies(f) {
				a.Operation = Configure
			}
		}
	}
	if d.Immutable {
		immutable(a, m.desired[a.Object.Identity()])
		if a.Operation == Replace {
			m.keepPods(a)
		}
	}
}

// keepPods notes by which labels the pods of a DaemonSet that is replaced are
// known.
func (m *maker) keepPods(a *Action) {
	s := find(m.Live.DaemonSets, a.Object).Spec.Selector
	if s == nil || len(s.MatchLabels) == 0 || len(s.MatchExpressions) > 0 {
		a.Operation = Configure
		a.add("SelectorImmutable", "the selector of a DaemonSet cannot be changed, and its pods cannot be kept, for the live one is not of labels alone: keep the old selector in Git, or delete the DaemonSet by hand")
		return
	}
	a.keep = s.MatchLabels
}

// item is what the inventory knows of an object.
func (m *maker) item(r clusters.Reference) *clusters.Item {
	if m.Live.Inventory == nil {
		return nil
	}
	items := m.Live.Inventory.Items
	at := slices.IndexFunc(items, func(i clusters.Item) bool { return i.Identity() == r.Identity() })
	if at < 0 {
		return nil
	}
	return &items[at]
}

func find(all []appsv1.DaemonSet, r clusters.Reference) *appsv1.DaemonSet {
	for i := range all {
		if all[i].Namespace == r.Namespace && all[i].Name == r.Name {
			return &all[i]
		}
	}
	return nil
}

// notes are what of the cluster a plan does not know.
func (m *maker) notes(moves bool) []string {
	var out []string
	if reason, blank := m.Live.Lacks("inventory"); blank && m.From == nil {
		out = append(out, "the inventory could not be read ("+reason+"): nothing is pruned")
	}
	if left := m.left(); len(left) > 0 && m.From == nil {
		out = append(out, fmt.Sprintf("%s left Git and could not be read, so that nothing deletes them: if they are still there, delete them by hand: %s", count(len(left), "object"), few(left)))
	}
	if !moves {
		return out
	}
	if reason, blank := m.Live.Lacks("claims"); blank {
		out = append(out, "whether pods fit is not known: all pods of the cluster: "+reason)
	} else if reason, blank := m.Live.Lacks("priorityclasses"); blank {
		out = append(out, "of the priority classes only system-node-critical and system-cluster-critical are known to preempt: "+reason)
	}
	return out
}

// left are the objects of the inventory that Git does not want any more and of
// which it is not known whether they are still there.
func (m *maker) left() []string {
	if m.Live.Inventory == nil {
		return nil
	}
	var out []string
	for _, item := range m.Live.Inventory.Items {
		if _, unread := m.Live.Unread[item.Identity()]; unread && m.desired[item.Identity()] == nil && !isSecret(item.Reference) {
			out = append(out, item.String())
		}
	}
	slices.Sort(out)
	return out
}
