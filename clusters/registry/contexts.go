package registry

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"rollcall.dev/rollcall/clusters"
)

// ContextOptions choose contexts: at most one of Context, Pattern and All is
// set. The zero value chooses the current context.
type ContextOptions struct {
	Context       string
	Pattern       string // such as prod-*; a * matches slashes, too
	All           bool
	DefaultPolicy clusters.Policy
}

// Contexts returns a cluster for each chosen context of the kubeconfigs that
// kubectl would read: the file given, else those in $KUBECONFIG, else
// ~/.kube/config. The clusters are named by their contexts and sorted.
func Contexts(kubeconfig string, o ContextOptions) ([]clusters.Cluster, error) {
	files, config, err := readContexts(kubeconfig)
	if err != nil {
		return nil, err
	}
	names, err := o.choose(config)
	if err != nil {
		return nil, fmt.Errorf("choosing contexts of %s: %w", quoted(files), err)
	}
	var all []clusters.Cluster
	for _, name := range names {
		all = append(all, clusters.Cluster{
			Name:       name,
			Kubeconfig: &clusters.Kubeconfig{Paths: slices.Clone(files), Context: name},
			Policy:     o.DefaultPolicy,
		})
	}
	return all, nil
}

// readContexts merges kubeconfigs as kubectl does: of a name that is in two files the
// first file's entry counts, and files that do not exist are passed over.
func readContexts(kubeconfig string) (files []string, config *api.Config, err error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	rules.WarnIfAllMissing = false
	rules.MigrationRules = nil // that would write files
	candidates := rules.Precedence
	if kubeconfig != "" {
		candidates = []string{kubeconfig}
	}
	for _, file := range candidates {
		if _, err := os.Stat(file); err == nil || !errors.Is(err, fs.ErrNotExist) {
			files = append(files, file)
		}
	}
	if len(files) == 0 {
		return nil, nil, fmt.Errorf("reading kubeconfigs: there is no %s: pass --kubeconfig FILE, set KUBECONFIG, or pass -f FILE with what kubectl get printed", quoted(candidates))
	}
	config, err = rules.Load()
	if err != nil {
		return nil, nil, fmt.Errorf("reading kubeconfigs: %w", err)
	}
	return files, config, nil
}

func quoted(files []string) string {
	var all []string
	for _, file := range files {
		all = append(all, fmt.Sprintf("%q", file))
	}
	return strings.Join(all, ", ")
}

func (o ContextOptions) choose(config *api.Config) ([]string, error) {
	names := slices.Sorted(maps.Keys(config.Contexts))
	if len(names) == 0 {
		return nil, errors.New("no context is in it: pass another with --kubeconfig FILE, or pass -f FILE with what kubectl get printed")
	}
	given := 0
	for _, set := range []bool{o.Context != "", o.Pattern != "", o.All} {
		if set {
			given++
		}
	}
	switch {
	case given > 1:
		return nil, errors.New("at most one of a context, a pattern and all can be given")
	case o.All:
		return names, nil
	case o.Pattern != "":
		return matching(o.Pattern, names)
	case o.Context != "":
		return one(o.Context, "", names)
	case config.CurrentContext == "":
		return nil, fmt.Errorf("there is no current context: choose one of %s", several(names))
	}
	return one(config.CurrentContext, "the current context ", names)
}

func one(name, what string, names []string) ([]string, error) {
	if !slices.Contains(names, name) {
		return nil, fmt.Errorf("%s%q is not among its contexts: %s", what, name, several(names))
	}
	return []string{name}, nil
}

// matching returns the names that a pattern of path.Match fits. Slashes are
// nothing special in a context's name, so they are hidden from it.
func matching(pattern string, names []string) ([]string, error) {
	flat := func(s string) string { return strings.ReplaceAll(s, "/", "\x00") }
	var all []string
	for _, name := range names {
		fits, err := path.Match(flat(pattern), flat(name))
		if err != nil {
			return nil, fmt.Errorf("pattern %q: %w", pattern, err)
		}
		if fits {
			all = append(all, name)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no context fits %q: there are %s", pattern, several(names))
	}
	return all, nil
}

// several lists names, but not a thousand.
func several(names []string) string {
	const most = 20
	text := quoted(names[:min(len(names), most)])
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Holding is the one file of several kubeconfigs that has a context, its cluster
// and its user: a Cluster file names one.
func Holding(files []string, context string) ([]string, error) {
	if len(files) == 1 {
		return files, nil
	}
	for _, file := range files {
		config, err := clientcmd.LoadFromFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading kubeconfig %q: %w", file, err)
		}
		c := config.Contexts[context]
		if c != nil && config.Clusters[c.Cluster] != nil && (c.AuthInfo == "" || config.AuthInfos[c.AuthInfo] != nil) {
			return []string{file}, nil
		}
	}
	return nil, fmt.Errorf("context %q is spread over %s: make one file of it with kubectl config view --flatten --minify --context %s", context, quoted(files), context)
}
