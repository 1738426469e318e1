package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/report"
	"rollcall.dev/rollcall/render"
	"rollcall.dev/rollcall/render/build"
)

// renderFlags say what to render and what to do with it.
type renderFlags struct {
	fleet    fleetFlags
	explain  bool
	all      bool
	validate bool
	strict   bool
	output   string
}

func renderCommand(s streams) *cobra.Command {
	var f renderFlags
	cmd := &cobra.Command{
		Use:   "render [CLUSTER]",
		Short: "Print what Git wants in a cluster, how that was resolved, or what is wrong with it",
		Long: `Print the objects that Git wants in a cluster. With --validate print instead
what is wrong with them, judged by the types of Kubernetes 1.37 without any
cluster, with the file and line in Git: a check for a pull request. It exits 1
when there is an error.`,
		Example: `  rollcall render prod-eu -f rollcall.yaml
  rollcall render prod-eu -f rollcall.yaml --explain
  rollcall render --all --validate --strict
  rollcall render --all --validate -o sarif > rollcall.sarif`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), s, append(args, "")[0])
		},
	}
	f.fleet.bind(cmd)
	cmd.Flags().BoolVar(&f.explain, "explain", false, "print every rule with matched, not used or not matched, and the label that decided")
	cmd.Flags().BoolVar(&f.all, "all", false, "render every cluster, or those that --clusters names")
	cmd.Flags().BoolVar(&f.validate, "validate", false, "print what is wrong, and no objects")
	cmd.Flags().BoolVar(&f.strict, "strict", false, "with --validate: warnings are errors")
	cmd.Flags().StringVarP(&f.output, "output", "o", "", "yaml; with --validate text, json, sarif or junit")
	return cmd
}

func (f *renderFlags) run(ctx context.Context, s streams, name string) error {
	switch {
	case f.strict && !f.validate:
		return errors.New("--strict goes with --validate")
	case f.all && (name != "" || f.explain):
		return errors.New("--all goes with neither a CLUSTER nor --explain")
	case !f.validate && f.output != "" && f.output != "yaml":
		return fmt.Errorf("--output %q: use yaml; text, json, sarif and junit go with --validate", f.output)
	}
	loaded, err := f.fleet.load(ctx, s)
	if err != nil {
		return err
	}
	if loaded.Source == nil {
		return fmt.Errorf("%s: there is no spec.source: nothing is rendered", f.fleet.file)
	}
	wanted := loaded.members
	if !f.all {
		c, err := loaded.only(name)
		if err != nil {
			return err
		}
		wanted = []clusters.Cluster{c}
	}
	if f.explain {
		return explainTargets(s, loaded.Fleet, wanted[0])
	}
	return f.render(ctx, s, loaded, wanted)
}

func (f *renderFlags) render(ctx context.Context, s streams, loaded fleet, wanted []clusters.Cluster) error {
	repo, err := loaded.open()
	if err != nil {
		return err
	}
	a, err := repo.Fetch(ctx)
	if err != nil {
		return err
	}
	renderer := build.New(build.Options{})
	defer renderer.Close()
	if f.validate {
		r, err := checkAll(ctx, renderer, a, loaded.Fleet, wanted, f.strict)
		if err != nil {
			return err
		}
		return printCheck(s, r, f.output)
	}
	for _, c := range wanted {
		d, err := renderer.Render(ctx, a, loaded.Fleet, c)
		if err != nil {
			return fmt.Errorf("rendering cluster %q at commit %s: %w", c.Name, a.Revision.Commit, err)
		}
		for i := range d.Warnings {
			s.tell("warning: %v", &d.Warnings[i])
		}
		if f.all {
			fmt.Fprintf(s.out, "# cluster %s\n", c.Name)
		}
		if err := printObjects(s, d); err != nil {
			return err
		}
	}
	return nil
}

func printObjects(s streams, d render.Desired) error {
	for _, o := range d.Objects {
		data, err := yaml.Marshal(render.Opaque(o.Object))
		if err != nil {
			return fmt.Errorf("printing %s %q: %w", o.GetKind(), o.GetName(), err)
		}
		if _, err := fmt.Fprintf(s.out, "---\n%s", data); err != nil {
			return err
		}
	}
	return nil
}

func explainTargets(s streams, f clusters.Fleet, c clusters.Cluster) error {
	r, failed := render.Resolve(f, c)
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "KIND\tNAME\tPATH\tRESULT\tBECAUSE")
	for _, rule := range r.Trace {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", rule.Kind, report.Printable(rule.Name), report.Printable(rule.Path), rule.Result, report.Printable(rule.Because))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return failed
}
