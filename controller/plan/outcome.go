package plan

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// settle says what an action comes to, now that it is known whose share becomes
// ours: whether the pod template changes, and what of the live object stays.
func (a *Action) settle() {
	var left []string
	for _, f := range a.Fields {
		switch {
		case !a.applies(f):
			left = append(left, f.String())
		case isDaemonSet(a.Object) && strings.HasPrefix(f.Path, "spec.template"):
			a.restarts = true
		}
	}
	if len(left) > 0 && a.Note == "" {
		a.Note = fmt.Sprintf("what others added stays: %s", strings.Join(left, "; "))
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
	for _, f := range a.Fields {
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
