package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/coverage"
	"rollcall.dev/rollcall/controller/plan"
	"rollcall.dev/rollcall/controller/report"
	"rollcall.dev/rollcall/render"
	"rollcall.dev/rollcall/sync/schedule"
	"rollcall.dev/rollcall/sync/source"
)

// Ahead is what to plan: from one revision to another, or from what lives.
type Ahead struct {
	From  *source.Artifact // nil: what lives
	To    source.Artifact
	Adopt []string                             // objects that are taken over, as KIND/NAMESPACE/NAME
	Holds func(c clusters.Cluster) []plan.Hold // of all that changes in a cluster; nil: none
}

// Planned is the plan of one cluster, and what it was made of. Err is why there
// is none.
type Planned struct {
	plan.Input
	Coverage coverage.Cluster
	Plan     plan.Cluster
	Err      error
}

// Plan plans every cluster side by side, at most parallel at once, and waits for
// all. What cannot be planned of one is no matter of the others.
func Plan(ctx context.Context, l Line, a Ahead, cs []clusters.Cluster, parallel int, p Progress) []Planned {
	if parallel <= 0 {
		parallel = len(cs)
	}
	slots := make(chan struct{}, max(parallel, 1))
	out := make([]Planned, len(cs))
	var wg sync.WaitGroup
	for i, c := range cs {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			p.Begin(c.Name)
			out[i] = l.plan(ctx, a, c)
			p.Done(c.Name, report.Cluster{})
		})
	}
	wg.Wait()
	return out
}

// plan is the line up to what would be done in one cluster.
func (l Line) plan(ctx context.Context, a Ahead, c clusters.Cluster) Planned {
	unknown := func(err error) Planned {
		return Planned{Input: plan.Input{Cluster: c, Fleet: l.Fleet, Commit: a.To.Revision.Commit}, Plan: plan.Unknown(c, err), Err: err}
	}
	to, err := l.side(ctx, a.To, c)
	if err != nil {
		return unknown(err)
	}
	in := plan.Input{Cluster: c, Fleet: l.Fleet, To: to, Commit: a.To.Revision.Commit, Adopt: a.Adopt}
	if a.From != nil {
		from, err := l.side(ctx, *a.From, c)
		if err != nil {
			return unknown(err)
		}
		in.From = &from
	}
	live, err := l.look(ctx, c, in)
	if err != nil {
		return unknown(err)
	}
	in.Live, in.Options = &live, l.options(a.To, c, l.exceptions(c))
	out := Planned{Input: in}
	if in.From == nil {
		j := report.Judged{Cluster: c, HasSource: true, Desired: to.DaemonSets, Live: live}
		in.Drift, _ = l.drift(ctx, c, render.Desired{Objects: to.Objects}, &j)
		out.Coverage = coverage.Compute(&live, l.subjects(to.DaemonSets, live.DaemonSets), in.Options)
	}
	if a.Holds != nil {
		in.Holds = a.Holds(c)
	}
	out.Input, out.Plan = in, plan.Make(in)
	return out
}

// side renders what a revision wants of a cluster: nothing where no target
// selects it.
func (l Line) side(ctx context.Context, a source.Artifact, c clusters.Cluster) (plan.Side, error) {
	desired, err := l.render(ctx, a, c)
	if failure(err) != nil {
		return plan.Side{}, err
	}
	return plan.Side{Overlay: desired.Overlay, Objects: desired.Objects, DaemonSets: l.wanted(desired.DaemonSets)}, nil
}

// look observes what a plan needs: between revisions the nodes, else what lives
// and what was applied, too.
func (l Line) look(ctx context.Context, c clusters.Cluster, in plan.Input) (clusters.Live, error) {
	ctx, cancel := context.WithTimeout(ctx, l.Deadline)
	defer cancel()
	w := l.Want
	if in.From == nil {
		w = l.want(c, render.Desired{Objects: in.To.Objects})
		w.Inventory = l.Fleet.Name
	}
	return l.Observer.Observe(ctx, c, w)
}

// labelled are a render's objects as they are applied, where rollcall may.
func (l Line) labelled(c clusters.Cluster, d render.Desired) render.Desired {
	if !slices.Contains(c.Policy.May, "apply") {
		return d
	}
	d.Objects = plan.Labelled(d.Objects, l.Fleet.Name)
	d.DaemonSets = slices.Clone(d.DaemonSets)
	for i := range d.DaemonSets {
		labelled(&d.DaemonSets[i], clusters.FleetLabelValue(l.Fleet.Name))
	}
	return d
}

func labelled(ds *appsv1.DaemonSet, fleet string) {
	labels := maps.Clone(ds.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[clusters.FleetLabel] = fleet
	ds.Labels = labels
}

// Across adds the holds that look at all clusters together: waves and the limits
// of deletions. The waves wait for no deletion that is held.
func Across(f clusters.Fleet, planned []Planned, commit string, approvals []clusters.Approval, now time.Time) {
	progress, deletes := make([]plan.Progress, len(planned)), make([]plan.Deletes, len(planned))
	for i := range planned {
		p := &planned[i]
		deletes[i] = plan.DeletesOf(p.Input, &p.Plan, clusters.Approved(approvals, clusters.AllowPrune, commit, p.Cluster.Name))
	}
	limits := plan.Limit(commit, f.Policy.MaxDeletes, deletes, approvals)
	for i := range planned {
		p := &planned[i]
		p.Plan.Hold(nil, limits[p.Cluster.Name])
		progress[i] = plan.ProgressOf(p.Input, p.Plan, p.Coverage, now)
		progress[i].Resumed = clusters.Approved(approvals, clusters.AllowResume, commit, p.Cluster.Name)
	}
	waves := plan.Waves(f.Rollout, commit, progress, now)
	for i := range planned {
		planned[i].Plan.Hold(waves[planned[i].Cluster.Name], nil)
	}
}

// ahead is what the commit would change in a cluster that rollcall may change,
// or whose progress others wait for.
func (l Line) ahead(a source.Artifact, c clusters.Cluster, j *report.Judged) *report.Ahead {
	may := slices.Contains(c.Policy.May, "apply") || slices.Contains(c.Policy.May, "prune")
	if j.RenderErr != nil || !j.HasSource || !l.Want.All() || !may && l.Fleet.Rollout == nil {
		return nil
	}
	now, commit := time.Now(), a.Revision.Commit
	in := plan.Input{
		Cluster: c, Fleet: l.Fleet, Live: &j.Live, To: plan.Side{Overlay: j.Overlay, Objects: j.Objects, DaemonSets: j.Desired},
		Commit: commit, Drift: j.Drift, Holds: Holds(c, now, nil),
	}
	made := plan.Make(in)
	return &report.Ahead{
		Plan: made, Progress: plan.ProgressOf(in, made, j.Coverage, now),
		Deletes: plan.DeletesOf(in, &made, clusters.Approved(l.Fleet.Approvals, clusters.AllowPrune, commit, c.Name)),
	}
}

// Holds are what holds every change in a cluster: a window that is closed, and a
// source that is not known to be current.
func Holds(c clusters.Cluster, now time.Time, stale error) []plan.Hold {
	var out []plan.Hold
	if stale != nil {
		out = append(out, plan.Hold{Code: "SourceStale", Message: fmt.Sprintf("the source could not be asked for its newest commit: %v", stale)})
	}
	compiled, err := schedule.Compile(c.Policy.Windows)
	if err != nil {
		return append(out, plan.Hold{Code: plan.WindowClosed, Message: fmt.Sprintf("policy.windows cannot be read: %v", err)})
	}
	return append(out, plan.Window(compiled, now)...)
}
