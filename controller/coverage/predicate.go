package coverage

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"rollcall.dev/rollcall/clusters"
)

// predicate is a template's placement, parsed once: which nodes it accepts by
// name, nodeSelector and required affinity, and what it tolerates.
type predicate struct {
	nodeName    string
	selector    []pair // nodeSelector, by key
	terms       []term // required affinity; nil with hasTerms false accepts all
	hasTerms    bool
	tolerations []corev1.Toleration
	comparison  bool
}

type pair struct{ key, value string }

// term is one nodeSelectorTerm. A term that is empty or does not parse matches
// nothing; the other terms still decide (component-helpers nodeaffinity).
type term struct {
	labels []labels.Requirement
	names  []field
	source corev1.NodeSelectorTerm
	err    error
}

func (t term) dead() bool { return t.err != nil || len(t.labels)+len(t.names) == 0 }

// matches is the plain reading of a term, for one node.
func (t term) matches(n *clusters.Node) bool {
	return !t.dead() &&
		!slices.ContainsFunc(t.labels, func(r labels.Requirement) bool { return !r.Matches(labels.Set(n.Labels)) }) &&
		!slices.ContainsFunc(t.names, func(f field) bool { return !f.matches(n.Name) })
}

// field is a requirement on a node's fields, of which only metadata.name
// exists: any other key reads as empty.
type field struct {
	key, value string
	not        bool
}

func (f field) matches(name string) bool {
	have := ""
	if f.key == "metadata.name" {
		have = name
	}
	return (have == f.value) != f.not
}

func compile(p clusters.Placement, comparison bool) *predicate {
	pr := &predicate{nodeName: p.NodeName, tolerations: Tolerations(p), comparison: comparison}
	for k, v := range p.NodeSelector {
		pr.selector = append(pr.selector, pair{k, v})
	}
	slices.SortFunc(pr.selector, func(a, b pair) int { return strings.Compare(a.key, b.key) })
	if p.Affinity != nil && p.Affinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		pr.hasTerms = true
		for _, t := range p.Affinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			pr.terms = append(pr.terms, parseTerm(t))
		}
	}
	return pr
}

func parseTerm(t corev1.NodeSelectorTerm) term {
	parsed := term{source: t}
	for _, e := range t.MatchExpressions {
		op, ok := operators[e.Operator]
		if !ok {
			parsed.err = fmt.Errorf("%s: %q is not a valid node selector operator", e.Key, e.Operator)
			return parsed
		}
		r, err := labels.NewRequirement(e.Key, op, e.Values)
		if err != nil {
			parsed.err = fmt.Errorf("%s %s [%s]: %w", e.Key, e.Operator, strings.Join(e.Values, " "), err)
			return parsed
		}
		parsed.labels = append(parsed.labels, *r)
	}
	for _, e := range t.MatchFields {
		if len(e.Values) != 1 || e.Operator != corev1.NodeSelectorOpIn && e.Operator != corev1.NodeSelectorOpNotIn {
			parsed.err = fmt.Errorf("matchFields %s %s: want In or NotIn with exactly one value", e.Key, e.Operator)
			return parsed
		}
		parsed.names = append(parsed.names, field{e.Key, e.Values[0], e.Operator == corev1.NodeSelectorOpNotIn})
	}
	return parsed
}

var operators = map[corev1.NodeSelectorOperator]selection.Operator{
	corev1.NodeSelectorOpIn: selection.In, corev1.NodeSelectorOpNotIn: selection.NotIn,
	corev1.NodeSelectorOpExists: selection.Exists, corev1.NodeSelectorOpDoesNotExist: selection.DoesNotExist,
	corev1.NodeSelectorOpGt: selection.GreaterThan, corev1.NodeSelectorOpLt: selection.LessThan,
}

// unparseable returns the first term that the API accepts and nobody can
// match (rule N14 of the specification: a Gt or Lt with a text operand).
func (p *predicate) unparseable() (int, error) {
	for i, t := range p.terms {
		if t.err != nil {
			return i, t.err
		}
	}
	return -1, nil
}

func (p *predicate) tolerated(t corev1.Taint) bool {
	for _, tol := range p.tolerations {
		if tolerates(tol, t, p.comparison) {
			return true
		}
	}
	return false
}

// taintVerdict is what a set of taints means for a template.
type taintVerdict struct {
	run      bool // all tolerated
	stay     bool // no untolerated NoExecute
	intended bool // what is untolerated comes and goes by itself
}

func (p *predicate) judge(taints []corev1.Taint, keys taintKeys) taintVerdict {
	v := taintVerdict{true, true, true}
	for _, t := range taints {
		if !considered(t) || p.tolerated(t) {
			continue
		}
		v.run = false
		if t.Effect == corev1.TaintEffectNoExecute {
			v.stay = false
		}
		if !listed(keys.passing, t.Key) {
			v.intended = false
		}
	}
	return v
}
