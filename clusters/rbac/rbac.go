// Package rbac says what rollcall needs to be allowed in a cluster: the least
// role of each tier of reading and of each power to change. It asks no cluster
// and knows of none.
package rbac

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Tiers of reading. Each has what the ones before it have.
var Tiers = []string{"coverage", "reasons", "drift", "forecast"}

// Powers to change, as a policy's may has them.
var Powers = []string{"roll", "apply", "prune", "manage"}

// Rule is a permission, what it is for and why.
type Rule struct {
	rbacv1.PolicyRule
	For       string // the tier or the power
	Required  bool   // without it the tier or the power is nothing; else a part is left blank
	Namespace string // where alone it is needed; empty for all
	Why       string
	wide      bool // of what is in no namespace
}

func rule(group string, verbs, why string, resources ...string) Rule {
	return Rule{PolicyRule: rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: strings.Fields(verbs)}, Required: true, Why: why}
}

func (r Rule) optional() Rule {
	r.Required = false
	return r
}

func (r Rule) named(names ...string) Rule {
	r.ResourceNames = names
	return r
}

func (r Rule) in(namespace string) Rule {
	r.Namespace = namespace
	return r
}

func (r Rule) everywhere() Rule {
	r.wide = true
	return r
}

// companions are what travels with a DaemonSet. RBAC is not among them, for
// whoever may grant what he has not is an administrator; nor are Secrets,
// CustomResourceDefinitions and what these define. A fleet that has such gives
// its account a role of its own for them.
var companions = []Rule{
	rule("", "get create patch", "ConfigMaps, Services and ServiceAccounts beside them", "configmaps", "serviceaccounts", "services").optional(),
	rule("networking.k8s.io", "get create patch", "NetworkPolicies beside them", "networkpolicies").optional(),
	rule("policy", "get create patch", "PodDisruptionBudgets beside them", "poddisruptionbudgets").optional(),
	rule("scheduling.k8s.io", "get create patch", "PriorityClasses beside them", "priorityclasses").optional().everywhere(),
}

// record is where each fleet's inventory is, which is read, written and made
// anew before and after anything is changed.
func record() Rule {
	return rule("", "get list create update delete", "the inventory: what was applied, by which commit", "configmaps").in(Namespace)
}

// rules of a tier or a power by itself.
func rules(of string) []Rule {
	switch of {
	case "coverage":
		return []Rule{
			rule("", "list watch", "which nodes there are, with their labels and taints", "nodes"),
			rule("apps", "list watch", "what should run, and what the controller says of it", "daemonsets"),
			rule("", "list watch", "the daemon pods, in the namespaces that hold a DaemonSet", "pods"),
			rule("apps", "list watch", "which pods are up to date, and what was lost by a change", "controllerrevisions").optional(),
			rule("", "get", "the UID of kube-system tells one cluster from another", "namespaces").named("kube-system").optional(),
			rule("coordination.k8s.io", "get", "whether a node whose heartbeat is late is gone", "leases").in("kube-node-lease").optional(),
		}
	case "reasons":
		return []Rule{rule("", "list", "why a pod was not made, not placed or not started", "events")}
	case "drift":
		return []Rule{
			rule("", "get", "whether what travels with DaemonSets is as in Git", "configmaps", "namespaces", "serviceaccounts", "services"),
			rule("rbac.authorization.k8s.io", "get", "the same of their roles", "clusterrolebindings", "clusterroles", "rolebindings", "roles"),
			rule("networking.k8s.io", "get", "the same of NetworkPolicies", "networkpolicies"),
			rule("policy", "get", "the same of PodDisruptionBudgets", "poddisruptionbudgets"),
			rule("scheduling.k8s.io", "get", "the same of PriorityClasses", "priorityclasses"),
		}
	case "forecast":
		return []Rule{
			rule("", "list", "whether what a commit adds will fit", "resourcequotas"),
			rule("scheduling.k8s.io", "list", "what would be preempted", "priorityclasses"),
		}
	case "roll":
		return []Rule{rule("", "get delete", "an outdated pod of an OnDelete DaemonSet is deleted, and its controller makes a new one", "pods")}
	case "apply":
		out := append([]Rule{rule("apps", "get create patch", "DaemonSets are applied from Git", "daemonsets")}, companions...)
		// A namespace is made, and never deleted: with it goes what is not ours.
		return append(out, rule("", "get create patch", "the namespaces that they are in", "namespaces").optional().everywhere(), record())
	case "prune":
		out := []Rule{rule("apps", "get delete", "a DaemonSet that Git no longer has is deleted, after a last look", "daemonsets")}
		for _, r := range companions {
			r.Verbs, r.Why = []string{"get", "delete"}, "what Git no longer has beside it"
			out = append(out, r)
		}
		return append(out, rule("", "list patch", "the pods of a DaemonSet that is replaced around them get the labels of its new selector", "pods").optional(), record())
	case "manage":
		return []Rule{
			rule("apps", "get list watch", "it is the DaemonSet controller", "daemonsets"),
			rule("apps", "update patch", "it writes their status", "daemonsets/status"),
			rule("apps", "update", "owner references that block a deletion", "daemonsets/finalizers").optional(),
			rule("apps", "get list watch create update patch delete", "the history of their templates", "controllerrevisions"),
			rule("", "list watch create delete patch", "it makes, adopts and deletes their pods", "pods"),
			rule("", "list watch", "where pods belong", "nodes"),
			rule("", "create patch", "what it did and why", "events").optional(),
			rule("coordination.k8s.io", "get create update", "that only one is at work", "leases").in(Namespace),
			rule("", "get", "the marker that an administrator put there", "configmaps").named(Marker).in(Namespace),
		}
	}
	return nil
}

// Namespace of what rollcall has in a cluster, and Marker, the ConfigMap in it
// without which it never manages DaemonSets there.
const (
	Namespace = "rollcall"
	Marker    = "rollcall-manages-daemonsets"
)

// Rules are those of a tier, with the tiers below it, and of powers.
func Rules(tier string, may []string) ([]Rule, error) {
	at := slices.Index(Tiers, tier)
	if at < 0 {
		return nil, fmt.Errorf("tier %q is not known: there are %s", tier, strings.Join(Tiers, ", "))
	}
	var out []Rule
	add := func(of string) {
		for _, r := range rules(of) {
			r.For = of
			out = append(out, r)
		}
	}
	for _, t := range Tiers[:at+1] {
		add(t)
	}
	for _, p := range Powers {
		if slices.Contains(may, p) {
			add(p)
		}
	}
	for _, p := range may {
		if !slices.Contains(Powers, p) {
			return nil, fmt.Errorf("power %q is not known: there are %s", p, strings.Join(Powers, ", "))
		}
	}
	return out, nil
}

// Mark is a permission that tells a power from mere reading.
type Mark struct{ Power, Verb, Group, Resource string }

// Marks are those by which Held recognises powers.
var Marks = []Mark{
	{"roll", "delete", "", "pods"},
	{"apply", "create", "apps", "daemonsets"}, {"apply", "patch", "apps", "daemonsets"}, {"apply", "update", "apps", "daemonsets"},
	{"prune", "delete", "apps", "daemonsets"},
	{"manage", "create", "", "pods"}, {"manage", "update", "apps", "daemonsets/status"}, {"manage", "patch", "apps", "daemonsets/status"},
}

// Held is what a credential may change, from the rules that a cluster says it
// has: powers, and the words of what gives them. everything is an
// administrator's.
func Held(all []rbacv1.PolicyRule) (powers, because []string, everything bool) {
	for _, m := range Marks {
		for _, r := range all {
			if !has(r.Verbs, m.Verb) || !has(r.APIGroups, m.Group) || !hasResource(r.Resources, m.Resource) {
				continue
			}
			if !slices.Contains(powers, m.Power) {
				powers = append(powers, m.Power)
			}
			if word := m.Verb + " " + m.Resource; !slices.Contains(because, word) {
				because = append(because, word)
			}
		}
	}
	everything = slices.ContainsFunc(all, func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.Verbs, "*") && slices.Contains(r.APIGroups, "*") && slices.Contains(r.Resources, "*")
	})
	return powers, because, everything
}

func has(list []string, word string) bool {
	return slices.Contains(list, "*") || slices.Contains(list, word)
}

// hasResource knows that * covers subresources, and */status those of all.
func hasResource(list []string, resource string) bool {
	_, sub, found := strings.Cut(resource, "/")
	return has(list, resource) || found && slices.Contains(list, "*/"+sub)
}
