package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"rollcall.dev/rollcall/clusters"
)

// Deletes is what would be pruned in a cluster. All clusters of the fleet are
// given, those with nothing to prune too: a percentage is of what is managed.
type Deletes struct {
	Cluster string
	Managed int // objects of the inventory
	Objects []clusters.Reference
	Max     string // the cluster's policy: a number, or a percentage of Managed
}

// Held is an object that is not deleted, and why.
type Held struct {
	Object clusters.Reference
	Holds  []Hold
}

// Limit says which objects are not deleted, by cluster and in order of
// Reference.Compare. Above the limit of a cluster or of the fleet none is, for it
// is not known which are meant: only an approval that names the commit and the
// cluster lets them go. One that is approved still counts for the others.
func Limit(commit, fleetMax string, all []Deletes, approvals []clusters.Approval) map[string][]Held {
	managed, deletes := 0, 0
	for _, d := range all {
		managed += d.Managed
		deletes += len(d.Objects)
	}
	holds := map[string][]Held{}
	for _, d := range all {
		if len(d.Objects) == 0 || clusters.Approved(approvals, clusters.AllowPrune, commit, d.Cluster) {
			continue
		}
		ask := fmt.Sprintf("; look at what they are, then approve with --approve %s --clusters %s, or in spec.approvals", commit, d.Cluster)
		var many []Hold
		if most := clusters.Of(d.Max, d.Managed); len(d.Objects) > most {
			many = append(many, Hold{TooManyDeletes, fmt.Sprintf("%s of %d managed in the cluster would be deleted, policy.maxDeletes is %s%s", count(len(d.Objects), "object"), d.Managed, limit(d.Max, most), ask)})
		}
		if most := clusters.Of(fleetMax, managed); deletes > most {
			many = append(many, Hold{TooManyDeletes, fmt.Sprintf("%s of %d managed in the fleet would be deleted, policy.maxDeletes of the fleet is %s%s", count(deletes, "object"), managed, limit(fleetMax, most), ask)})
		}
		if held := holdEach(&d, many, ask); len(held) > 0 {
			holds[d.Cluster] = held
		}
	}
	return holds
}

// holdEach holds all objects for what holds all, and each for what it is.
func holdEach(d *Deletes, all []Hold, ask string) []Held {
	objects := slices.Clone(d.Objects)
	slices.SortFunc(objects, clusters.Reference.Compare)
	var out []Held
	for _, o := range objects {
		holds := slices.Clone(all)
		if why := grave(o); why != "" {
			holds = append(holds, Hold{NotApproved, why + ask})
		}
		if len(holds) > 0 {
			out = append(out, Held{o, holds})
		}
	}
	return out
}

// grave is why an object is deleted only after somebody's word: it is a
// DaemonSet, or takes others with it.
func grave(o clusters.Reference) string {
	switch o.Kind {
	case "DaemonSet":
		return "a DaemonSet is deleted, with its pods on every node, only after an approval that names commit and cluster"
	case "Namespace":
		return "a Namespace is deleted, with the DaemonSets and all else in it, only after an approval that names commit and cluster"
	case "CustomResourceDefinition":
		return "a CustomResourceDefinition is deleted, with every object of its kind, only after an approval that names commit and cluster"
	}
	return ""
}

// limit words a limit, and what a percentage comes to.
func limit(text string, most int) string {
	if strings.HasSuffix(text, "%") {
		return fmt.Sprintf("%s (%d)", text, most)
	}
	return strconv.Itoa(most)
}
