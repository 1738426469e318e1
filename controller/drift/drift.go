package drift

import (
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rollcall.dev/rollcall/clusters"
)

// Object is a live object that is not as Git says, or of which there is
// something to tell.
type Object struct {
	Object clusters.Reference `json:"object"`
	State  State              `json:"state"`
	Fields []Field            `json:"fields,omitempty"`
	// Foreign is what other programs added and what is but in another order: no
	// drift.
	Foreign []Field `json:"foreign,omitempty"`
	// Ignored is what would be drift but for a rule.
	Ignored []Field `json:"ignored,omitempty"`
	// Unknown are fields of Git's that this version's types do not know. They
	// are not compared.
	Unknown []string `json:"unknown,omitempty"`
	// Confirmation is what the API server says of the differences when it is
	// asked by a dry run.
	Confirmation Confirmation `json:"confirmation,omitempty"`
	Message      string       `json:"message,omitempty"` // of Invalid: what the API server refuses; of an unconfirmed one: why
	// Immutable tells that the API server takes no other selector.
	Immutable bool `json:"immutable,omitempty"`
}

// Drifted tells whether the object is not as Git says.
func (o *Object) Drifted() bool { return o.State != Same }

// State is how an object differs.
type State string

// The states of an object.
const (
	Modified State = "Modified"
	Absent   State = "Absent"  // in Git, and not in the cluster
	Extra    State = "Extra"   // applied for this fleet before, and no longer in Git
	Invalid  State = "Invalid" // the API server refuses what Git says
	Same     State = "Same"    // no drift, but something to tell
)

// Confirmation is what became of the question whether an apply would change an
// object.
type Confirmation string

// The confirmations.
const (
	Unasked     Confirmation = ""
	Confirmed   Confirmation = "confirmed"
	Unconfirmed Confirmation = "unconfirmed" // it may not be asked, or did not answer
)

// Field is one difference. Manager is a program's name, from managedFields; it
// wrote the field by Operation not later than NotAfter. All three are empty
// where nobody owns the field, as of one that was removed.
type Field struct {
	Path      string     `json:"path"`
	Change    Kind       `json:"change"`
	Desired   string     `json:"desired"`
	Live      string     `json:"live"`
	Manager   string     `json:"manager,omitempty"`
	Operation string     `json:"operation,omitempty"`
	NotAfter  *time.Time `json:"notAfter,omitempty"`
	// Placement tells that it decides which nodes run the DaemonSet's pods.
	Placement bool   `json:"placement,omitempty"`
	Rule      string `json:"rule,omitempty"` // that it is ignored by

	steps []step
	hide  bool
	want  any // the whole value, for a text of the object; nil where Git has none
}

// Kind is how a field differs.
type Kind string

// The kinds of difference.
const (
	Changed Kind = "changed"
	Missing Kind = "missing" // in Git only
	Added   Kind = "added"   // live only
	Order   Kind = "order"   // the same items in another order
)

// Input is what Git wants of a cluster, and the cluster.
type Input struct {
	DaemonSets []appsv1.DaemonSet
	Objects    []unstructured.Unstructured // all that is rendered; DaemonSets among them are passed over
	Live       *clusters.Live
	AppliedBy  []string // field managers that deliver from Git, beside the known ones
	Ignore     []Rule   // of the fleet, for this cluster
	Fleet      string   // whose inventory is the cluster's
	Foreign    bool     // list what is foreign, too
}

// Outcome is what a comparison found.
type Outcome struct {
	Objects  []Object             // in order of Reference.Compare
	Compared int                  // objects that were compared
	Unread   []Unread             // objects that were not, in the same order
	Unknown  []clusters.Reference // of those, they that were but looked for, since their kind is not known
	Used     []bool               // of each rule of the input: it ignored something
	// Unused are rules of objects' own annotations that ignore nothing, and what
	// of them cannot be read.
	Unused []Unused
}

// Unread is an object that was not compared, and why.
type Unread struct {
	Object clusters.Reference `json:"object"`
	Reason string             `json:"reason"`
}

// Unused is a rule of an object's own that matches nothing, or is none.
type Unused struct {
	Object clusters.Reference
	Rule   string
	Fault  string // why it cannot be read; empty: it matches nothing
}

// Compare compares what is desired with what lives.
func (t *Types) Compare(in Input) Outcome {
	c := &comparison{types: t, in: in, out: Outcome{Used: make([]bool, len(in.Ignore))}, deliverers: deliverers(in.AppliedBy)}
	c.live, c.raw = map[string]*unstructured.Unstructured{}, map[string]map[string]any{}
	for i := range in.Objects {
		if ref := clusters.ReferenceOf(&in.Objects[i]); isDaemonSet(ref) {
			c.raw[ref.Identity()] = in.Objects[i].Object
		}
	}
	for i := range in.Live.Objects {
		u := &in.Live.Objects[i]
		c.live[clusters.ReferenceOf(u).Identity()] = u
	}
	desired := map[string]bool{}
	for i := range in.DaemonSets {
		ref := clusters.Reference{APIVersion: "apps/v1", Kind: "DaemonSet", Namespace: in.DaemonSets[i].Namespace, Name: in.DaemonSets[i].Name}
		desired[ref.Identity()] = true
		c.daemonSet(ref, &in.DaemonSets[i])
	}
	for i := range in.Objects {
		ref := clusters.ReferenceOf(&in.Objects[i])
		if !isDaemonSet(ref) {
			c.object(ref, &in.Objects[i])
		}
		desired[ref.Identity()] = true
		if have := c.find(ref); have != nil {
			desired[clusters.ReferenceOf(have).Identity()] = true
		}
	}
	c.extras(desired)
	slices.SortFunc(c.out.Objects, func(a, b Object) int { return a.Object.Compare(b.Object) })
	slices.SortFunc(c.out.Unread, func(a, b Unread) int { return a.Object.Compare(b.Object) })
	return c.out
}

func isSecret(r clusters.Reference) bool { return r.Kind == "Secret" && r.Group() == "" }

func isDaemonSet(r clusters.Reference) bool { return r.Kind == "DaemonSet" && r.Group() == "apps" }

// comparison is one Compare at work.
type comparison struct {
	types      *Types
	in         Input
	live       map[string]*unstructured.Unstructured
	raw        map[string]map[string]any // Git's DaemonSets as they are written
	deliverers map[string]bool
	out        Outcome
}

func (c *comparison) daemonSet(ref clusters.Reference, want *appsv1.DaemonSet) {
	c.out.Compared++
	at := slices.IndexFunc(c.in.Live.DaemonSets, func(ds appsv1.DaemonSet) bool { return ds.Namespace == want.Namespace && ds.Name == want.Name })
	if at < 0 {
		c.out.Objects = append(c.out.Objects, Object{Object: ref, State: Absent})
		return
	}
	have := &c.in.Live.DaemonSets[at]
	if c.in.Live.Snapshot { // a snapshot has but a part of it
		want = new(clusters.Recordable(want))
	}
	w := c.walker(c.raw[ref.Identity()], have.ManagedFields, have.Annotations)
	w.daemonSet = true
	w.metadata(want.Labels, have.Labels, want.Annotations, have.Annotations)
	w.both("spec", &want.Spec, &have.Spec)
	c.keep(ref, want.Annotations, w, nil)
}

// find is the live object, nil where there is none.
func (c *comparison) find(ref clusters.Reference) *unstructured.Unstructured {
	if have := c.live[ref.Identity()]; have != nil {
		return have
	}
	return c.live[ref.OfCluster().Identity()]
}

// object compares anything else. What is no built-in kind is only looked for.
func (c *comparison) object(ref clusters.Reference, want *unstructured.Unstructured) {
	if isSecret(ref) {
		c.out.Unread = append(c.out.Unread, Unread{ref, "Secrets are not read"})
		return
	}
	if reason, blank := c.in.Live.Unread[ref.Identity()]; blank {
		c.out.Unread = append(c.out.Unread, Unread{ref, reason})
		return
	}
	have := c.find(ref)
	if have == nil {
		c.out.Compared++
		c.out.Objects = append(c.out.Objects, Object{Object: ref, State: Absent})
		return
	}
	desired, unknown, known, err := c.types.decode(want)
	if err != nil {
		c.out.Unread = append(c.out.Unread, Unread{ref, "Git's is no " + ref.APIVersion + " " + ref.Kind + ": " + err.Error()})
		return
	}
	if !known {
		c.out.Compared++
		c.out.Unknown = append(c.out.Unknown, ref)
		return
	}
	live, _, _, err := c.types.decode(have)
	if err != nil {
		c.out.Unread = append(c.out.Unread, Unread{ref, "the live one cannot be read: " + err.Error()})
		return
	}
	c.out.Compared++
	w := c.walker(want.Object, have.GetManagedFields(), have.GetAnnotations())
	w.metadata(want.GetLabels(), have.GetLabels(), want.GetAnnotations(), have.GetAnnotations())
	w.object(desired, live)
	c.keep(ref, want.GetAnnotations(), w, unknown)
}

// keep sorts what was found into drift, foreign and ignored.
func (c *comparison) keep(ref clusters.Reference, annotations map[string]string, w *walker, unknown []string) {
	o := Object{Object: ref, State: Same, Unknown: unknown}
	own, faults := ownRules(annotations[IgnoreAnnotation])
	for _, f := range faults {
		c.out.Unused = append(c.out.Unused, Unused{ref, f.text, f.why})
	}
	used := make([]bool, len(own))
	for _, f := range w.drift {
		if rule := c.ignoredBy(ref, f, own, used); rule != "" {
			f.Rule = rule
			o.Ignored = append(o.Ignored, f)
			continue
		}
		o.State = Modified
		o.Immutable = o.Immutable || isDaemonSet(ref) && strings.HasPrefix(f.Path, "spec.selector")
		o.Fields = append(o.Fields, f)
	}
	for i, r := range own {
		if !used[i] {
			c.out.Unused = append(c.out.Unused, Unused{ref, r.text(), ""})
		}
	}
	if c.in.Foreign {
		o.Foreign = w.foreign
	}
	if o.State != Same || len(o.Foreign)+len(o.Ignored)+len(o.Unknown) > 0 {
		c.out.Objects = append(c.out.Objects, o)
	}
}

// extras are objects that were applied for this fleet and are no longer wanted.
// Whether they still live is known only of those that were read.
func (c *comparison) extras(desired map[string]bool) {
	if c.in.Live.Inventory == nil {
		return
	}
	for _, item := range c.in.Live.Inventory.Items {
		id := item.Identity()
		if desired[id] {
			continue
		}
		have := c.find(item.Reference)
		alive := have != nil && !desired[clusters.ReferenceOf(have).Identity()] || isSecret(item.Reference) // which is not looked for
		if isDaemonSet(item.Reference) {
			alive = slices.ContainsFunc(c.in.Live.DaemonSets, func(ds appsv1.DaemonSet) bool { return ds.Namespace == item.Namespace && ds.Name == item.Name })
		}
		if alive {
			c.out.Objects = append(c.out.Objects, Object{Object: item.Reference, State: Extra})
		}
	}
}
