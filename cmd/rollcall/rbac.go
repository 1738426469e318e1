package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"rollcall.dev/rollcall/clusters/rbac"
)

// grantFlags say what an account is given.
type grantFlags struct {
	account    string
	tier       string
	may        []string
	namespaces []string
}

func (g *grantFlags) bind(cmd *cobra.Command) {
	cmd.Flags().StringVar(&g.account, "account", "rollcall", "`NAME` of the ServiceAccount in namespace "+rbac.Namespace)
	cmd.Flags().StringVar(&g.tier, "tier", "reasons", "what may be read: "+strings.Join(rbac.Tiers, ", ")+", each with the ones before it")
	cmd.Flags().StringSliceVar(&g.may, "may", nil, "what may be changed, with commas: "+strings.Join(rbac.Powers, ", "))
	cmd.Flags().StringSliceVar(&g.namespaces, "namespaces", nil, "where alone roll, apply and prune hold; all when not given")
}

func (g *grantFlags) grant() rbac.Grant {
	return rbac.Grant{Account: g.account, Tier: g.tier, May: g.may, Namespaces: g.namespaces}
}

func rbacCommand(s streams) *cobra.Command {
	var g grantFlags
	var output string
	cmd := &cobra.Command{
		Use: "rbac", Short: "Print the least role of a tier of reading and of powers to change", Args: cobra.NoArgs,
		Long: `Print what rollcall needs to be allowed in a cluster: a namespace, a
ServiceAccount, roles and bindings for kubectl apply; or with -o table each
permission and what it is for.`,
		Example: `  rollcall rbac --tier coverage -o table
  rollcall rbac --tier reasons | kubectl apply -f -
  rollcall rbac --may roll --namespaces logging,monitoring`,
		RunE: func(*cobra.Command, []string) error {
			switch output {
			case "yaml":
				objects, err := g.grant().Manifests()
				if err != nil {
					return err
				}
				return printManifests(s, objects)
			case "table":
				return printRules(s, g)
			}
			return fmt.Errorf("--output %q: use yaml or table", output)
		},
	}
	g.bind(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "yaml", "yaml or table")
	return cmd
}

func printManifests(s streams, objects []runtime.Object) error {
	for _, o := range objects {
		data, err := yaml.Marshal(o)
		if err != nil {
			return fmt.Errorf("printing: %w", err)
		}
		if _, err := fmt.Fprintf(s.out, "---\n%s", data); err != nil {
			return err
		}
	}
	return nil
}

func printRules(s streams, g grantFlags) error {
	rules, err := rbac.Rules(g.tier, g.may)
	if err != nil {
		return err
	}
	w := newTable(s.out)
	fmt.Fprintln(w, "FOR\tVERBS\tRESOURCES\tWHERE\tNEEDED\tWHY")
	for _, r := range rules {
		needed, where := "yes", "everywhere"
		if !r.Required {
			needed = "a part"
		}
		if r.Namespace != "" {
			where = r.Namespace
		}
		if len(r.ResourceNames) > 0 {
			where += " " + strings.Join(r.ResourceNames, ",")
		}
		resources := strings.Join(r.Resources, ",")
		if g := r.APIGroups[0]; g != "" {
			resources += "." + g
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.For, strings.Join(r.Verbs, ","), resources, where, needed, r.Why)
	}
	return w.Flush()
}
