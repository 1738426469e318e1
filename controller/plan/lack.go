package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"rollcall.dev/rollcall/clusters"
)

// HostPort is the Resource of a Lack that is a port which another pod has.
const HostPort corev1.ResourceName = "hostPort"

// Lack is one thing of which a node has too little for a pod.
type Lack struct {
	Resource corev1.ResourceName // such as memory or nvidia.com/gpu; pods; or HostPort
	Needs    resource.Quantity
	Free     resource.Quantity // nothing, where the node has promised too much already
	Port     clusters.HostPort // that is taken
	Holder   string            // namespace/name of the pod that has it; of the namespace alone where the name is not known
	// Preempts is how many pods of lower priority would have to go, for all that
	// lacks together: then it is no refusal.
	Preempts int
}

// String is such as "needs 200Mi memory, 120Mi free".
func (l Lack) String() string {
	switch l.Resource {
	case HostPort:
		at := fmt.Sprintf("%d/%s", l.Port.Port, l.Port.Protocol)
		if l.Port.IP != "" {
			at += " of " + l.Port.IP
		}
		return fmt.Sprintf("needs host port %s, which %s has", at, cmp.Or(l.Holder, "another pod"))
	case corev1.ResourcePods:
		return fmt.Sprintf("needs room for %s more pod, %s free", l.Needs.String(), l.Free.String())
	}
	return fmt.Sprintf("needs %s %s, %s free", l.Needs.String(), l.Resource, rounded(l.Free))
}

// rounded leaves the odd bytes of memory out: what is free is rounded down.
func rounded(q resource.Quantity) string {
	const mebi = 1 << 20
	if v := q.Value(); q.Format == resource.BinarySI && v > mebi {
		return resource.NewQuantity(v-v%mebi, resource.BinarySI).String()
	}
	return q.String()
}

// Text tells in one line what comes of lacks, and whether the pod is refused;
// it is empty where nothing lacks. All of it is an estimate.
func Text(lacks []Lack) (text string, refused bool) {
	if len(lacks) == 0 {
		return "", false
	}
	var all []string
	for _, l := range lacks {
		all = append(all, l.String())
	}
	why := strings.Join(all, "; ")
	switch n := lacks[0].Preempts; n {
	case 0:
		return "would stay pending: " + why, true
	case 1:
		return "would preempt 1 pod of lower priority: " + why, false
	default:
		return fmt.Sprintf("would preempt %d pods of lower priority: %s", n, why), false
	}
}

// lacks are in the order of the names: pods first, ports last.
func (r *room) lacks(want Pod, on *load) []Lack {
	var out []Lack
	if r.pods < 1 {
		out = append(out, Lack{Resource: corev1.ResourcePods, Needs: *resource.NewQuantity(1, resource.DecimalSI), Free: *resource.NewQuantity(0, resource.DecimalSI)})
	}
	for i, name := range r.names {
		if r.needs[i] > r.free[i] {
			out = append(out, Lack{Resource: name, Needs: want.Requests[name].DeepCopy(), Free: quantity(name, max(0, r.free[i]))})
		}
	}
	for _, p := range want.HostPorts {
		if holder := holderOf(p, want, on); holder != nil {
			out = append(out, Lack{Resource: HostPort, Port: p, Holder: nameOf(holder)})
		}
	}
	return out
}

// holderOf is the pod that has a port, the first by its name where several do.
func holderOf(p clusters.HostPort, want Pod, on *load) *clusters.Claim {
	var first *clusters.Claim
	for i := range on.claims {
		c := &on.claims[i]
		if want.Replaces != "" && c.UID == want.Replaces || !slices.ContainsFunc(c.HostPorts, p.Conflicts) {
			continue
		}
		if first == nil || nameOf(c) < nameOf(first) {
			first = c
		}
	}
	return first
}

func nameOf(c *clusters.Claim) string {
	if c.Name == "" && c.Namespace != "" {
		return "a pod in namespace " + c.Namespace
	}
	return strings.TrimPrefix(c.Namespace+"/"+c.Name, "/")
}

// quantity writes an amount as one is used to read it.
func quantity(name corev1.ResourceName, v int64) resource.Quantity {
	switch {
	case name == corev1.ResourceCPU:
		return *resource.NewMilliQuantity(v, resource.DecimalSI)
	case name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
		return *resource.NewQuantity(v, resource.BinarySI)
	}
	return *resource.NewQuantity(v, resource.DecimalSI)
}
