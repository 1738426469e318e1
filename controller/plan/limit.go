package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/intstr"

	"rollcall.dev/rollcall/clusters"
)

// Limit holds deletions that are more than a policy lets go unseen: of
// DaemonSets always, of others above maxDeletes in a cluster or over the whole
// fleet, until the commit is approved for the cluster. Approval also lifts what
// was held because an overlay moved or a cluster was renamed.
func Limit(fleet clusters.Policy, inputs []Input, all []Cluster, commit string, approved func(cluster string) bool) {
	deletes, managed := 0, 0
	for i := range all {
		n, of := limitCluster(&inputs[i], &all[i], commit, approved(all[i].Name))
		deletes, managed = deletes+n, managed+of
	}
	most := atMost(fleet.MaxDeletes, managed)
	if deletes <= most {
		return
	}
	for i := range all {
		if approved(all[i].Name) {
			continue
		}
		for k := range all[i].Actions {
			if a := &all[i].Actions[k]; a.Operation == Prune && !a.Held() {
				a.add("TooManyDeletes", "%d objects of the fleet's %d would be deleted at once, policy.maxDeletes of the fleet is %q, which is %d: look at them, then approve commit %s for the clusters", deletes, managed, fleet.MaxDeletes, most, commit)
			}
		}
	}
}

// limitCluster limits one cluster, and counts what is deleted there without
// approval, of how many.
func limitCluster(in *Input, c *Cluster, commit string, approved bool) (deletes, managed int) {
	if in.Live != nil && in.Live.Inventory != nil {
		managed = len(in.Live.Inventory.Items)
	}
	var free []*Action
	for i := range c.Actions {
		a := &c.Actions[i]
		if a.Operation != Prune {
			continue
		}
		if approved {
			a.Holds = slices.DeleteFunc(a.Holds, func(h Hold) bool { return h.Code == "OverlayMoved" || h.Code == "ClusterRenamed" })
			continue
		}
		if !a.Held() && isDaemonSet(a.Object) {
			a.add("NotApproved", "a DaemonSet is deleted only with approval: rollcall apply --clusters %s --approve %s, or spec.approvals", c.Name, commit)
		}
		if !a.Held() {
			free = append(free, a)
		}
	}
	most := atMost(in.Cluster.Policy.MaxDeletes, managed)
	if len(free) <= most {
		return len(free), managed
	}
	for _, a := range free {
		a.add("TooManyDeletes", "%d of %d objects would be deleted, policy.maxDeletes is %q, which is %d: look at them, then rollcall apply --clusters %s --approve %s", len(free), managed, in.Cluster.Policy.MaxDeletes, most, c.Name, commit)
	}
	return 0, managed
}

// atMost scales a count or a percentage, and lets at least one pass.
func atMost(max string, of int) int {
	v := intstr.Parse(max)
	n, err := intstr.GetScaledValueFromIntOrPercent(&v, of, false)
	if err != nil || n < 1 {
		return 1
	}
	return n
}
