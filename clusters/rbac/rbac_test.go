package rbac

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

// What pods claim is read of all namespaces, and so is who may push out whom.
func TestForecastReadsAllPods(t *testing.T) {
	all, err := Rules("forecast", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, resource := range []string{"pods", "priorityclasses"} {
		if !slices.ContainsFunc(all, func(r Rule) bool {
			return r.Namespace == "" && slices.Contains(r.Resources, resource) && slices.Contains(r.Verbs, "list")
		}) {
			t.Errorf("%s of all namespaces are not in the tier", resource)
		}
	}
}

// Nobody is ever given what makes him an administrator, or another.
func TestRulesAreNarrow(t *testing.T) {
	all, err := Rules("forecast", Powers)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		words := slices.Concat(r.APIGroups, r.Resources, r.Verbs)
		for _, never := range []string{"*", "secrets", "impersonate", "escalate", "bind", "nodes/proxy", "pods/exec", "serviceaccounts/token", "deletecollection"} {
			if slices.Contains(words, never) {
				t.Errorf("%s: %v has %q", r.For, r.PolicyRule, never)
			}
		}
		if r.Why == "" {
			t.Errorf("%v does not say why", r.PolicyRule)
		}
	}
	reading, err := Rules("forecast", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range reading {
		for _, v := range r.Verbs {
			if v != "get" && v != "list" && v != "watch" {
				t.Errorf("%s: %q is no reading", r.For, v)
			}
		}
	}
}

func TestRulesOfUnknown(t *testing.T) {
	if _, err := Rules("everything", nil); err == nil || !strings.Contains(err.Error(), "coverage, reasons, drift, forecast") {
		t.Errorf("got %v", err)
	}
	if _, err := Rules("coverage", []string{"destroy"}); err == nil || !strings.Contains(err.Error(), "roll, apply, prune, manage") {
		t.Errorf("got %v", err)
	}
}

// What each power's own role gives is recognised as that power.
func TestHeld(t *testing.T) {
	for _, power := range append([]string{""}, Powers...) {
		var may []string
		if power != "" {
			may = []string{power}
		}
		all, err := Rules("forecast", may)
		if err != nil {
			t.Fatal(err)
		}
		powers, because, everything := Held(pick(all, func(Rule) bool { return true }))
		want := may
		if power == "manage" {
			want = []string{"roll", "manage"} // who makes pods deletes them, too
		}
		if diff := cmp.Diff(want, powers); diff != "" || everything || len(because) == 0 != (power == "") {
			t.Errorf("%q: -want +got:\n%s%v %v", power, diff, because, everything)
		}
	}
	for name, tc := range map[string]struct {
		rule rbacv1.PolicyRule
		want []string
		all  bool
	}{
		"Administrator": {rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}, Powers, true},
		"AllOfApps":     {rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"apps"}, Resources: []string{"*"}}, []string{"apply", "prune", "manage"}, false},
		"Status":        {rbacv1.PolicyRule{Verbs: []string{"update"}, APIGroups: []string{"*"}, Resources: []string{"*/status"}}, []string{"manage"}, false},
		"Viewer":        {rbacv1.PolicyRule{Verbs: []string{"get", "list", "watch"}, APIGroups: []string{"*"}, Resources: []string{"*"}}, nil, false},
		"OneOnly":       {rbacv1.PolicyRule{Verbs: []string{"delete"}, APIGroups: []string{""}, Resources: []string{"pods"}, ResourceNames: []string{"x"}}, []string{"roll"}, false},
	} {
		powers, _, everything := Held([]rbacv1.PolicyRule{tc.rule})
		if diff := cmp.Diff(tc.want, powers); diff != "" || everything != tc.all {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

// Every object of a grant can be applied, and powers in namespaces give nothing
// elsewhere.
func TestManifests(t *testing.T) {
	g := Grant{Account: "rollcall", Tier: "reasons", May: []string{"roll", "manage"}, Namespaces: []string{"logging"}}
	all, err := g.Manifests()
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, o := range all {
		p, err := Path(o)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, p)
	}
	for _, want := range []string{
		"/api/v1/namespaces/rollcall", "/api/v1/namespaces/rollcall/serviceaccounts/rollcall", rbacPath + "/clusterroles/rollcall-read",
		rbacPath + "/namespaces/logging/roles/rollcall-roll", rbacPath + "/clusterroles/rollcall-manage", rbacPath + "/namespaces/kube-node-lease/rolebindings/rollcall",
		"/api/v1/namespaces/rollcall/configmaps/" + Marker,
	} {
		if !slices.Contains(paths, want) {
			t.Errorf("%s is not among %s", want, strings.Join(paths, "\n"))
		}
	}
	if slices.Contains(paths, rbacPath+"/clusterroles/rollcall-roll") {
		t.Error("roll is given in all namespaces")
	}
}

// Who applies has what an inventory takes, in its namespace only, and who prunes
// may look before; nobody may delete a namespace or write Secrets.
func TestApplyAndPrune(t *testing.T) {
	for _, tc := range []struct {
		power                        string
		namespaces                   []string
		path, verbs, group, resource string
	}{
		{"apply", nil, rbacPath + "/namespaces/rollcall/roles/rollcall", "get list create update delete", "", "configmaps"},
		{"prune", nil, rbacPath + "/namespaces/rollcall/roles/rollcall", "get list create update delete", "", "configmaps"},
		{"apply", nil, rbacPath + "/clusterroles/rollcall-apply", "get create patch", "apps", "daemonsets"},
		{"apply", nil, rbacPath + "/clusterroles/rollcall-apply", "get create patch", "", "namespaces"},
		{"prune", nil, rbacPath + "/clusterroles/rollcall-prune", "get delete", "apps", "daemonsets"},
		{"prune", nil, rbacPath + "/clusterroles/rollcall-prune", "", "", "namespaces"},
		{"apply", []string{"logging"}, rbacPath + "/namespaces/logging/roles/rollcall-apply", "get create patch", "", "configmaps"},
		{"apply", []string{"logging"}, rbacPath + "/namespaces/logging/roles/rollcall-apply", "", "scheduling.k8s.io", "priorityclasses"},
		{"apply", []string{"logging"}, rbacPath + "/namespaces/rollcall/roles/rollcall", "get list create update delete", "", "configmaps"},
	} {
		all, err := Grant{Account: "rollcall", Tier: "coverage", May: []string{tc.power}, Namespaces: tc.namespaces}.Manifests()
		if err != nil {
			t.Fatal(err)
		}
		var verbs []string
		for _, o := range all {
			path, err := Path(o)
			if err != nil {
				t.Fatal(err)
			}
			var rules []rbacv1.PolicyRule
			switch o := o.(type) {
			case *rbacv1.ClusterRole:
				rules = o.Rules
			case *rbacv1.Role:
				rules = o.Rules
			}
			for _, r := range rules {
				if path == tc.path && slices.Contains(r.APIGroups, tc.group) && slices.Contains(r.Resources, tc.resource) {
					verbs = r.Verbs
				}
			}
		}
		if got := strings.Join(verbs, " "); got != tc.verbs {
			t.Errorf("%s %v: %s of %s: got %q, want %q", tc.power, tc.namespaces, tc.resource, tc.path, got, tc.verbs)
		}
	}
}
