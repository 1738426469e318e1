package coverage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"rollcall.dev/rollcall/clusters"
)

// strays are pods that have to do with the DaemonSet and belong to no node of
// it: bound to a node that is gone, without an owner, or another owner's.
func (s *set) strays() []Stray {
	var out []Stray
	for _, i := range s.gone {
		p := &s.w.live.Pods[i]
		message := fmt.Sprintf("node %s does not exist", p.Node)
		if p.Node == "" {
			message = "the pod names no node"
		}
		out = append(out, Stray{p, because(NodeGone, message, s.pods(NodeGone))})
	}
	if s.selector.Empty() {
		return out
	}
	for _, i := range s.freed {
		out = append(out, Stray{&s.w.live.Pods[i], because(OrphanPod, "owned by the DaemonSet, but its labels no longer match the selector: the controller will release it", s.pods(OrphanPod))})
	}
	for _, i := range s.w.loose[s.ds.Namespace] {
		p := &s.w.live.Pods[i]
		if !s.w.podFacts[i].has(visible) || !s.selector.Matches(labels.Set(p.Labels)) {
			continue
		}
		out = append(out, s.lookalike(p))
	}
	slices.SortFunc(out, func(a, b Stray) int {
		return cmp.Or(cmp.Compare(a.Reason.Code, b.Reason.Code), strings.Compare(a.Pod.Name, b.Pod.Name))
	})
	return out
}

// lookalike is a pod that the selector matches and no DaemonSet that was read
// owns (rules P10 to P12).
func (s *set) lookalike(p *clusters.Pod) Stray {
	switch deleting := !p.Deleting.IsZero(); {
	case p.Owner.UID == "" && deleting:
		return Stray{p, because(OrphanPod, "matches the selector, has no owner and is being deleted until "+stamp(p.Deleting), s.pods(OrphanPod))}
	case p.Owner.UID == "" && s.subject.Live == nil:
		return Stray{p, because(OrphanPod, "matches the selector and has no owner: the DaemonSet would adopt it", s.pods(OrphanPod))}
	case p.Owner.UID == "":
		return Stray{p, because(OrphanPod, "matches the selector and has no owner: the controller will adopt it", s.pods(OrphanPod))}
	}
	message := fmt.Sprintf("matches the selector and belongs to %s %s (uid %s)", p.Owner.Kind, p.Owner.Name, p.Owner.UID)
	if !p.Deleting.IsZero() {
		message += ", being deleted until " + stamp(p.Deleting)
	}
	return Stray{p, because(ForeignPod, message, s.pods(ForeignPod))}
}
