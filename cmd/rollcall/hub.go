package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/clusters/hub"
	"rollcall.dev/rollcall/clusters/kube"
	"rollcall.dev/rollcall/clusters/registry"
	"rollcall.dev/rollcall/controller"
	"rollcall.dev/rollcall/controller/coverage"
	"rollcall.dev/rollcall/controller/report"
)

// hubTimeout bounds how long a hub that is silent holds up a report.
const hubTimeout = 30 * time.Second

// register finds the clusters of a fleet: in its folder, and in its hub.
func (f *fleet) register(ctx context.Context, s streams) error {
	load := registry.Load
	if f.Hub != nil {
		load = registry.Members
	}
	var err error
	if f.Directory != "" {
		if f.all, f.broken, err = load(under(f.dir, f.Directory), f.Policy); err != nil {
			return fmt.Errorf("%s: spec.clusters.directory: %w", f.file, err)
		}
	}
	if f.Hub == nil {
		return nil
	}
	f.hub = newHub(s, *f)
	found, err := f.hub.Load(ctx)
	if err != nil {
		return fmt.Errorf("%s: spec.clusters.hub: %w", f.file, err)
	}
	f.all, f.broken = found.Clusters, found.Broken
	return nil
}

// newHub wires a hub to its edge.
func newHub(s streams, f fleet) *registry.Hub {
	declared := *f.Hub
	declared.Kubeconfig.Paths = registry.Relative(f.dir, declared.Kubeconfig.Paths)
	return &registry.Hub{
		Declared: declared, Policy: f.Policy, Files: f.all, Broken: f.broken,
		Read: func(ctx context.Context, h clusters.Hub) (hub.Set, error) {
			observer := kube.Observer{Timeout: hubTimeout}
			defer func() { s.closed(&observer) }()
			return observer.Secrets(ctx, h, f.Policy)
		},
		Follow: func(ctx context.Context, h clusters.Hub, each func(hub.Set) error) error {
			observer := kube.Observer{Timeout: hubTimeout}
			defer func() { s.closed(&observer) }()
			return observer.FollowSecrets(ctx, h, f.Policy, each)
		},
	}
}

// closed waits for what an observer still does.
func (s streams) closed(o *kube.Observer) {
	if err := o.Close(); err != nil {
		s.tell("%v", err)
	}
}

// take puts the clusters of a fleet in the place of those that a pass had.
func (p *pass) take(f fleet) {
	p.clusters, p.failed, p.declared, p.hub = f.members, nil, nil, f.hub
	for _, b := range f.broken {
		p.failed = append(p.failed, report.Invalid(b.Name, b.File, b.Err))
	}
	p.narrowed = len(f.members) < len(f.all)
	if len(f.broken) == 0 { // else a target may match one whose labels are not known
		p.declared = controller.Declared(f.Fleet, f.all)
	}
}

// reload asks the hub again. That it could not be read is a finding.
func (f fleet) reload(ctx context.Context) (fleet, []report.Finding, error) {
	found, err := f.hub.Load(ctx)
	if err != nil {
		return f, nil, fmt.Errorf("%s: spec.clusters.hub: %w", f.file, err)
	}
	f.all, f.broken = found.Clusters, found.Broken
	if f.members, err = f.flags.choose(f.all); err != nil {
		return f, nil, err
	}
	if found.Stale == nil {
		return f, nil, nil
	}
	message := strings.ReplaceAll(found.Stale.Error(), "\n", "; ")
	return f, []report.Finding{report.NewFinding("", "RegistryStale", message, coverage.Cause{Kind: "fleet", Key: "hub"})}, nil
}

// register takes what the hub registers now. The first pass has that already.
func (p *pass) register(ctx context.Context) ([]report.Finding, error) {
	first := !p.begun
	p.begun = true
	if p.reload == nil || first {
		return nil, nil
	}
	f, stale, err := p.reload(ctx)
	if err != nil {
		return nil, err
	}
	p.take(f)
	return stale, nil
}

// follow keeps up with the hub's Secrets beside the passes. The returned
// function ends that and waits for it.
func (p *pass) follow(ctx context.Context) func() {
	if p.hub == nil {
		return func() {}
	}
	ctx, stop := context.WithCancel(ctx)
	var following sync.WaitGroup
	following.Go(func() { p.hub.Run(ctx) })
	return func() {
		stop()
		following.Wait()
	}
}
