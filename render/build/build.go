// Package build runs kustomize over the tree of one commit and gives what a
// cluster is to have. It refuses everything that would leave the repository,
// run a program or exhaust the machine, and knows no cluster but by its name
// and labels.
package build

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/render"
	"rollcall.dev/rollcall/sync/source"
)

// Options are the budgets of one build, how many builds run at once and how
// many are remembered. A zero field takes the default beside it.
type Options struct {
	Files    int           // 5,000, each counted every time it is reached
	Bytes    int           // 64 MiB of them
	Nodes    int           // 2,000,000 YAML nodes with aliases expanded
	Objects  int           // 5,000
	Memory   int64         // 512 MiB of a process that builds
	Duration time.Duration // one minute
	Parallel int           // as many as there are processors
	Remember int           // 4,096 builds
	Program  string        // binary that answers ChildCommand with Child; this process's own
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
	set(&o.Parallel, runtime.GOMAXPROCS(0))
	set(&o.Remember, 4_096)
	if o.Memory <= 0 {
		o.Memory = 512 << 20
	}
	if o.Duration <= 0 {
		o.Duration = time.Minute
	}
	return o
}

// Renderer renders clusters and remembers what it built. It builds in child
// processes, which can be killed and whose memory is bounded: kustomize can be
// neither stopped nor kept from what ends a process. It is safe for concurrent
// use.
type Renderer struct {
	limits Options
	ctx    context.Context // ends at Close
	stop   context.CancelCauseFunc
	pool   *pool
	builds sync.WaitGroup

	mu     sync.Mutex
	closed bool
	memory memory
	flying map[string]chan struct{}   // builds that others wait for, by what makes them equal
	deaths map[string]map[string]bool // clusters whose builds an overlay of a commit has ended
}

// New makes a Renderer; Close it after use. It starts no process before there is
// something to build.
func New(o Options) *Renderer {
	r := &Renderer{limits: o.withDefaults(), flying: map[string]chan struct{}{}, deaths: map[string]map[string]bool{}}
	r.pool = newPool(r.limits.Program, r.limits.Parallel)
	r.ctx, r.stop = context.WithCancelCause(context.Background())
	r.memory = newMemory(r.limits.Remember)
	return r
}

// errClosed ends the builds of a Renderer that is closed.
var errClosed = errors.New("the renderer is closed")

// Close ends the builds that run, and their processes, and waits for them.
func (r *Renderer) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.stop(errClosed)
	r.builds.Wait()
	r.pool.close()
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

// Render returns what a commit wants of a cluster, at the latest when ctx ends.
// The trace is there also beside an error.
func (r *Renderer) Render(ctx context.Context, a source.Artifact, f clusters.Fleet, c clusters.Cluster) (render.Desired, error) {
	res, err := render.Resolve(f, c)
	bare := render.Desired{Revision: a.Revision, Overlay: res.Overlay, Components: res.Components, Trace: res.Trace}
	if err != nil {
		return bare, err
	}
	out, err := r.outcome(ctx, a, res, f, c)
	if err != nil {
		return bare, fmt.Errorf("rendering overlay %q: %w", res.Overlay, err)
	}
	d := out.desired
	d.Revision, d.Overlay, d.Components, d.Trace = bare.Revision, bare.Overlay, bare.Components, bare.Trace
	d.Inputs = out.inputs
	return d, out.err
}

// outcome recalls a build, or makes it. Of several clusters whose builds would
// be the same one builds and the others wait for it. The error is that there is
// none; a fault of the repository is in the outcome.
func (r *Renderer) outcome(ctx context.Context, a source.Artifact, res render.Resolution, f clusters.Fleet, c clusters.Cluster) (*outcome, error) {
	for {
		out, equal := r.recall(a, res, f, c)
		if out != nil {
			return out, nil
		}
		r.mu.Lock()
		others := r.flying[equal]
		if others == nil {
			if r.closed {
				r.mu.Unlock()
				return nil, errClosed
			}
			mine := make(chan struct{})
			r.flying[equal] = mine
			r.builds.Add(1)
			r.mu.Unlock()
			out, err := r.build(ctx, a, res, f, c)
			r.mu.Lock()
			delete(r.flying, equal)
			r.mu.Unlock()
			close(mine)
			r.builds.Done()
			return out, err
		}
		r.mu.Unlock()
		select {
		case <-others:
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for an equal build: %w", context.Cause(ctx))
		}
	}
}

// maxDeaths is for how many clusters an overlay may end its process before it is
// tried no more for others at that commit: another cluster's values might be what it needs, but a
// thousand clusters must not wait for a thousand ends.
const maxDeaths = 3

// build has a child build, and remembers what came of it.
func (r *Renderer) build(ctx context.Context, a source.Artifact, res render.Resolution, f clusters.Fleet, c clusters.Cluster) (*outcome, error) {
	grave := a.Revision.Commit + "\x00" + overlayKey(res)
	if r.died(grave, c.Name) >= maxDeaths {
		return nil, &render.Error{Code: render.OverBudget, File: res.Overlay, Message: fmt.Sprintf("it is not tried any more: its builds for %d other clusters at this commit took too long or ended their process", maxDeaths)}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(r.ctx, func() { cancel(errClosed) })()
	j := &job{Resolution: res, Cluster: c.Name, Labels: c.Labels, Fleet: f.Name, Limits: r.limits}
	d, err := r.pool.run(ctx, a.Files, j)
	if err != nil {
		if e, ok := errors.AsType[*render.Error](err); ok && ctx.Err() == nil {
			r.bury(grave, c.Name)
			return nil, e
		}
		return nil, err
	}
	out := d.outcome(res)
	r.remember(contentOf(a), res, out)
	return out, nil
}

// died counts the other clusters whose builds of it ended.
func (r *Renderer) died(grave, cluster string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.deaths[grave])
	if r.deaths[grave][cluster] {
		n--
	}
	return n
}

func (r *Renderer) bury(grave, cluster string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.deaths[grave] == nil {
		r.deaths[grave] = map[string]bool{}
	}
	r.deaths[grave][cluster] = true
}
