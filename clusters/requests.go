package clusters

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// RequestsOf is what the pods of a template request of a node: where only a
// limit is given, that. What LimitRanges and a RuntimeClass add is not in it.
func RequestsOf(spec *corev1.PodSpec) corev1.ResourceList {
	out := aggregate(spec, func(c *corev1.Container) corev1.ResourceList { return orLimits(c.Resources) })
	if spec.Resources != nil {
		maps.Copy(out, podLevel(spec.Resources, out))
	}
	add(out, spec.Overhead)
	return out
}

// requestsOf follows PodRequests (k8s.io/component-helpers/resource) with
// UseStatusResources, as the scheduler calls it.
func requestsOf(pod *corev1.Pod) corev1.ResourceList {
	spec := &pod.Spec
	if !resized(&pod.Status) {
		return RequestsOf(spec)
	}
	status := map[string]*corev1.ContainerStatus{}
	for _, all := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range all {
			status[all[i].Name] = &all[i]
		}
	}
	asked := func(c *corev1.Container) corev1.ResourceList { return orLimits(c.Resources) }
	if infeasible(pod) {
		asked = func(*corev1.Container) corev1.ResourceList { return nil }
	}
	promised := func(c *corev1.Container) corev1.ResourceList {
		if s := status[c.Name]; s != nil && s.AllocatedResources != nil {
			return s.AllocatedResources
		}
		return asked(c)
	}
	has := func(c *corev1.Container) corev1.ResourceList {
		if s := status[c.Name]; s != nil && s.Resources != nil && s.Resources.Requests != nil {
			return s.Resources.Requests
		}
		return promised(c)
	}
	out := aggregate(spec, asked)
	atLeast(out, aggregate(spec, promised))
	atLeast(out, aggregate(spec, has))
	if spec.Resources != nil {
		whole := corev1.ResourceList{}
		if !infeasible(pod) {
			whole = podLevel(spec.Resources, out)
		}
		if len(spec.Resources.Requests) > 0 && pod.Status.Resources != nil {
			atLeast(whole, pod.Status.Resources.Requests)
			atLeast(whole, pod.Status.AllocatedResources)
		}
		maps.Copy(out, whole)
	}
	add(out, spec.Overhead)
	return out
}

// resized tells whether a status says of resources what the spec may not.
func resized(s *corev1.PodStatus) bool {
	if s.Resources != nil || s.AllocatedResources != nil {
		return true
	}
	for _, all := range [][]corev1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses} {
		for i := range all {
			if all[i].Resources != nil || all[i].AllocatedResources != nil {
				return true
			}
		}
	}
	return false
}

// infeasible tells that a pod's resize will not come.
func infeasible(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodResizePending {
			return c.Reason == corev1.PodReasonInfeasible
		}
	}
	return false
}

// orLimits are the requests that admission makes of a container's resources.
func orLimits(r corev1.ResourceRequirements) corev1.ResourceList {
	out := corev1.ResourceList{}
	add(out, r.Limits)
	maps.Copy(out, r.Requests)
	return out
}

// podLevel are the requests of a pod as a whole, which stand for those of its
// containers: defaultPodRequests (pkg/apis/core/v1).
func podLevel(r *corev1.ResourceRequirements, containers corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, q := range r.Limits {
		_, has := containers[name]
		if ofPods(name) && (!has || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)) {
			out[name] = q
		}
	}
	for name, q := range r.Requests {
		if ofPods(name) {
			out[name] = q
		}
	}
	return out
}

// ofPods tells which resources a pod can request as a whole.
func ofPods(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// aggregate is the most that a pod's containers request at any time: when all
// run, or while an init container runs beside the sidecars before it.
func aggregate(spec *corev1.PodSpec, of func(*corev1.Container) corev1.ResourceList) corev1.ResourceList {
	out, sidecars, starting := corev1.ResourceList{}, corev1.ResourceList{}, corev1.ResourceList{}
	for i := range spec.Containers {
		add(out, of(&spec.Containers[i]))
	}
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		requests := of(c)
		if sidecar(c) {
			add(out, requests)
			add(sidecars, requests)
			atLeast(starting, sidecars)
			continue
		}
		now := corev1.ResourceList{}
		add(now, requests)
		add(now, sidecars)
		atLeast(starting, now)
	}
	atLeast(out, starting)
	return out
}

func add(to, from corev1.ResourceList) {
	for name, q := range from {
		sum := to[name].DeepCopy()
		sum.Add(q)
		to[name] = sum
	}
}

func atLeast(to, from corev1.ResourceList) {
	for name, q := range from {
		if was, ok := to[name]; !ok || q.Cmp(was) > 0 {
			to[name] = q
		}
	}
}

// sidecar is an init container that stays.
func sidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}
