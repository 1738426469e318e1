package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/clusters/registry"
	"rollcall.dev/rollcall/controller"
	"rollcall.dev/rollcall/controller/plan"
	"rollcall.dev/rollcall/controller/report"
)

// applyFlags say where to apply what.
type applyFlags struct {
	fleet   fleetFlags
	want    wantFlags
	all     bool
	approve string
	adopt   []string
	output  string
}

func applyCommand(s streams) *cobra.Command {
	var f applyFlags
	cmd := &cobra.Command{
		Use:   "apply",
		Short: "Make clusters what Git says, as far as their policy allows and nothing holds it",
		Long: `Plan as rollcall plan does, show the plan, and do what nothing holds: by
server-side apply as field manager rollcall, what others need first. A cluster's
policy must say that it may: apply, and prune for what left Git. Where another
manager owns a field with another value the object fails and the others go on.

What is applied is recorded in the cluster, in namespace rollcall, with the
commit. Nothing is deleted that was not applied so. Deletions above
policy.maxDeletes, and of DaemonSets, wait for --approve with the very commit.

A run that was broken off is finished by the next one; one more does nothing.

Exit status: 0 done; 1 something is held or failed; 2 bad input, source or
flags; 3 a cluster could not be read, rendered or reached.`,
		Example: `  rollcall apply -f rollcall.yaml --clusters staging
  rollcall apply -f rollcall.yaml --all
  rollcall apply -f rollcall.yaml --clusters prod-eu --approve 5d0bbba7f1a4c4b3c4e1b2a9d8f7e6c5b4a39281
  rollcall apply -f rollcall.yaml --clusters prod-eu --adopt DaemonSet/monitoring/node-exporter`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), s) },
	}
	f.fleet.bind(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&f.all, "all", false, "in every cluster of the fleet")
	flags.StringVar(&f.approve, "approve", "", "approve what waits for approval at this `COMMIT`, in the chosen clusters")
	flags.StringSliceVar(&f.adopt, "adopt", nil, "take over these objects from who deploys them: `KIND/NAMESPACE/NAME`")
	flags.DurationVar(&f.want.timeout, "timeout", 5*time.Minute, "how long one cluster may take")
	flags.StringVarP(&f.output, "output", "o", "text", "text or json")
	return cmd
}

func (f *applyFlags) check() error {
	switch {
	case f.output != "text" && f.output != "json":
		return fmt.Errorf("--output %q: use text or json", f.output)
	case f.all == (f.fleet.clusters != ""):
		return errors.New("say where to apply: --clusters NAMES, a label selector, or --all")
	case f.approve != "" && !isCommit(f.approve):
		return fmt.Errorf("--approve %q: give the whole commit, 40 hexadecimal digits", f.approve)
	}
	return nil
}

func (f *applyFlags) run(ctx context.Context, s streams) error {
	if err := f.check(); err != nil {
		return err
	}
	loaded, err := f.fleet.load(ctx, s)
	if err != nil {
		return err
	}
	if loaded.Source == nil {
		return fmt.Errorf("%s: there is no spec.source: nothing is applied", f.fleet.file)
	}
	want, err := f.want.want("")
	if err != nil {
		return err
	}
	want.Forecast, want.Powers = true, true
	chosen := loaded.whole()
	p, err := loaded.pass(s, want, f.want.timeout, outputFlags{nodes: "attention"})
	if err != nil {
		return err
	}
	defer p.close()
	planned, stale, err := f.plan(ctx, s, p, chosen)
	if err != nil {
		return err
	}
	return f.apply(ctx, s, p, planned, stale)
}

// plan plans from what lives to the newest commit.
func (f *applyFlags) plan(ctx context.Context, s streams, p *pass, chosen func(string) bool) (planned []controller.Planned, stale, err error) {
	a, stale, err := p.fetch(ctx)
	if err != nil {
		return nil, nil, err
	}
	commit := a.Revision.Commit
	if f.approve != "" && f.approve != commit {
		return nil, nil, fmt.Errorf("--approve %s: the commit to apply is %s: look at its plan, and approve that", f.approve, commit)
	}
	ahead := controller.Ahead{To: a, Adopt: f.adopt, Holds: holdsOf(time.Now(), stale)}
	planned = controller.Plan(ctx, p.line, ahead, p.clusters, parallelClusters, newProgress(s, len(p.clusters)))
	planned = append(planned, p.undeclared()...)
	approvals := p.line.Fleet.Approvals
	if f.approve != "" {
		by := clusters.Approval{Commit: commit, Allow: []string{clusters.AllowPrune, clusters.AllowResume}}
		for _, c := range p.clusters {
			if chosen(c.Name) {
				by.Clusters = append(by.Clusters, c.Name)
			}
		}
		approvals = append(slices.Clone(approvals), by)
	}
	controller.Across(p.line.Fleet, planned, commit, approvals, time.Now())
	return slices.DeleteFunc(planned, func(x controller.Planned) bool { return !chosen(x.Cluster.Name) }), stale, ctx.Err()
}

// holdsOf are what holds every change in a cluster.
func holdsOf(now time.Time, stale error) func(clusters.Cluster) []plan.Hold {
	return func(c clusters.Cluster) []plan.Hold { return controller.Holds(c, now, stale) }
}

// whole makes a fleet look at all of its clusters where a rollout goes in waves,
// whose state depends on them, and tells which were chosen.
func (f *fleet) whole() (chosen func(string) bool) {
	members := f.members
	if f.Rollout != nil {
		f.members = f.all
	}
	return func(name string) bool {
		return slices.ContainsFunc(members, func(c clusters.Cluster) bool { return c.Name == name }) ||
			slices.ContainsFunc(f.broken, func(b registry.Broken) bool { return b.Name == name })
	}
}

// undeclared are the clusters whose declaration is wrong: nothing of them can be
// planned, and no wave goes past them.
func (p *pass) undeclared() []controller.Planned {
	var out []controller.Planned
	for _, c := range p.failed {
		err := errors.New(c.Observation.Error)
		cluster := clusters.Cluster{Name: c.Name, Labels: c.Labels}
		out = append(out, controller.Planned{Input: plan.Input{Cluster: cluster, Fleet: p.line.Fleet}, Plan: plan.Unknown(cluster, err), Err: err})
	}
	return out
}

func (f *applyFlags) apply(ctx context.Context, s streams, p *pass, planned []controller.Planned, stale error) error {
	commit := ""
	for i := range planned {
		commit = cmp.Or(planned[i].Commit, commit)
	}
	shown := sumUp(p.line.Fleet, planned, plan.Live, commit, time.Now())
	if f.output == "text" {
		if err := printPlan(s, shown, "text"); err != nil {
			return err
		}
	}
	done := controller.Apply(ctx, &p.observer.kube, planned, f.want.timeout, parallelClusters, newProgress(s, len(planned)))
	out := report.NewApplied(shown, resultsOf(done))
	if err := printApplied(s, out, f.output); err != nil {
		return err
	}
	return f.status(ctx, out, stale)
}

func (f *applyFlags) status(ctx context.Context, out report.Applied, stale error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case stale != nil:
		return &outcome{exitIncomplete, fmt.Sprintf("nothing was applied: the source is stale: %v", stale)}
	case out.Summary.Unknown > 0:
		return &outcome{exitIncomplete, fmt.Sprintf("incomplete: %d of %d clusters could not be read, rendered or reached", out.Summary.Unknown, len(out.Clusters))}
	case out.Summary.Held+out.Summary.Failed > 0:
		return &outcome{exitFound, ""}
	}
	return nil
}

// resultsOf is what was done, by cluster.
func resultsOf(all []controller.Applied) []report.ClusterResults {
	out := make([]report.ClusterResults, 0, len(all))
	for _, a := range all {
		r := report.ClusterResults{Name: a.Cluster, Results: a.Results}
		if a.Err != nil {
			r.Error = a.Err.Error()
		}
		out = append(out, r)
	}
	return out
}

func printApplied(s streams, a report.Applied, output string) error {
	if output == "json" {
		return writeJSON(s.out, a)
	}
	_, err := fmt.Fprint(s.out, a.Text(report.Style{Color: colored(s.out)}))
	return err
}

func isCommit(s string) bool {
	return len(s) == 40 && !slices.ContainsFunc([]byte(s), func(c byte) bool { return (c < '0' || c > '9') && (c < 'a' || c > 'f') })
}
