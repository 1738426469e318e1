package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller"
	"rollcall.dev/rollcall/controller/plan"
	"rollcall.dev/rollcall/controller/report"
	"rollcall.dev/rollcall/sync/gitrepo"
	"rollcall.dev/rollcall/sync/source"
)

// planFlags say between what to plan, and against which clusters.
type planFlags struct {
	look          lookFlags
	files         []string
	clusters      string
	from, to      string
	before, after string
	repository    string
	server        string
	tokenFile     string
	caFile        string
	adopt         []string
	output        string
}

func planCommand(s streams) *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Show what a revision would change: objects, and the nodes that gain, lose or restart a pod",
		Long: `Show what would be done to make clusters what Git says, and what that means for
their nodes. Without further flags that is from what lives to the newest commit.
With --from and --to it is between two revisions, with --before and --after
between two folders of YAML rendered by any tool: a check for a pull request,
which needs recorded clusters or a running rollcall only (--server).

Whether a pod fits is an estimate. Nothing is changed: rollcall apply does that.

Exit status: 0, also when there is something to do; 1 nodes lose their pod or
could not take it; 2 bad input, source or flags; 3 a cluster could not be read
or rendered.`,
		Example: `  rollcall plan -f rollcall.yaml --clusters env=prod
  rollcall plan -f rollcall.yaml --from main --to refs/pull/12/head -o markdown
  rollcall plan -f rollcall.yaml --repository . --from "$BASE_SHA" --to "$HEAD_SHA" -o markdown
  rollcall plan --before rendered/main --after rendered/pr --contexts 'prod-*'
  rollcall plan -f rollcall.yaml --before a --after b --server https://rollcall.example --token-file token`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), s) },
	}
	f.look.bind(cmd)
	flags := cmd.Flags()
	flags.StringArrayVarP(&f.files, "filename", "f", nil, "the fleet `FILE` (default rollcall.yaml), or with --before and --after dumps")
	flags.StringVar(&f.clusters, "clusters", "", "only these clusters: `NAMES` with commas, or a label selector such as env=prod")
	flags.StringVar(&f.from, "from", "", "plan from this `REVISION`, not from what lives: a branch, tag, full ref or commit")
	flags.StringVar(&f.to, "to", "", "plan to this `REVISION` (default: the fleet's ref)")
	flags.StringVar(&f.before, "before", "", "plan from this `FOLDER` of rendered YAML")
	flags.StringVar(&f.after, "after", "", "plan to this `FOLDER` of rendered YAML")
	flags.StringVar(&f.repository, "repository", "", "read the revisions from this clone, a `FOLDER`, in place of spec.source.url")
	flags.StringVar(&f.server, "server", "", "look at clusters through a running rollcall: its `URL`")
	flags.StringVar(&f.tokenFile, "token-file", "", "the read token for --server: a `FILE`")
	flags.StringVar(&f.caFile, "ca-file", "", "what signs the certificate of --server: a `FILE`")
	flags.StringSliceVar(&f.adopt, "adopt", nil, "plan to take over these objects from who deploys them: `KIND/NAMESPACE/NAME`")
	flags.StringVarP(&f.output, "output", "o", "text", "text, json or markdown")
	return cmd
}

func (f *planFlags) run(ctx context.Context, s streams) error {
	if err := f.check(); err != nil {
		return err
	}
	p, loaded, err := f.pass(ctx, s)
	if err != nil {
		return err
	}
	defer p.close()
	ahead, from, to, stale, err := f.ahead(ctx, p, loaded)
	if err != nil {
		return err
	}
	planned := controller.Plan(ctx, p.line, ahead, p.clusters, parallelClusters, newProgress(s, len(p.clusters)))
	if err := ctx.Err(); err != nil {
		return err
	}
	planned = append(planned, p.undeclared()...)
	if ahead.From == nil {
		controller.Across(p.line.Fleet, planned, ahead.To.Revision.Commit, p.line.Fleet.Approvals, time.Now())
		planned = slices.DeleteFunc(planned, func(x controller.Planned) bool { return !loaded.chosen(x.Cluster.Name) })
	}
	out := sumUp(p.line.Fleet, planned, from, to, time.Now())
	if err := printPlan(s, out, f.output); err != nil {
		return err
	}
	return planStatus(out, stale)
}

// sumUp makes one plan of those of all clusters.
func sumUp(f clusters.Fleet, planned []controller.Planned, from, to string, now time.Time) plan.Plan {
	all := make([]plan.Cluster, len(planned))
	for i := range planned {
		all[i] = planned[i].Plan
	}
	return plan.New(plan.Scope{Fleet: f.Name, At: now, From: from, To: to}, all)
}

func printPlan(s streams, p plan.Plan, output string) error {
	switch output {
	case "json":
		return writeJSON(s.out, p)
	case "markdown":
		_, err := fmt.Fprint(s.out, report.PlanMarkdown(p))
		return err
	}
	_, err := fmt.Fprint(s.out, report.PlanText(p, report.Style{Color: colored(s.out)}))
	return err
}

// planStatus is what a plan says to a script.
func planStatus(p plan.Plan, stale error) error {
	switch {
	case stale != nil:
		return &outcome{exitIncomplete, fmt.Sprintf("the source is stale: %v", stale)}
	case !p.Complete:
		return &outcome{exitIncomplete, fmt.Sprintf("incomplete: %d of %d clusters could not be planned", p.Summary.Unknown, p.Summary.Clusters)}
	case p.Harms():
		return &outcome{exitFound, ""}
	}
	return nil
}

// check refuses flags that do not go together.
func (f *planFlags) check() error {
	folders, revisions := f.before != "" || f.after != "", f.from != "" || f.to != ""
	switch {
	case !slices.Contains([]string{"text", "json", "markdown"}, f.output):
		return fmt.Errorf("--output %q: use text, json or markdown", f.output)
	case folders && (f.before == "" || f.after == ""):
		return errors.New("--before and --after go together")
	case folders && (revisions || f.repository != ""):
		return errors.New("--before and --after do not go with --from, --to or --repository")
	case f.server == "" && f.tokenFile+f.caFile != "":
		return errors.New("--token-file and --ca-file go with --server")
	case f.look.namespace != "" && !folders && f.from == "":
		return errors.New("--namespace goes with --from, or --before and --after: what lives is planned whole")
	case len(f.adopt) > 0 && (folders || f.from != ""):
		return errors.New("--adopt goes with a plan from what lives")
	}
	return f.checkServer()
}

// checkServer refuses to send a token in the open.
func (f *planFlags) checkServer() error {
	if f.server == "" {
		return nil
	}
	u, err := url.Parse(f.server)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil {
		return errors.New("--server: give the https:// URL of a running rollcall, without a login")
	}
	if ip := net.ParseIP(u.Hostname()); u.Scheme == "http" && u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return errors.New("--server: plain http would send the token in the open: use https")
	}
	return nil
}

// isFleet tells whether the clusters are those of a fleet file.
func (f *planFlags) isFleet() bool {
	if f.before == "" {
		return true
	}
	if len(f.files) == 0 {
		return f.look.context+f.look.contexts+f.look.kubeconfig == "" && !f.look.allContexts && f.clusters == ""
	}
	return len(f.files) == 1 && isFleetFile(f.files[0])
}

// pass wires the clusters that are looked at.
func (f *planFlags) pass(ctx context.Context, s streams) (*pass, fleet, error) {
	want, err := f.look.want("")
	if err != nil {
		return nil, fleet{}, err
	}
	want.Forecast, want.Powers = true, true
	o := outputFlags{nodes: "attention"}
	if !f.isFleet() {
		cs, err := f.loose()
		if err != nil {
			return nil, fleet{}, err
		}
		return newPass(s, clusters.Fleet{}, cs, want, f.look.timeout, o), fleet{}, nil
	}
	flags := fleetFlags{file: append(f.files, "rollcall.yaml")[0], clusters: f.clusters}
	if len(f.files) > 1 {
		return nil, fleet{}, errors.New("--filename: plan takes one fleet file, or dumps with --before and --after")
	}
	loaded, err := flags.load(ctx, s)
	if err != nil {
		return nil, fleet{}, err
	}
	if f.before == "" && loaded.Source == nil {
		return nil, fleet{}, fmt.Errorf("%s: there is no spec.source: name two folders with --before and --after", flags.file)
	}
	if f.before == "" && f.from == "" {
		loaded.chosen = loaded.whole()
	}
	if f.server != "" {
		loaded.members = f.through(loaded.members)
	}
	source := loaded.Source
	if f.before != "" || f.from != "" || f.to != "" {
		loaded.Source = nil // which is read otherwise
	}
	p, err := loaded.pass(s, want, f.look.timeout, o)
	loaded.Source = source
	return p, loaded, err
}

// loose are clusters without a fleet file: dumps, contexts, or a server's.
func (f *planFlags) loose() ([]clusters.Cluster, error) {
	if f.server == "" {
		f.look.dumps = f.files
		return f.look.clusters()
	}
	var out []clusters.Cluster
	for name := range strings.SplitSeq(f.clusters, ",") {
		if name == "" || strings.ContainsAny(name, "=!() ") {
			return nil, errors.New("--server without a fleet file: name the clusters with --clusters a,b")
		}
		out = append(out, clusters.Cluster{Name: name, Policy: clusters.DefaultPolicy()})
	}
	return f.through(out), nil
}

// through are clusters as a running rollcall has seen them last.
func (f *planFlags) through(cs []clusters.Cluster) []clusters.Cluster {
	out := slices.Clone(cs)
	for i := range out {
		out[i].Kubeconfig = nil
		out[i].Recorded = []string{strings.TrimRight(f.server, "/") + "/api/v1/clusters/" + url.PathEscape(out[i].Name) + "/snapshot"}
		out[i].RecordedAuth = clusters.RecordedAuth{TokenFile: f.tokenFile, CAFile: f.caFile}
	}
	return out
}

// ahead reads what is planned from and to, and names both.
func (f *planFlags) ahead(ctx context.Context, p *pass, loaded fleet) (a controller.Ahead, from, to string, stale, err error) {
	a.Adopt, from = f.adopt, plan.Live
	switch {
	case f.before != "":
		p.line.Fleet.Targets = []clusters.Target{{Name: "folder", Overlay: "."}}
		p.line.Fleet.Components = nil
		before, err := folder(f.before)
		if err != nil {
			return a, "", "", nil, fmt.Errorf("--before: %w", err)
		}
		a.From = &before
		a.To, err = folder(f.after)
		if err != nil {
			return a, "", "", nil, fmt.Errorf("--after: %w", err)
		}
		return a, f.before, f.after, nil, nil
	case f.from == "" && f.to == "":
		a.To, stale, err = p.fetch(ctx)
		a.Holds = holdsOf(time.Now(), stale)
		return a, plan.Live, a.To.Revision.Commit, stale, err
	}
	if f.from != "" {
		before, err := f.revision(ctx, loaded, f.from)
		if err != nil {
			return a, "", "", nil, fmt.Errorf("--from: %w", err)
		}
		a.From, from = &before, before.Revision.Commit
	}
	if a.To, err = f.revision(ctx, loaded, f.to); err != nil {
		return a, "", "", nil, fmt.Errorf("--to: %w", err)
	}
	if a.From == nil {
		a.Holds = holdsOf(time.Now(), nil)
	}
	return a, from, a.To.Revision.Commit, nil, nil
}

// folder is a folder of rendered YAML as if it were a commit's.
func folder(dir string) (source.Artifact, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return source.Artifact{}, err
	}
	if !info.IsDir() {
		return source.Artifact{}, fmt.Errorf("%q is no folder", dir)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return source.Artifact{}, err
	}
	return source.Artifact{Revision: source.Revision{URL: abs, Ref: dir, Commit: "folder " + abs}, Files: os.DirFS(dir)}, nil
}

// revision fetches a branch, tag, full ref or commit of the fleet's source.
// Signatures are not asked for: nothing of it is applied.
func (f *planFlags) revision(ctx context.Context, loaded fleet, name string) (source.Artifact, error) {
	refs := []clusters.Ref{{Branch: name}, {Tag: name}}
	switch {
	case name == "":
		refs = []clusters.Ref{loaded.Source.Ref}
	case isCommit(name):
		refs = []clusters.Ref{{Commit: name}}
	case strings.HasPrefix(name, "refs/"):
		refs = []clusters.Ref{{Name: name}}
	case name == "HEAD":
		refs = []clusters.Ref{{}}
	}
	var last error
	for _, ref := range refs {
		src := *loaded.Source
		src.Ref, src.Verify = ref, nil
		if f.repository != "" {
			abs, err := filepath.Abs(f.repository)
			if err != nil {
				return source.Artifact{}, err
			}
			src.URL, src.Auth = abs, clusters.Auth{}
		}
		loaded.Source = &src
		repo, err := loaded.open()
		if err != nil {
			return source.Artifact{}, err
		}
		a, err := repo.Fetch(ctx)
		if err == nil || !errors.Is(err, gitrepo.ErrRefNotFound) {
			return a, err
		}
		last = err
	}
	return source.Artifact{}, fmt.Errorf("%q is no branch and no tag: %w", name, last)
}
