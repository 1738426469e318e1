package plan_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/quick"

	"github.com/google/go-cmp/cmp"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/plan"
)

func configMaps(n int) []clusters.Reference {
	var out []clusters.Reference
	for i := range n {
		out = append(out, clusters.Reference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "d", Name: fmt.Sprintf("m%02d", i)})
	}
	return out
}

var (
	agent     = clusters.Reference{APIVersion: "apps/v1", Kind: "DaemonSet", Namespace: "d", Name: "agent"}
	namespace = clusters.Reference{APIVersion: "v1", Kind: "Namespace", Name: "d"}
	crd       = clusters.Reference{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "xs.example.com"}
)

func approve(letter string, allow string, names ...string) []clusters.Approval {
	return []clusters.Approval{{Commit: commit(letter), Clusters: names, Allow: []string{allow}}}
}

// brief is a line for each object that is held: cluster, object, codes.
func brief(holds map[string][]plan.Held, names ...string) string {
	var b strings.Builder
	for _, name := range names {
		for _, h := range holds[name] {
			fmt.Fprintf(&b, "%s %s:", name, h.Object)
			for _, x := range h.Holds {
				fmt.Fprintf(&b, " %s", x.Code)
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

func TestLimit(t *testing.T) {
	one := func(managed int, max string, objects ...clusters.Reference) []plan.Deletes {
		return []plan.Deletes{{Cluster: "a", Managed: managed, Objects: objects, Max: max}}
	}
	two := func(inA, inB int) []plan.Deletes {
		return []plan.Deletes{{Cluster: "b", Managed: 10, Objects: configMaps(inB), Max: "100%"}, {Cluster: "a", Managed: 10, Objects: configMaps(inA), Max: "100%"}, {Cluster: "idle", Managed: 10}}
	}
	const (
		m0 = "a ConfigMap d/m00: TooManyDeletes\n"
		m1 = "a ConfigMap d/m01: TooManyDeletes\n"
	)
	cases := map[string]struct {
		reason    string
		fleetMax  string
		all       []plan.Deletes
		approvals []clusters.Approval
		want      string
	}{
		"Nothing":        {"nothing is deleted", "0", one(5, "0"), nil, ""},
		"AtLeastOne":     {"10% of 5 is one object", "100%", one(5, "10%", configMaps(1)...), nil, ""},
		"Percent":        {"10% of 29 is two", "100%", one(29, "10%", configMaps(2)...), nil, ""},
		"PercentAbove":   {"10% of 19 is one, so none goes", "100%", one(19, "10%", configMaps(2)...), nil, m0 + m1},
		"Count":          {"a number is one", "100%", one(3, "2", configMaps(2)...), nil, ""},
		"CountAbove":     {"whatever is managed", "100%", one(100, "1", configMaps(2)...), nil, m0 + m1},
		"Zero":           {"never without approval", "100%", one(100, "0", configMaps(1)...), nil, m0},
		"ZeroPercent":    {"likewise", "100%", one(100, "0%", configMaps(1)...), nil, m0},
		"NoPolicy":       {"what was not parsed allows nothing", "100%", one(100, "", configMaps(1)...), nil, m0},
		"Fleet":          {"each within its limit, 3 of 30 is the fleet's", "10%", two(2, 1), nil, ""},
		"FleetAbove":     {"4 of 30 is too many", "10%", two(2, 2), nil, m0 + m1 + "b ConfigMap d/m00: TooManyDeletes\nb ConfigMap d/m01: TooManyDeletes\n"},
		"FleetOther":     {"the approved ones still count for the others", "10%", two(2, 2), approve("b", "prune", "b"), m0 + m1},
		"Both":           {"two reasons", "1", one(10, "1", configMaps(2)...), nil, "a ConfigMap d/m00: TooManyDeletes TooManyDeletes\na ConfigMap d/m01: TooManyDeletes TooManyDeletes\n"},
		"Approved":       {"that commit in that cluster", "1", one(10, "1", configMaps(9)...), approve("b", "prune", "x", "a"), ""},
		"OtherCommit":    {"an approval is of one commit", "100%", one(10, "1", configMaps(2)...), approve("c", "prune", "a"), m0 + m1},
		"OtherCluster":   {"and of the clusters that it names", "100%", one(10, "1", configMaps(2)...), approve("b", "prune", "b"), m0 + m1},
		"OtherPower":     {"and of what it allows", "100%", one(10, "1", configMaps(2)...), approve("b", "resume", "a"), m0 + m1},
		"DaemonSet":      {"one, within the limit, beside what goes", "100%", one(100, "10%", append(configMaps(1), agent)...), nil, "a DaemonSet d/agent: NotApproved\n"},
		"DaemonSetMany":  {"both reasons", "100%", one(3, "10%", append(configMaps(1), agent)...), nil, m0 + "a DaemonSet d/agent: TooManyDeletes NotApproved\n"},
		"DaemonSetWord":  {"with commit and cluster", "100%", one(100, "10%", agent), approve("b", "prune", "a"), ""},
		"DaemonSetOther": {"of another commit", "100%", one(100, "10%", agent), approve("c", "prune", "a"), "a DaemonSet d/agent: NotApproved\n"},
		"Cascade":        {"what takes DaemonSets with it is as grave", "100%", one(100, "10%", namespace, crd), nil, "a Namespace d: NotApproved\na CustomResourceDefinition xs.example.com: NotApproved\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := brief(plan.Limit(commit("b"), tc.fleetMax, tc.all, tc.approvals), "a", "b", "idle")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestLimitMessages(t *testing.T) {
	got := plan.Limit(commit("b"), "1", []plan.Deletes{{Cluster: "a", Managed: 12, Objects: []clusters.Reference{agent, configMaps(1)[0]}, Max: "10%"}}, nil)
	ask := "; look at what they are, then approve with --approve " + commit("b") + " --clusters a, or in spec.approvals"
	cluster := plan.Hold{Code: "TooManyDeletes", Message: "2 objects of 12 managed in the cluster would be deleted, policy.maxDeletes is 10% (1)" + ask}
	whole := plan.Hold{Code: "TooManyDeletes", Message: "2 objects of 12 managed in the fleet would be deleted, policy.maxDeletes of the fleet is 1" + ask}
	want := map[string][]plan.Held{"a": {
		{Object: configMaps(1)[0], Holds: []plan.Hold{cluster, whole}},
		{Object: agent, Holds: []plan.Hold{cluster, whole, {Code: "NotApproved", Message: "a DaemonSet is deleted, with its pods on every node, only after an approval that names commit and cluster" + ask}}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Without an approval never more goes than the limits say, no DaemonSet goes at
// all, without a commit nothing is approved, and the order says nothing.
func TestLimitQuick(t *testing.T) {
	property := func(seed uint64) bool {
		r := rand.New(rand.NewPCG(seed, 4))
		limits := []string{"0", "1", "3", "10%", "50%"}
		fleetMax := limits[r.IntN(5)]
		var all []plan.Deletes
		for c := range 1 + r.IntN(6) {
			d := plan.Deletes{Cluster: string(rune('a' + c)), Managed: 5 + r.IntN(40), Max: limits[r.IntN(5)], Objects: configMaps(r.IntN(5))}
			if r.IntN(3) == 0 {
				d.Objects = append(d.Objects, agent)
			}
			all = append(all, d)
		}
		approvals := approve("b", "prune", "a", "b")
		of := commit("b")
		if r.IntN(4) == 0 {
			of, approvals[0].Commit = "", ""
		}
		held := plan.Limit(of, fleetMax, all, approvals)
		managed, planned, gone := 0, 0, 0
		for _, d := range all {
			approved := of != "" && (d.Cluster == "a" || d.Cluster == "b")
			going := len(d.Objects) - len(held[d.Cluster])
			managed, planned = managed+d.Managed, planned+len(d.Objects)
			if approved && going != len(d.Objects) || !approved && going > clusters.Of(d.Max, d.Managed) {
				return false
			}
			daemonSets := 0
			for _, o := range d.Objects {
				if o == agent {
					daemonSets++
				}
			}
			if !approved {
				gone += going
				if going+daemonSets > len(d.Objects) {
					return false
				}
			}
		}
		if planned > clusters.Of(fleetMax, managed) && gone > 0 {
			return false
		}
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		return cmp.Equal(held, plan.Limit(of, fleetMax, all, approvals))
	}
	if err := quick.Check(property, &quick.Config{MaxCount: 5000}); err != nil {
		t.Error(err)
	}
}
