package coverage

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// The codes of templates that are a risk in this cluster.
const (
	BlanketToleration    Code = "BlanketToleration"
	MixedOS              Code = "MixedOS"
	HostPortSurge        Code = "HostPortSurge"
	NotReadyNotTolerated Code = "NotReadyNotTolerated"
	TolerationSeconds    Code = "TolerationSeconds"
	NoPriorityClass      Code = "NoPriorityClass"
	LowPriority          Code = "LowPriority"
	RuntimeClassUnseen   Code = "RuntimeClassUnseen"
)

// lints are the risks of the wanted template. What cannot matter in this
// cluster is none: a template is judged with the nodes and pods that are there.
func (s *set) lints() []Reason {
	if !slices.ContainsFunc(s.flags, func(f flags) bool { return f.has(accepted) }) {
		return nil
	}
	var out []Reason
	for _, lint := range []func(*appsv1.DaemonSetSpec) (Reason, bool){
		s.blanketToleration, s.mixedOS, s.hostPortSurge, s.notReadyNotTolerated, s.tolerationSeconds, s.noPriorityClass, s.runtimeClassUnseen,
	} {
		if r, ok := lint(&s.subject.wanted().Spec); ok {
			out = append(out, r)
		}
	}
	return out
}

// blanketToleration: a toleration without a key makes virtual nodes wanted,
// where no daemon pod can run. One that is wanted without it is not its fault.
func (s *set) blanketToleration(spec *appsv1.DaemonSetSpec) (Reason, bool) {
	blanket := func(t corev1.Toleration) bool { return t.Key == "" && t.Operator == corev1.TolerationOpExists }
	if !slices.ContainsFunc(spec.Template.Spec.Tolerations, blanket) {
		return Reason{}, false
	}
	without := *s.wantP
	without.tolerations = slices.DeleteFunc(slices.Clone(s.wantP.tolerations), blanket)
	names := s.nodesWhere(func(i int) bool {
		if s.w.facts[i]&virtual == 0 || !s.flags[i].has(accepted) || s.flags[i].has(intended) {
			return false
		}
		taints := s.w.nodes[i].Taints
		return s.wantP.judge(taints, s.w.keys).run && !without.judge(taints, s.w.keys).run
	})
	if len(names) == 0 {
		return Reason{}, false
	}
	return because(BlanketToleration, fmt.Sprintf("a toleration without a key tolerates every taint, so that virtual nodes are wanted and pods wait there for ever: %s; leave them out by node affinity, such as type NotIn virtual-kubelet or eks.amazonaws.com/compute-type NotIn fargate", first(names, 3)), s.template("tolerations")), true
}

// mixedOS: one image seldom runs on both systems, and upstream's controller
// looks at neither the image nor spec.os.
func (s *set) mixedOS(spec *appsv1.DaemonSetSpec) (Reason, bool) {
	if _, pinned := spec.Template.Spec.NodeSelector[corev1.LabelOSStable]; pinned {
		return Reason{}, false
	}
	on := func(os string) []string {
		return s.nodesWhere(func(i int) bool {
			return s.flags[i].has(intended) && s.w.nodes[i].Labels[corev1.LabelOSStable] == os
		})
	}
	windows := on("windows")
	if len(windows) == 0 || len(on("linux")) == 0 {
		return Reason{}, false
	}
	return because(MixedOS, fmt.Sprintf("it is meant for Linux and Windows nodes alike, Windows ones are %s; select one with nodeSelector kubernetes.io/os", first(windows, 3)), s.template("nodeSelector")), true
}

// hostPortSurge: two pods of a node cannot have one port, so that the new one
// waits for the old one, and the other way round.
func (s *set) hostPortSurge(spec *appsv1.DaemonSetSpec) (Reason, bool) {
	ru := spec.UpdateStrategy.RollingUpdate
	if spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType || ru == nil || scaled(ru.MaxSurge, 100, 0) == 0 {
		return Reason{}, false
	}
	for _, c := range slices.Concat(spec.Template.Spec.Containers, sidecars(&spec.Template.Spec)) {
		for _, p := range c.Ports {
			if port := p.HostPort; port != 0 || spec.Template.Spec.HostNetwork {
				if port == 0 {
					port = p.ContainerPort
				}
				return because(HostPortSurge, fmt.Sprintf("maxSurge is %s and container %s holds port %d of the node: the new pod waits for the old one's port, and the old one for the new pod; use maxUnavailable instead", ru.MaxSurge, c.Name, port), s.template("maxSurge")), true
			}
		}
	}
	return Reason{}, false
}

// sidecars are the init containers that go on beside the others, and whose
// ports count (GetHostPorts in pkg/scheduler/util/utils.go).
func sidecars(pod *corev1.PodSpec) []corev1.Container {
	return slices.DeleteFunc(slices.Clone(pod.InitContainers), func(c corev1.Container) bool {
		return c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways
	})
}

// notReadyNotTolerated: a node becomes ready only once its network plug-in
// runs, which must therefore run before.
func (s *set) notReadyNotTolerated(spec *appsv1.DaemonSetSpec) (Reason, bool) {
	pod := &spec.Template.Spec
	cni := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool {
		return v.HostPath != nil && (below(v.HostPath.Path, "/etc/cni") || below(v.HostPath.Path, "/opt/cni"))
	})
	if cni < 0 || !pod.HostNetwork || s.wantP.tolerated(corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}) {
		return Reason{}, false
	}
	return because(NotReadyNotTolerated, fmt.Sprintf("it mounts %s and does not tolerate %s:NoSchedule: a new node is not ready without its network plug-in, which then cannot start; tolerate it with operator Exists", pod.Volumes[cni].HostPath.Path, corev1.TaintNodeNotReady), s.template("tolerations")), true
}

func below(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder+"/")
}

// tolerationSeconds: the pod is evicted after the time, and the controller,
// which does not read it (rule N23), creates it again at once. Those that the
// automatic tolerations replace are not in the list, and of several that match
// a taint the first one counts (rule T6).
func (s *set) tolerationSeconds(*appsv1.DaemonSetSpec) (Reason, bool) {
	all := s.wantP.tolerations
	at := 0
	for at < len(all) && (all[at].TolerationSeconds == nil ||
		slices.ContainsFunc(all[:at], func(t corev1.Toleration) bool { return foreverCovers(t, all[at]) })) {
		at++
	}
	if at == len(all) {
		return Reason{}, false
	}
	t := all[at]
	return because(TolerationSeconds, fmt.Sprintf("%s has tolerationSeconds %d: on a node with such a taint the pod is evicted after that time and created again at once, over and over; leave tolerationSeconds out", tolerationText(t, false), *t.TolerationSeconds), s.template("tolerations")), true
}

// foreverCovers tells whether a toleration without a limit matches every
// NoExecute taint that the other one matches.
func foreverCovers(t, other corev1.Toleration) bool {
	if t.TolerationSeconds != nil || t.Effect != "" && t.Effect != corev1.TaintEffectNoExecute || t.Key != "" && t.Key != other.Key {
		return false
	}
	equal := func(o corev1.TolerationOperator) bool { return o == "" || o == corev1.TolerationOpEqual }
	return t.Operator == corev1.TolerationOpExists || equal(t.Operator) && equal(other.Operator) && t.Value == other.Value
}

// noPriorityClass: without a priority an agent gives way to whatever came
// first. Where a pod already does not fit, that is more than a risk.
func (s *set) noPriorityClass(spec *appsv1.DaemonSetSpec) (Reason, bool) {
	pod := &spec.Template.Spec
	if pod.PriorityClassName != "" || pod.Priority != nil {
		return Reason{}, false
	}
	const remedy = "; give it a priorityClassName such as system-node-critical"
	for _, i := range s.sorted {
		if p := &s.w.live.Pods[i]; !p.Bound && (strings.Contains(p.Unschedulable, "Insufficient") || strings.Contains(p.Unschedulable, "Too many pods")) {
			return because(LowPriority, "it has no priority class, and a node is full of pods that it cannot displace: "+p.Node+remedy, s.template("priorityClassName")), true
		}
	}
	at := slices.IndexFunc(s.agents, func(a int) bool { return s.w.agents[a].Severity == "error" })
	if at < 0 {
		return Reason{}, false
	}
	return because(NoPriorityClass, fmt.Sprintf("agent %q must run, and %s has no priority class: on a full node it waits", s.w.agents[s.agents[at]].Name, s.key())+remedy, s.template("priorityClassName")), true
}

// runtimeClassUnseen: the scheduling part of a RuntimeClass is added to the
// pods, and the controller decides without it. A pod that lacks a resource, or
// that is known to be changed, has a reason of its own.
func (s *set) runtimeClassUnseen(spec *appsv1.DaemonSetSpec) (Reason, bool) {
	class := spec.Template.Spec.RuntimeClassName
	if class == nil {
		return Reason{}, false
	}
	for i := range s.w.nodes {
		for _, p := range s.podsOn(i) {
			pod := &s.w.live.Pods[p]
			if !s.flags[i].has(shouldRun) || pod.Bound || pod.Unschedulable == "" || lacking(pod.Unschedulable) != "placement" {
				continue
			}
			if _, drifted := s.admissionDrift(pod); !drifted {
				return because(RuntimeClassUnseen, fmt.Sprintf("RuntimeClass %s may have a nodeSelector or tolerations, which the DaemonSet controller does not see: a pod waits on %s; repeat them in the template", *class, pod.Node), s.template("runtimeClassName")), true
			}
		}
	}
	return Reason{}, false
}

func (s *set) nodesWhere(is func(int) bool) []string {
	var out []string
	for i := range s.w.nodes {
		if is(i) {
			out = append(out, s.w.nodes[i].Name)
		}
	}
	return out
}
