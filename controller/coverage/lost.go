package coverage

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"rollcall.dev/rollcall/clusters"
)

// lossWindow is how long after a template changed the nodes that it left behind
// are a loss; later the change is how things are.
const lossWindow = 7 * 24 * time.Hour

// former is an earlier template of the DaemonSet that placed its pods
// otherwise than the one that came after it.
type former struct {
	*predicate
	next          *predicate // of the template that came after it
	before, after clusters.Placement
	change        *clusters.Revision // the revision that changed it; nil: the live template, which is no revision yet
	at            time.Time          // when it changed, not later than; zero: not known
	old           bool               // longer ago than lossWindow
}

// formerTemplates walks back from the live template over the revisions, as far
// as changes count: those of lossWindow, and the last one whenever it was.
func (s *set) formerTemplates(revisions []*clusters.Revision) []former {
	sorted := slices.SortedFunc(slices.Values(revisions), func(a, b *clusters.Revision) int {
		return cmp.Or(cmp.Compare(b.Number, a.Number), strings.Compare(b.Name, a.Name))
	})
	var out []former
	placement := clusters.PlacementOf(&s.ds.Spec.Template.Spec)
	var change *clusters.Revision
	for i, r := range sorted {
		if !samePlacement(r.Placement, placement) {
			f := former{before: r.Placement, after: placement, change: change, at: s.replacedAt(change, r)}
			f.old = !f.at.IsZero() && s.w.now.Sub(f.at) > lossWindow
			if f.old && i > 1 {
				return out
			}
			f.predicate = compile(r.Placement, s.w.options.ComparisonOperators)
			f.next = compile(placement, s.w.options.ComparisonOperators)
			if out = append(out, f); f.old {
				return out
			}
		}
		placement, change = r.Placement, r
	}
	return out
}

func samePlacement(a, b clusters.Placement) bool {
	a.HostNetwork, b.HostNetwork = false, false // it tolerates a lifecycle taint only, which loses no node
	return equality.Semantic.DeepEqual(a, b)
}

// replacedAt is when a revision took the place of another one. One that was
// rolled back to is older than what it replaced: there the last change of the
// DaemonSet is all that is known.
func (s *set) replacedAt(change, replaced *clusters.Revision) time.Time {
	if change != nil && !change.Created.Before(replaced.Created) {
		return change.Created
	}
	at, _ := s.lastSpecWrite()
	return at
}

// findLosses gathers the nodes that were intended and no longer are: that an
// earlier template or the live one intends, or where a pod still is.
func (s *set) findLosses() {
	if s.subject.Live == nil {
		return
	}
	before := make([][]flags, len(s.formers))
	for i, f := range s.formers {
		before[i] = s.w.verdicts(f.predicate, s.agents)
	}
	by := map[Cause]int{}
	for i, f := range s.flags {
		if f.has(intended) && f.has(liveIntended) || s.state[i] == Leaving {
			continue
		}
		how, ok := s.lossOn(i, before)
		if !ok {
			continue
		}
		at, seen := by[how.cause]
		if !seen {
			at = len(s.losses)
			by[how.cause] = at
			s.losses = append(s.losses, Loss{Reason: s.wordLoss(how, &s.w.nodes[i]), Old: how.former != nil && how.former.old})
		}
		if s.lossOf == nil {
			s.lossOf = make([]int16, len(s.flags))
		}
		s.lossOf[i] = int16(at + 1)
		s.losses[at].Nodes = append(s.losses[at].Nodes, s.w.nodes[i].Name)
	}
	for i := range s.losses {
		s.addWriters(&s.losses[i])
	}
}

// standing are the losses that nothing makes good: a node is none where it is
// excused, or where another DaemonSet of the same agent is meant to run instead.
func (w *world) standing(s *set, sets []*set) []Loss {
	var out []Loss
	for _, l := range s.losses {
		l.Nodes = slices.DeleteFunc(slices.Clone(l.Nodes), func(name string) bool {
			i := int(w.byName[name])
			return s.flags[i].has(excused) || w.takenOver(s, sets, i)
		})
		if len(l.Nodes) > 0 {
			l.Unclaimed = w.unclaimed(s, l.Nodes)
			out = append(out, l)
		}
	}
	return out
}

// unclaimed tells whether the DaemonSet belongs to agents, and none of them is
// to cover one of the nodes: there it is declared what must be.
func (w *world) unclaimed(s *set, names []string) bool {
	return len(s.agents) > 0 && !slices.ContainsFunc(names, func(name string) bool {
		return slices.ContainsFunc(s.agents, func(a int) bool { return w.agents[a].selected[w.byName[name]] })
	})
}

func (w *world) takenOver(s *set, sets []*set, node int) bool {
	return slices.ContainsFunc(sets, func(other *set) bool {
		return other != s && other.flags[node].has(running|intended) &&
			slices.ContainsFunc(other.agents, func(a int) bool { return slices.Contains(s.agents, a) })
	})
}

// howLost is how a node was lost: by Git's template, by a change of the live
// one, or by the node itself.
type howLost struct {
	cause  Cause
	field  string  // of the template; empty where the node changed
	former *former // nil: by Git's, which is not live yet
	since  time.Time
}

// lossOn says how node i was lost, if it was.
func (s *set) lossOn(i int, before [][]flags) (howLost, bool) {
	n, f := &s.w.nodes[i], s.flags[i]
	if f.has(liveIntended) {
		field := s.changedField(s.wantP, n)
		return howLost{cause: s.template(field), field: field}, field != ""
	}
	for k, was := range before {
		if was[i].has(intended) {
			at := &s.formers[k]
			field := s.changedField(at.next, n)
			return howLost{cause: s.template(field), field: field, former: at}, field != ""
		}
	}
	if s.state[i] != Misscheduled || f.has(intended) {
		return howLost{}, false
	}
	r, ok := s.refusal(s.liveP, n)
	return howLost{cause: r.Cause, since: r.Since}, ok
}

// wordLoss says what changed; what the nodes have to do with it is added once
// they are all known.
func (s *set) wordLoss(how howLost, n *clusters.Node) Reason {
	switch {
	case how.field == "" && how.cause.Kind == "taint":
		end := ", and its pods will be deleted"
		if strings.HasSuffix(how.cause.Key, string(corev1.TaintEffectNoSchedule)) {
			end = ", and pods that go will not come back"
		}
		return because(CoverageLost, "nodes that run a pod no longer should: taint "+how.cause.Key+" is not tolerated"+end, how.cause).since(how.since)
	case how.field == "":
		r, _ := s.refusal(s.liveP, n)
		return because(CoverageLost, "nodes that run a pod no longer should: "+r.Message, how.cause).since(how.since)
	case how.former == nil:
		live, git := clusters.PlacementOf(&s.subject.Live.Spec.Template.Spec), clusters.PlacementOf(&s.subject.Desired.Spec.Template.Spec)
		return because(CoverageLost, fmt.Sprintf("Git%s changes spec.template.spec.%s of %s, which is not live yet: %s", s.commit(), how.field, s.key(), change(how.field, live, git)), how.cause)
	}
	f := how.former
	what := "the live template"
	if f.change != nil {
		what = fmt.Sprintf("revision %d", f.change.Number)
	}
	if !f.at.IsZero() {
		what += " of " + stamp(f.at)
	}
	message := fmt.Sprintf("%s changed spec.template.spec.%s of %s: %s%s%s", what, how.field, s.key(), change(how.field, f.before, f.after), s.writtenBy(how.field), s.gitSays(n))
	return because(CoverageLost, message, how.cause).since(f.at)
}

// fieldOf are the template's fields by the check that they decide.
var fieldOf = map[string]string{"nodeName": "nodeName", "nodeSelector": "nodeSelector", "affinity": "affinity", "taint": "tolerations"}

// changedField is the field of a template that refuses the node.
func (s *set) changedField(p *predicate, n *clusters.Node) string {
	for _, c := range s.placementChecks(p, n) {
		if !c.OK && (c.Name != "taint" || c.lasting) {
			return fieldOf[c.Name]
		}
	}
	return ""
}

func (s *set) commit() string {
	if s.w.options.Commit == "" {
		return ""
	}
	return " at commit " + s.w.options.Commit[:min(10, len(s.w.options.Commit))]
}

// writtenBy is who last wrote a field of the live template.
func (s *set) writtenBy(field string) string {
	path := []string{"f:spec", "f:template", "f:spec", "f:" + field}
	w, ok := clusters.LastWriter(s.subject.Live.ManagedFields, path...)
	if !ok { // a field that was removed belongs to nobody: who wrote the template last may have done it
		if w, ok = clusters.LastWriter(s.subject.Live.ManagedFields, path[:3]...); !ok {
			return ""
		}
		return "; the template was last written by " + writerText(w)
	}
	return "; last written by " + writerText(w)
}

func writerText(w clusters.Writer) string {
	if w.NotAfter.IsZero() {
		return w.Manager
	}
	return w.Manager + ", not later than " + stamp(w.NotAfter)
}

// gitSays tells whether Git wants it so.
func (s *set) gitSays(n *clusters.Node) string {
	switch _, refused := s.refusal(s.wantP, n); {
	case s.subject.Desired == nil:
		return ""
	case refused:
		return "; Git" + s.commit() + " says so too"
	}
	return "; Git" + s.commit() + " does not say so"
}

// addWriters says who tainted the nodes of a loss; that may differ from node to
// node.
func (s *set) addWriters(l *Loss) {
	if l.Reason.Cause.Kind != "taint" {
		return
	}
	writers := map[string]time.Time{}
	for _, name := range l.Nodes {
		if w, ok := s.w.nodes[s.w.byName[name]].TaintWriter(); ok {
			writers[w.Manager] = later(writers[w.Manager], w.NotAfter)
		}
	}
	var by []string
	for _, m := range slices.Sorted(maps.Keys(writers)) {
		by = append(by, writerText(clusters.Writer{Manager: m, NotAfter: writers[m]}))
	}
	if len(by) > 0 {
		l.Reason.Message += "; the nodes' taints were last written by " + strings.Join(by, ", and by ")
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// lossAt is the loss that node i belongs to.
func (s *set) lossAt(i int) (Loss, bool) {
	if s.lossOf == nil || s.lossOf[i] == 0 {
		return Loss{}, false
	}
	return s.losses[s.lossOf[i]-1], true
}

// change words what became of a field.
func change(field string, before, after clusters.Placement) string {
	text := map[string]func(clusters.Placement) string{
		"nodeName":     func(p clusters.Placement) string { return fmt.Sprintf("%q", p.NodeName) },
		"nodeSelector": func(p clusters.Placement) string { return selectorText(p.NodeSelector) },
		"affinity":     func(p clusters.Placement) string { return affinityText(p.Affinity) },
		"tolerations":  func(p clusters.Placement) string { return tolerationsText(p.Tolerations) },
	}[field]
	out := text(before) + " became " + text(after)
	if field == "tolerations" && len(after.Tolerations) > 0 && !slices.ContainsFunc(before.Tolerations, func(t corev1.Toleration) bool {
		return slices.ContainsFunc(after.Tolerations, func(u corev1.Toleration) bool { return equality.Semantic.DeepEqual(t, u) })
	}) && len(before.Tolerations) > 0 {
		out += " (none was kept: a strategic merge patch replaces the whole list)"
	}
	return out
}

func selectorText(m map[string]string) string {
	var pairs []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		pairs = append(pairs, k+"="+m[k])
	}
	return "{" + strings.Join(pairs, ", ") + "}"
}

func affinityText(a *corev1.NodeAffinity) string {
	if a == nil || a.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return "none"
	}
	var terms []string
	for _, t := range a.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		terms = append(terms, termText(t))
	}
	return "(" + strings.Join(terms, ") or (") + ")"
}

func tolerationsText(ts []corev1.Toleration) string {
	var all []string
	for _, t := range ts {
		all = append(all, strings.TrimPrefix(tolerationText(t, false), "the toleration "))
	}
	return "[" + strings.Join(all, ", ") + "]"
}
