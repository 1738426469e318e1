// Package kube observes live clusters through their API servers, in pages,
// within a deadline and within bounds of memory. It is the only user of
// client-go's REST clients and does not know what is decided about a cluster.
package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/serializer"

	"rollcall.dev/rollcall/clusters"
)

// Observer observes clusters by their kubeconfigs. Its zero value is ready;
// one Observer serves many clusters at once. A field that is zero means the
// default that stands beside it.
type Observer struct {
	Guard      string        // binary that answers GuardCommand with ExecGuard; this process's own
	PageSize   int           // objects asked for at once; 500
	MaxPages   int           // of one list; 4,000
	BodyLimit  int64         // bytes of one answer, unpacked; 256 MiB
	TotalLimit int64         // bytes of one observation, unpacked; 1 GiB
	Timeout    time.Duration // of an observation whose context has no deadline; 1 minute
	Slack      time.Duration // that libraries get to return after the deadline; 500 ms
	Quiet      time.Duration // between two calls of Follow; 500 ms
	Beat       time.Duration // after which Follow calls without a change; 15 s
	Patience   time.Duration // of Follow with a cluster that cannot be read; 30 s

	once   sync.Once
	codecs serializer.CodecFactory

	mu      sync.Mutex
	running int           // observations whose goroutine has not ended
	idle    chan struct{} // closed when running becomes 0; nil while it is 0
}

// Observe reads what is wanted of a cluster. It returns at the context's
// deadline even where a library or an exec plugin does not. Its error is always
// a *clusters.ObserveError.
func (o *Observer) Observe(ctx context.Context, c clusters.Cluster, w clusters.Want) (clusters.Live, error) {
	return within(ctx, o, c, func(ctx context.Context, s *session) (clusters.Live, error) {
		return s.read(ctx, w)
	})
}

// Close waits for calls that were abandoned at their deadline and whose
// libraries have not returned yet. It gives up after ten seconds and says so;
// what is then left ends with the process.
func (o *Observer) Close() error {
	o.mu.Lock()
	idle, running := o.idle, o.running
	o.mu.Unlock()
	if idle == nil {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-time.After(10 * time.Second):
		return fmt.Errorf("closing the observer: up to %d calls to clusters did not return", running)
	}
}

// within runs f in a goroutine that the Observer owns, and waits for it no
// longer than the deadline and the slack.
func within[T any](ctx context.Context, o *Observer, c clusters.Cluster, f func(context.Context, *session) (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	start := time.Now()
	ctx, cancel := o.limit(ctx)
	defer cancel()
	deadline, _ := ctx.Deadline()
	s := &session{limit: deadline.Sub(start)}
	s.at("loading the kubeconfig")
	done := make(chan result, 1)
	o.begin()
	go func() {
		defer o.end()
		var r result
		if r.err = o.connect(c, s); r.err == nil {
			defer s.close()
			r.value, r.err = f(ctx, s)
		}
		done <- r
	}()
	select {
	case r := <-done:
		return r.value, s.fault(ctx, r.err)
	case <-ctx.Done():
	}
	select {
	case r := <-done:
		return r.value, s.fault(ctx, r.err)
	case <-time.After(cmp.Or(o.Slack, 500*time.Millisecond)):
		var none T
		return none, s.fault(ctx, ctx.Err())
	}
}

func (o *Observer) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, cmp.Or(o.Timeout, time.Minute))
}

func (o *Observer) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.running++; o.idle == nil {
		o.idle = make(chan struct{})
	}
}

func (o *Observer) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.running--; o.running == 0 {
		close(o.idle)
		o.idle = nil
	}
}

func (o *Observer) guard() (string, error) {
	if o.Guard != "" {
		return o.Guard, nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("looking for this process's own binary, which starts exec plugins: %w", err)
	}
	return self, nil
}

// errNoKubeconfig is a caller's mistake: the cluster is a recorded one.
var errNoKubeconfig = errors.New("the cluster has no kubeconfig")
