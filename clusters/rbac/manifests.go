package rbac

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Grant is whom to give what.
type Grant struct {
	Account    string   // the ServiceAccount in Namespace
	Tier       string   // of reading
	May        []string // powers
	Namespaces []string // where alone the powers hold; empty for all
}

const managed = "app.kubernetes.io/managed-by"

// Manifests are the objects that give it, in the order in which they can be
// applied: the namespace, the account, roles and bindings, and for manage the
// marker.
func (g Grant) Manifests() ([]runtime.Object, error) {
	all, err := Rules(g.Tier, g.May)
	if err != nil {
		return nil, err
	}
	out := []runtime.Object{
		&corev1.Namespace{TypeMeta: typed("v1", "Namespace"), ObjectMeta: meta("", Namespace)},
		&corev1.ServiceAccount{TypeMeta: typed("v1", "ServiceAccount"), ObjectMeta: meta(Namespace, g.Account), AutomountServiceAccountToken: new(bool)},
	}
	reading := g.Account + "-read"
	out = append(out, g.cluster(reading, pick(all, func(r Rule) bool { return r.Namespace == "" && slices.Contains(Tiers, r.For) }))...)
	for _, power := range Powers {
		in := len(g.Namespaces) > 0 && power != "manage"
		rules := pick(all, func(r Rule) bool { return r.Namespace == "" && r.For == power && !(in && r.wide) })
		if len(rules) == 0 {
			continue
		}
		if !in {
			out = append(out, g.cluster(g.Account+"-"+power, rules)...)
			continue
		}
		for _, ns := range g.Namespaces {
			out = append(out, g.within(ns, g.Account+"-"+power, rules)...)
		}
	}
	for _, ns := range []string{"kube-node-lease", Namespace} {
		if rules := pick(all, func(r Rule) bool { return r.Namespace == ns }); len(rules) > 0 {
			out = append(out, g.within(ns, g.Account, rules)...)
		}
	}
	if slices.Contains(g.May, "manage") {
		out = append(out, &corev1.ConfigMap{TypeMeta: typed("v1", "ConfigMap"), ObjectMeta: meta(Namespace, Marker), Data: map[string]string{
			"why": "rollcall manages the DaemonSets of this cluster, whose control plane has no DaemonSet controller; delete this to stop it",
		}})
	}
	return out, nil
}

func pick(all []Rule, want func(Rule) bool) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, r := range all {
		if want(r) {
			out = append(out, r.PolicyRule)
		}
	}
	return out
}

func (g Grant) cluster(name string, rules []rbacv1.PolicyRule) []runtime.Object {
	return []runtime.Object{
		&rbacv1.ClusterRole{TypeMeta: typed(rbacv1.SchemeGroupVersion.String(), "ClusterRole"), ObjectMeta: meta("", name), Rules: rules},
		&rbacv1.ClusterRoleBinding{TypeMeta: typed(rbacv1.SchemeGroupVersion.String(), "ClusterRoleBinding"), ObjectMeta: meta("", name), Subjects: g.subjects(), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}},
	}
}

func (g Grant) within(ns, name string, rules []rbacv1.PolicyRule) []runtime.Object {
	return []runtime.Object{
		&rbacv1.Role{TypeMeta: typed(rbacv1.SchemeGroupVersion.String(), "Role"), ObjectMeta: meta(ns, name), Rules: rules},
		&rbacv1.RoleBinding{TypeMeta: typed(rbacv1.SchemeGroupVersion.String(), "RoleBinding"), ObjectMeta: meta(ns, name), Subjects: g.subjects(), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}},
	}
}

func (g Grant) subjects() []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: Namespace, Name: g.Account}}
}

func typed(version, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: version, Kind: kind}
}

func meta(ns, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: ns, Name: name, Labels: map[string]string{managed: "rollcall"}}
}

// Path is where an API server has an object of Manifests.
func Path(o runtime.Object) (string, error) {
	switch o := o.(type) {
	case *corev1.Namespace:
		return "/api/v1/namespaces/" + o.Name, nil
	case *corev1.ServiceAccount:
		return fmt.Sprintf("/api/v1/namespaces/%s/serviceaccounts/%s", o.Namespace, o.Name), nil
	case *corev1.ConfigMap:
		return fmt.Sprintf("/api/v1/namespaces/%s/configmaps/%s", o.Namespace, o.Name), nil
	case *rbacv1.ClusterRole:
		return rbacPath + "/clusterroles/" + o.Name, nil
	case *rbacv1.ClusterRoleBinding:
		return rbacPath + "/clusterrolebindings/" + o.Name, nil
	case *rbacv1.Role:
		return fmt.Sprintf("%s/namespaces/%s/roles/%s", rbacPath, o.Namespace, o.Name), nil
	case *rbacv1.RoleBinding:
		return fmt.Sprintf("%s/namespaces/%s/rolebindings/%s", rbacPath, o.Namespace, o.Name), nil
	}
	return "", fmt.Errorf("a %T is not granted", o)
}

const rbacPath = "/apis/rbac.authorization.k8s.io/v1"
