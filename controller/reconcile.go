package controller

import (
	"context"
	"errors"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/coverage"
	"rollcall.dev/rollcall/controller/drift"
	"rollcall.dev/rollcall/controller/report"
	"rollcall.dev/rollcall/render"
	"rollcall.dev/rollcall/sync/source"
)

// Fetcher reads the world: the commit that a source points to now.
type Fetcher interface {
	Fetch(ctx context.Context) (source.Artifact, error)
}

// Renderer turns a commit's files into what one cluster should have.
type Renderer interface {
	Render(ctx context.Context, a source.Artifact, f clusters.Fleet, c clusters.Cluster) (render.Desired, error)
}

// Observer reads the world: what one cluster has.
type Observer interface {
	Observe(ctx context.Context, c clusters.Cluster, w clusters.Want) (clusters.Live, error)
}

// Confirmer asks a cluster what it would make of objects, and changes nothing.
type Confirmer interface {
	Confirm(ctx context.Context, c clusters.Cluster, objects []*unstructured.Unstructured) ([]clusters.Confirmed, error)
}

// Line is the straight line's two edges and what it is told.
type Line struct {
	Fleet    clusters.Fleet
	Renderer Renderer
	Observer Observer
	Want     clusters.Want
	Keep     func(coverage.State) bool // which node rows to list
	Deadline time.Duration             // of one cluster's observation
	Retain   bool                      // keep what a report was made of, for a Story
	Seen     func(string) time.Time    // when a cluster last answered, or was first asked; nil: not known
	Types    *drift.Types
	Confirm  Confirmer // nil: what differs is not confirmed
	Foreign  bool      // tell what other programs added, which is no drift
}

// Reconcile is the line for one cluster. It returns a report and no error: a
// cluster that failed is a fact to report, and a failed render does not stop
// the observation.
func (l Line) Reconcile(ctx context.Context, a source.Artifact, c clusters.Cluster) report.Cluster {
	j := report.Judged{Cluster: c, HasSource: !a.Revision.IsZero(), Commit: a.Revision.Commit, Retain: l.Retain}

	desired, err := l.render(ctx, a, c)
	j.Overlay, j.Components, j.RenderErr = desired.Overlay, desired.Components, failure(err)
	j.Objects, j.Desired, j.Exceptions = desired.Objects, l.wanted(desired.DaemonSets), l.exceptions(c)
	j.Findings = renderFindings(c, desired, err)

	j.Live, j.ObserveErr = l.observe(ctx, c, desired)
	j.Age = l.age(c, j.Live, j.ObserveErr)
	if j.ObserveErr == nil {
		j.Excluded = l.excluded(desired.DaemonSets, j.Live.DaemonSets)
		j.Coverage = coverage.Compute(&j.Live, l.subjects(j.Desired, j.Live.DaemonSets), l.options(a, c, j.Exceptions))
		j.Drift, j.Ignore = l.drift(ctx, c, desired, &j)
		j.Ahead = l.ahead(a, c, &j)
	}
	return report.NewCluster(j, l.Keep)
}

// render is the first half of the line; without a source it is nothing.
func (l Line) render(ctx context.Context, a source.Artifact, c clusters.Cluster) (render.Desired, error) {
	if a.Revision.IsZero() {
		return render.Desired{}, nil
	}
	d, err := l.Renderer.Render(ctx, a, l.Fleet, c)
	return l.labelled(c, d), err
}

// failure is what a render failed of. That no target selects the cluster is a
// finding and no failure: Git wants nothing there.
func failure(err error) error {
	if errors.Is(err, render.ErrUnmatched) {
		return nil
	}
	return err
}

// observe gives one cluster its own deadline: waiting for the render of others
// is not taken from it.
func (l Line) observe(ctx context.Context, c clusters.Cluster, desired render.Desired) (clusters.Live, error) {
	ctx, cancel := context.WithTimeout(ctx, l.Deadline)
	defer cancel()
	return l.Observer.Observe(ctx, c, l.want(c, desired))
}

// age is how old a snapshot is. Of a cluster that does not answer it is how long
// ago it was seen, as far as Seen knows.
func (l Line) age(c clusters.Cluster, live clusters.Live, err error) time.Duration {
	switch {
	case err == nil && live.Snapshot:
		return time.Since(live.ObservedAt)
	case err == nil || l.Seen == nil:
		return 0
	}
	return time.Since(l.Seen(c.Name))
}

// options are what the fleet says about the verdicts of one cluster.
func (l Line) options(a source.Artifact, c clusters.Cluster, exceptions []int) coverage.Options {
	o := coverage.Options{
		Grace: c.Policy.StartupGrace, ProgressDeadline: c.Policy.ProgressDeadline, Taints: l.Fleet.Taints,
		Partial: !l.Want.All(), Commit: a.Revision.Commit,
	}
	for _, agent := range l.Fleet.Agents {
		if agent.Clusters.Matches(c.Name, c.Labels) {
			o.Agents = append(o.Agents, agent)
		}
	}
	for _, i := range exceptions {
		o.Exceptions = append(o.Exceptions, l.Fleet.Exceptions[i])
	}
	return o
}

// exceptions are those of the fleet that are for a cluster, by their index.
func (l Line) exceptions(c clusters.Cluster) []int {
	var out []int
	for i, e := range l.Fleet.Exceptions {
		if e.Applies(c.Name, c.Labels) {
			out = append(out, i)
		}
	}
	return out
}

// wanted are the DaemonSets that are asked for and not excluded.
func (l Line) wanted(all []appsv1.DaemonSet) []appsv1.DaemonSet {
	var out []appsv1.DaemonSet
	for i := range all {
		if ds := &all[i]; l.Want.Matches(ds) && !l.Fleet.Excluded(ds.Namespace, ds.Name, ds.Labels) {
			out = append(out, *ds)
		}
	}
	return out
}

// excluded names what the fleet file leaves out, so that a report can say so.
func (l Line) excluded(desired, live []appsv1.DaemonSet) []string {
	var out []string
	for _, all := range [][]appsv1.DaemonSet{desired, live} {
		for i := range all {
			ds := &all[i]
			name := ds.Namespace + "/" + ds.Name
			if l.Want.Matches(ds) && l.Fleet.Excluded(ds.Namespace, ds.Name, ds.Labels) && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

// subjects pairs what Git wants with what lives, by namespace and name.
func (l Line) subjects(desired, live []appsv1.DaemonSet) []coverage.Subject {
	type key struct{ namespace, name string }
	at := make(map[key]int, len(live))
	var out []coverage.Subject
	for i := range live {
		if ds := &live[i]; !l.Fleet.Excluded(ds.Namespace, ds.Name, ds.Labels) {
			at[key{ds.Namespace, ds.Name}] = len(out)
			out = append(out, coverage.Subject{Live: ds})
		}
	}
	for i := range desired {
		if j, ok := at[key{desired[i].Namespace, desired[i].Name}]; ok {
			out[j].Desired = &desired[i]
			continue
		}
		out = append(out, coverage.Subject{Desired: &desired[i]})
	}
	return out
}
