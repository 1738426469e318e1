package coverage

import (
	"fmt"
	"maps"
	"slices"

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
	n := &s.w.nodes[at]
	template := s.templateOf(p)
	ofPod := s.w.refuses(compile(*p.Placement, s.w.options.ComparisonOperators), n)
	if ofPod.field == "" || s.w.refuses(compile(template, s.w.options.ComparisonOperators), n).field != "" {
		return Reason{}, false
	}
	what, key := s.admitted(ofPod, p, n)
	return because(AdmissionDrift, fmt.Sprintf("pod %s can never run on node %s: %s", p.Name, n.Name, what), Cause{"refused", s.key() + " admission " + key}), true
}

// templateOf is what a pod was made of: its revision's template, else the live
// one.
func (s *set) templateOf(p *clusters.Pod) clusters.Placement {
	for _, r := range s.w.revisions[string(s.ds.UID)] {
		if r.Hash != "" && r.Hash == p.Labels[hashLabel] {
			return r.Placement
		}
	}
	return clusters.PlacementOf(&s.ds.Spec.Template.Spec)
}

// admitted words what admission did, and names it without the pod.
func (s *set) admitted(why refusal, p *clusters.Pod, n *clusters.Node) (what, key string) {
	switch why.field {
	case "nodeSelector":
		for _, k := range slices.Sorted(maps.Keys(p.Placement.NodeSelector)) {
			want := p.Placement.NodeSelector[k]
			if have, ok := n.Labels[k]; !ok || have != want {
				key = "nodeSelector " + k + "=" + want
				return fmt.Sprintf("admission gave it the nodeSelector %s=%s, which the template lacks, and the node has %s; that comes from the namespace (PodNodeSelector, scheduler.alpha.kubernetes.io/node-selector)%s", k, want, labelText(k, have, ok), s.orRuntimeClass()), key
			}
		}
	case "tolerations":
		taint := why.key + "=" + why.value + ":" + why.effect
		return fmt.Sprintf("admission took its toleration of the taint %s, which the template has; that comes from the namespace (PodTolerationRestriction) or a webhook", taint), "tolerations " + taint
	}
	return fmt.Sprintf("admission changed its %s, which the template has otherwise; that comes from a webhook or a policy%s", why.field, s.orRuntimeClass()), why.field
}

func (s *set) orRuntimeClass() string {
	if class := s.ds.Spec.Template.Spec.RuntimeClassName; class != nil {
		return " or from RuntimeClass " + *class
	}
	return ""
}
