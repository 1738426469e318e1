package controller

import (
	"context"
	"sync"
	"time"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/plan"
	"rollcall.dev/rollcall/controller/report"
)

// Applier changes the world: it makes the changes of one cluster, stage by
// stage. A change that fails is a Result.
type Applier interface {
	Apply(ctx context.Context, c clusters.Cluster, b clusters.Batch, now func() time.Time) ([]clusters.Result, error)
}

// Applied is what became of one cluster's plan. An error beside results means
// that the inventory could not record them.
type Applied struct {
	Cluster string
	Results []clusters.Result // of what was not held
	Err     error
}

// Apply takes the actions that nothing holds, in every planned cluster side by
// side, and waits for all.
func Apply(ctx context.Context, a Applier, planned []Planned, deadline time.Duration, parallel int, p Progress) []Applied {
	if parallel <= 0 {
		parallel = len(planned)
	}
	slots := make(chan struct{}, max(parallel, 1))
	out := make([]Applied, len(planned))
	var wg sync.WaitGroup
	for i := range planned {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			p.Begin(planned[i].Cluster.Name)
			out[i] = applyOne(ctx, a, &planned[i], deadline)
			p.Done(planned[i].Cluster.Name, report.Cluster{})
		})
	}
	wg.Wait()
	return out
}

func applyOne(ctx context.Context, a Applier, p *Planned, deadline time.Duration) Applied {
	out := Applied{Cluster: p.Cluster.Name, Err: p.Err}
	if p.Err != nil {
		return out
	}
	batch, some := plan.BatchOf(p.Input, p.Plan)
	if !some {
		return out
	}
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	out.Results, out.Err = a.Apply(ctx, p.Cluster, batch, time.Now)
	return out
}
