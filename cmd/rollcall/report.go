package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/clusters/registry"
	"rollcall.dev/rollcall/sync/gitrepo"
	"rollcall.dev/rollcall/sync/schedule"
	"rollcall.dev/rollcall/sync/source"
)

// fleetFlags choose a fleet file and which of its clusters.
type fleetFlags struct {
	file     string
	clusters string
}

func (f *fleetFlags) bind(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.file, "filename", "f", "rollcall.yaml", "the fleet `FILE`")
	cmd.Flags().StringVar(&f.clusters, "clusters", "", "only these clusters: `NAMES` with commas, or a label selector such as env=prod")
}

func reportCommand(s streams) *cobra.Command {
	var f fleetFlags
	var w wantFlags
	var o outputFlags
	var watch bool
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Judge every registered cluster against Git: what should be, what is, and why not",
		Example: `  rollcall report -f rollcall.yaml
  rollcall report -f rollcall.yaml --clusters env=prod -o table -o json=report.json
  rollcall report -f rollcall.yaml -o markdown > comment.md
  rollcall report -f rollcall.yaml --watch`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runReport(cmd.Context(), s, f, w, o, watch)
		},
	}
	f.bind(cmd)
	w.bind(cmd)
	o.bind(cmd)
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "run again on the source's poll schedule (without a source: policy.observe); the fleet file and Cluster files are read once, the hub's Secrets each time")
	return cmd
}

func runReport(ctx context.Context, s streams, f fleetFlags, w wantFlags, o outputFlags, watch bool) error {
	if err := o.check(); err != nil {
		return err
	}
	want, err := w.want("")
	if err != nil {
		return err
	}
	loaded, err := f.load(ctx, s)
	if err != nil {
		return err
	}
	want.Powers = true
	p, err := loaded.pass(s, want, w.timeout, o)
	if err != nil {
		return err
	}
	defer p.close()
	if watch {
		return p.watch(ctx)
	}
	r, err := p.once(ctx)
	if err != nil {
		return err
	}
	if err := o.write(s, r); err != nil {
		return err
	}
	return o.status(r)
}

// fleet is a fleet file with its clusters, and what is wrong with them.
type fleet struct {
	clusters.Fleet
	file    string
	dir     string
	members []clusters.Cluster
	broken  []registry.Broken
	all     []clusters.Cluster // members before --clusters
	flags   fleetFlags
	hub     *registry.Hub     // nil without one
	chosen  func(string) bool // where all is looked at and only some of it is planned
}

func (f *fleetFlags) load(ctx context.Context, s streams) (fleet, error) {
	out, err := f.parse(s)
	if err != nil {
		return fleet{}, err
	}
	if err := out.register(ctx, s); err != nil {
		return fleet{}, err
	}
	out.members, err = f.choose(out.all)
	return out, err
}

// parse reads the fleet file and looks for no cluster.
func (f *fleetFlags) parse(s streams) (fleet, error) {
	data, err := readFleetFile(f.file)
	if errors.Is(err, os.ErrNotExist) {
		return fleet{}, fmt.Errorf("reading the fleet file: %q is not there: name it with -f, or run \"rollcall scan\", which needs none", f.file)
	}
	if err != nil {
		return fleet{}, fmt.Errorf("reading the fleet file: %w", err)
	}
	parsed, err := clusters.ParseFleet(f.file, data)
	if err != nil {
		return fleet{}, err
	}
	for _, note := range clusters.Unimplemented(parsed) {
		s.tell("note: %s: %s", f.file, note)
	}
	return fleet{Fleet: parsed, file: f.file, dir: filepath.Dir(f.file), flags: *f}, nil
}

// maxFleetFile is beyond what clusters accepts, so that it is the one to refuse.
const maxFleetFile = 16 << 20

func readFleetFile(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFleetFile))
}

func under(dir, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// choose applies --clusters.
func (f *fleetFlags) choose(all []clusters.Cluster) ([]clusters.Cluster, error) {
	if f.clusters == "" {
		return all, nil
	}
	match, err := f.matcher(all)
	if err != nil {
		return nil, err
	}
	var out []clusters.Cluster
	for _, c := range all {
		if match(c) {
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("--clusters %q matches none of %s", f.clusters, clusterNames(all))
	}
	return out, nil
}

func (f *fleetFlags) matcher(all []clusters.Cluster) (func(clusters.Cluster) bool, error) {
	if strings.ContainsAny(f.clusters, "=!() ") {
		sel, err := labels.Parse(f.clusters)
		if err != nil {
			return nil, fmt.Errorf("--clusters %q: %w", f.clusters, err)
		}
		return func(c clusters.Cluster) bool { return sel.Matches(labels.Set(c.Labels)) }, nil
	}
	wanted := strings.Split(f.clusters, ",")
	for _, n := range wanted {
		if !slices.ContainsFunc(all, func(c clusters.Cluster) bool { return c.Name == n }) {
			return nil, fmt.Errorf("--clusters: there is no cluster %q: there are %s", n, clusterNames(all))
		}
	}
	return func(c clusters.Cluster) bool { return slices.Contains(wanted, c.Name) }, nil
}

func clusterNames(cs []clusters.Cluster) string {
	names := make([]string, 0, len(cs))
	for _, c := range cs {
		names = append(names, c.Name)
	}
	return strings.Join(names, ", ")
}

// pass wires a fleet to its edges.
func (f fleet) pass(s streams, want clusters.Want, timeout time.Duration, o outputFlags) (*pass, error) {
	p := newPass(s, f.Fleet, f.members, want, timeout, o)
	p.take(f)
	if f.hub != nil {
		p.reload = f.reload
	}
	if f.Source == nil {
		return p, nil
	}
	src, err := f.open()
	if err != nil {
		p.close()
		return nil, err
	}
	p.fetcher = src
	return p, nil
}

// repository is a fleet's source. Its errors name the field that is to blame.
type repository struct {
	file string
	*gitrepo.Repository
}

// Fetch returns the commit that the source points to now.
func (r repository) Fetch(ctx context.Context) (source.Artifact, error) {
	a, err := r.Repository.Fetch(ctx)
	if err == nil {
		return a, nil
	}
	field := "spec.source.url"
	switch {
	case errors.Is(err, gitrepo.ErrRefNotFound):
		field = "spec.source.ref"
	case errors.Is(err, gitrepo.ErrPathNotFound):
		field = "spec.source.path"
	case errors.Is(err, gitrepo.ErrUnauthorized), errors.Is(err, gitrepo.ErrHostKey):
		field = "spec.source.auth"
	case errors.Is(err, gitrepo.ErrSignature):
		field = "spec.source.verify"
	}
	return a, fmt.Errorf("%s: %s: %w", r.file, field, err)
}

func (f fleet) open() (repository, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return repository{}, fmt.Errorf("finding the cache folder: %w", err)
	}
	repo, err := gitrepo.Open(f.gitConfig(filepath.Join(cache, "rollcall", "git")))
	if err != nil {
		return repository{}, fmt.Errorf("%s: spec.source: %w", f.file, err)
	}
	return repository{f.file, repo}, nil
}

// gitConfig is a fleet's source as declared, its files beside the fleet file.
func (f fleet) gitConfig(cache string) gitrepo.Config {
	src, here := f.Source, func(path string) string { return under(f.dir, path) }
	url := src.URL
	if before, _, remote := strings.Cut(url, ":"); !remote || strings.Contains(before, "/") {
		url = here(url) // a path; anything else, git@host:path too, names a server
	}
	c := gitrepo.Config{
		URL: url, Ref: gitrepo.Ref(src.Ref), Path: src.Path, Cache: cache,
		Auth: gitrepo.Auth{
			TokenFile: here(src.Auth.TokenFile), Username: src.Auth.Username, PasswordFile: here(src.Auth.PasswordFile),
			CAFile: here(src.Auth.CAFile), CertFile: here(src.Auth.CertFile), KeyFile: here(src.Auth.KeyFile),
		},
	}
	if k := src.Auth.SSH; k != nil {
		c.Auth.SSH = gitrepo.SSH{KeyFile: here(k.KeyFile), PassphraseFile: here(k.PassphraseFile), Agent: k.Agent, KnownHostsFile: here(k.KnownHostsFile)}
	}
	if app := src.Auth.GitHubApp; app != nil {
		c.Auth.GitHubApp = gitrepo.GitHubApp{AppID: app.AppID, InstallationID: app.InstallationID, KeyFile: here(app.KeyFile), APIURL: app.APIURL}
	}
	if v := src.Verify; v != nil {
		c.Verify = gitrepo.Verify{Object: v.Object, AllowedSignersFile: here(v.AllowedSignersFile), OpenPGPKeysFile: here(v.OpenPGPKeysFile)}
	}
	return c
}

// ticks is when a fleet is looked at again: its source's poll, or its own
// observe without a source.
func ticks(f clusters.Fleet) (field string, s schedule.Schedule, err error) {
	field, spec, zone := "spec.policy.observe", f.Policy.Observe, "UTC"
	if f.Source != nil {
		field, spec, zone = "spec.source.poll", f.Source.Poll, f.Source.TimeZone
	}
	if s, err = schedule.Parse(spec, zone); err != nil {
		err = fmt.Errorf("%s: %w", field, err)
	}
	return field, s, err
}

// watch prints a report now and at every tick until it is interrupted. A pass
// that fails is told and the next tick comes all the same.
func (p *pass) watch(ctx context.Context) error {
	_, ticks, err := ticks(p.line.Fleet)
	if err != nil {
		return err
	}
	defer p.follow(ctx)()
	for {
		if r, err := p.once(ctx); err == nil {
			if err := p.output.write(p.streams, r); err != nil {
				return err
			}
		} else if ctx.Err() == nil {
			p.streams.tell("%v", err)
		}
		timer := time.NewTimer(time.Until(ticks.Next(time.Now())))
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
}

// only is the cluster of a fleet that a single-cluster verb is about.
func (f fleet) only(name string) (clusters.Cluster, error) {
	if name == "" && len(f.members) == 1 {
		return f.members[0], nil
	}
	for _, c := range f.members {
		if c.Name == name {
			return c, nil
		}
	}
	if name == "" {
		return clusters.Cluster{}, fmt.Errorf("name one cluster: there are %s", clusterNames(f.members))
	}
	return clusters.Cluster{}, fmt.Errorf("there is no cluster %q: there are %s", name, clusterNames(f.members))
}
