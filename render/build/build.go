// Package build runs kustomize over the tree of one commit and gives what a
// cluster is to have. It refuses everything that would leave the repository,
// run a program or exhaust the machine, and knows no cluster but by its name
// and labels.
package build

import (
	"context"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/render"
	"rollcall.dev/rollcall/sync/source"
)

// Options are the budgets of one build and how many builds are remembered. A
// zero field takes the default beside it.
type Options struct {
	Files    int           // 5,000, each counted every time it is reached
	Bytes    int           // 64 MiB of them
	Nodes    int           // 2,000,000 YAML nodes with aliases expanded
	Objects  int           // 5,000
	Duration time.Duration // one minute
	Remember int           // 4,096 builds
}

func (o Options) withDefaults() Options {
	set := func(field *int, value int) {
		if *field <= 0 {
			*field = value
		}
	}
	set(&o.Files, 5_000)
	set(&o.Bytes, 64<<20)
	set(&o.Nodes, 2_000_000)
	set(&o.Objects, 5_000)
	set(&o.Remember, 4_096)
	if o.Duration <= 0 {
		o.Duration = time.Minute
	}
	return o
}

// Renderer renders clusters and remembers what it built. It builds one at a
// time: kustomize keeps its schema in globals, and on few cores one after the
// other was measured faster than all at once. It is safe for concurrent use.
type Renderer struct {
	limits Options
	ctx    context.Context // ends at Close
	stop   context.CancelCauseFunc
	slot   chan struct{} // held by the build that runs
	builds sync.WaitGroup

	mu     sync.Mutex
	closed bool
	memory memory

	unguarded bool // by the test that shows what the guard is for
}

// New makes a Renderer; Close it after use.
func New(o Options) *Renderer {
	r := &Renderer{limits: o.withDefaults(), slot: make(chan struct{}, 1)}
	r.ctx, r.stop = context.WithCancelCause(context.Background())
	r.memory = newMemory(r.limits.Remember)
	return r
}

// errClosed ends the builds of a Renderer that is closed.
var errClosed = fmt.Errorf("the renderer is closed")

// Close ends the builds that run and waits for them. A build that kustomize is
// in the middle of ends when it next opens a file or is done.
func (r *Renderer) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.stop(errClosed)
	r.builds.Wait()
}

// Stats count what became of calls of Render that got as far as a build.
type Stats struct {
	Built  int // by kustomize, or from a folder without a kustomization
	Shared int // had inputs equal to an earlier build's
}

// Stats returns the counts so far.
func (r *Renderer) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.memory.stats
}

// Render returns what a commit wants of a cluster. It returns when ctx ends,
// even though kustomize cannot be stopped: the build then finishes by itself,
// before the next one begins. The trace is there also beside an error.
func (r *Renderer) Render(ctx context.Context, a source.Artifact, f clusters.Fleet, c clusters.Cluster) (render.Desired, error) {
	res, err := render.Resolve(f, c)
	bare := render.Desired{Revision: a.Revision, Overlay: res.Overlay, Components: res.Components, Trace: res.Trace}
	if err != nil {
		return bare, err
	}
	out, err := r.outcome(ctx, a.Files, res, f, c)
	if err != nil {
		return bare, err
	}
	d := out.desired
	d.Revision, d.Overlay, d.Components, d.Trace = bare.Revision, bare.Overlay, bare.Components, bare.Trace
	d.Inputs = out.inputs
	return d, out.err
}

// outcome recalls a build, or makes it once the one before it is done. The
// error is that there is none; a fault of the repository is in the outcome.
func (r *Renderer) outcome(ctx context.Context, files fs.FS, res render.Resolution, f clusters.Fleet, c clusters.Cluster) (*outcome, error) {
	if out := r.recall(files, res, f, c); out != nil {
		return out, nil
	}
	select {
	case r.slot <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting to render overlay %q: %w", res.Overlay, context.Cause(ctx))
	case <-r.ctx.Done():
		return nil, fmt.Errorf("rendering overlay %q: %w", res.Overlay, errClosed)
	}
	if out := r.recall(files, res, f, c); out != nil {
		<-r.slot
		return out, nil
	}
	return r.start(ctx, files, res, f, c)
}

func (r *Renderer) slow(res render.Resolution) error {
	return &render.Error{Code: render.OverBudget, File: res.Overlay, Message: fmt.Sprintf("the build took longer than the %s allowed: split the overlay", r.limits.Duration)}
}

// start runs a build in a goroutine that holds the slot until kustomize is
// done, and waits for it no longer than ctx.
func (r *Renderer) start(ctx context.Context, files fs.FS, res render.Resolution, f clusters.Fleet, c clusters.Cluster) (*outcome, error) {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		<-r.slot
		return nil, fmt.Errorf("rendering overlay %q: %w", res.Overlay, errClosed)
	}
	r.builds.Add(1)
	r.mu.Unlock()

	limited, end := context.WithTimeoutCause(ctx, r.limits.Duration, r.slow(res))
	defer end()
	run, cancel := context.WithCancelCause(limited)
	release := context.AfterFunc(r.ctx, func() { cancel(errClosed) })
	done := make(chan *outcome, 1)
	go func() {
		defer r.builds.Done()
		defer func() { <-r.slot }()
		out := build(newTree(run, files, f, c, r.limits), res, r.unguarded)
		r.remember(res, out, run.Err() == nil)
		done <- out
	}()
	defer release()
	select {
	case out := <-done:
		cancel(nil)
		return out, nil
	case <-run.Done():
		return nil, fmt.Errorf("rendering overlay %q: %w", res.Overlay, context.Cause(run))
	}
}
