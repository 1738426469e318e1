package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rollcall.dev/rollcall/controller/report"
)

// The examples are what README shows: they are run as they stand, and what
// they find is pinned.
func TestExamples(t *testing.T) {
	work := t.TempDir()
	rollcall, err := exec.LookPath("rollcall")
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(work, "demo")
	cmd := exec.Command("bash", "../../examples/demo.sh", rollcall, out)
	cmd.Env = append(os.Environ(), environment(work)...)
	printed, err := cmd.Output()
	if err != nil {
		exit, _ := err.(*exec.ExitError)
		t.Fatalf("%v: %s", err, exit.Stderr)
	}
	if !strings.HasPrefix(string(printed), "Fleet example ") {
		t.Errorf("no table was printed: %s", printed)
	}
	markdown, err := os.ReadFile(filepath.Join(out, "report.md"))
	if err != nil || !strings.HasPrefix(string(markdown), "### rollcall example\n") {
		t.Errorf("report.md: %v: %s", err, markdown)
	}
	data, err := os.ReadFile(filepath.Join(out, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	t.Run("Golden", func(t *testing.T) { golden(t, data, work) })
	t.Run("Shows", func(t *testing.T) { shows(t, data) })
}

func golden(t *testing.T, data []byte, work string) {
	got, err := steadyReport(data, work)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("testdata/demo.golden", got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/demo.golden")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// shows holds what the examples are there to show, whatever the golden says.
func shows(t *testing.T, data []byte) {
	var r report.Report
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, f := range r.Findings {
		seen[f.Code] = true
	}
	excluded := 0
	for _, c := range r.Clusters {
		for _, d := range c.DaemonSets {
			for state := range d.Counts.States {
				seen[state] = true
			}
			excluded += d.Counts.States["Excluded"]
		}
	}
	for _, want := range []string{"Misscheduled", "NodeUnreachable", "ImagePullBackOff", "DaemonSetAbsent"} {
		if !seen[want] {
			t.Errorf("the examples show no %s", want)
		}
	}
	if !r.Complete || r.Summary.Clusters != 4 || excluded == 0 {
		t.Errorf("complete %t, %d clusters, %d excluded", r.Complete, r.Summary.Clusters, excluded)
	}
}

// A virtual node is excluded by design; only the story of the node tells why.
func TestExamplesVirtualNode(t *testing.T) {
	found := false
	for _, dump := range []string{"edge", "prod-eu", "prod-us", "staging"} {
		out, err := exec.Command("rollcall", "scan", "-f", "../../examples/fleet/dumps/"+dump+".yaml", "--nodes", "all", "--fail-on", "none", "-o", "json").Output()
		if err != nil {
			t.Fatalf("scanning %s: %v", dump, err)
		}
		var r report.Report
		if err := json.Unmarshal(out, &r); err != nil {
			t.Fatal(err)
		}
		for _, c := range r.Clusters {
			for _, d := range c.DaemonSets {
				for _, n := range d.Nodes {
					found = found || n.State == "Excluded" && n.Reasons[0].Code == "VirtualNode"
				}
			}
		}
	}
	if !found {
		t.Error("no node of the examples is excluded as a VirtualNode")
	}
}
