package controller_test

import (
	"strings"
	"testing"
	"time"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller"
	"rollcall.dev/rollcall/controller/plan"
)

// deletion is a cluster whose plan deletes one ConfigMap and nothing else.
func deletion(name, commit string, holds ...plan.Hold) controller.Planned {
	ref := clusters.Reference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "obs", Name: "old"}
	p := controller.Planned{Input: plan.Input{Cluster: clusters.Cluster{Name: name, Policy: clusters.Policy{MaxDeletes: "5"}}, Commit: commit, Live: &clusters.Live{Inventory: &clusters.Inventory{Commit: "before"}}}}
	p.Plan = plan.Cluster{Name: name, Actions: []plan.Action{{Object: ref, Operation: plan.Prune, Holds: holds}}}
	return p
}

// codes are what holds the deletion of each cluster.
func codes(planned []controller.Planned) string {
	var out []string
	for _, p := range planned {
		word := p.Cluster.Name
		for _, h := range p.Plan.Actions[0].Holds {
			word += " " + h.Code
		}
		out = append(out, word)
	}
	return strings.Join(out, "; ")
}

// A commit that but deletes goes through the waves as any other; a deletion that
// waits for somebody's word keeps no later wave waiting.
func TestAcrossDeletions(t *testing.T) {
	const commit = "cccccccccccccccccccccccccccccccccccccccc"
	f := clusters.Fleet{Policy: clusters.Policy{MaxDeletes: "5"}, Rollout: &clusters.Rollout{Waves: []clusters.Wave{
		{Name: "first", Clusters: clusters.Selection{Names: []string{"a"}}, Size: "100%", Gate: clusters.Gate{Covered: "100%", UpToDate: "100%"}},
		{Name: "rest", Size: "100%", Gate: clusters.Gate{Covered: "100%", UpToDate: "100%"}},
	}}}
	for name, tc := range map[string]struct {
		reason string
		first  []plan.Hold
		limit  string
		want   string
	}{
		"Waits":    {"the second wave waits for the deletion in the first", nil, "5", "a; b WaveWaits"},
		"Window":   {"also where the first waits for its window", []plan.Hold{{Code: plan.WindowClosed}}, "5", "a WindowClosed; b WaveWaits"},
		"NotOurs":  {"not for one that is not to come", []plan.Hold{{Code: "NotOurs"}}, "5", "a NotOurs; b"},
		"TooMany":  {"nor for those that wait for an approval", nil, "1", "a TooManyDeletes; b TooManyDeletes"},
		"Refused":  {"nor where the policy does not delete", []plan.Hold{{Code: "NotAllowed"}}, "5", "a NotAllowed; b"},
		"OnlyKept": {"nor for what stays", []plan.Hold{{Code: plan.Kept}}, "5", "a Kept; b"},
	} {
		t.Run(name, func(t *testing.T) {
			f := f
			f.Policy.MaxDeletes = tc.limit
			planned := []controller.Planned{deletion("a", commit, tc.first...), deletion("b", commit)}
			controller.Across(f, planned, commit, nil, time.Now())
			if got := codes(planned); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
