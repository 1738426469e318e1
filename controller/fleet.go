package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/coverage"
	"rollcall.dev/rollcall/controller/report"
	"rollcall.dev/rollcall/render"
	"rollcall.dev/rollcall/sync/source"
)

// Progress is told when a cluster is begun and when it is done. It is called
// from several goroutines at once.
type Progress interface {
	Begin(cluster string)
	Done(cluster string, c report.Cluster)
}

// Reconcile runs the line for every cluster side by side and waits for all.
// One that is slow or gone costs its own deadline and nobody else's as long as
// there are slots: at most parallel clusters are worked on at once; zero is all.
func Reconcile(ctx context.Context, l Line, a source.Artifact, cs []clusters.Cluster, parallel int, p Progress) []report.Cluster {
	if parallel <= 0 {
		parallel = len(cs)
	}
	slots := make(chan struct{}, max(parallel, 1))
	out := make([]report.Cluster, len(cs))
	var wg sync.WaitGroup
	for i, c := range cs {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			p.Begin(c.Name)
			out[i] = l.Reconcile(ctx, a, c)
			p.Done(c.Name, out[i])
		})
	}
	wg.Wait()
	return out
}

// renderFindings are what a cluster's render says of its overlay. What one file
// has twice is one cause.
func renderFindings(c clusters.Cluster, d render.Desired, err error) []report.Finding {
	var out []report.Finding
	add := func(f report.Finding) {
		if i := slices.IndexFunc(out, func(x report.Finding) bool { return x.ID == f.ID }); i >= 0 {
			out[i].Message += "; " + f.Message
			return
		}
		out = append(out, f)
	}
	for i := range d.Warnings {
		add(renderFinding(c.Name, d.Overlay, &d.Warnings[i]))
	}
	if err != nil {
		add(renderFinding(c.Name, d.Overlay, err))
	}
	return out
}

func renderFinding(cluster, overlay string, err error) report.Finding {
	code, file := "RenderFailed", ""
	if e, ok := errors.AsType[*render.Error](err); ok {
		code, file = e.Code, e.File
	}
	if errors.Is(err, render.ErrUnmatched) {
		code = "ClusterUnmatched"
	}
	return report.NewFinding(cluster, code, err.Error(), coverage.Cause{Kind: "render", Key: fmt.Sprintf("%s %s %s", overlay, file, code)})
}

// Declared are the findings of a fleet's own declaration: targets and agents
// that match no cluster. Where no target matches any, Git reaches nothing, which
// is an error.
func Declared(f clusters.Fleet, cs []clusters.Cluster) []report.Finding {
	var out []report.Finding
	for _, a := range f.Agents {
		if !slices.ContainsFunc(cs, func(c clusters.Cluster) bool { return a.Clusters.Matches(c.Name, c.Labels) }) {
			out = append(out, report.NewFinding("", "AgentUnmatched", fmt.Sprintf("agent %q matches none of %d clusters", a.Name, len(cs)), coverage.Cause{Kind: "fleet", Key: "agent " + a.Name}))
		}
	}
	unmatched := render.UnmatchedTargets(f, cs)
	for _, t := range unmatched {
		n := report.NewFinding("", "TargetUnmatched", fmt.Sprintf("target %q matches none of %d clusters", t, len(cs)), coverage.Cause{Kind: "fleet", Key: "target " + t})
		if len(unmatched) == len(f.Targets) {
			n.Severity = report.Error
		}
		out = append(out, n)
	}
	return out
}
