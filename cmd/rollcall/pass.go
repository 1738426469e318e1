package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/clusters/kube"
	"rollcall.dev/rollcall/clusters/recorded"
	"rollcall.dev/rollcall/clusters/registry"
	"rollcall.dev/rollcall/controller"
	"rollcall.dev/rollcall/controller/drift"
	"rollcall.dev/rollcall/controller/report"
	"rollcall.dev/rollcall/render/build"
	"rollcall.dev/rollcall/sync/gitrepo"
	"rollcall.dev/rollcall/sync/source"
)

// parallelClusters bounds how many clusters are looked at at once: enough that
// slow ones do not hold up others, few enough for one machine's memory.
const parallelClusters = 256

// pass is a line with its edges, ready to be run once or again and again.
type pass struct {
	streams  streams
	line     controller.Line
	fetcher  fetcher // nil without a source
	clusters []clusters.Cluster
	declared []report.Finding
	failed   []report.Cluster // whose declaration is wrong
	narrowed bool             // not all of the fleet's clusters are looked at
	observer *observers
	renderer *build.Renderer
	output   outputFlags
	// hub registers clusters, nil without one. reload asks it again, which every
	// pass but the first does.
	hub    *registry.Hub
	reload func(context.Context) (fleet, []report.Finding, error)
	begun  bool
}

// fetcher is a source that knows what it gave before.
type fetcher interface {
	controller.Fetcher
	Last(ctx context.Context) (source.Artifact, error)
}

func newPass(s streams, f clusters.Fleet, cs []clusters.Cluster, want clusters.Want, timeout time.Duration, o outputFlags) *pass {
	p := &pass{streams: s, clusters: cs, output: o, renderer: build.New(build.Options{}), observer: &observers{recorded: recorded.Observer{Stdin: s.in}}}
	p.line = controller.Line{Fleet: f, Renderer: p.renderer, Observer: p.observer, Want: want, Keep: o.keep(), Deadline: timeout}
	p.line.Seen, p.line.Types, p.line.Confirm = p.observer.lastSeen, drift.NewTypes(), &p.observer.kube
	return p
}

// close waits for what the edges still do.
func (p *pass) close() {
	p.renderer.Close()
	if err := p.observer.kube.Close(); err != nil {
		p.streams.tell("%v", err)
	}
}

// once runs the line for all clusters. Its error is the source's; without a
// commit there is nothing to report.
func (p *pass) once(ctx context.Context) (report.Report, error) {
	a, stale, err := p.fetch(ctx)
	if err != nil {
		return report.Report{}, err
	}
	registered, err := p.register(ctx)
	if err != nil {
		return report.Report{}, err
	}
	before := p.renderer.Stats()
	progress := newProgress(p.streams, len(p.clusters))
	found := controller.Reconcile(ctx, p.line, a, p.clusters, parallelClusters, progress)
	if err := ctx.Err(); err != nil {
		return report.Report{}, err
	}
	scope := report.Scope{Fleet: p.line.Fleet, At: time.Now(), Revision: a.Revision, Stale: stale, Renders: rendersSince(before, p.renderer.Stats()), NodesListed: p.output.nodes, Narrowed: p.narrowed || !p.line.Want.All()}
	return report.New(scope, slices.Concat(found, p.failed), slices.Concat(p.declared, registered)), nil
}

func rendersSince(before, after build.Stats) report.Renders {
	return report.Renders{Built: after.Built - before.Built, Reused: after.Shared - before.Shared}
}

// fetch asks the source. Where that fails, the commit that was fetched last, by
// this process or an earlier one, is judged, and the report says that it is old.
func (p *pass) fetch(ctx context.Context) (a source.Artifact, stale, err error) {
	if p.fetcher == nil {
		return source.Artifact{}, nil, nil
	}
	a, stale = p.fetcher.Fetch(ctx)
	if stale == nil || ctx.Err() != nil {
		return a, nil, stale
	}
	a, err = p.fetcher.Last(ctx)
	switch {
	case errors.Is(err, gitrepo.ErrNeverFetched):
		return a, nil, stale
	case err != nil:
		return a, nil, fmt.Errorf("%w; nor can an earlier commit be judged: %w", stale, err)
	}
	return a, stale, nil
}

// observers choose how a cluster is read by how it is registered.
type observers struct {
	kube     kube.Observer
	recorded recorded.Observer

	mu   sync.Mutex
	seen map[string]time.Time // when a cluster last answered, or was first asked
}

// lastSeen is when a cluster last answered; one that never did counts from when
// it was first asked, so that one pass alone calls no silence long.
func (o *observers) lastSeen(cluster string) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.seen[cluster]
}

func (o *observers) note(cluster string, answered bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen == nil {
		o.seen = map[string]time.Time{}
	}
	if _, asked := o.seen[cluster]; answered || !asked {
		o.seen[cluster] = time.Now()
	}
}

// Observe reads a recorded cluster or a real one.
func (o *observers) Observe(ctx context.Context, c clusters.Cluster, w clusters.Want) (l clusters.Live, err error) {
	if len(c.Recorded) > 0 {
		l, err = o.recorded.Observe(ctx, c, w)
	} else {
		l, err = o.kube.Observe(ctx, c, w)
	}
	o.note(c.Name, err == nil)
	return l, err
}
