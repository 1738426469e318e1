package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/clusters/kube"
	"rollcall.dev/rollcall/clusters/registry"
	"rollcall.dev/rollcall/controller/report"
)

// addFlags say which clusters to register, and how.
type addFlags struct {
	fleet      fleetFlags
	kubeconfig string
	context    string
	from       string
	all        bool
	pattern    string
	labels     map[string]string
	identity   string
	replace    bool
	timeout    time.Duration
}

func clusterAddCommand(s streams) *cobra.Command {
	var a addFlags
	cmd := &cobra.Command{
		Use: "add [NAME]", Short: "Register clusters that answer, one Cluster file each", Args: cobra.MaximumNArgs(1),
		Long: `Register a cluster: ask it who it is and what the credential may read, warn of
what is lacking, and write one Cluster file, readable by its owner only, into
the fleet's folder of clusters. The file names the kubeconfig; no credential is
copied.`,
		Example: `  rollcall cluster add prod-eu --context prod-eu -l env=prod,region=eu
  rollcall cluster add edge-7 --kubeconfig edge-7.kubeconfig -l env=edge
  rollcall cluster add --from-kubeconfig ~/.kube/config --all-contexts
  rollcall cluster add --from-kubeconfig ~/.kube/config --contexts 'prod-*' -l env=prod`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.run(cmd.Context(), s, append(args, "")[0])
		},
	}
	cmd.Flags().StringVarP(&a.fleet.file, "filename", "f", "rollcall.yaml", "the fleet `FILE`")
	cmd.Flags().StringVar(&a.kubeconfig, "kubeconfig", "", "the kubeconfig `FILE` of the cluster; else $KUBECONFIG, else ~/.kube/config")
	cmd.Flags().StringVar(&a.context, "context", "", "its context; else the current one")
	cmd.Flags().StringVar(&a.from, "from-kubeconfig", "", "register several contexts of this `FILE`, each under its own name")
	cmd.Flags().BoolVar(&a.all, "all-contexts", false, "with --from-kubeconfig: all of them")
	cmd.Flags().StringVar(&a.pattern, "contexts", "", "with --from-kubeconfig: those that fit a `PATTERN` such as prod-*")
	cmd.Flags().StringToStringVarP(&a.labels, "labels", "l", nil, "labels, as k=v with commas")
	cmd.Flags().StringVar(&a.identity, "identity", "", "who the cluster is, for a clone whose kube-system has the UID of another's")
	cmd.Flags().BoolVar(&a.replace, "replace", false, "write over the Cluster file of that name, or of that cluster under another name")
	cmd.Flags().DurationVar(&a.timeout, "timeout", 30*time.Second, "how long one cluster may take")
	return cmd
}

func (a *addFlags) run(ctx context.Context, s streams, name string) error {
	found, err := a.candidates(name)
	if err != nil {
		return err
	}
	fleet, err := a.fleet.parse(s)
	if err != nil {
		return err
	}
	if fleet.Directory == "" {
		return fmt.Errorf("%s: spec.clusters.directory: name the folder of Cluster files first", a.fleet.file)
	}
	dir := under(fleet.dir, fleet.Directory)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the folder of Cluster files: %w", err)
	}
	known, err := registeredIn(dir, fleet.Policy)
	if err != nil {
		return err
	}
	failed := 0
	for i, r := range a.check(ctx, s, found) {
		if err := a.add(s, dir, known, &found[i], r); err != nil {
			s.tell("cluster %q: %v", found[i].Name, err)
			failed++
		}
	}
	if failed > 0 {
		return &outcome{exitIncomplete, fmt.Sprintf("%d of %d clusters were not registered", failed, len(found))}
	}
	return nil
}

// candidates are the clusters that the flags name, not looked at yet.
func (a *addFlags) candidates(name string) ([]clusters.Cluster, error) {
	many := a.from != ""
	switch {
	case many && (name != "" || a.kubeconfig != "" || a.context != ""):
		return nil, errors.New("--from-kubeconfig names clusters by their contexts: it does not go with NAME, --kubeconfig or --context")
	case many && a.all == (a.pattern != ""):
		return nil, errors.New("--from-kubeconfig needs either --all-contexts or --contexts PATTERN")
	case !many && (a.all || a.pattern != ""):
		return nil, errors.New("--all-contexts and --contexts go with --from-kubeconfig FILE")
	case !many && name == "":
		return nil, errors.New("name the cluster: rollcall cluster add NAME --context CONTEXT")
	}
	file := a.kubeconfig
	if many {
		file = a.from
	}
	all, err := registry.Contexts(file, registry.ContextOptions{Context: a.context, Pattern: a.pattern, All: a.all})
	if err != nil {
		return nil, err
	}
	for i := range all {
		c := &all[i]
		if err := a.name(c, name); err != nil {
			return nil, err
		}
		c.Labels, c.Identity = maps.Clone(a.labels), a.identity
		if c.Kubeconfig.Paths, err = registry.Holding(c.Kubeconfig.Paths, c.Kubeconfig.Context); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// name gives a cluster the name that was asked for, else one made of its
// context's.
func (a *addFlags) name(c *clusters.Cluster, name string) error {
	if name == "" {
		name = nameOf(c.Kubeconfig.Context)
	}
	if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
		return fmt.Errorf("the name %q of a cluster: %s", name, wrong[0])
	}
	c.Name = name
	return nil
}

// nameOf makes a name of a context's, of which arn:aws:eks:eu-1:1:cluster/a is
// one.
func nameOf(context string) string {
	short := context[strings.LastIndexAny(context, "/")+1:]
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, short)
	return strings.Trim(clean, "-.")
}

// registeredIn are the clusters of a folder; one that is empty has none.
func registeredIn(dir string, defaults clusters.Policy) ([]clusters.Cluster, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.y*ml"))
	if err != nil || len(files) == 0 {
		return nil, err
	}
	all, broken, err := registry.Members(dir, defaults)
	for _, b := range broken {
		all = append(all, clusters.Cluster{Name: b.Name, File: b.File})
	}
	return all, err
}

type answered struct {
	access kube.Access
	err    error
}

// check asks all clusters at once.
func (a *addFlags) check(ctx context.Context, s streams, all []clusters.Cluster) []answered {
	var observer kube.Observer
	defer s.closed(&observer)
	out := make([]answered, len(all))
	slots := make(chan struct{}, parallelClusters)
	var wg sync.WaitGroup
	for i, c := range all {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			ctx, cancel := context.WithTimeout(ctx, a.timeout)
			defer cancel()
			out[i].access, out[i].err = observer.Check(ctx, c)
		})
	}
	wg.Wait()
	return out
}

// add writes the Cluster file of a cluster that answered.
func (a *addFlags) add(s streams, dir string, known []clusters.Cluster, c *clusters.Cluster, r answered) error {
	if r.err != nil {
		return fmt.Errorf("it does not answer, so it is not registered: %w", r.err)
	}
	c.Registered = clusters.Registered{Identity: r.access.Identity, Version: r.access.Version, At: time.Now().UTC().Truncate(time.Second)}
	file := filepath.Join(dir, c.Name+".yaml")
	old, err := a.conflict(known, *c, file)
	if err != nil {
		return err
	}
	data, err := clusters.FormatCluster(beside(*c, dir))
	if err != nil {
		return err
	}
	if err := writePrivate(file, data); err != nil {
		return err
	}
	if old != "" && old != file {
		if err := os.Remove(old); err != nil {
			return fmt.Errorf("removing the file of its old name: %w", err)
		}
		s.tell("cluster %q: it was registered under another name: %s is removed", c.Name, old)
	}
	fmt.Fprintf(s.out, "cluster/%s added: %s %s, %s\n", c.Name, r.access.Server, report.Printable(r.access.Version), file)
	a.warn(s, c.Name, r.access)
	return nil
}

// conflict finds the file that this registration would double: one of its name,
// or of the same cluster under another. With --replace that file is returned.
func (a *addFlags) conflict(known []clusters.Cluster, c clusters.Cluster, file string) (old string, err error) {
	for _, k := range known {
		sameName := k.Name == c.Name || k.File == file
		same := k.Identity == "" && c.Identity == "" && k.Registered.Identity != "" && k.Registered.Identity == c.Registered.Identity
		switch {
		case !sameName && !same:
			continue
		case a.replace:
			old = k.File
		case sameName:
			return "", fmt.Errorf("%s declares it already: pass --replace to write it anew", k.File)
		default:
			return "", fmt.Errorf("it is the cluster that %s registers as %q (the UID of kube-system is %s): pass --replace to rename it, or --identity for a clone", k.File, k.Name, c.Registered.Identity)
		}
	}
	return old, nil
}

// warn tells what of a report will be blank, and what is odd about the login.
func (a *addFlags) warn(s streams, name string, access kube.Access) {
	lacking := map[string][]string{}
	for _, p := range access.Permissions {
		if !p.Allowed && p.Verb != "watch" {
			lacking[p.For] = append(lacking[p.For], p.Verb+" "+p.Resource)
		}
	}
	for _, tier := range slices.Sorted(maps.Keys(lacking)) {
		s.tell("cluster %q: warning: for %s the credential may not %s: see rollcall rbac --tier %s", name, tier, strings.Join(lacking[tier], ", "), tier)
	}
	if access.Identity == "" {
		s.tell("cluster %q: warning: the namespace kube-system may not be read, so that the cluster cannot be told from another", name)
	}
	if access.Everything {
		s.tell("cluster %q: note: the credential is an administrator's: rollcall cluster grant %s makes one that may only read", name, name)
	}
	if access.Route.Unverified {
		s.tell("cluster %q: warning: insecure-skip-tls-verify: the server's certificate is not verified", name)
	}
}

// writePrivate writes a file for its owner only, in one step.
func writePrivate(file string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+"-") // of mode 0600
	if err != nil {
		return fmt.Errorf("writing %q: %w", file, err)
	}
	_, err = tmp.Write(data)
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), file)
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
		return fmt.Errorf("writing %q: %w", file, err)
	}
	return nil
}

// beside makes the path of a kubeconfig relative where it lies in the folder of
// the Cluster file, and absolute elsewhere.
func beside(c clusters.Cluster, dir string) clusters.Cluster {
	k := *c.Kubeconfig
	k.Paths = slices.Clone(k.Paths)
	for i, p := range k.Paths {
		full, err := filepath.Abs(p)
		if err != nil {
			continue
		}
		k.Paths[i] = full
		base, err := filepath.Abs(dir)
		if err != nil {
			continue
		}
		if rel, err := filepath.Rel(base, full); err == nil && filepath.IsLocal(rel) {
			k.Paths[i] = rel
		}
	}
	c.Kubeconfig = &k
	return c
}
