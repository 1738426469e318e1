package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/clusters/kube"
	"rollcall.dev/rollcall/clusters/rbac"
	"rollcall.dev/rollcall/clusters/registry"
)

func clusterGrantCommand(s streams) *cobra.Command {
	var f fleetFlags
	var g grantFlags
	var apply bool
	var admin clusters.Kubeconfig
	var kubeconfig string
	var life, timeout time.Duration
	cmd := &cobra.Command{
		Use: "grant NAME", Short: "Give rollcall an account with the least role in a cluster, and a token that ends", Args: cobra.ExactArgs(1),
		Long: `Print the namespace, ServiceAccount, roles and bindings that rollcall needs in a
cluster for a tier of reading and for powers; or with --apply put them there
with an administrator's login, make a token of the account that ends, and write
a kubeconfig with it beside the Cluster file, which is then made to name it.`,
		Example: `  rollcall cluster grant prod-eu
  rollcall cluster grant prod-eu --apply --context prod-eu-admin
  rollcall cluster grant prod-eu --may roll --namespaces logging --apply --expires 720h`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !apply {
				objects, err := g.grant().Manifests()
				if err != nil {
					return err
				}
				return printManifests(s, objects)
			}
			loaded, err := f.load(cmd.Context(), s)
			if err != nil {
				return err
			}
			c, err := loaded.only(args[0])
			if err != nil {
				return err
			}
			if admin.Paths = nil; kubeconfig != "" || admin.Context != "" {
				if admin.Paths, err = adminPaths(kubeconfig, admin.Context); err != nil {
					return err
				}
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			return applyGrant(ctx, s, loaded, c, admin, g.grant(), life)
		},
	}
	cmd.Flags().StringVarP(&f.file, "filename", "f", "rollcall.yaml", "the fleet `FILE`")
	g.bind(cmd)
	cmd.Flags().BoolVar(&apply, "apply", false, "apply it, and write a kubeconfig with a token")
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "the administrator's kubeconfig `FILE`; else the cluster's own")
	cmd.Flags().StringVar(&admin.Context, "context", "", "the administrator's context")
	cmd.Flags().DurationVar(&life, "expires", 90*24*time.Hour, "how long the token holds; a cluster may grant less")
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "how long the cluster may take")
	return cmd
}

// applyGrant gives the account and makes the Cluster file name its login.
func applyGrant(ctx context.Context, s streams, f fleet, c clusters.Cluster, admin clusters.Kubeconfig, g rbac.Grant, life time.Duration) error {
	if c.File == "" || c.Kubeconfig == nil || c.Kubeconfig.Inline != nil {
		return fmt.Errorf("cluster %q is not registered by a Cluster file with a kubeconfig: put what \"rollcall rbac\" prints into the cluster, and its token where the cluster is registered", c.Name)
	}
	as := c
	if len(admin.Paths) > 0 {
		as.Kubeconfig = &admin
	}
	var observer kube.Observer
	defer s.closed(&observer)
	made, err := observer.Grant(ctx, as, g, life)
	if err != nil {
		return fmt.Errorf("granting in cluster %q: %w", c.Name, err)
	}
	dir := filepath.Dir(c.File)
	file := filepath.Join(dir, c.Name+".kubeconfig")
	if err := writePrivate(file, made.Kubeconfig.Reveal()); err != nil {
		return err
	}
	old, err := os.ReadFile(c.File)
	if err != nil {
		return fmt.Errorf("reading the Cluster file: %w", err)
	}
	data, err := clusters.WithKubeconfig(c.File, old, filepath.Base(file), c.Name)
	if err != nil {
		return err
	}
	if err := writePrivate(c.File, data); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "cluster/%s granted: ServiceAccount %s/%s, token until %s in %s\n", c.Name, rbac.Namespace, g.Account, made.Expires.UTC().Format(time.RFC3339), file)
	return nil
}

// adminPaths finds the kubeconfig of an administrator's context.
func adminPaths(kubeconfig, context string) ([]string, error) {
	found, err := registry.Contexts(kubeconfig, registry.ContextOptions{Context: context})
	if err != nil {
		return nil, err
	}
	return found[0].Kubeconfig.Paths, nil
}

func clusterRemoveCommand(s streams) *cobra.Command {
	var f fleetFlags
	cmd := &cobra.Command{
		Use: "remove NAME", Short: "Remove a cluster's file, and the kubeconfig that grant wrote beside it", Args: cobra.ExactArgs(1),
		Long: `Remove the Cluster file of a cluster, so that it is no longer reported. Nothing
in the cluster is touched: what to delete there is printed.`,
		Example: "  rollcall cluster remove edge-7",
		RunE: func(cmd *cobra.Command, args []string) error {
			fleet, err := f.parse(s)
			if err != nil {
				return err
			}
			return removeCluster(s, fleet, args[0])
		},
	}
	cmd.Flags().StringVarP(&f.file, "filename", "f", "rollcall.yaml", "the fleet `FILE`")
	return cmd
}

func removeCluster(s streams, f fleet, name string) error {
	if f.Directory == "" {
		return fmt.Errorf("%s: there is no spec.clusters.directory: a cluster of a hub is removed with its Secret", f.file)
	}
	known, err := registeredIn(under(f.dir, f.Directory), f.Policy)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(known, func(c clusters.Cluster) bool { return c.Name == name })
	if i < 0 {
		return fmt.Errorf("there is no Cluster file of %q: there are %s", name, clusterNames(known))
	}
	c := known[i]
	if err := os.Remove(c.File); err != nil {
		return fmt.Errorf("removing the Cluster file: %w", err)
	}
	fmt.Fprintf(s.out, "cluster/%s removed: %s\n", name, c.File)
	granted := filepath.Join(filepath.Dir(c.File), name+".kubeconfig")
	if c.Kubeconfig == nil || len(c.Kubeconfig.Paths) != 1 || filepath.Clean(c.Kubeconfig.Paths[0]) != granted {
		return nil
	}
	if err := os.Remove(granted); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing the kubeconfig that was granted: %w", err)
	}
	s.tell("its account is still there: kubectl delete namespace %s; kubectl delete clusterrole,clusterrolebinding -l app.kubernetes.io/managed-by=rollcall", rbac.Namespace)
	return nil
}
