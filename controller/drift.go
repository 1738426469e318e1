package controller

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/drift"
	"rollcall.dev/rollcall/controller/report"
	"rollcall.dev/rollcall/render"
)

// want is what to read of a cluster: what travels with its DaemonSets, too,
// unless only some of these are asked for; and what was applied there, where
// rollcall may.
func (l Line) want(c clusters.Cluster, desired render.Desired) clusters.Want {
	w := l.Want
	if !w.All() {
		return w
	}
	for _, u := range travellers(desired.Objects) {
		w.Objects = append(w.Objects, clusters.ReferenceOf(&u))
	}
	if slices.Contains(c.Policy.May, "apply") || slices.Contains(c.Policy.May, "prune") {
		w.Inventory = l.Fleet.Name
	}
	return w
}

// travellers are the objects beside the DaemonSets that are read: no Secret is.
func travellers(all []unstructured.Unstructured) []unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(all), func(u unstructured.Unstructured) bool {
		r := clusters.ReferenceOf(&u)
		return r.Kind == "DaemonSet" && r.Group() == "apps" || r.Kind == "Secret" && r.Group() == ""
	})
}

// drift compares what Git wants with what lives, and lets the cluster confirm
// what differs, where its credential may apply. It also returns the rules that
// were used, by their index in the fleet.
func (l Line) drift(ctx context.Context, c clusters.Cluster, desired render.Desired, j *report.Judged) (drift.Outcome, []int) {
	if j.RenderErr != nil || !j.HasSource {
		return drift.Outcome{}, nil // what Git wants is not known: nothing is too much, and nothing is lacking
	}
	in := drift.Input{DaemonSets: j.Desired, Objects: desired.Objects, Live: &j.Live, AppliedBy: l.Fleet.AppliedBy, Fleet: l.Fleet.Name, Foreign: l.Foreign}
	if !l.Want.All() {
		in.Objects = slices.DeleteFunc(slices.Clone(in.Objects), func(u unstructured.Unstructured) bool { return u.GetKind() != "DaemonSet" })
	}
	var rules []int
	for i, g := range l.Fleet.Ignore {
		if g.Clusters.Matches(c.Name, c.Labels) {
			in.Ignore, rules = append(in.Ignore, drift.Rule{Ignore: g, At: i}), append(rules, i)
		}
	}
	out := l.Types.Compare(in)
	out.Objects = slices.DeleteFunc(out.Objects, func(o drift.Object) bool { return o.State == drift.Extra && l.leavesOut(&j.Live, o.Object) })
	doubtful := in.Doubtful(out)
	if l.Confirm == nil || len(doubtful) == 0 || len(c.Recorded) > 0 {
		return out, rules
	}
	return l.Types.Confirm(in, out, l.confirm(ctx, c, j.Live, doubtful)), rules
}

// leavesOut tells of a live DaemonSet that the fleet excludes, though it was
// applied before.
func (l Line) leavesOut(live *clusters.Live, r clusters.Reference) bool {
	return r.Kind == "DaemonSet" && r.Group() == "apps" && slices.ContainsFunc(live.DaemonSets, func(ds appsv1.DaemonSet) bool {
		return ds.Namespace == r.Namespace && ds.Name == r.Name && l.Fleet.Excluded(ds.Namespace, ds.Name, ds.Labels)
	})
}

// confirm asks the cluster. What could not be asked is unconfirmed, and no
// failure of the observation.
func (l Line) confirm(ctx context.Context, c clusters.Cluster, live clusters.Live, objects []*unstructured.Unstructured) []clusters.Confirmed {
	why := "the credential may not apply, not even on trial"
	if slices.Contains(live.Credential.Powers, "apply") {
		ctx, cancel := context.WithTimeout(ctx, l.Deadline)
		defer cancel()
		said, err := l.Confirm.Confirm(ctx, c, objects)
		if err == nil {
			return said
		}
		why = err.Error()
	}
	var out []clusters.Confirmed
	for _, u := range objects {
		out = append(out, clusters.Confirmed{Object: clusters.ReferenceOf(u), Unconfirmed: why})
	}
	return out
}
