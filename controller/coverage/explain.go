package coverage

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"rollcall.dev/rollcall/clusters"
)

// Check is one question that was asked of a node, with what was compared.
type Check struct {
	Name    string // nodeName, nodeSelector, affinity, taint, heard from, pod, scheduled, …
	OK      bool
	Skipped bool // not reached, since one before it failed
	Message string
	By      string // which program set what was compared, and when, as far as it is known
	Fixes   []Fix  // each would turn it to OK, or shows what is wrong

	label   string // key of the label that was compared
	code    Code
	cause   Cause
	since   time.Time
	lasting bool // a taint that does not come and go by itself
	evicts  bool // a taint that also sends away a pod that is there
}

// Checks tells the story of one node: each check in upstream's order, on the
// desired template, then what became of the pod.
func (d *DaemonSet) Checks(node string) []Check {
	s := d.set
	at, ok := s.w.byName[node]
	if !ok {
		return nil
	}
	i, n := int(at), &s.w.nodes[at]
	cs := s.placementChecks(s.wantP, n)
	for k := range cs {
		s.explain(&cs[k], n)
	}
	cs = append(cs, s.liveCheck(n)...)
	cs = append(cs, s.conditionChecks(i)...)
	return append(cs, s.podChecks(i)...)
}

// liveCheck tells where the live template refuses a node that Git's accepts.
func (s *set) liveCheck(n *clusters.Node) []Check {
	why := s.w.refuses(s.liveP, n)
	if s.liveP == s.wantP || why.field == "" || s.w.refuses(s.wantP, n).field != "" {
		return nil
	}
	r, _ := s.refusal(s.liveP, n)
	return []Check{{
		Name: "live template", Message: "the live template is not Git's and refuses the node: " + r.Message, By: strings.TrimPrefix(s.writtenBy(why.field), "; "),
		Fixes: []Fix{{Text: "apply Git's template; it differs in spec.template.spec." + why.field, Kubectl: s.kubectl("get", "ds", s.ds.Name, "-o", "yaml")}},
	}}
}

// placementChecks is the plain reading of the rules, one node at a time: the
// columns of verdict.go must agree with it (TestChecksAgreeWithVerdicts).
func (s *set) placementChecks(p *predicate, n *clusters.Node) []Check {
	var cs []Check
	if p.nodeName != "" {
		cs = append(cs, Check{Name: "nodeName", OK: p.nodeName == n.Name, code: NodeNameMismatch, cause: s.template("nodeName"),
			Message: fmt.Sprintf("template nodeName is %q, the node is %q", p.nodeName, n.Name)})
	}
	for _, sel := range p.selector {
		v, has := n.Labels[sel.key]
		cs = append(cs, Check{Name: "nodeSelector", label: sel.key, OK: has && v == sel.value, code: NodeSelectorMismatch, cause: s.template("nodeSelector"),
			Message: fmt.Sprintf("nodeSelector wants %s=%s, the node has %s", sel.key, sel.value, labelText(sel.key, v, has))})
	}
	if p.hasTerms {
		cs = append(cs, s.affinityCheck(p, n))
	}
	for _, t := range n.Taints {
		cs = append(cs, s.taintCheck(p, t))
	}
	return cs
}

func labelText(key, value string, has bool) string {
	if !has {
		return "no label " + key
	}
	return key + "=" + value
}

func (s *set) affinityCheck(p *predicate, n *clusters.Node) Check {
	c := Check{Name: "affinity", code: NodeAffinityMismatch, cause: s.template("affinity")}
	var why []string
	for i, t := range p.terms {
		miss := termMiss(t, n)
		if miss == "" {
			c.OK, c.Message = true, fmt.Sprintf("affinity term %d of %d matches: %s", i+1, len(p.terms), termText(t.source))
			return c
		}
		if t.err != nil {
			c.code = AffinityUnparseable
		}
		why = append(why, fmt.Sprintf("term %d: %s", i+1, miss))
	}
	if len(why) == 0 {
		why = []string{"required node affinity has no terms, which matches nothing"}
	}
	c.Message = "no affinity term matches: " + strings.Join(why, "; ")
	return c
}

// termMiss says why a term does not match a node; empty when it does.
func termMiss(t term, n *clusters.Node) string {
	if t.err != nil {
		return "does not parse and matches nothing: " + t.err.Error()
	}
	if t.dead() {
		return "is empty and matches nothing"
	}
	for _, r := range t.labels {
		if !r.Matches(labels.Set(n.Labels)) {
			v, has := n.Labels[r.Key()]
			return fmt.Sprintf("wants %s, the node has %s", r.String(), labelText(r.Key(), v, has))
		}
	}
	for _, f := range t.names {
		if !f.matches(n.Name) {
			return fmt.Sprintf("field %s is %q, wants %s%q", f.key, n.Name, map[bool]string{true: "not ", false: ""}[f.not], f.value)
		}
	}
	return ""
}

func termText(t corev1.NodeSelectorTerm) string {
	var parts []string
	for _, e := range slices.Concat(t.MatchExpressions, t.MatchFields) {
		parts = append(parts, strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Key, e.Operator, strings.Join(e.Values, ","))))
	}
	return strings.Join(parts, " and ")
}

func (s *set) taintCheck(p *predicate, t corev1.Taint) Check {
	c := Check{Name: "taint", OK: true, code: UntoleratedTaint, cause: Cause{"taint", taintText(t)}}
	if !considered(t) {
		c.Message = fmt.Sprintf("taint %s has an effect that keeps no pod away", taintText(t))
		return c
	}
	for i, tol := range p.tolerations {
		if tolerates(tol, t, p.comparison) {
			c.Message = fmt.Sprintf("taint %s is tolerated by %s", taintText(t), tolerationText(tol, i >= s.written(p)))
			return c
		}
	}
	c.OK, c.Message = false, fmt.Sprintf("taint %s is not tolerated", taintText(t))
	c.lasting, c.evicts = !listed(s.w.keys.passing, t.Key), t.Effect == corev1.TaintEffectNoExecute
	if t.TimeAdded != nil {
		c.since = t.TimeAdded.Time
	}
	return c
}

// written is how many tolerations stand in the template itself; the automatic
// ones come after them.
func (s *set) written(p *predicate) int {
	ds := s.ds
	if p == s.wantP {
		ds = s.subject.wanted()
	}
	return len(ds.Spec.Template.Spec.Tolerations)
}

func tolerationText(t corev1.Toleration, automatic bool) string {
	text := string(t.Operator)
	if t.Operator == "" {
		text = "Equal"
	}
	if t.Key == "" {
		text = "any key " + text
	} else {
		text = t.Key + " " + text
	}
	if t.Value != "" {
		text += " " + t.Value
	}
	if t.Effect != "" {
		text += " " + string(t.Effect)
	}
	if automatic {
		return "the automatic toleration " + text
	}
	return "the toleration " + text
}

// conditionChecks are about the node itself.
func (s *set) conditionChecks(i int) []Check {
	n := &s.w.nodes[i]
	var cs []Check
	if s.w.facts[i]&virtual != 0 {
		cs = append(cs, Check{Name: "virtual", OK: s.flags[i].has(intended), Message: "the node is virtual: it is meant for a DaemonSet only where an agent asks for such nodes",
			Fixes: []Fix{{Text: "let an agent select it by the label that makes it virtual, if daemon pods can run there"}}})
	}
	if s.w.facts[i]&leaving != 0 {
		cs = append(cs, Check{Name: "leaving", Message: s.leaving(n).Message, By: taintedBy(n)})
	}
	if s.w.facts[i]&down != 0 {
		return append(cs, Check{Name: "heard from", Message: s.down(n).Message, Fixes: []Fix{{Text: "see what its kubelet last said", Kubectl: []string{"describe", "node", n.Name}}}})
	}
	if r, ok := readyCondition(n); ok {
		return append(cs, Check{Name: "heard from", OK: true, Message: "the node's Ready condition is " + string(r.Status) + since(r.LastTransitionTime.Time)})
	}
	return append(cs, Check{Name: "heard from", OK: true, Message: "the node has no Ready condition"})
}
