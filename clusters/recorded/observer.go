// Package recorded observes a cluster from files: from what kubectl get or
// rollcall record wrote, at the time it was written, here or at an https
// location. It contacts no cluster and does not know what is decided about it.
package recorded

import (
	"context"
	"io"
	"sync"

	"rollcall.dev/rollcall/clusters"
)

// Observer observes recorded clusters. The file "-" is Stdin, which can be
// read only once. It remembers what locations gave, so that it is got again only
// when it changed.
type Observer struct {
	Stdin io.Reader

	mu   sync.Mutex
	last map[string]fetched
}

// Observe returns what the dumps or the snapshot of a cluster say of it. Its
// errors are all of type *clusters.ObserveError.
func (o *Observer) Observe(ctx context.Context, cl clusters.Cluster, want clusters.Want) (clusters.Live, error) {
	if len(cl.Recorded) == 1 && IsLocation(cl.Recorded[0]) {
		return o.remote(ctx, cl, want)
	}
	live, err := Read(ctx, o.Stdin, want, cl.Recorded...)
	if err != nil {
		return clusters.Live{}, failed("reading the dump", err)
	}
	return live, nil
}

// Read returns what dumps say of one cluster: JSON or YAML as kubectl get
// prints it, also compressed by gzip, or folders of such files; "-" is stdin.
// Of an object that is in two of them the later one counts.
//
// A dump without nodes, pods or DaemonSets is an error, never an empty
// observation; without controllerrevisions, events or namespaces these are
// blank. Leases of kube-node-lease tell of a node what they can. The observation is dated by the dump's Recording header, else by the
// newest time in the dump; it has no date where the dump has no time at all.
func Read(ctx context.Context, stdin io.Reader, want clusters.Want, files ...string) (clusters.Live, error) {
	all, err := expand(files)
	if err != nil {
		return clusters.Live{}, err
	}
	c := newCollector(want)
	for _, name := range all {
		if err := c.file(ctx, stdin, name); err != nil {
			return clusters.Live{}, err
		}
	}
	return c.live()
}
