package coverage

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"rollcall.dev/rollcall/clusters"
)

// TestAdmissionDriftNeedsTheTemplate: a pod of an older template is not one
// that admission changed, although its revision cannot be read.
func TestAdmissionDriftNeedsTheTemplate(t *testing.T) {
	other := clusters.Placement{NodeSelector: map[string]string{"pool": "a"}}
	cases := map[string]struct {
		reason     string
		generation string
		revisions  []clusters.Revision
		want       Code
	}{
		"NoGeneration":      {"nothing tells that it is older", "", nil, AdmissionDrift},
		"CurrentGeneration": {"it was made of the live template", "7", nil, AdmissionDrift},
		"OlderGeneration":   {"it was made of another template, which is not known", "6", nil, FailedScheduling},
		"OlderRevision":     {"it was made of another template, which says so itself", "6", []clusters.Revision{{Name: "agent-v6", Owner: clusters.Owner{UID: "ds"}, Number: 6, Hash: "v6", Placement: other}}, FailedScheduling},
		"OlderAndChanged":   {"that template does not say so", "6", []clusters.Revision{{Name: "agent-v6", Owner: clusters.Owner{UID: "ds"}, Number: 6, Hash: "v6"}}, AdmissionDrift},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ds := daemonSetOf(func(*appsv1.DaemonSetSpec) {})
			ds.Annotations = map[string]string{appsv1.DeprecatedTemplateGeneration: "7"}
			live := pendingPod(ds, other)
			live.Revisions = tc.revisions
			live.Pods[0].Labels[hashLabel] = "v6"
			if tc.generation != "" {
				live.Pods[0].Labels[generationLabel] = tc.generation
			}
			if got := reasonOnNode(live); got.Code != tc.want {
				t.Errorf("%s: got %s: %s", tc.reason, got.Code, got.Message)
			}
		})
	}
}

// TestAdmissionDriftNamesTheTerm: which term, and what of the node it misses.
func TestAdmissionDriftNamesTheTerm(t *testing.T) {
	terms := []corev1.NodeSelectorTerm{
		{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpExists}}},
		{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "realm", Operator: corev1.NodeSelectorOpIn, Values: []string{"test"}}}},
	}
	live := pendingPod(daemonSetOf(func(*appsv1.DaemonSetSpec) {}), clusters.Placement{Affinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}})
	live.Nodes[0].Labels = map[string]string{"realm": "prod"}
	got := reasonOnNode(live)
	for _, want := range []string{"term 1: wants zone, the node has no label zone", "term 2: wants realm in (test), the node has realm=prod"} {
		if got.Code != AdmissionDrift || !strings.Contains(got.Message, want) {
			t.Errorf("%s: %s, want %q", got.Code, got.Message, want)
		}
	}
}

func reasonOnNode(live *clusters.Live) Reason {
	c := Compute(live, []Subject{{Live: &live.DaemonSets[0]}}, Options{})
	return c.DaemonSets[0].Rows(func(State) bool { return true })[0].Reasons[0]
}
