package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/gate"
)

// waitFlags choose what is waited for, where, and for how long.
type waitFlags struct {
	lookFlags // its timeout is that of the wait as a whole
	files     []string
	clusters  string
	fors      []string
	revision  string
	settle    time.Duration
	output    string
}

const waitLong = `Wait until DaemonSets, or an agent of the fleet file, are as asked: covered,
and up to date unless --for says otherwise. With a fleet file that has a source
the DaemonSets of Git count, and Git's template says which nodes are meant.

A node counts if it is meant to run the DaemonSet. Left out, counted by ground
and told, are nodes that say nothing of it:
  Leaving       on its way out
  excused       by an exception of the fleet file or the node's annotation
  NodeNotReady  not heard from: what its pod does is not known
  starting      joined less than the startup grace ago and does not run it yet; a
                node older than the DaemonSet's last change counts
Nodes that were meant to run it and no longer are (a new taint, a patched
selector) block, unless they are excused: the count does not shrink in silence.
A DaemonSet that is not there blocks too.

  coverage=98%  that share of the counted nodes has a ready pod
  upToDate      all of them have a ready pod of the current revision, and the
                DaemonSet controller has seen the newest template
  --revision R  and the current revision is R: the number, hash or name of a
                ControllerRevision, or git: what Git's template makes. Without it
                a change that has not arrived yet is not waited for.
Without --for, an agent's own min is waited for, and upToDate for all else.

What changes is told on standard error, the result on standard output. A dump
does not change: it is met or not.

Exit status: 0 met, 1 not met in time, 2 bad input, 3 a cluster could not be
read (the others are waited for all the same), 130 interrupted.`

func waitCommand(s streams) *cobra.Command {
	var f waitFlags
	cmd := &cobra.Command{
		Use:   "wait [ds/NAME | agent/NAME]",
		Short: "Wait until DaemonSets are covered and up to date, and tell who blocks",
		Long:  waitLong,
		Example: `  rollcall wait ds/logger -n obs
  rollcall wait ds/logger -n obs --revision 7 --timeout 20m
  rollcall wait -f rollcall.yaml --clusters env=prod --revision git
  rollcall wait agent/falco -f rollcall.yaml --for coverage=98% -o json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return wait(cmd.Context(), s, f, args) },
	}
	f.lookFlags.bind(cmd)
	flags := cmd.Flags()
	timeout := flags.Lookup("timeout")
	timeout.Usage, timeout.DefValue, f.timeout = "how long to wait at most", "10m0s", 10*time.Minute
	flags.StringArrayVarP(&f.files, "filename", "f", nil, "a fleet file, or dumps: `FILE`, - for standard input")
	flags.StringVar(&f.clusters, "clusters", "", "only these clusters of the fleet file: `NAMES` with commas, or a label selector such as env=prod")
	flags.StringArrayVar(&f.fors, "for", nil, "a `CONDITION`, repeatable: coverage=98% or upToDate")
	flags.StringVar(&f.revision, "revision", "", "the revision that must be current: number, hash or name, or git")
	flags.DurationVar(&f.settle, "settle", 2*time.Second, "how long it must hold before it counts")
	flags.StringVarP(&f.output, "output", "o", "text", "text or json")
	return cmd
}

func wait(ctx context.Context, s streams, f waitFlags, args []string) error {
	condition, want, err := f.condition(args)
	if err != nil {
		return err
	}
	p, broken, err := f.pass(ctx, s, want)
	if err != nil {
		return err
	}
	defer p.close()
	condition.InGit = p.fetcher != nil
	if err := askable(condition, p.line.Fleet); err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	a, _, err := p.fetch(within)
	if err != nil {
		return err
	}
	w := &waiter{streams: s, line: p.line, follower: p.observer, artifact: a, want: condition, settle: f.settle}
	for _, c := range p.clusters {
		w.clusters = append(w.clusters, &waited{cluster: c})
	}
	w.clusters = append(w.clusters, broken...)
	w.run(within)
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := w.nothing(); err != nil {
		return err
	}
	if err := w.print(f.output); err != nil {
		return err
	}
	return w.status()
}

// condition is what the flags and the argument ask for, and what to observe for
// it: of an agent all DaemonSets, since any may belong to it.
func (f *waitFlags) condition(args []string) (gate.Condition, clusters.Want, error) {
	c, err := gate.Parse(f.fors)
	if err != nil {
		return c, clusters.Want{}, fmt.Errorf("--for %w", err)
	}
	agent, isAgent := strings.CutPrefix(append(args, "")[0], "agent/")
	if isAgent {
		c.Agent, args = agent, nil
	}
	c.Name, c.Revision = daemonSetName(args), f.revision
	if len(f.fors) == 0 && !isAgent {
		c.Coverage, c.UpToDate = 100, true
	}
	switch {
	case isAgent && agent == "" || len(args) == 1 && (c.Name == "" || strings.Contains(c.Name, "/")):
		return c, clusters.Want{}, fmt.Errorf("name a DaemonSet or an agent: rollcall wait [ds/NAME | agent/NAME]")
	case isAgent && f.namespace+f.selector != "":
		return c, clusters.Want{}, fmt.Errorf("an agent says itself which DaemonSets are its own: agent/%s does not go with -n or -l", agent)
	case f.revision != "" && f.revision != gate.Git && c.Name == "":
		return c, clusters.Want{}, fmt.Errorf("--revision %q is of one DaemonSet: name it with ds/NAME", f.revision)
	case f.settle < 0:
		return c, clusters.Want{}, fmt.Errorf("--settle %s: must not be negative", f.settle)
	case f.output != "text" && f.output != "json":
		return c, clusters.Want{}, fmt.Errorf("--output %q: use text or json", f.output)
	}
	want, err := f.want(c.Name)
	return c, want, err
}

// pass wires the clusters that are named: of a fleet file, of dumps or of
// contexts. Those of the fleet whose declaration is wrong are not read.
func (f *waitFlags) pass(ctx context.Context, s streams, want clusters.Want) (*pass, []*waited, error) {
	o := outputFlags{nodes: "attention"}
	if len(f.files) == 1 && isFleetFile(f.files[0]) {
		if f.kubeconfig+f.context+f.contexts != "" || f.allContexts {
			return nil, nil, fmt.Errorf("the fleet file says which clusters there are: -f %s does not go with --kubeconfig, --context, --contexts or --all-contexts", f.files[0])
		}
		fleet := fleetFlags{file: f.files[0], clusters: f.clusters}
		loaded, err := fleet.load(ctx, s)
		if err != nil {
			return nil, nil, err
		}
		var broken []*waited
		for _, b := range loaded.broken {
			broken = append(broken, &waited{cluster: clusters.Cluster{Name: b.Name, File: b.File}, err: b.Err, done: true})
		}
		p, err := loaded.pass(s, want, f.timeout, o)
		return p, broken, err
	}
	if f.clusters != "" {
		return nil, nil, fmt.Errorf("--clusters chooses of the clusters of a fleet file: give that with -f")
	}
	f.dumps = f.files
	cs, err := f.lookFlags.clusters()
	if err != nil {
		return nil, nil, err
	}
	return newPass(s, clusters.Fleet{}, cs, want, f.timeout, o), nil, nil
}

// askable refuses what can never be met for want of a fleet file that says it.
// Agents of annotations are named like DaemonSets, and only clusters know them.
func askable(c gate.Condition, f clusters.Fleet) error {
	if c.Revision == gate.Git && !c.InGit {
		return fmt.Errorf("--revision git: there is no Git: give a fleet file with spec.source with -f")
	}
	if c.Agent == "" || strings.Contains(c.Agent, "/") || slices.ContainsFunc(f.Agents, func(a clusters.Agent) bool { return a.Name == c.Agent }) {
		return nil
	}
	if len(f.Agents) == 0 {
		return fmt.Errorf("agent %q is not declared: give the fleet file whose spec.agents has it with -f", c.Agent)
	}
	var names []string
	for _, a := range f.Agents {
		names = append(names, a.Name)
	}
	return fmt.Errorf("agent %q is not declared: there are %s", c.Agent, strings.Join(names, ", "))
}
