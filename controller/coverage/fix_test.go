package coverage

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollcall.dev/rollcall/clusters"
)

// asked is a node, a DaemonSet and its pods there that a story is told of.
type asked struct {
	node     clusters.Node
	template corev1.PodSpec
	inGit    bool
	git      *corev1.PodSpec // where Git's template is another
	onDelete bool
	minReady int32
	pods     []clusters.Pod
	events   []clusters.Event
}

func (a asked) checks(t *testing.T) []Check {
	t.Helper()
	ds := appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube", Name: "agent", UID: "ds", ManagedFields: []metav1.ManagedFieldsEntry{{
		Manager: "kubectl-patch", Time: new(metav1.NewTime(worldNow)), FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:template":{"f:spec":{"f:nodeSelector":{},"f:affinity":{}}}}}`),
	}}}}
	ds.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}}
	ds.Spec.Template.Spec, ds.Spec.MinReadySeconds = a.template, a.minReady
	if a.onDelete {
		ds.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
	}
	a.node.Name = "n1"
	if a.node.Conditions == nil {
		a.node.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	}
	owner := clusters.Owner{Kind: "DaemonSet", Name: "agent", UID: "ds"}
	for i := range a.pods {
		p := &a.pods[i]
		p.Namespace, p.Name, p.Owner, p.Node = "kube", "agent-x", owner, "n1"
		p.Labels = map[string]string{"app": "agent", hashLabel: p.Message}
	}
	for i := range a.events {
		a.events[i].UID, a.events[i].Kind, a.events[i].Namespace, a.events[i].Last = "ds", "DaemonSet", "kube", worldNow
	}
	s := &scenario{live: clusters.Live{
		ObservedAt: worldNow, Nodes: []clusters.Node{a.node}, DaemonSets: []appsv1.DaemonSet{ds}, Pods: a.pods, Events: a.events,
		Revisions: []clusters.Revision{{Namespace: "kube", Name: "agent-new", Owner: owner, Number: 2, Hash: "new", Placement: clusters.PlacementOf(&a.template)}},
	}}
	if a.inGit || a.git != nil {
		s.desired = []appsv1.DaemonSet{*ds.DeepCopy()}
	}
	if a.git != nil {
		s.desired[0].Spec.Template.Spec = *a.git
	}
	return s.compute().DaemonSets[0].Checks("n1")
}

// What a check that failed says of who set it and what would mend it.
func TestFixes(t *testing.T) {
	terms := func(rs ...[]corev1.NodeSelectorRequirement) corev1.PodSpec {
		var ts []corev1.NodeSelectorTerm
		for _, r := range rs {
			ts = append(ts, corev1.NodeSelectorTerm{MatchExpressions: r})
		}
		return corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: ts}}}}
	}
	running := clusters.Pod{Bound: true, Phase: corev1.PodRunning, Ready: true, Message: "new", ReadySince: worldNow.Add(-time.Hour)}
	crashing := clusters.Pod{Bound: true, Phase: corev1.PodRunning, Message: "new", Containers: []clusters.Container{{Name: "c", Waiting: clusters.State{Reason: "CrashLoopBackOff"}}}}
	taint := []corev1.Taint{{Key: "dedicated", Value: "db", Effect: corev1.TaintEffectNoSchedule}}
	written := []clusters.Writer{{Manager: "kubectl-taint", NotAfter: worldNow, Taints: true}, {Manager: "kubectl-label", Labels: []string{"pool"}}}
	cases := map[string]struct {
		reason string
		in     asked
		check  string
		by     string
		want   []string // text | command
	}{
		"Taint": {"take it off, or tolerate it", asked{node: clusters.Node{Taints: taint, Writers: written}}, "taint",
			"the node's taints were last written by kubectl-taint, not later than 2026-01-02T12:00:00Z", []string{
				"take the taint off the node | taint nodes n1 dedicated=db:NoSchedule-",
				`or add to spec.template.spec.tolerations: {key: "dedicated", operator: Equal, value: "db", effect: NoSchedule} | -n kube patch ds agent --type=json -p [{"op":"add","path":"/spec/template/spec/tolerations","value":[{"key":"dedicated","operator":"Equal","value":"db","effect":"NoSchedule"}]}]`,
			}},
		"TaintMore": {"a list that is there is added to", asked{node: clusters.Node{Taints: taint}, template: corev1.PodSpec{Tolerations: []corev1.Toleration{{Key: "x"}}}}, "taint", "", []string{
			"take the taint off the node | taint nodes n1 dedicated=db:NoSchedule-",
			`or add to spec.template.spec.tolerations: {key: "dedicated", operator: Equal, value: "db", effect: NoSchedule} | -n kube patch ds agent --type=json -p [{"op":"add","path":"/spec/template/spec/tolerations/-","value":{"key":"dedicated","operator":"Equal","value":"db","effect":"NoSchedule"}}]`,
		}},
		"TaintInGit": {"what Git has is changed there", asked{node: clusters.Node{Taints: taint}, inGit: true}, "taint", "", []string{
			"take the taint off the node | taint nodes n1 dedicated=db:NoSchedule-",
			`or add to spec.template.spec.tolerations: {key: "dedicated", operator: Equal, value: "db", effect: NoSchedule}, in Git | `,
		}},
		"Passing": {"a taint that goes by itself is a sign", asked{node: clusters.Node{Taints: []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}}}, "taint", "", []string{
			"the taint goes by itself once its reason is mended: see the node's conditions | describe node n1",
		}},
		"Selector": {"label the node", asked{template: corev1.PodSpec{NodeSelector: map[string]string{"pool": "a"}}}, "nodeSelector", "last written by kubectl-patch, not later than 2026-01-02T12:00:00Z", []string{
			"label the node pool=a | label node n1 pool=a", "or take pool=a out of spec.template.spec.nodeSelector | -n kube edit ds agent",
		}},
		"SelectorOther": {"a label that is there is overwritten, and somebody wrote it", asked{node: clusters.Node{Labels: map[string]string{"pool": "b"}, Writers: written}, template: corev1.PodSpec{NodeSelector: map[string]string{"pool": "a"}}}, "nodeSelector",
			"last written by kubectl-patch, not later than 2026-01-02T12:00:00Z; the label was last written by kubectl-label", []string{
				"label the node pool=a | label node n1 pool=a --overwrite", "or take pool=a out of spec.template.spec.nodeSelector | -n kube edit ds agent",
			}},
		"Affinity": {"the term that is missed least", asked{node: clusters.Node{Labels: map[string]string{"old": "x", "cores": "4"}}, template: terms(
			[]corev1.NodeSelectorRequirement{{Key: "zone", Operator: "In", Values: []string{"b", "c"}}, {Key: "old", Operator: "DoesNotExist"}, {Key: "cores", Operator: "Gt", Values: []string{"7"}}},
			[]corev1.NodeSelectorRequirement{{Key: "old", Operator: "NotIn", Values: []string{"x"}}, {Key: "cores", Operator: "Lt", Values: []string{"3"}}},
		)}, "affinity", "last written by kubectl-patch, not later than 2026-01-02T12:00:00Z", []string{
			"take the label off the node: old notin (x) | label node n1 old-", "label the node so that cores<3 | label node n1 cores=2 --overwrite", "or change spec.template.spec.affinity.nodeAffinity | -n kube edit ds agent",
		}},
		"AffinityNever": {"a term that no label meets", asked{template: terms([]corev1.NodeSelectorRequirement{{Key: "cores", Operator: "Gt", Values: []string{"many"}}})}, "affinity", "last written by kubectl-patch, not later than 2026-01-02T12:00:00Z", []string{
			"or change spec.template.spec.affinity.nodeAffinity | -n kube edit ds agent",
		}},
		"Down": {"its kubelet", asked{node: clusters.Node{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}}}, "heard from", "", []string{"see what its kubelet last said | describe node n1"}},
		"LiveTemplate": {"what lives is not what Git says", asked{template: corev1.PodSpec{NodeSelector: map[string]string{"none": "x"}}, git: &corev1.PodSpec{}}, "live template", "last written by kubectl-patch, not later than 2026-01-02T12:00:00Z", []string{
			"apply Git's template; it differs in spec.template.spec.nodeSelector | -n kube get ds agent -o yaml",
		}},
		"Nobody": {"nobody tried", asked{}, "pod", "", []string{
			"see whether the controller manager renews its lease | -n kube-system get lease kube-controller-manager -o yaml", "see what the controller tried | -n kube describe ds agent",
		}},
		"Quota": {"who refused it", asked{events: []clusters.Event{{Reason: "FailedCreate", Message: `pods "agent-x" is forbidden: exceeded quota: compute, used`}}}, "pod", "", []string{
			"see the quota, and raise it | -n kube describe quota compute", "see what the controller tried | -n kube describe ds agent",
		}},
		"Unscheduled": {"its events", asked{pods: []clusters.Pod{{Phase: corev1.PodPending, Unschedulable: "Insufficient memory", Message: "new"}}}, "scheduled", "", []string{"see its events | -n kube describe pod agent-x"}},
		"Crash":       {"its log", asked{pods: []clusters.Pod{crashing}}, "running", "", []string{"read what it said before it ended | -n kube logs agent-x -c c --previous"}},
		"Unready":     {"its log and events", asked{pods: []clusters.Pod{{Bound: true, Phase: corev1.PodRunning, Message: "new", Containers: []clusters.Container{{Name: "c"}}}}}, "ready", "", []string{"read its log | -n kube logs agent-x -c c", "see its events | -n kube describe pod agent-x"}},
		"Soon":        {"wait", asked{minReady: 7200, pods: []clusters.Pod{running}}, "available", "", []string{"wait | "}},
		"Stuck": {"a machine that is gone", asked{pods: []clusters.Pod{{Bound: true, Phase: corev1.PodRunning, Deleting: worldNow.Add(-time.Hour)}}}, "running", "", []string{
			"see whether the node is there | describe node n1", "if the machine is gone for good, let go of the pod; on a machine that still runs, its containers go on unseen | -n kube delete pod agent-x --force --grace-period=0",
		}},
		"OnDelete": {"delete it", asked{onDelete: true, pods: []clusters.Pod{{Bound: true, Phase: corev1.PodRunning, Ready: true, Message: "old"}}}, "up to date", "", []string{"delete the pod, and the controller makes one of the current revision | -n kube delete pod agent-x"}},
		"Rolling":  {"the update comes to it", asked{pods: []clusters.Pod{{Bound: true, Phase: corev1.PodRunning, Ready: true, Message: "old"}}}, "up to date", "", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			checks := tc.in.checks(t)
			at := slices.IndexFunc(checks, func(c Check) bool { return c.Name == tc.check && !c.OK && !c.Skipped })
			if at < 0 {
				t.Fatalf("no check %s failed: %+v", tc.check, checks)
			}
			var got []string
			for _, f := range checks[at].Fixes {
				got = append(got, f.Text+" | "+strings.Join(f.Kubectl, " "))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || checks[at].By != tc.by {
				t.Errorf("%s: by %q, want %q (-want +got):\n%s", tc.reason, checks[at].By, tc.by, diff)
			}
		})
	}
	t.Run("Covered", func(t *testing.T) {
		checks := asked{pods: []clusters.Pod{running}}.checks(t)
		if len(checks) != 1+len(steps) || slices.ContainsFunc(checks, func(c Check) bool { return !c.OK || len(c.Fixes) > 0 }) {
			t.Errorf("all is well, got %+v", checks)
		}
	})
}
