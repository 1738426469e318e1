package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/clusters/registry"
)

// lookFlags choose the clusters that are looked at without a fleet file, and
// what of them.
type lookFlags struct {
	dumps       []string
	kubeconfig  string
	context     string
	contexts    string
	allContexts bool
	wantFlags
}

// wantFlags choose DaemonSets, in kubectl's words.
type wantFlags struct {
	namespace string
	selector  string
	timeout   time.Duration
}

func (w *wantFlags) bind(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&w.namespace, "namespace", "n", "", "only DaemonSets of this namespace")
	f.StringVarP(&w.selector, "selector", "l", "", "only DaemonSets with these labels")
	f.DurationVar(&w.timeout, "timeout", time.Minute, "how long one cluster may take")
}

func (w *wantFlags) want(name string) (clusters.Want, error) {
	out := clusters.Want{Namespace: w.namespace, Name: name}
	if w.timeout <= 0 {
		return out, fmt.Errorf("--timeout %s: must be positive", w.timeout)
	}
	if w.selector == "" {
		return out, nil
	}
	sel, err := labels.Parse(w.selector)
	if err != nil {
		return out, fmt.Errorf("--selector %q: %w", w.selector, err)
	}
	out.Selector = sel
	return out, nil
}

func (l *lookFlags) bind(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&l.kubeconfig, "kubeconfig", "", "kubeconfig `FILE` (default: $KUBECONFIG, else ~/.kube/config)")
	f.StringVar(&l.context, "context", "", "a context of the kubeconfig (default: the current one)")
	f.StringVar(&l.contexts, "contexts", "", "all contexts that match a `PATTERN` such as 'prod-*'")
	f.BoolVar(&l.allContexts, "all-contexts", false, "all contexts")
	l.wantFlags.bind(cmd)
}

func scanCommand(s streams) *cobra.Command {
	var l lookFlags
	var o outputFlags
	cmd := &cobra.Command{
		Use:   "scan [DAEMONSET]",
		Short: "Judge the DaemonSets of clusters or dumps as they are: no Git, no fleet file",
		Example: `  rollcall scan
  rollcall scan --context prod-eu -n kube-system
  rollcall scan --contexts 'prod-*' -l app=logger -o json
  kubectl get nodes,pods,daemonsets,controllerrevisions,namespaces,events -A -o json --show-managed-fields | rollcall scan -f -`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return scan(cmd.Context(), s, l, o, args) },
	}
	l.bind(cmd)
	cmd.Flags().StringArrayVarP(&l.dumps, "filename", "f", nil, "judge a dump instead: a `FILE` or folder, - for standard input, repeatable")
	o.bind(cmd)
	return cmd
}

func scan(ctx context.Context, s streams, l lookFlags, o outputFlags, args []string) error {
	if err := o.check(); err != nil {
		return err
	}
	want, err := l.want(daemonSetName(args))
	if err != nil {
		return err
	}
	cs, err := l.clusters()
	if err != nil {
		return err
	}
	p := newPass(s, clusters.Fleet{}, cs, want, l.timeout, o)
	defer p.close()
	r, err := p.once(ctx)
	if err != nil {
		return err
	}
	if r.Complete && r.Summary.DaemonSets == 0 && (want.Name != "" || want.Namespace != "" || want.Selector != nil) {
		return fmt.Errorf("%s selects no DaemonSet in %s: run \"rollcall scan\" without it to see which there are", selection(l, want.Name), clusterNames(cs))
	}
	if err := o.write(s, r); err != nil {
		return err
	}
	return o.status(r)
}

// selection words what was asked for.
func selection(l lookFlags, name string) string {
	var words []string
	if name != "" {
		words = append(words, "ds/"+name)
	}
	if l.namespace != "" {
		words = append(words, "-n "+l.namespace)
	}
	if l.selector != "" {
		words = append(words, "-l "+l.selector)
	}
	return strings.Join(words, " ")
}

// daemonSetName is the name that an argument such as ds/logger gives.
func daemonSetName(args []string) string {
	if len(args) == 0 {
		return ""
	}
	kind, name, found := strings.Cut(args[0], "/")
	if found && slices.Contains([]string{"ds", "daemonset", "daemonsets", "daemonset.apps", "daemonsets.apps"}, kind) {
		return name
	}
	return args[0]
}

// clusters are what the flags name: one made of all dumps, or contexts.
func (l *lookFlags) clusters() ([]clusters.Cluster, error) {
	if len(l.dumps) == 0 {
		cs, err := registry.Contexts(l.kubeconfig, registry.ContextOptions{Context: l.context, Pattern: l.contexts, All: l.allContexts, DefaultPolicy: clusters.DefaultPolicy()})
		if err != nil {
			return nil, err
		}
		return cs, nil
	}
	if l.kubeconfig+l.context+l.contexts != "" || l.allContexts {
		return nil, fmt.Errorf("-f judges a dump: it does not go with --kubeconfig, --context, --contexts or --all-contexts")
	}
	for _, f := range l.dumps {
		if isFleetFile(f) {
			return nil, fmt.Errorf("%s is a fleet file: run \"rollcall report -f %s\"", f, f)
		}
	}
	name := filepath.Base(l.dumps[0])
	if l.dumps[0] == "-" {
		name = "stdin"
	}
	return []clusters.Cluster{{Name: name, Recorded: l.dumps, Policy: clusters.DefaultPolicy()}}, nil
}
