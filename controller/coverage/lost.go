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

// loss is a Loss while it is gathered.
type loss struct {
	reason Reason
	nodes  []int32
	old    bool
}

// findLosses gathers the nodes that were intended and no longer are: that an
// earlier template or the live one intends, or where a pod still is.
func (s *set) findLosses() {
	if s.subject.Live == nil || len(s.formers)+len(s.sorted) == 0 && s.liveP == s.wantP {
		return // nothing tells that it was otherwise
	}
	before := make([][]flags, len(s.formers))
	for i, f := range s.formers {
		before[i] = s.w.verdicts(f.predicate, s.agents)
	}
	by := map[howLost]int{}
	for i, f := range s.flags {
		if f.has(intended) && f.has(liveIntended) || s.state[i] == Leaving {
			continue
		}
		how, ok := s.lossOn(i, before)
		if !ok {
			continue
		}
		at, seen := by[how]
		if !seen {
			at = len(s.losses)
			by[how] = at
			s.losses = append(s.losses, loss{reason: s.wordLoss(how, i), old: how.former != nil && how.former.old})
		}
		if s.lossOf == nil {
			s.lossOf = make([]int16, len(s.flags))
		}
		s.lossOf[i] = int16(at + 1)
		s.losses[at].nodes = append(s.losses[at].nodes, int32(i))
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
		found := Loss{Reason: l.reason, Old: l.old, Unclaimed: len(s.agents) > 0}
		for _, i := range l.nodes {
			if s.flags[i].has(excused) || w.takenOver(s, sets, int(i)) {
				continue
			}
			found.Nodes = append(found.Nodes, w.nodes[i].Name)
			// Where agents declare what must be covered, the rest need not be.
			found.Unclaimed = found.Unclaimed && !slices.ContainsFunc(s.agents, func(a int) bool { return w.agents[a].selected[i] })
		}
		if len(found.Nodes) > 0 {
			out = append(out, found)
		}
	}
	return out
}

func (w *world) takenOver(s *set, sets []*set, node int) bool {
	return len(s.agents) > 0 && slices.ContainsFunc(sets, func(other *set) bool {
		return other != s && other.flags[node].has(running|intended) &&
			slices.ContainsFunc(other.agents, func(a int) bool { return slices.Contains(s.agents, a) })
	})
}

// howLost is how a node was lost: by Git's template, by a change of the live
// one, or by the node itself. Nodes that were lost alike are one loss.
type howLost struct {
	refusal
	former *former // the template that intended it; nil where the live one does, or none
	git    bool    // Git's template does not, which is not live yet
}

// lossOn says how node i was lost, if it was.
func (s *set) lossOn(i int, before [][]flags) (howLost, bool) {
	n, f := &s.w.nodes[i], s.flags[i]
	if f.has(liveIntended) {
		why := s.w.refuses(s.wantP, n)
		return howLost{refusal: refusal{field: why.field}, git: true}, why.field != ""
	}
	for k, was := range before {
		if was[i].has(intended) {
			why := s.w.refuses(s.formers[k].next, n)
			return howLost{refusal: refusal{field: why.field}, former: &s.formers[k]}, why.field != ""
		}
	}
	if s.state[i] != Misscheduled || f.has(intended) {
		return howLost{}, false
	}
	why := s.w.refuses(s.liveP, n)
	return howLost{refusal: why}, why.field != ""
}

// refusal is the field of a template that refuses a node for good, and for
// tolerations the taint that it lacks one for.
type refusal struct {
	field              string
	key, value, effect string
}

// refuses finds it, in the order of placementChecks and without words: a loss
// may be of thousands of nodes.
func (w *world) refuses(p *predicate, n *clusters.Node) refusal {
	if p.nodeName != "" && p.nodeName != n.Name {
		return refusal{field: "nodeName"}
	}
	for _, sel := range p.selector {
		if v, ok := n.Labels[sel.key]; !ok || v != sel.value {
			return refusal{field: "nodeSelector"}
		}
	}
	if p.hasTerms && !slices.ContainsFunc(p.terms, func(t term) bool { return t.matches(n) }) {
		return refusal{field: "affinity"}
	}
	for _, t := range n.Taints {
		if considered(t) && !listed(w.keys.passing, t.Key) && !p.tolerated(t) {
			return refusal{"tolerations", t.Key, t.Value, string(t.Effect)}
		}
	}
	return refusal{}
}

// wordLoss says what changed, by the first node that was lost so.
func (s *set) wordLoss(how howLost, i int) Reason {
	switch cause := s.template(how.field); {
	case how.git:
		live, git := clusters.PlacementOf(&s.subject.Live.Spec.Template.Spec), clusters.PlacementOf(&s.subject.Desired.Spec.Template.Spec)
		return because(CoverageLost, fmt.Sprintf("Git%s changes spec.template.spec.%s of %s, which is not live yet: %s", s.commit(), how.field, s.key(), change(how.field, live, git)), cause)
	case how.former != nil:
		f := how.former
		what := "the live template"
		if f.change != nil {
			what = fmt.Sprintf("revision %d", f.change.Number)
		}
		if !f.at.IsZero() {
			what += " of " + stamp(f.at)
		}
		message := fmt.Sprintf("%s changed spec.template.spec.%s of %s: %s%s%s", what, how.field, s.key(), change(how.field, f.before, f.after), s.writtenBy(how.field), s.gitSays(i))
		return because(CoverageLost, message, cause).since(f.at)
	case how.key == "":
		r, _ := s.refusal(s.liveP, &s.w.nodes[i])
		return because(CoverageLost, "nodes that run a pod no longer should: "+r.Message, cause)
	}
	end := ", and its pods will be deleted"
	if how.effect == string(corev1.TaintEffectNoSchedule) {
		end = ", and pods that go will not come back"
	}
	r, _ := s.refusal(s.liveP, &s.w.nodes[i])
	text := taintText(corev1.Taint{Key: how.key, Value: how.value, Effect: corev1.TaintEffect(how.effect)})
	return because(CoverageLost, "nodes that run a pod no longer should: taint "+text+" is not tolerated"+end, Cause{"taint", text}).since(r.Since)
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
func (s *set) gitSays(i int) string {
	switch {
	case s.subject.Desired == nil:
		return ""
	case s.flags[i].has(intended):
		return "; Git" + s.commit() + " does not say so"
	}
	return "; Git" + s.commit() + " says so too"
}

// addWriters says who tainted the nodes of a loss; that may differ from node to
// node.
func (s *set) addWriters(l *loss) {
	if l.reason.Cause.Kind != "taint" {
		return
	}
	writers := map[string]time.Time{}
	for _, i := range l.nodes {
		if w, ok := s.w.nodes[i].TaintWriter(); ok {
			writers[w.Manager] = later(writers[w.Manager], w.NotAfter)
		}
	}
	var by []string
	for _, m := range slices.Sorted(maps.Keys(writers)) {
		by = append(by, writerText(clusters.Writer{Manager: m, NotAfter: writers[m]}))
	}
	if len(by) > 0 {
		l.reason.Message += "; the nodes' taints were last written by " + strings.Join(by, ", and by ")
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// lossAt is the loss that node i belongs to, if it does.
func (s *set) lossAt(i int) (Reason, bool) {
	if s.lossOf == nil || s.lossOf[i] == 0 {
		return Reason{}, false
	}
	return s.losses[s.lossOf[i]-1].reason, true
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
