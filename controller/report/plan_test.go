package report_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/drift"
	"rollcall.dev/rollcall/controller/plan"
	"rollcall.dev/rollcall/controller/report"
)

// ahead is a plan with something of everything, and names that would steer a
// terminal or a page.
func ahead() plan.Plan {
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	object := func(kind, name string) clusters.Reference {
		return clusters.Reference{APIVersion: "v1", Kind: kind, Namespace: "obs", Name: name}
	}
	waits := plan.Hold{Code: plan.WaveWaits, Message: "wave 2 of 2 (rest) waits for prod-eu (18/20 covered) of wave 1 (canary)"}
	set := clusters.Reference{APIVersion: "apps/v1", Kind: "DaemonSet", Namespace: "obs", Name: "agent"}
	return plan.New(plan.Scope{Fleet: "platform", At: at, From: strings.Repeat("a", 40), To: strings.Repeat("b", 40)}, []plan.Cluster{
		{Name: "edge", Error: "contacting the API server: \x1b[31mno route"},
		{Name: "idle", Overlay: "base", ObservedAt: &at, Actions: []plan.Action{{Object: set, Operation: plan.Unchanged, Holds: []plan.Hold{}}}},
		{
			Name: "prod-us", Overlay: "overlays/prod", ObservedAt: &at, Recorded: true,
			Actions: []plan.Action{
				{Object: set, Operation: plan.Configure, Holds: []plan.Hold{waits}, Adopts: []string{"helm"}, Fields: []drift.Field{{Path: "spec.template.spec.tolerations", Change: drift.Missing, Desired: "[]"}}},
				{Object: object("ConfigMap", "new"), Operation: plan.Create, Holds: []plan.Hold{waits}},
				{Object: object("ConfigMap", "<b>|old"), Operation: plan.Prune, Holds: []plan.Hold{waits, {Code: plan.TooManyDeletes, Message: "3 of 10 objects"}}},
				{Object: object("Secret", "s"), Operation: plan.Configure, Note: "its content is not compared", Holds: []plan.Hold{waits}},
			},
			Nodes: []plan.Effect{
				{DaemonSet: "obs/agent", Node: "n1", Effect: plan.Restarts},
				{DaemonSet: "obs/agent", Node: "n2", Effect: plan.Loses, Reasons: []plan.Reason{{Code: "UntoleratedTaint", Message: "taint gpu=yes:NoSchedule is not tolerated"}}},
				{DaemonSet: "obs/agent", Node: "n3", Effect: plan.Loses, Reasons: []plan.Reason{{Code: "UntoleratedTaint", Message: "taint gpu=yes:NoSchedule is not tolerated"}}},
				{DaemonSet: "obs/agent", Node: "n4", Effect: plan.Gains},
				{DaemonSet: "obs/agent", Node: "n7", Effect: plan.WontFit, Reasons: []plan.Reason{{Code: "WouldNotFit", Message: "would stay pending: needs 200Mi memory, 120Mi free (estimate)"}}},
			},
			Rollouts: []plan.Rollout{{DaemonSet: "obs/agent", Strategy: "RollingUpdate", Nodes: 1, AtOnce: 1, Steps: 1, Message: "1 node in 1 step of 1 (maxUnavailable 1), each as long as a pod takes to start"}},
			Notes:    []string{"the inventory could not be read: nothing is pruned"},
		},
	})
}

func applied() report.Applied {
	set := clusters.Reference{APIVersion: "apps/v1", Kind: "DaemonSet", Namespace: "obs", Name: "agent"}
	return report.NewApplied(ahead(), []report.ClusterResults{
		{Name: "edge", Error: "no route"},
		{Name: "prod-us", Results: []clusters.Result{{Object: set, Operation: clusters.OpFailed, Reason: "Conflict", Message: "\"kubectl-edit\" owns spec.x"}, {Object: set, Operation: clusters.OpCreated}}},
	})
}

func differences() report.Diff {
	return report.NewDiff(world(variant{}), func(clusters.Reference) bool { return true })
}

func TestPlanGolden(t *testing.T) {
	for name, got := range map[string]string{
		"plan.txt": report.PlanText(ahead(), report.Style{}), "plan.md": report.PlanMarkdown(ahead()),
		"applied.txt": applied().Text(report.Style{}), "diff.txt": differences().Text(report.Style{}),
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join("testdata", name)
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if strings.ContainsAny(got, "\x1b\x07\r") {
				t.Error("it would steer a terminal")
			}
		})
	}
}

func TestPlanColorOnlyRepeats(t *testing.T) {
	color := regexp.MustCompile("\x1b\\[[0-9]+m")
	for name, text := range map[string]func(report.Style) string{
		"plan":    func(s report.Style) string { return report.PlanText(ahead(), s) },
		"applied": func(s report.Style) string { return applied().Text(s) },
		"diff":    func(s report.Style) string { return differences().Text(s) },
	} {
		colored := text(report.Style{Color: true})
		if !strings.Contains(colored, "\x1b[31m") {
			t.Errorf("%s: a colored one has no red", name)
		}
		if diff := cmp.Diff(text(report.Style{}), color.ReplaceAllString(colored, "")); diff != "" {
			t.Errorf("%s: without its colors it is another:\n%s", name, diff)
		}
	}
}
