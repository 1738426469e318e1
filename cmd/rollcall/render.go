package main

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/report"
	"rollcall.dev/rollcall/render"
	"rollcall.dev/rollcall/render/build"
)

func renderCommand(s streams) *cobra.Command {
	var f fleetFlags
	var explain bool
	cmd := &cobra.Command{
		Use:   "render [CLUSTER]",
		Short: "Print what Git wants in a cluster, or how that was resolved",
		Example: `  rollcall render prod-eu -f rollcall.yaml
  rollcall render prod-eu -f rollcall.yaml --explain`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runRender(cmd.Context(), s, f, append(args, "")[0], explain)
		},
	}
	f.bind(cmd)
	cmd.Flags().BoolVar(&explain, "explain", false, "print every rule with matched, not used or not matched, and the label that decided")
	return cmd
}

func runRender(ctx context.Context, s streams, f fleetFlags, name string, explain bool) error {
	loaded, err := f.load(ctx, s)
	if err != nil {
		return err
	}
	c, err := loaded.only(name)
	if err != nil {
		return err
	}
	if loaded.Source == nil {
		return fmt.Errorf("%s: there is no spec.source: nothing is rendered", f.file)
	}
	if explain {
		return explainTargets(s, loaded.Fleet, c)
	}
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
	d, err := renderer.Render(ctx, a, loaded.Fleet, c)
	if err != nil {
		return fmt.Errorf("rendering cluster %q at commit %s: %w", c.Name, a.Revision.Commit, err)
	}
	for i := range d.Warnings {
		s.tell("warning: %v", &d.Warnings[i])
	}
	return printObjects(s, d)
}

func printObjects(s streams, d render.Desired) error {
	for _, o := range d.Objects {
		data, err := yaml.Marshal(o.Object)
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
