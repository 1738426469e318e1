package coverage

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"rollcall.dev/rollcall/clusters"
)

// recordedCase is one case of testdata/coverage.json: verdicts that upstream's
// own NodeShouldRunDaemonPod of Kubernetes v1.37.2 gave.
type recordedCase struct {
	ID           string
	Description  string
	DaemonSet    appsv1.DaemonSet
	Nodes        []corev1.Node
	Pods         []corev1.Pod
	FeatureGates map[string]bool
	Expected     map[string]struct {
		ShouldRun             bool
		ShouldContinueRunning bool
		Explain               struct{ NodeNameMatches, AffinityMatches *bool }
	}
	EffectiveTolerations []corev1.Toleration
	PodTargetNode        map[string]struct{ Node, Error string }
}

func recordedCases(t testing.TB) []recordedCase {
	t.Helper()
	data, err := os.ReadFile("testdata/coverage.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []recordedCase }
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) != 109 {
		t.Fatalf("testdata/coverage.json has %d cases, want 109", len(file.Cases))
	}
	return file.Cases
}

func (c recordedCase) live() *clusters.Live {
	live := &clusters.Live{DaemonSets: []appsv1.DaemonSet{c.DaemonSet}}
	for i := range c.Nodes {
		live.Nodes = append(live.Nodes, clusters.NodeOf(&c.Nodes[i]))
	}
	for i := range c.Pods {
		live.Pods = append(live.Pods, clusters.PodOf(&c.Pods[i]))
	}
	return live
}

func TestRecorded(t *testing.T) {
	for _, c := range recordedCases(t) {
		t.Run(c.ID, func(t *testing.T) {
			live := c.live()
			o := Options{ComparisonOperators: c.FeatureGates["TaintTolerationComparisonOperators"]}
			got := Compute(live, []Subject{{Live: &live.DaemonSets[0]}}, o).DaemonSets[0]
			if len(c.Expected) != len(c.Nodes) {
				t.Fatalf("%d nodes, %d verdicts", len(c.Nodes), len(c.Expected))
			}
			for name, want := range c.Expected {
				row, ok := got.Row(name)
				if !ok {
					t.Fatalf("no row for node %q", name)
				}
				if row.ShouldRun != want.ShouldRun || row.ShouldContinueRunning != want.ShouldContinueRunning {
					t.Errorf("%s: node %q: got (%t, %t), upstream says (%t, %t)", c.Description, name,
						row.ShouldRun, row.ShouldContinueRunning, want.ShouldRun, want.ShouldContinueRunning)
				}
				if row.State != Covered && len(row.Reasons) == 0 {
					t.Errorf("node %q is %s without a reason", name, row.State)
				}
			}
			tolerations := Tolerations(clusters.PlacementOf(&c.DaemonSet.Spec.Template.Spec))
			if diff := cmp.Diff(c.EffectiveTolerations, tolerations); diff != "" {
				t.Errorf("tolerations (-upstream +got):\n%s", diff)
			}
			for _, p := range live.Pods {
				if want, ok := c.PodTargetNode[p.Name]; ok && p.Node != want.Node {
					t.Errorf("pod %q targets %q, upstream says %q", p.Name, p.Node, want.Node)
				}
			}
		})
	}
}

// The plain reading of the rules, which the reasons are made of, must agree
// with the columns that the verdicts come from.
func TestChecksAgreeWithVerdicts(t *testing.T) {
	for _, c := range recordedCases(t) {
		live := c.live()
		o := Options{ComparisonOperators: c.FeatureGates["TaintTolerationComparisonOperators"]}
		got := Compute(live, []Subject{{Live: &live.DaemonSets[0]}}, o).DaemonSets[0]
		for _, n := range live.Nodes {
			checks := got.set.placementChecks(got.set.liveP, &n)
			refused := slices.ContainsFunc(checks, func(c Check) bool { return !c.OK })
			if row, _ := got.Row(n.Name); row.ShouldRun == refused {
				t.Errorf("%s: node %q: shouldRun %t, checks %+v", c.ID, n.Name, row.ShouldRun, checks)
			}
		}
	}
}
