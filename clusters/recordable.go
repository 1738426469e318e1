package clusters

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Recordable is what a snapshot keeps of a DaemonSet: the fields that say where
// its pods go and what they run, never environment, arguments, commands, probes
// or annotations of others. What is kept is listed, so that a field of a later
// Kubernetes is left out.
func Recordable(d *appsv1.DaemonSet) appsv1.DaemonSet {
	out := appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{
		Selector: d.Spec.Selector, UpdateStrategy: d.Spec.UpdateStrategy, MinReadySeconds: d.Spec.MinReadySeconds, RevisionHistoryLimit: d.Spec.RevisionHistoryLimit,
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: d.Spec.Template.Labels}, Spec: recordableSpec(&d.Spec.Template.Spec)},
	}, Status: d.Status}
	out.Namespace, out.Name, out.UID, out.Labels, out.Generation = d.Namespace, d.Name, d.UID, d.Labels, d.Generation
	out.CreationTimestamp, out.DeletionTimestamp, out.OwnerReferences = d.CreationTimestamp, d.DeletionTimestamp, d.OwnerReferences
	out.ManagedFields = d.ManagedFields // names of fields and of their writers, no values
	for key, value := range d.Annotations {
		if key == appsv1.DeprecatedTemplateGeneration || strings.HasPrefix(key, "rollcall.dev/") {
			if out.Annotations == nil {
				out.Annotations = map[string]string{}
			}
			out.Annotations[key] = value
		}
	}
	return out
}

func recordableSpec(s *corev1.PodSpec) corev1.PodSpec {
	return corev1.PodSpec{
		InitContainers: recordableContainers(s.InitContainers), Containers: recordableContainers(s.Containers), NodeName: s.NodeName, NodeSelector: s.NodeSelector,
		Affinity: s.Affinity, Tolerations: s.Tolerations, HostNetwork: s.HostNetwork, PriorityClassName: s.PriorityClassName, Priority: s.Priority,
		PreemptionPolicy: s.PreemptionPolicy, Resources: s.Resources, Overhead: s.Overhead,
		RuntimeClassName: s.RuntimeClassName, ServiceAccountName: s.ServiceAccountName, SchedulerName: s.SchedulerName, RestartPolicy: s.RestartPolicy,
		TerminationGracePeriodSeconds: s.TerminationGracePeriodSeconds, OS: s.OS,
	}
}

func recordableContainers(all []corev1.Container) []corev1.Container {
	var out []corev1.Container
	for _, c := range all {
		out = append(out, corev1.Container{Name: c.Name, Image: c.Image, Ports: c.Ports, Resources: c.Resources, RestartPolicy: c.RestartPolicy})
	}
	return out
}
