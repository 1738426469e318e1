package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/clusters/kube"
	"rollcall.dev/rollcall/controller/report"
)

func clusterCommand(s streams) *cobra.Command {
	cmd := &cobra.Command{Use: "cluster", Short: "Register, list and check clusters, and give rollcall an account in them"}
	cmd.AddCommand(clusterAddCommand(s), clusterListCommand(s), clusterCheckCommand(s), clusterGrantCommand(s), clusterRemoveCommand(s))
	return cmd
}

// newTable aligns columns as kubectl does.
func newTable(out io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(out, 0, 0, 2, ' ', 0) }

// listed is a cluster as `cluster list` shows it.
type listed struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels,omitempty"`
	From   string            `json:"from"`
	File   string            `json:"file"`
	Error  string            `json:"error,omitempty"`
}

func clusterListCommand(s streams) *cobra.Command {
	var f fleetFlags
	var output string
	cmd := &cobra.Command{
		Use: "list", Short: "List the clusters of a fleet", Args: cobra.NoArgs,
		Example: "  rollcall cluster list -f rollcall.yaml\n  rollcall cluster list --clusters env=prod -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			loaded, err := f.load(cmd.Context(), s)
			if err != nil {
				return err
			}
			rows := listedOf(loaded)
			if err := printListed(s, rows, output); err != nil {
				return err
			}
			if len(loaded.broken) > 0 {
				return &outcome{exitIncomplete, fmt.Sprintf("%d clusters are not declared so that they can be used", len(loaded.broken))}
			}
			return nil
		},
	}
	f.bind(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table, json or name")
	return cmd
}

func listedOf(f fleet) []listed {
	rows := []listed{}
	for _, c := range f.members {
		rows = append(rows, listed{Name: c.Name, Labels: c.Labels, From: from(c), File: c.File})
	}
	for _, b := range f.broken {
		rows = append(rows, listed{Name: b.Name, File: b.File, Error: b.Err.Error()})
	}
	slices.SortFunc(rows, func(a, b listed) int { return strings.Compare(a.Name, b.Name) })
	return rows
}

func from(c clusters.Cluster) string {
	if c.Kubeconfig != nil && c.Kubeconfig.Inline != nil {
		text := c.Kubeconfig.Inline.Origin
		if set := c.Settings.Fields(); len(set) > 0 {
			text += " with " + strings.Join(set, ", ")
		}
		return text
	}
	if c.Kubeconfig != nil {
		text := "kubeconfig " + strings.Join(c.Kubeconfig.Paths, ",")
		if c.Kubeconfig.Context != "" {
			text += " context " + c.Kubeconfig.Context
		}
		return text
	}
	return "recorded " + strings.Join(c.Recorded, ",")
}

func labelText(set map[string]string) string {
	var pairs []string
	for k, v := range set {
		pairs = append(pairs, k+"="+v)
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ",")
}

func printListed(s streams, rows []listed, output string) error {
	switch output {
	case "json":
		return writeJSON(s.out, rows)
	case "name":
		for _, r := range rows {
			fmt.Fprintln(s.out, r.Name)
		}
		return nil
	case "table":
	default:
		return fmt.Errorf("--output %q: use table, json or name", output)
	}
	w := newTable(s.out)
	fmt.Fprintln(w, "NAME\tLABELS\tFROM")
	for _, r := range rows {
		what := r.From
		if r.Error != "" {
			what = "WRONG: " + strings.ReplaceAll(r.Error, "\n", "; ")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", report.Printable(r.Name), labelText(r.Labels), report.Printable(what))
	}
	return w.Flush()
}

// checked is a cluster as `cluster check` shows it.
type checked struct {
	Name   string      `json:"name"`
	State  string      `json:"state"`
	Access kube.Access `json:"access"`
	Error  string      `json:"error,omitempty"`
}

func clusterCheckCommand(s streams) *cobra.Command {
	var f fleetFlags
	var timeout time.Duration
	var output string
	cmd := &cobra.Command{
		Use: "check", Short: "Ask every cluster who it is and what the credential may read", Args: cobra.NoArgs,
		Example: "  rollcall cluster check -f rollcall.yaml\n  rollcall cluster check --clusters prod-eu -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			loaded, err := f.load(cmd.Context(), s)
			if err != nil {
				return err
			}
			return checkClusters(cmd.Context(), s, loaded, timeout, output)
		},
	}
	f.bind(cmd)
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "how long one cluster may take")
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	return cmd
}

func checkClusters(ctx context.Context, s streams, f fleet, timeout time.Duration, output string) error {
	var observer kube.Observer
	defer func() {
		if err := observer.Close(); err != nil {
			s.tell("%v", err)
		}
	}()
	rows := make([]checked, len(f.members))
	var wg sync.WaitGroup
	for i, c := range f.members {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			rows[i] = checkCluster(ctx, &observer, c)
		})
	}
	wg.Wait()
	if err := printChecked(s, rows, output); err != nil {
		return err
	}
	bad := len(f.broken)
	for _, r := range rows {
		if r.State != "Ready" && r.State != "Recorded" {
			bad++
		}
	}
	for _, b := range f.broken {
		s.tell("%v", b.Err)
	}
	if bad > 0 {
		return &outcome{exitIncomplete, fmt.Sprintf("%d of %d clusters cannot be read in full", bad, len(rows)+len(f.broken))}
	}
	return nil
}

func checkCluster(ctx context.Context, o *kube.Observer, c clusters.Cluster) checked {
	row := checked{Name: c.Name, State: "Ready"}
	if len(c.Recorded) > 0 {
		row.State = "Recorded"
		return row
	}
	access, err := o.Check(ctx, c)
	row.Access = access
	if err != nil {
		row.State, row.Error = string(clusters.Failed), err.Error()
		if e, ok := errors.AsType[*clusters.ObserveError](err); ok {
			row.State = string(e.State)
		}
		return row
	}
	if !access.Complete() {
		row.State = "Denied"
	}
	return row
}

func printChecked(s streams, rows []checked, output string) error {
	if output == "json" {
		return writeJSON(s.out, rows)
	}
	if output != "table" {
		return fmt.Errorf("--output %q: use table or json", output)
	}
	w := newTable(s.out)
	fmt.Fprintln(w, "NAME\tSTATE\tVERSION\tIDENTITY\tLOGIN\tENDS\tMAY CHANGE\tMAY NOT")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Name, r.State, report.Printable(r.Access.Version), report.Printable(r.Access.Identity),
			report.Printable(route(r.Access)), ends(r.Access.Expires), changes(r.Access), lacks(r))
	}
	return w.Flush()
}

// route is how a cluster is reached, with all that is not plain.
func route(a kube.Access) string {
	text := a.Route.Login
	add := func(what, value string) {
		if value != "" {
			text += ", " + what + " " + value
		}
	}
	add("proxy", a.Route.Proxy)
	add("as", a.Route.Impersonate)
	add("tls-server-name", a.Route.TLSServerName)
	add("clock off by", a.Skew)
	if a.Route.Unverified {
		text += ", NOT VERIFIED"
	}
	return text
}

func ends(at *time.Time) string {
	if at == nil {
		return "-"
	}
	return at.Format("2006-01-02")
}

func changes(a kube.Access) string {
	switch {
	case a.Everything:
		return "everything"
	case len(a.Powers) == 0:
		return "nothing"
	}
	return strings.Join(a.Powers, ",")
}

func lacks(r checked) string {
	if r.Error != "" {
		return report.Printable(strings.ReplaceAll(r.Error, "\n", "; "))
	}
	var out []string
	for _, p := range r.Access.Permissions {
		if word := p.Verb + " " + p.Resource; !p.Allowed && !slices.Contains(out, word) {
			out = append(out, word)
		}
	}
	return strings.Join(out, ", ")
}
