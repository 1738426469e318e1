package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/drift"
	"rollcall.dev/rollcall/controller/report"
)

// diffFlags say which objects to compare and what to do with what differs.
type diffFlags struct {
	fleet     fleetFlags
	want      wantFlags
	output    string
	foreign   bool
	write     []string
	reason    string
	namespace string
}

func diffCommand(s streams) *cobra.Command {
	var f diffFlags
	cmd := &cobra.Command{
		Use:   "diff [KIND/NAME ...]",
		Short: "Show field by field what in a cluster is not as Git says, who wrote it and when",
		Long: `Show every field that is not as Git says: - is live, + is what Git says. What
API defaults, controllers and other programs add is no difference, and --foreign
shows it. Only what differs is asked of the cluster by a server-side dry run,
where the credential may apply. Secrets are never read.

With --write-ignore PATH the rule that ignores a difference just shown is
written into the fleet file.

Exit status: 0 nothing differs, 1 something does, 2 bad input, source or flags,
3 a cluster could not be read or rendered.`,
		Example: `  rollcall diff -f rollcall.yaml
  rollcall diff ds/agent -n obs --clusters prod-eu
  rollcall diff -o diff | less
  rollcall diff ds/agent -n obs --write-ignore 'spec.template.spec.containers[name=agent].image' --reason 'hotfix until 4.1'`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), s, args) },
	}
	f.fleet.bind(cmd)
	cmd.Flags().StringVarP(&f.namespace, "namespace", "n", "", "only objects of this namespace")
	cmd.Flags().DurationVar(&f.want.timeout, "timeout", time.Minute, "how long one cluster may take")
	cmd.Flags().StringVarP(&f.output, "output", "o", "text", "text, diff (a unified diff of YAML) or json")
	cmd.Flags().BoolVar(&f.foreign, "foreign", false, "also show what other programs added and what is but in another order, which is no drift")
	cmd.Flags().StringArrayVar(&f.write, "write-ignore", nil, "write the rule that ignores the difference at `PATH`, as printed after @, into the fleet file")
	cmd.Flags().StringVar(&f.reason, "reason", "", "why it is ignored, for --write-ignore")
	return cmd
}

func (f *diffFlags) run(ctx context.Context, s streams, args []string) error {
	keep, err := f.keep(args)
	if err != nil {
		return err
	}
	loaded, err := f.fleet.load(ctx, s)
	if err != nil {
		return err
	}
	if loaded.Source == nil {
		return fmt.Errorf("%s: there is no spec.source: nothing is compared with Git", f.fleet.file)
	}
	want, err := f.want.want("")
	if err != nil {
		return err
	}
	want.Powers = true
	p, err := loaded.pass(s, want, f.want.timeout, outputFlags{nodes: "attention"})
	if err != nil {
		return err
	}
	defer p.close()
	p.line.Retain, p.line.Foreign = true, f.foreign
	r, err := p.once(ctx)
	if err != nil {
		return err
	}
	d := report.NewDiff(r, keep)
	if err := f.missing(d, args); err != nil && d.Complete {
		return err
	}
	if err := printDiff(s, d, f.output); err != nil {
		return err
	}
	if len(f.write) > 0 {
		return f.ignore(s, d)
	}
	switch {
	case !d.Complete:
		return &outcome{exitIncomplete, fmt.Sprintf("incomplete: %d of %d clusters could not be compared with the current Git", incomplete(r), len(r.Clusters))}
	case d.Differs():
		return &outcome{exitFound, ""}
	}
	return nil
}

func printDiff(s streams, d report.Diff, output string) error {
	switch output {
	case "json":
		return writeJSON(s.out, d)
	case "diff":
		return d.Unified(s.out)
	}
	_, err := fmt.Fprint(s.out, d.Text(report.Style{Color: colored(s.out)}))
	return err
}

// keep checks the flags, and selects objects by KIND/NAME and --namespace.
func (f *diffFlags) keep(args []string) (func(clusters.Reference) bool, error) {
	if !slices.Contains([]string{"text", "diff", "json"}, f.output) {
		return nil, fmt.Errorf("--output %q: use text, diff or json", f.output)
	}
	if f.reason != "" && len(f.write) == 0 {
		return nil, errors.New("--reason goes with --write-ignore")
	}
	for _, a := range args {
		if kind, n, ok := strings.Cut(a, "/"); !ok || kind == "" || n == "" {
			return nil, fmt.Errorf("%q: name an object as KIND/NAME, such as ds/agent or configmap/agent", a)
		}
	}
	return func(r clusters.Reference) bool {
		return len(args) == 0 && f.in(r) || slices.ContainsFunc(args, func(a string) bool { return f.named(a, r) })
	}, nil
}

func (f *diffFlags) in(r clusters.Reference) bool {
	return f.namespace == "" || r.Namespace == f.namespace
}

// named tells whether an object is the one that is named as KIND/NAME.
func (f *diffFlags) named(arg string, r clusters.Reference) bool {
	kind, n, _ := strings.Cut(arg, "/")
	return f.in(r) && n == r.Name && (strings.EqualFold(kindOf(kind), r.Kind) || strings.EqualFold(kind, r.Kind))
}

// missing is an error of what is named and nowhere: a mistyped name must not
// look like one that is in line.
func (f *diffFlags) missing(d report.Diff, args []string) error {
	var all []error
	for _, a := range args {
		if !d.Has(func(r clusters.Reference) bool { return f.named(a, r) }) {
			all = append(all, fmt.Errorf("%q is not in Git, nor in any cluster that was compared", a))
		}
	}
	return errors.Join(all...)
}

// shortKinds are kubectl's short names of what travels with DaemonSets.
var shortKinds = map[string]string{
	"ds": "DaemonSet", "cm": "ConfigMap", "sa": "ServiceAccount", "svc": "Service", "ns": "Namespace", "pc": "PriorityClass",
	"netpol": "NetworkPolicy", "pdb": "PodDisruptionBudget", "crd": "CustomResourceDefinition",
}

// kindOf reads a kind as kubectl does: short, in the plural, in any case.
func kindOf(word string) string {
	word, _, _ = strings.Cut(strings.ToLower(word), ".")
	if kind, ok := shortKinds[word]; ok {
		return kind
	}
	switch {
	case strings.HasSuffix(word, "ies"):
		return strings.TrimSuffix(word, "ies") + "y"
	case strings.HasSuffix(word, "sses"):
		return strings.TrimSuffix(word, "es")
	case strings.HasSuffix(word, "s") && !strings.HasSuffix(word, "ss"):
		return strings.TrimSuffix(word, "s")
	}
	return word
}

// ignore writes the rules of the differences at the paths into the fleet file.
func (f *diffFlags) ignore(s streams, d report.Diff) error {
	var rules []clusters.Ignore
	for _, path := range f.write {
		found := f.rules(d, path)
		if len(found) == 0 {
			return fmt.Errorf("--write-ignore %q: no difference just shown has this path: it is what is printed after @", path)
		}
		rules = append(rules, found...)
	}
	data, err := readFleetFile(f.fleet.file)
	if err != nil {
		return fmt.Errorf("reading the fleet file: %w", err)
	}
	out, err := clusters.AddIgnore(f.fleet.file, data, rules)
	if err != nil {
		return err
	}
	if err := replace(f.fleet.file, out); err != nil {
		return fmt.Errorf("writing the fleet file: %w", err)
	}
	s.tell("%s: wrote %d of spec.drift.ignore: look at it, and commit it", f.fleet.file, len(rules))
	return nil
}

// rules are one for each object that differs at a path. Where --clusters chose
// some of the fleet's, they are for these.
func (f *diffFlags) rules(d report.Diff, path string) []clusters.Ignore {
	var out []clusters.Ignore
	for _, c := range d.Clusters {
		for _, o := range c.Objects {
			at := slices.IndexFunc(o.Fields, func(x drift.Field) bool { return x.Path == path })
			if at < 0 {
				continue
			}
			g := clusters.Ignore{Group: o.Object.Group(), Kind: o.Object.Kind, Namespace: o.Object.Namespace, Name: o.Object.Name, Fields: []clusters.Pointer{o.Fields[at].Pointer()}, Reason: f.reason}
			same := slices.IndexFunc(out, func(x clusters.Ignore) bool {
				return x.Group == g.Group && x.Kind == g.Kind && x.Namespace == g.Namespace && x.Name == g.Name
			})
			if same < 0 {
				out = append(out, g)
				same = len(out) - 1
			}
			if f.fleet.clusters != "" {
				out[same].Clusters.Names = append(out[same].Clusters.Names, c.Name)
			}
		}
	}
	return out
}
