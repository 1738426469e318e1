package coverage

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollcall.dev/rollcall/clusters"
)

func TestOwner(t *testing.T) {
	managed := func(managers ...string) metav1.ObjectMeta {
		var m metav1.ObjectMeta
		for _, name := range managers {
			m.ManagedFields = append(m.ManagedFields, metav1.ManagedFieldsEntry{Manager: name})
		}
		return m
	}
	label := func(k, v string) metav1.ObjectMeta { return metav1.ObjectMeta{Labels: map[string]string{k: v}} }
	annotation := func(k, v string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Annotations: map[string]string{k: v}}
	}
	cases := map[string]struct {
		reason string
		in     metav1.ObjectMeta
		want   string
	}{
		"Nobody":     {"no mark, no owner", metav1.ObjectMeta{Labels: map[string]string{"app": "agent"}}, ""},
		"Reference":  {"an owner reference before any mark", metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: "Tigera", Name: "default"}}, Labels: map[string]string{"argocd.argoproj.io/instance": "x"}}, "Tigera default"},
		"ArgoCD":     {"the label names the application", label("argocd.argoproj.io/instance", "agents"), "Argo CD agents"},
		"ArgoCDID":   {"the tracking annotation begins with the application", annotation("argocd.argoproj.io/tracking-id", "agents:apps/DaemonSet:kube/agent"), "Argo CD agents"},
		"Flux":       {"a Kustomization", label("kustomize.toolkit.fluxcd.io/name", "infra"), "Flux Kustomization infra"},
		"FluxHelm":   {"Helm's mark comes with it and is second", metav1.ObjectMeta{Labels: map[string]string{"helm.toolkit.fluxcd.io/name": "agent"}, Annotations: map[string]string{"meta.helm.sh/release-name": "agent"}}, "Flux HelmRelease agent"},
		"Helm":       {"a release", annotation("meta.helm.sh/release-name", "agent"), "Helm agent"},
		"Rancher":    {"a bundle", annotation("objectset.rio.cattle.io/owner-name", "b"), "Rancher Fleet b"},
		"K3s":        {"an addon of K3s", annotation("objectset.rio.cattle.io/id", ""), "K3s"},
		"K3sAddon":   {"an addon of K3s has an owner's name, too", metav1.ObjectMeta{Annotations: map[string]string{"objectset.rio.cattle.io/owner-gvk": "k3s.cattle.io/v1, Kind=Addon", "objectset.rio.cattle.io/owner-name": "svclb"}}, "K3s"},
		"GKE":        {"the provider before its add-on manager", metav1.ObjectMeta{Labels: map[string]string{"addonmanager.kubernetes.io/mode": "Reconcile"}, Annotations: map[string]string{"components.gke.io/component-name": "pdcsi"}}, "GKE"},
		"Addon":      {"the add-on manager", label("addonmanager.kubernetes.io/mode", "Reconcile"), "the add-on manager"},
		"AKS":        {"the provider", label("kubernetes.azure.com/managedby", "aks"), "AKS"},
		"EKS":        {"the provider", label("eks.amazonaws.com/component", "kube-proxy"), "EKS"},
		"Manager":    {"a field manager where no mark is", managed("kube-controller-manager", "kubeadm"), "kubeadm"},
		"Managers":   {"several managers give one answer, whatever their order", managed("kubectl-client-side-apply", "argocd-controller"), "Argo CD"},
		"Controller": {"the DaemonSet controller is no deployer", managed("kube-controller-manager"), ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Owner(c.in); got != c.want {
				t.Errorf("%s: got %q, want %q", c.reason, got, c.want)
			}
		})
	}
}

// checked is one DaemonSet whose live template is behind Git's, and its nodes.
func checked() *scenario {
	s := &scenario{live: clusters.Live{ObservedAt: worldNow}}
	live := appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube", Name: "agent", UID: "ds"}}
	live.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}}
	git := *live.DeepCopy()
	git.Spec.Template.Spec = corev1.PodSpec{
		NodeSelector: map[string]string{"os": "linux", "arch": ""},
		Tolerations:  []corev1.Toleration{{Key: "gpu", Value: "true"}, {Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}},
		Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: "In", Values: []string{"a", "b"}}}}},
		}}},
	}
	s.live.DaemonSets, s.desired = []appsv1.DaemonSet{live}, []appsv1.DaemonSet{git}
	ready := []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(worldNow)}}
	s.live.Nodes = []clusters.Node{
		{Name: "n2", Labels: map[string]string{"os": "linux", "zone": "c"}, Deleting: true, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}},
		{Name: "n1", Labels: map[string]string{"os": "linux", "arch": "", "zone": "b"}, Conditions: ready, Taints: []corev1.Taint{
			{Key: "gpu", Value: "true", Effect: corev1.TaintEffectNoSchedule}, {Key: "slow", Effect: corev1.TaintEffectPreferNoSchedule},
			{Key: "node.kubernetes.io/unschedulable", Effect: corev1.TaintEffectNoSchedule}, {Key: "old", Effect: corev1.TaintEffectNoExecute}, {Key: "gpu", Value: "false", Effect: corev1.TaintEffectNoSchedule},
		}},
		{Name: "n10", Labels: map[string]string{"type": "virtual-kubelet"}},
	}
	return s
}

func TestChecks(t *testing.T) {
	d := checked().compute().DaemonSets[0]
	untried := Check{Name: "pod", Message: "there is no pod, and no event tells that one was tried: the DaemonSet controller may not be running or has not seen the node"}
	unreached := func(name string) Check { return Check{Name: name, Skipped: true, Message: "not reached"} }
	cases := map[string]struct {
		reason string
		want   []Check
	}{
		"n1": {"each check in upstream's order, on Git's template, with what was compared", []Check{
			{Name: "nodeSelector", OK: true, Message: "nodeSelector wants arch=, the node has arch="},
			{Name: "nodeSelector", OK: true, Message: "nodeSelector wants os=linux, the node has os=linux"},
			{Name: "affinity", OK: true, Message: "affinity term 1 of 1 matches: zone In a,b"},
			{Name: "taint", OK: true, Message: "taint gpu=true:NoSchedule is tolerated by the toleration gpu Equal true"},
			{Name: "taint", OK: true, Message: "taint slow:PreferNoSchedule has an effect that keeps no pod away"},
			{Name: "taint", OK: true, Message: "taint node.kubernetes.io/unschedulable:NoSchedule is tolerated by the automatic toleration node.kubernetes.io/unschedulable Exists NoSchedule"},
			{Name: "taint", OK: true, Message: "taint old:NoExecute is tolerated by the toleration any key Exists NoExecute"},
			{Name: "taint", Message: "taint gpu=false:NoSchedule is not tolerated"},
			{Name: "heard from", OK: true, Message: "the node's Ready condition is True since 2026-01-02T12:00:00Z"},
		}},
		"n2": {"all that is wrong is told, not the first only", []Check{
			{Name: "nodeSelector", Message: "nodeSelector wants arch=, the node has no label arch"},
			{Name: "nodeSelector", OK: true, Message: "nodeSelector wants os=linux, the node has os=linux"},
			{Name: "affinity", Message: "no affinity term matches: term 1: wants zone in (a,b), the node has zone=c"},
			{Name: "leaving", Message: "the node is being deleted"},
			{Name: "heard from", Message: "the node's Ready condition is False"},
			untried, unreached("scheduled"), unreached("running"), unreached("ready"), unreached("available"), unreached("up to date"),
		}},
		"n10": {"a virtual node says so", []Check{
			{Name: "nodeSelector", Message: "nodeSelector wants arch=, the node has no label arch"},
			{Name: "nodeSelector", Message: "nodeSelector wants os=linux, the node has no label os"},
			{Name: "affinity", Message: "no affinity term matches: term 1: wants zone in (a,b), the node has no label zone"},
			{Name: "virtual", Message: "the node is virtual: it is meant for a DaemonSet only where an agent asks for such nodes"},
			{Name: "heard from", OK: true, Message: "the node has no Ready condition"},
			untried, unreached("scheduled"), unreached("running"), unreached("ready"), unreached("available"), unreached("up to date"),
		}},
		"n3": {"a node that is not there has no story", nil},
	}
	for node, c := range cases {
		t.Run(node, func(t *testing.T) {
			got := d.Checks(node)
			for i := range got {
				got[i] = Check{Name: got[i].Name, OK: got[i].OK, Skipped: got[i].Skipped, Message: got[i].Message}
			}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(Check{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestRows(t *testing.T) {
	d := checked().compute().DaemonSets[0]
	names := func(keep func(State) bool) []string {
		var out []string
		for _, r := range d.Rows(keep) {
			out = append(out, r.Node)
		}
		return out
	}
	all := func(State) bool { return true }
	if got, want := names(all), []string{"n1", "n10", "n2"}; !slices.Equal(got, want) {
		t.Errorf("rows in the order of names: got %q, want %q", got, want)
	}
	if got := names(func(s State) bool { return s == Leaving }); !slices.Equal(got, []string{"n2"}) {
		t.Errorf("only the leaving node was asked for, got %q", got)
	}
	for _, row := range d.Rows(all) {
		single, ok := d.Row(row.Node)
		if diff := cmp.Diff(row, single); !ok || diff != "" {
			t.Errorf("Row(%q) differs from Rows (-Rows +Row):\n%s", row.Node, diff)
		}
	}
	if _, ok := d.Row("n3"); ok {
		t.Error("a node that is not there has a row")
	}
}

// The order of the lists that were read, of which nothing is known, must not
// show in the result, and neither may a second look at the same Live.
func TestOrderDoesNotMatter(t *testing.T) {
	s := checked()
	s.live.Nodes[1].Taints = nil
	s.live.Pods = []clusters.Pod{
		{Namespace: "kube", Name: "d", UID: "d", Node: "n1", Owner: clusters.Owner{Kind: "DaemonSet", Name: "agent", UID: "ds"}, Labels: map[string]string{"app": "agent"}},
		{Namespace: "kube", Name: "b", UID: "b", Node: "n9", Owner: clusters.Owner{Kind: "DaemonSet", Name: "agent", UID: "ds"}, Labels: map[string]string{"app": "agent"}},
		{Namespace: "kube", Name: "a", UID: "a", Node: "n1", Owner: clusters.Owner{Kind: "DaemonSet", Name: "agent", UID: "ds"}, Labels: map[string]string{"app": "agent"}},
		{Namespace: "kube", Name: "c", UID: "c", Node: "n1", Labels: map[string]string{"app": "agent"}},
	}
	want := renderAll(s.compute().DaemonSets)
	if !strings.Contains(want, "n1 Duplicate ExtraPod") || !strings.Contains(want, ": a, d\n") {
		t.Errorf("want the two pods of n1 by name, got\n%s", want)
	}
	if again := renderAll(s.compute().DaemonSets); again != want {
		t.Errorf("a second look (-first +second):\n%s", cmp.Diff(want, again))
	}
	slices.Reverse(s.live.Nodes)
	slices.Reverse(s.live.Pods)
	if got := renderAll(s.compute().DaemonSets); got != want {
		t.Errorf("in another order (-want +got):\n%s", cmp.Diff(want, got))
	}
}

func TestSubjectsAreSorted(t *testing.T) {
	s := &scenario{}
	for _, name := range []string{"b/a", "a/z", "a/b"} {
		ds := appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: name[:1], Name: name[2:]}}
		s.desired = append(s.desired, ds)
	}
	var got []string
	for _, d := range s.compute().DaemonSets {
		got = append(got, d.Namespace+"/"+d.Name)
	}
	if want := []string{"a/b", "a/z", "b/a"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Without UIDs, as in a dump that somebody wrote by hand, nothing is owned.
func TestNoUID(t *testing.T) {
	s := checked()
	s.live.DaemonSets[0].UID = ""
	s.live.Pods = []clusters.Pod{{Namespace: "kube", Name: "a", Node: "n1", Labels: map[string]string{"app": "agent"}}}
	s.live.Revisions = []clusters.Revision{{Name: "other", Number: 1, Hash: "h"}}
	d := s.compute().DaemonSets[0]
	if row, _ := d.Row("n1"); len(row.Pods) > 0 || d.Counts.UpToDateKnown {
		t.Errorf("an orphan and a revision of nobody were taken for its own: %+v, counts %+v", row, d.Counts)
	}
	if len(d.Strays) != 1 || d.Strays[0].Reason.Code != OrphanPod {
		t.Errorf("want one OrphanPod, got %+v", d.Strays)
	}
}
