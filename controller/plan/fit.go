package plan

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"rollcall.dev/rollcall/clusters"
)

// Pod is what a daemon pod that is to come asks of its node.
type Pod struct {
	Requests  corev1.ResourceList
	HostPorts []clusters.HostPort
	Priority  int32
	Never     bool   // its preemptionPolicy: it does not push others out
	Replaces  string // UID of the pod that goes before it comes; empty under maxSurge
}

// critical are the PriorityClasses that every cluster has.
var critical = map[string]int32{"system-cluster-critical": 2000000000, "system-node-critical": 2000001000}

// PodOf is what a template's pod asks for. Its priority is its class's; a class
// that is not known gives none.
func PodOf(spec *corev1.PodSpec, priorities map[string]clusters.Priority, replaces string) Pod {
	out := Pod{Requests: clusters.RequestsOf(spec), HostPorts: clusters.HostPortsOf(spec), Replaces: replaces}
	class, ok := priorities[spec.PriorityClassName]
	if !ok {
		class.Value = critical[spec.PriorityClassName]
	}
	out.Priority, out.Never = class.Value, class.Never
	if spec.PreemptionPolicy != nil {
		out.Never = *spec.PreemptionPolicy == corev1.PreemptNever
	}
	return out
}

// Loads are the claims of a cluster's pods by their nodes.
type Loads struct{ nodes map[string]*load }

// load is what is claimed of one node.
type load struct {
	claims []clusters.Claim
	used   map[corev1.ResourceName]int64
}

// NewLoads sorts claims by their nodes. It reads them only.
func NewLoads(claims []clusters.Claim) *Loads {
	l := &Loads{nodes: map[string]*load{}}
	for i := range claims {
		l.on(claims[i].Node).add(&claims[i])
	}
	return l
}

func (l *Loads) on(node string) *load {
	out := l.nodes[node]
	if out == nil {
		out = &load{used: map[corev1.ResourceName]int64{}}
		l.nodes[node] = out
	}
	return out
}

func (l *load) add(c *clusters.Claim) {
	l.claims = append(l.claims, *c)
	for name, q := range c.Requests {
		l.used[name] += amount(name, q)
	}
}

// Place takes a pod for one that has come: what is asked about the node next
// counts it, and no longer the pod that it replaces.
func (l *Loads) Place(want Pod, node string) {
	was := l.nodes[node]
	delete(l.nodes, node)
	now := l.on(node)
	if was != nil {
		for i := range was.claims {
			if c := &was.claims[i]; want.Replaces == "" || c.UID != want.Replaces {
				now.add(c)
			}
		}
	}
	now.add(&clusters.Claim{Node: node, Priority: want.Priority, Requests: want.Requests, HostPorts: want.HostPorts})
}

// Fit tells what would keep a pod from a node. Where nothing is told, it fits by
// estimate; where Preempts is set, it does at the cost of others.
func (l *Loads) Fit(want Pod, node *clusters.Node) []Lack {
	on := l.nodes[node.Name]
	if on == nil {
		on = &load{}
	}
	return fit(want, node, on)
}

// Fit tells what would keep a pod from a node that has these claims, as
// Loads.Fit does.
func Fit(want Pod, node *clusters.Node, claims []clusters.Claim) []Lack {
	on := &load{used: map[corev1.ResourceName]int64{}}
	for i := range claims {
		on.add(&claims[i])
	}
	return fit(want, node, on)
}

func fit(want Pod, node *clusters.Node, on *load) []Lack {
	r := roomOf(want, node, on)
	if r.fits() {
		return nil
	}
	lacks := r.lacks(want, on)
	if n := r.victims(want, on); n > 0 {
		for i := range lacks {
			lacks[i].Preempts = n
		}
	}
	return lacks
}

// amount is a quantity as the scheduler counts it: CPU by the thousandth, else
// whole ones, both rounded up.
func amount(name corev1.ResourceName, q resource.Quantity) int64 {
	if name == corev1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}

// room is what is left of a node for one pod.
type room struct {
	names   []corev1.ResourceName // that the pod requests, sorted
	needs   []int64               // of each
	free    []int64               // of each; negative on a node that has promised too much
	pods    int64                 // how many more there may be
	blocked int                   // claims that have a host port of the pod's
	ports   []clusters.HostPort   // of the pod
}

func roomOf(want Pod, node *clusters.Node, on *load) *room {
	r := &room{pods: amount(corev1.ResourcePods, node.Allocatable[corev1.ResourcePods]) - int64(len(on.claims)), ports: want.HostPorts}
	for name, q := range want.Requests {
		if amount(name, q) > 0 {
			r.names = append(r.names, name)
		}
	}
	slices.Sort(r.names)
	for _, name := range r.names {
		r.needs = append(r.needs, amount(name, want.Requests[name]))
		r.free = append(r.free, amount(name, node.Allocatable[name])-on.used[name])
	}
	for i := range on.claims {
		if r.conflicts(&on.claims[i]) {
			r.blocked++
		}
	}
	for i := range on.claims {
		if c := &on.claims[i]; want.Replaces != "" && c.UID == want.Replaces {
			r.remove(c)
		}
	}
	return r
}

func (r *room) fits() bool {
	for i := range r.needs {
		if r.needs[i] > r.free[i] {
			return false
		}
	}
	return r.pods > 0 && r.blocked == 0
}

// conflicts tells whether a claim has a host port of the pod's.
func (r *room) conflicts(c *clusters.Claim) bool {
	return slices.ContainsFunc(r.ports, func(p clusters.HostPort) bool { return slices.ContainsFunc(c.HostPorts, p.Conflicts) })
}

func (r *room) remove(c *clusters.Claim) { r.shift(c, 1) }

func (r *room) restore(c *clusters.Claim) { r.shift(c, -1) }

func (r *room) shift(c *clusters.Claim, by int64) {
	for i, name := range r.names {
		if q, ok := c.Requests[name]; ok {
			r.free[i] += by * amount(name, q)
		}
	}
	r.pods += by
	if r.conflicts(c) {
		r.blocked -= int(by)
	}
}

// victims follows SelectVictimsOnNode: all pods of lower priority go, and if
// that makes room, as many as may stay come back, the most important ones
// first. It is 0 where preemption does not help.
func (r *room) victims(want Pod, on *load) int {
	if want.Never {
		return 0
	}
	var lower []*clusters.Claim
	for i := range on.claims {
		if c := &on.claims[i]; c.Priority < want.Priority && (want.Replaces == "" || c.UID != want.Replaces) {
			lower = append(lower, c)
			r.remove(c)
		}
	}
	if !r.fits() {
		return 0
	}
	slices.SortStableFunc(lower, func(a, b *clusters.Claim) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	gone := 0
	for _, c := range lower {
		if r.restore(c); !r.fits() {
			r.remove(c)
			gone++
		}
	}
	return gone
}
