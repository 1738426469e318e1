package clusters

import (
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
)

// Claim is what a pod takes of the node that it is bound to, until it has
// succeeded, failed or is gone: also while it is being deleted.
type Claim struct {
	Namespace string              `json:"namespace,omitzero"`
	Name      string              `json:"name,omitzero"`
	UID       string              `json:"uid,omitzero"`
	Owner     string              `json:"owner,omitzero"` // UID of its controller
	Node      string              `json:"node,omitzero"`
	Priority  int32               `json:"priority,omitzero"`
	Requests  corev1.ResourceList `json:"requests,omitzero"` // as the scheduler counts them
	HostPorts []HostPort          `json:"hostPorts,omitzero"`
}

// HostPort is a port of a node that a pod has for itself.
type HostPort struct {
	IP       string          `json:"ip,omitzero"` // empty for all
	Protocol corev1.Protocol `json:"protocol,omitzero"`
	Port     int32           `json:"port,omitzero"`
}

// Conflicts follows HostPortInfo.CheckConflict (k8s.io/kube-scheduler): a port
// of all addresses conflicts with that of any.
func (p HostPort) Conflicts(o HostPort) bool {
	return p.Port == o.Port && p.Protocol == o.Protocol && (p.IP == "" || o.IP == "" || p.IP == o.IP)
}

// Priority is what a PriorityClass gives to pods.
type Priority struct {
	Value int32 `json:"value,omitzero"`
	Never bool  `json:"never,omitzero"` // preemptionPolicy: such pods do not push others out
}

// Terminal tells whether a pod has ended and so claims nothing any more.
func Terminal(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// ClaimOf is what a pod claims. A pod that is being resized claims the most of
// what it asks for, what it was promised and what it has.
func ClaimOf(pod *corev1.Pod) Claim {
	out := Claim{
		Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID), Owner: ownerOf(pod.OwnerReferences).UID,
		Node: pod.Spec.NodeName, Requests: requestsOf(pod), HostPorts: HostPortsOf(&pod.Spec),
	}
	if pod.Spec.Priority != nil {
		out.Priority = *pod.Spec.Priority
	}
	return out
}

// PriorityOf is what a PriorityClass gives.
func PriorityOf(c *schedulingv1.PriorityClass) Priority {
	return Priority{Value: c.Value, Never: c.PreemptionPolicy != nil && *c.PreemptionPolicy == corev1.PreemptNever}
}

// AddPriority notes a PriorityClass by its name, and the global default under
// the empty one, as of several the API server does: the one of least value.
func AddPriority(all map[string]Priority, c *schedulingv1.PriorityClass) {
	p := PriorityOf(c)
	all[c.Name] = p
	if was, ok := all[""]; c.GlobalDefault && (!ok || p.Value < was.Value) {
		all[""] = p
	}
}

// HostPortsOf are the host ports of a pod or of a template. With hostNetwork
// every port of a container is one, as admission makes it.
func HostPortsOf(spec *corev1.PodSpec) []HostPort {
	var out []HostPort
	add := func(c *corev1.Container) {
		for _, p := range c.Ports {
			port := HostPort{IP: p.HostIP, Protocol: p.Protocol, Port: p.HostPort}
			if port.Port == 0 && spec.HostNetwork {
				port.Port = p.ContainerPort
			}
			if port.IP == "0.0.0.0" {
				port.IP = ""
			}
			if port.Protocol == "" {
				port.Protocol = corev1.ProtocolTCP
			}
			if port.Port > 0 {
				out = append(out, port)
			}
		}
	}
	for i := range spec.InitContainers {
		if c := &spec.InitContainers[i]; sidecar(c) {
			add(c)
		}
	}
	for i := range spec.Containers {
		add(&spec.Containers[i])
	}
	return out
}
