package coverage

import (
	"fmt"

	"rollcall.dev/rollcall/clusters"
)

// AdmissionDrift is a pod that admission changed so that it cannot fit.
const AdmissionDrift Code = "AdmissionDrift"

// admissionDrift tells whether a pod that has no node yet, or that failed, can
// never run where it is meant to because admission changed it: its own
// placement refuses the node, and the template's does not.
func (s *set) admissionDrift(p *clusters.Pod) (Reason, bool) {
	at, known := s.w.byName[p.Node]
	if p.Placement == nil || !known {
		return Reason{}, false
	}
	n, pod := &s.w.nodes[at], compile(*p.Placement, s.w.options.ComparisonOperators)
	refusal := s.w.refuses(pod, n)
	if refusal.field == "" {
		return Reason{}, false
	}
	template, known := s.templateOf(p)
	if !known || s.w.refuses(compile(template, s.w.options.ComparisonOperators), n).field != "" {
		return Reason{}, false
	}
	what, key := s.admitted(refusal, pod, n)
	return because(AdmissionDrift, fmt.Sprintf("pod %s can never run on node %s: %s", p.Name, n.Name, what), Cause{"refused", s.key() + " admission " + key}), true
}

// templateOf is what a pod was made of: its revision's template, else the live
// one. It is not known where the revision is not and the pod says that the
// template was another one.
func (s *set) templateOf(p *clusters.Pod) (template clusters.Placement, known bool) {
	for _, r := range s.w.revisions[string(s.ds.UID)] {
		if r.Hash != "" && r.Hash == p.Labels[hashLabel] {
			return r.Placement, true
		}
	}
	return clusters.PlacementOf(&s.ds.Spec.Template.Spec), p.Labels[generationLabel] == "" || s.sameGeneration(p)
}

// admitted words what admission did, and names it without the pod.
func (s *set) admitted(why refusal, pod *predicate, n *clusters.Node) (what, key string) {
	switch why.field {
	case "nodeSelector":
		for _, sel := range pod.selector {
			if have, ok := n.Labels[sel.key]; !ok || have != sel.value {
				key = "nodeSelector " + sel.key + "=" + sel.value
				return fmt.Sprintf("admission gave it the nodeSelector %s=%s, which the template lacks, and the node has %s; that comes from the namespace (PodNodeSelector, scheduler.alpha.kubernetes.io/node-selector)%s", sel.key, sel.value, labelText(sel.key, have, ok), s.orRuntimeClass()), key
			}
		}
	case "tolerations":
		taint := why.key + "=" + why.value + ":" + why.effect
		return fmt.Sprintf("admission took its toleration of the taint %s, which the template has; that comes from the namespace (PodTolerationRestriction) or a webhook", taint), "tolerations " + taint
	}
	return fmt.Sprintf("admission changed its %s, which the template has otherwise: %s; that comes from a webhook or a policy", why.field, s.affinityCheck(pod, n).Message), why.field
}

func (s *set) orRuntimeClass() string {
	if class := s.ds.Spec.Template.Spec.RuntimeClassName; class != nil {
		return " or from RuntimeClass " + *class
	}
	return ""
}
