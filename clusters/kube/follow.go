package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"rollcall.dev/rollcall/clusters"
)

// Follow reads what is wanted of a cluster, calls each with it, and again with
// all of it whenever something changed that a verdict depends on, and now and
// then without a change, since verdicts depend on the time as well. Each runs
// on the caller's goroutine and may keep what it gets.
//
// Follow ends when ctx does or each fails, with that error, and with a
// *clusters.ObserveError when the cluster could not be read for too long. What
// is not known to be current is never passed on.
func (o *Observer) Follow(ctx context.Context, c clusters.Cluster, w clusters.Want, each func(clusters.Live) error) error {
	s := &session{limit: cmp.Or(o.Timeout, time.Minute), following: true}
	s.at("loading the kubeconfig")
	if err := o.connect(c, s); err != nil {
		return s.fault(ctx, err)
	}
	defer s.close()
	ctx, stop := context.WithCancel(ctx)
	f := &follower{
		session: s, want: w, blanks: &blanks{}, rang: make(chan struct{}, 1), spaces: map[string]*space{}, renewed: map[string]time.Time{},
		quiet: cmp.Or(o.Quiet, 500*time.Millisecond), beat: cmp.Or(o.Beat, 15*time.Second), patience: cmp.Or(o.Patience, 30*time.Second),
	}
	defer f.running.Wait()
	defer stop()
	return f.run(ctx, each)
}

// follower keeps up with one cluster: a feed for each list, and one goroutine,
// the caller's, that makes a whole of them.
type follower struct {
	session  *session
	want     clusters.Want
	blanks   *blanks
	quiet    time.Duration // between two calls
	beat     time.Duration // after which it calls without a change
	patience time.Duration // with a cluster that cannot be read

	running sync.WaitGroup
	rang    chan struct{} // something changed

	version, identity string
	daemonSets        feedOf[daemonSet]
	nodes             feedOf[clusters.Node]
	spaces            map[string]*space // by namespace
	renewed           map[string]time.Time
	leasesRead        time.Time
	server            health    // by requests of its own
	others            []*health // of what is followed instead of the above
}

// space is what is followed of one namespace.
type space struct {
	stop      context.CancelFunc
	revisions feedOf[clusters.Revision]
	pods      feedOf[clusters.Pod]
	events    [3]feedOf[clusters.Event] // one a query
}

func (p *space) health() []*health {
	return []*health{&p.revisions.health, &p.pods.health, &p.events[0].health, &p.events[1].health, &p.events[2].health}
}

// ring tells that something changed; it never waits.
func (f *follower) ring() {
	select {
	case f.rang <- struct{}{}:
	default:
	}
}

func (f *follower) run(ctx context.Context, each func(clusters.Live) error) error {
	if err := f.greet(ctx); err != nil {
		return err
	}
	f.followCluster(ctx)
	var called time.Time
	changed := true
	for {
		if err := f.next(ctx, called, &changed); err != nil {
			return err
		}
		f.followNamespaces(ctx)
		if err := f.fault(ctx); err != nil {
			return err
		}
		if due := time.Since(called) >= f.beat; !changed && !due || !f.current(ctx, changed) {
			continue
		}
		live, err := f.snapshot(ctx)
		if err != nil {
			f.server.fail(err, time.Now())
			continue
		}
		changed = false
		if err := each(live); err != nil {
			return err
		}
		called = time.Now()
	}
}

// next waits until there is something to look at: a change, but no sooner than
// quiet after the last call, or a second.
func (f *follower) next(ctx context.Context, called time.Time, changed *bool) error {
	second := time.NewTimer(time.Second)
	defer second.Stop()
	select {
	case <-f.rang:
		*changed = true
	case <-second.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-time.After(max(0, f.quiet-time.Since(called))):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// greet reads what stays the same. It tries again as long as there is patience,
// unless the server has said no.
func (f *follower) greet(ctx context.Context) error {
	for {
		began := time.Now()
		err := f.ask(ctx, f.session.limit)
		if err == nil {
			return nil
		}
		f.server.fail(err, began)
		if err := f.fault(ctx); err != nil {
			return err
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// ask is a request that only a server that works answers.
func (f *follower) ask(ctx context.Context, within time.Duration) (err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if f.version, err = f.session.version(ctx); err != nil {
		return err
	}
	if f.identity == "" && !f.blanks.has("namespaces") {
		f.identity, err = f.session.identity(ctx, f.blanks)
	}
	if err == nil {
		f.server.good()
	}
	return err
}

// followNamespaces follows those that hold one of the DaemonSets, and no others.
func (f *follower) followNamespaces(ctx context.Context) {
	wanted := map[string]bool{}
	for _, ds := range f.daemonSets.all() {
		wanted[ds.Namespace] = true
	}
	for name, p := range f.spaces {
		if !wanted[name] {
			p.stop()
			delete(f.spaces, name)
		}
	}
	for name := range wanted {
		if f.spaces[name] == nil {
			f.spaces[name] = f.followNamespace(ctx, name)
		}
	}
}

// fault is the error that ends it: that something could not be read for too
// long, or that the server refuses what was never read.
func (f *follower) fault(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, h := range f.health() {
		since, ever, err := h.failing()
		if err == nil {
			continue
		}
		fault := f.session.fault(ctx, err)
		final := false
		if e, ok := errors.AsType[*clusters.ObserveError](fault); ok {
			final = !ever && e.State != clusters.Unreachable
		}
		if final || time.Since(since) >= f.patience {
			return fault
		}
	}
	return nil
}

func (f *follower) health() []*health {
	if f.others != nil {
		return append([]*health{&f.server}, f.others...)
	}
	all := []*health{&f.server, &f.daemonSets.health, &f.nodes.health}
	for _, name := range slices.Sorted(maps.Keys(f.spaces)) {
		all = append(all, f.spaces[name].health()...)
	}
	return all
}

// current tells whether all lists are known to be so. Silence is no proof: a
// server that says nothing may be gone, so it is asked.
func (f *follower) current(ctx context.Context, changed bool) bool {
	for _, h := range f.health()[1:] {
		if !h.current() {
			return false
		}
	}
	if _, _, err := f.server.failing(); err == nil && changed {
		return true
	}
	began := time.Now()
	if err := f.ask(ctx, 5*time.Second); err != nil {
		f.server.fail(err, began)
		return false
	}
	return true
}

// snapshot is all of it, as one observation.
func (f *follower) snapshot(ctx context.Context) (clusters.Live, error) {
	l := clusters.Live{Identity: f.identity, Version: f.version, Nodes: f.nodes.all()}
	for _, ds := range f.daemonSets.all() {
		l.DaemonSets = append(l.DaemonSets, ds.DaemonSet)
	}
	for _, name := range slices.Sorted(maps.Keys(f.spaces)) {
		p := f.spaces[name]
		l.Revisions = append(l.Revisions, p.revisions.all()...)
		l.Pods = append(l.Pods, p.pods.all()...)
		for i := range p.events {
			l.Events = append(l.Events, p.events[i].all()...)
		}
	}
	if err := f.leases(ctx, l.Nodes); err != nil {
		return clusters.Live{}, fmt.Errorf("reading leases: %w", err)
	}
	l.ObservedAt = time.Now().UTC()
	l.Blanks = f.blanks.list()
	if f.want.Forecast {
		l.Blanks = append([]clusters.Blank{{Resource: "claims", Reason: "what pods claim is not followed"}}, l.Blanks...)
	}
	return l, nil
}

// leases reads those of silent nodes, once a minute: they are not watched.
func (f *follower) leases(ctx context.Context, nodes []clusters.Node) error {
	if time.Since(f.leasesRead) >= time.Minute {
		ctx, cancel := context.WithTimeout(ctx, f.session.limit)
		defer cancel()
		if !f.blanks.has("leases") {
			if err := f.session.leases(ctx, nodes, f.blanks); err != nil {
				return err
			}
		}
		f.leasesRead = time.Now()
		clear(f.renewed)
		for i := range nodes {
			f.renewed[nodes[i].Name] = nodes[i].Lease
		}
	}
	for i := range nodes {
		nodes[i].Lease = f.renewed[nodes[i].Name]
	}
	return nil
}
