package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller"
	"rollcall.dev/rollcall/controller/gate"
	"rollcall.dev/rollcall/controller/report"
	"rollcall.dev/rollcall/sync/source"
)

// waiter follows clusters side by side until all are as they are waited for.
type waiter struct {
	streams  streams
	line     controller.Line
	follower controller.Follower
	artifact source.Artifact
	want     gate.Condition
	settle   time.Duration
	clusters []*waited
}

// waited is one cluster as it was last seen. It belongs to the goroutine that
// collects; end is set by the one that follows, and read once that has ended.
type waited struct {
	cluster clusters.Cluster
	targets []gate.Progress
	looked  bool
	done    bool // nothing more will be seen of it
	err     error
	end     error
}

// news is what was seen of a cluster, or that nothing more will be.
type news struct {
	of      *waited
	targets []gate.Progress
	done    bool
	err     error
}

// Follow looks at a recorded cluster once and follows a real one.
func (o *observers) Follow(ctx context.Context, c clusters.Cluster, w clusters.Want, tell func(clusters.Live) error) error {
	if len(c.Recorded) == 0 {
		return o.kube.Follow(ctx, c, w, tell)
	}
	live, err := o.recorded.Observe(ctx, c, w)
	if err != nil {
		return err
	}
	return tell(live)
}

// run returns when all that can be read is as it is waited for and has settled,
// when nothing can change any more, or when ctx ends.
func (w *waiter) run(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	seen := make(chan news)
	var wg sync.WaitGroup
	for _, c := range w.clusters {
		if c.done {
			w.streams.tell("%s: %v", c.cluster.Name, c.err)
			continue
		}
		wg.Go(func() { w.follow(ctx, c, seen) })
	}
	w.collect(ctx, seen)
	stop()
	wg.Wait()
	for _, c := range w.clusters {
		if !c.looked && c.err == nil {
			c.err = c.end
		}
	}
}

func (w *waiter) follow(ctx context.Context, c *waited, seen chan<- news) {
	send := func(n news) error {
		select {
		case seen <- n:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	err := w.line.Await(ctx, w.artifact, c.cluster, w.follower, w.want, func(targets []gate.Progress) error {
		return send(news{of: c, targets: targets})
	})
	if c.end = err; err == nil || err == ctx.Err() { // the observer says more where it was at work
		c.end = errors.New("it could not be looked at in time")
	}
	if ctx.Err() == nil {
		_ = send(news{of: c, done: true, err: err}) // at the end of ctx nobody listens
	}
}

// collect takes what is seen. What is met must hold for a while: until then
// any change to the worse begins the while anew.
func (w *waiter) collect(ctx context.Context, seen <-chan news) {
	var settled <-chan time.Time
	for !w.over() {
		select {
		case n := <-seen:
			worse := w.take(n)
			if !w.met() {
				settled = nil
			} else if settled == nil || worse {
				settled = time.After(w.settle)
			}
		case <-settled:
			return
		case <-ctx.Done():
			return
		}
	}
}

// over tells whether nothing more will be seen of any cluster.
func (w *waiter) over() bool {
	for _, c := range w.clusters {
		if !c.done {
			return false
		}
	}
	return true
}

// met tells whether all is well in the clusters of which more may be seen: the
// others will not get better.
func (w *waiter) met() bool {
	for _, c := range w.clusters {
		if !c.done && !c.met() {
			return false
		}
	}
	return true
}

func (c *waited) met() bool {
	for _, t := range c.targets {
		if !t.Met {
			return false
		}
	}
	return c.looked && c.err == nil
}

// take notes what was seen and tells what of it is new.
func (w *waiter) take(n news) (worse bool) {
	c := n.of
	if n.done {
		if c.done, c.err = true, n.err; n.err != nil {
			w.streams.tell("%s: %v", c.cluster.Name, n.err)
		}
		return false
	}
	if len(n.targets) == 0 && (!c.looked || len(c.targets) > 0) {
		w.streams.tell("%s: nothing of it is waited for here", c.cluster.Name)
	}
	before := map[string]gate.Progress{}
	for _, t := range c.targets {
		before[t.Target] = t
	}
	for _, t := range n.targets {
		b, known := before[t.Target]
		if worse = worse || known && t.WorseThan(b); !known || line(t) != line(b) {
			w.streams.tell("%s %s: %s", c.cluster.Name, t.Target, line(t))
		}
	}
	c.targets, c.looked = n.targets, true
	return worse
}

func line(t gate.Progress) string {
	if t.Met {
		return "met: " + t.String()
	}
	return t.String()
}

// nothing is the mistake of waiting for what no cluster is to have: that must
// not pass.
func (w *waiter) nothing() error {
	for _, c := range w.clusters {
		if len(c.targets) > 0 || !c.looked {
			return nil
		}
	}
	what, where := "", "Git has no such DaemonSet for"
	switch {
	case w.want.Agent != "":
		what, where = "agent/"+w.want.Agent+": ", "there is no such agent in"
	case w.want.Name != "":
		what = "ds/" + w.want.Name + ": "
	}
	return fmt.Errorf("%snothing to wait for: %s %s", what, where, w.names())
}

func (w *waiter) names() string {
	var cs []clusters.Cluster
	for _, c := range w.clusters {
		cs = append(cs, c.cluster)
	}
	return clusterNames(cs)
}

// status is 3 where a cluster could not be read, else 1 where one was not met.
func (w *waiter) status() error {
	failed, unmet := 0, []string{}
	for _, c := range w.clusters {
		if c.err != nil {
			failed++
			continue
		}
		for _, t := range c.targets {
			if !t.Met {
				unmet = append(unmet, c.cluster.Name+" "+t.Target)
			}
		}
	}
	text := strings.Join(unmet[:min(3, len(unmet))], ", ")
	if more := len(unmet) - 3; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	switch {
	case failed > 0 && text != "":
		return &outcome{exitIncomplete, fmt.Sprintf("%d of %d clusters could not be read; not met: %s", failed, len(w.clusters), text)}
	case failed > 0:
		return &outcome{exitIncomplete, fmt.Sprintf("%d of %d clusters could not be read", failed, len(w.clusters))}
	case text != "":
		return &outcome{exitFound, "not met: " + text}
	}
	return nil
}

// ended is the final state as -o json shows it.
type ended struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	For        string         `json:"for"`
	Met        bool           `json:"met"`
	Clusters   []endedCluster `json:"clusters"`
}

type endedCluster struct {
	Name    string          `json:"name"`
	Met     bool            `json:"met"`
	Error   string          `json:"error,omitempty"`
	Targets []gate.Progress `json:"targets"`
}

func (w *waiter) ended() ended {
	e := ended{APIVersion: clusters.APIVersion, Kind: "Wait", For: w.want.String(), Met: true, Clusters: []endedCluster{}}
	for _, c := range w.clusters {
		one := endedCluster{Name: c.cluster.Name, Met: c.met(), Targets: append([]gate.Progress{}, c.targets...)}
		if c.err != nil {
			one.Error = c.err.Error()
		}
		e.Clusters = append(e.Clusters, one)
		e.Met = e.Met && one.Met
	}
	return e
}

func (w *waiter) print(output string) error {
	if output == "json" {
		return writeJSON(w.streams.out, w.ended())
	}
	t := tabwriter.NewWriter(w.streams.out, 0, 0, 2, ' ', 0)
	for _, c := range w.clusters {
		name := report.Printable(c.cluster.Name)
		if c.err != nil {
			fmt.Fprintf(t, "%s\t\tUNKNOWN\t%s\n", name, report.Printable(strings.ReplaceAll(c.err.Error(), "\n", "; ")))
		}
		for _, p := range c.targets {
			result := "met"
			if !p.Met {
				result = "NOT MET"
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", name, report.Printable(p.Target), result, report.Printable(p.String()))
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return w.printBlockers()
}

// shownBlockers is how many nodes of a target are shown with their reasons.
const shownBlockers = 10

func (w *waiter) printBlockers() error {
	t := tabwriter.NewWriter(w.streams.out, 0, 0, 2, ' ', 0)
	for _, c := range w.clusters {
		for _, p := range c.targets {
			for _, b := range p.Blockers[:min(shownBlockers, len(p.Blockers))] {
				fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\n", report.Printable(c.cluster.Name), report.Printable(b.Node), b.State, b.Code, report.Printable(b.Message))
			}
			if more := len(p.Blockers) - shownBlockers; more > 0 {
				fmt.Fprintf(t, "  %s\tand %d more\n", report.Printable(c.cluster.Name), more)
			}
		}
	}
	return t.Flush()
}
