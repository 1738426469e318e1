package controller

import (
	"context"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/coverage"
	"rollcall.dev/rollcall/controller/gate"
	"rollcall.dev/rollcall/sync/source"
)

// Follower reads the world as it changes: what one cluster has now, and again
// after each change that matters, until the context ends or tell fails. Where
// nothing can change it returns nil after the first.
type Follower interface {
	Follow(ctx context.Context, c clusters.Cluster, w clusters.Want, tell func(clusters.Live) error) error
}

// Await is the line for one cluster that is followed: what Git wants there is
// rendered once, and tell is told how far the cluster has come at each look.
func (l Line) Await(ctx context.Context, a source.Artifact, c clusters.Cluster, f Follower, want gate.Condition, tell func([]gate.Progress) error) error {
	rendered, err := l.render(ctx, a, c)
	if err := failure(err); err != nil {
		return err
	}
	desired, options := l.wanted(rendered.DaemonSets), l.options(a, c, l.exceptions(c))
	return f.Follow(ctx, c, l.Want, func(live clusters.Live) error {
		judged := coverage.Compute(&live, l.subjects(desired, live.DaemonSets), options)
		return tell(gate.Judge(gate.Look{Live: &live, Coverage: judged, Options: options}, want))
	})
}
