package plan

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"rollcall.dev/rollcall/controller/drift"
)

// settle says what an action comes to, now that it is known whose share becomes
// ours: whether the pod template changes, and what of the live object stays.
func (a *Action) settle() {
	var left, set []string
	template := func(f drift.Field) bool {
		return isDaemonSet(a.Object) && strings.HasPrefix(f.Path, "spec.template")
	}
	for _, f := range a.Fields {
		if !a.applies(f) {
			left = append(left, f.String())
			continue
		}
		a.restarts = a.restarts || template(f)
	}
	for _, f := range a.ignored {
		if a.applies(f) {
			set = append(set, f.String())
			a.restarts = a.restarts || template(f)
		}
	}
	if len(left) > 0 {
		a.Note = "what others added stays: " + strings.Join(left, "; ")
	}
	if len(set) > 0 {
		a.Note = strings.TrimPrefix(a.Note+"; what is ignored as drift is applied with the rest: "+strings.Join(set, "; "), "; ")
	}
}

// outcome is what an apply makes of a DaemonSet, as far as it decides where pods
// go: Git's, with what others added to the live one and the apply leaves there.
func (a *Action) outcome(git, live *appsv1.DaemonSet) *appsv1.DaemonSet {
	if git == nil || live == nil || a.Operation != Configure {
		return git
	}
	out := git.DeepCopy()
	to, from := &out.Spec.Template.Spec, &live.Spec.Template.Spec
	for _, f := range slices.Concat(a.Fields, a.ignored) {
		if !f.Placement || a.applies(f) {
			continue
		}
		switch at := f.Pointer()[3:]; at[0] {
		case "nodeName":
			to.NodeName = from.NodeName
		case "hostNetwork":
			to.HostNetwork = from.HostNetwork
		case "tolerations":
			to.Tolerations = from.Tolerations
		case "nodeSelector":
			keep(to, from, at[len(at)-1])
		case "affinity":
			to.Affinity = withNodes(to.Affinity, from.Affinity)
		}
	}
	return out
}

func keep(to, from *corev1.PodSpec, key string) {
	if to.NodeSelector == nil {
		to.NodeSelector = map[string]string{}
	}
	to.NodeSelector[key] = from.NodeSelector[key]
}

// withNodes is an affinity with what another one requires of nodes, where it
// requires nothing itself.
func withNodes(to, from *corev1.Affinity) *corev1.Affinity {
	if from == nil || from.NodeAffinity == nil {
		return to
	}
	if to == nil {
		to = &corev1.Affinity{}
	}
	if to.NodeAffinity == nil {
		to.NodeAffinity = &corev1.NodeAffinity{}
	}
	if to.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		to.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = from.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return to
}
