package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/drift"
)

// Diff is what of a fleet's objects is not as Git says.
type Diff struct {
	APIVersion  string        `json:"apiVersion"`
	Kind        string        `json:"kind"`
	Fleet       string        `json:"fleet,omitempty"`
	GeneratedAt time.Time     `json:"generatedAt"`
	Complete    bool          `json:"complete"`
	Source      *Source       `json:"source,omitempty"`
	Clusters    []DiffCluster `json:"clusters"`
}

// DiffCluster is one cluster of a Diff.
type DiffCluster struct {
	Name        string         `json:"name"`
	Sync        Sync           `json:"sync"`
	Observation Observation    `json:"observation"`
	Compared    int            `json:"compared"`
	Objects     []drift.Object `json:"objects"`
	Unread      []drift.Unread `json:"unread,omitempty"`

	judged *Judged
}

// NewDiff takes the drift out of a report that retains what it was made of. keep
// selects the objects.
func NewDiff(r Report, keep func(clusters.Reference) bool) Diff {
	d := Diff{APIVersion: r.APIVersion, Kind: "Diff", Fleet: r.Fleet, GeneratedAt: r.GeneratedAt, Complete: r.Complete, Source: r.Source, Clusters: []DiffCluster{}}
	for _, c := range r.Clusters {
		out := DiffCluster{Name: c.Name, Sync: c.Sync, Observation: c.Observation, Compared: c.Compared, Objects: []drift.Object{}, judged: c.judged}
		for _, o := range c.Drift {
			if keep(o.Object) {
				out.Objects = append(out.Objects, o)
			}
		}
		for _, u := range c.Unread {
			if keep(u.Object) {
				out.Unread = append(out.Unread, u)
			}
		}
		out.Compared -= passedOver(c, keep)
		d.Clusters = append(d.Clusters, out)
	}
	return d
}

// passedOver counts the objects that were compared and are not kept.
func passedOver(c Cluster, keep func(clusters.Reference) bool) int {
	if c.judged == nil {
		return 0
	}
	n := 0
	for i := range c.judged.Objects {
		ref := clusters.ReferenceOf(&c.judged.Objects[i])
		unread := slices.ContainsFunc(c.Unread, func(u drift.Unread) bool { return u.Object.Identity() == ref.Identity() })
		excluded := isDaemonSet(ref) && !slices.ContainsFunc(c.judged.Desired, func(ds appsv1.DaemonSet) bool { return ds.Namespace == ref.Namespace && ds.Name == ref.Name })
		if !keep(ref) && !unread && !excluded {
			n++
		}
	}
	return min(n, c.Compared)
}

// Has tells whether Git wants such an object anywhere, or one that differs is
// such.
func (d Diff) Has(such func(clusters.Reference) bool) bool {
	return slices.ContainsFunc(d.Clusters, func(c DiffCluster) bool {
		wanted := c.judged != nil && slices.ContainsFunc(c.judged.Objects, func(u unstructured.Unstructured) bool { return such(clusters.ReferenceOf(&u)) })
		return wanted || slices.ContainsFunc(c.Objects, func(o drift.Object) bool { return such(o.Object) })
	})
}

// Differs tells whether any object is not as Git says.
func (d Diff) Differs() bool {
	return slices.ContainsFunc(d.Clusters, func(c DiffCluster) bool {
		return slices.ContainsFunc(c.Objects, func(o drift.Object) bool { return o.Drifted() })
	})
}

// Unified writes a unified diff that patch and git take: from what lives to
// what Git says, a file for each object.
func (d Diff) Unified(w io.Writer) error {
	for _, c := range d.Clusters {
		for i := range c.Objects {
			o := &c.Objects[i]
			if !o.Drifted() || c.judged == nil {
				continue
			}
			file := fileOf(c.Name, o.Object)
			text, err := o.Unified(c.judged.desired(o.Object), drift.LiveOf(&c.judged.Live, o.Object), "a/"+file, "b/"+file)
			if err != nil {
				return fmt.Errorf("cluster %q: %w", c.Name, err)
			}
			if _, err := io.WriteString(w, Printable(text)); err != nil {
				return fmt.Errorf("writing the diff: %w", err)
			}
		}
	}
	return nil
}

func fileOf(cluster string, r clusters.Reference) string {
	parts := []string{cluster, r.Namespace, strings.ToLower(r.Kind) + "." + r.Name + ".yaml"}
	if r.Namespace == "" {
		parts = slices.Delete(parts, 1, 2)
	}
	for i := range parts {
		parts[i] = strings.NewReplacer("/", "_", " ", "_").Replace(clean(parts[i]))
	}
	return strings.Join(parts, "/")
}

// desired is what Git wants of a reference, nil if it does not.
func (j *Judged) desired(r clusters.Reference) *unstructured.Unstructured {
	for i := range j.Objects {
		if clusters.ReferenceOf(&j.Objects[i]).Identity() == r.Identity() {
			return &j.Objects[i]
		}
	}
	return nil
}

// Text prints the differences for a terminal, as a unified view: - is live, +
// is what Git says.
func (d Diff) Text(s Style) string {
	p := &printer{s: s}
	differ, compared := 0, 0
	for i, c := range d.Clusters {
		if i > 0 {
			p.line("")
		}
		p.diffOf(c, d.Source)
		compared += c.Compared
		for _, o := range c.Objects {
			if o.Drifted() {
				differ++
			}
		}
	}
	p.line("")
	p.line("%s", p.paint(bold, fmt.Sprintf("%d of %s not as in Git, in %s", differ, plural(compared, "object"), plural(len(d.Clusters), "cluster"))))
	return p.b.String()
}

func (p *printer) diffOf(c DiffCluster, s *Source) {
	head := p.paint(bold, "CLUSTER "+clean(c.Name))
	if c.Sync.Overlay != "" && s != nil {
		head += "  " + clean(c.Sync.Overlay) + " @ " + clean(short(s.Commit))
	}
	switch {
	case c.Observation.State != clusters.Fresh:
		head += "  " + p.paint(red, fmt.Sprintf("%s: %s", c.Observation.State, clean(c.Observation.Error)))
	case c.Sync.Error != "":
		head += "  " + p.paint(red, clean(c.Sync.Error))
	case !slices.ContainsFunc(c.Objects, func(o drift.Object) bool { return o.Drifted() }):
		head += "  " + p.paint(green, plural(c.Compared, "object")+" as in Git")
	}
	p.line("%s", head)
	for _, o := range c.Objects {
		p.object(o)
	}
	unread := slices.DeleteFunc(slices.Clone(c.Unread), func(u drift.Unread) bool { return u.Object.Kind == "Secret" })
	if len(unread) > 0 {
		var words []string
		for _, u := range unread {
			words = append(words, u.Object.String()+" ("+u.Reason+")")
		}
		p.line("  %s", p.paint(faint, "not compared: "+clean(some(words))))
	}
	if n := len(c.Unread) - len(unread); n > 0 {
		p.line("  %s", p.paint(faint, "not compared: "+plural(n, "Secret")+", which are never read"))
	}
}

func (p *printer) object(o drift.Object) {
	title := "  " + p.paint(bold, clean(o.Object.String())) + "  " + p.paint(driftColor(o.State), driftWord(o.State))
	if o.Confirmation != drift.Unasked {
		title += " " + string(o.Confirmation)
	}
	if o.Message != "" {
		title += ": " + clean(o.Message)
	}
	p.line("%s", title)
	for _, f := range o.Fields {
		p.field(f, "")
	}
	for _, f := range o.Ignored {
		p.field(f, "ignored by "+f.Rule)
	}
	for _, f := range o.Foreign {
		p.field(f, "another program's, or but in another order: no drift")
	}
	for _, u := range o.Unknown {
		p.line("    %s", p.paint(yellow, clean(u)+": not compared"))
	}
	if o.Immutable {
		p.line("    %s", p.paint(yellow, "the selector cannot be changed: delete the DaemonSet with its pods, or let "+clusters.ReplaceAnnotation+": orphan recreate it with its pods kept"))
	}
}

func driftColor(s drift.State) string {
	switch s {
	case drift.Same:
		return faint
	case drift.Modified:
		return yellow
	}
	return red
}

func driftWord(s drift.State) string {
	switch s {
	case drift.Absent:
		return "Absent: in Git and not in the cluster"
	case drift.Extra:
		return "Extra: applied for this fleet before, and no longer in Git"
	case drift.Same:
		return "as in Git"
	}
	return string(s)
}

// field prints one difference: where, what lives, what Git says, and who wrote
// it. Texts of several lines are compared line by line.
func (p *printer) field(f drift.Field, aside string) {
	path := "    " + p.paint(cyan, "@ "+clean(f.Path))
	if f.Placement && aside == "" {
		path += "  " + p.paint(red, "decides which nodes run it")
	}
	if aside != "" {
		path += "  " + p.paint(faint, clean(aside))
	}
	p.line("%s", path)
	if strings.Contains(f.Desired, "\n") && strings.Contains(f.Live, "\n") {
		p.lines(f)
		return
	}
	if f.Change != drift.Missing {
		p.line("    %s%s", p.paint(red, "- "+clean(f.Live)), p.paint(faint, clean(byWhom(f))))
	}
	if f.Change != drift.Added {
		p.line("    %s", p.paint(green, "+ "+clean(f.Desired)))
	}
}

func (p *printer) lines(f drift.Field) {
	text, err := drift.Lines(strings.SplitAfter(f.Live+"\n", "\n"), strings.SplitAfter(f.Desired+"\n", "\n"), "", "")
	if err != nil {
		text = "" // it writes to memory
	}
	if by := byWhom(f); by != "" {
		p.line("    %s", p.paint(faint, clean(strings.TrimPrefix(by, ", "))))
	}
	for l := range strings.Lines(text) {
		l = strings.TrimRight(l, "\n")
		switch {
		case l == "", strings.HasPrefix(l, "---"), strings.HasPrefix(l, "+++"):
		case l[0] == '-':
			p.line("    %s", p.paint(red, clean(l)))
		case l[0] == '+':
			p.line("    %s", p.paint(green, clean(l)))
		default:
			p.line("    %s", clean(l))
		}
	}
}
