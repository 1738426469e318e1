package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rollcall.dev/rollcall/clusters/kubetest"
	"rollcall.dev/rollcall/controller/report"
)

// storyOf is what why tells of one DaemonSet on one node.
func storyOf(t *testing.T, cp *kubetest.ControlPlane, node, ds string) report.StoryOfASet {
	t.Helper()
	var out, errs bytes.Buffer
	args := []string{"why", "node/" + node, "ds/" + ds, "-n", "default", "--kubeconfig", cp.Kubeconfig(), "-o", "json"}
	if got := run(args, streams{strings.NewReader(""), &out, &errs}); got != 0 {
		t.Fatalf("exit status %d: %s", got, errs.String())
	}
	var s report.Story
	if err := json.Unmarshal(out.Bytes(), &s); err != nil {
		t.Fatal(err)
	}
	return s.DaemonSets[0]
}

// failed is the first check of a name that failed.
func failedCheck(s report.StoryOfASet, name string) (report.Check, bool) {
	for _, c := range s.Checks {
		if c.Name == name && !c.OK && !c.Skipped {
			return c, true
		}
	}
	return report.Check{}, false
}

// inShell runs a command as a person would paste it, with the real kubectl.
func inShell(t *testing.T, command string) {
	t.Helper()
	assets, err := kubetest.Assets()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
	cmd.Env = append(os.Environ(), "PATH="+assets+string(filepath.ListSeparator)+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
}

// A command that why prints does what the text beside it says: pasted into a
// shell it turns the check.
func TestRealFixes(t *testing.T) {
	cp := kubetest.Start(t, kubetest.Options{Controllers: true, Scheduler: true, Nodes: 2})
	cp.Apply(t, exporter)
	cp.WaitDaemonSetReady(t, "default", "exporter", 2)
	affinity := `{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["b"]}]},{"matchExpressions":[{"key":"zone","operator":"In","values":["a"]},{"key":"bad","operator":"DoesNotExist"}]}]}}}`
	cases := []struct {
		name, check string
		fix         int
		breaks      func()
		by          string
	}{
		{"TaintOff", "taint", 0, func() { kubectl(t, cp, "taint", "nodes", "node-0", "dedicated=db:NoSchedule") }, "kubectl-taint, not later than"},
		{"Tolerate", "taint", 1, func() { kubectl(t, cp, "taint", "nodes", "node-0", "dedicated=db:NoSchedule") }, "kubectl-taint, not later than"},
		{"TolerateMore", "taint", 1, func() { kubectl(t, cp, "taint", "nodes", "node-0", "gpu:NoExecute") }, "kubectl-taint, not later than"},
		{"Selector", "nodeSelector", 0, func() {
			kubectl(t, cp, "patch", "ds/exporter", "-p", `{"spec":{"template":{"spec":{"nodeSelector":{"pool":"a"}}}}}`)
		}, "kubectl-patch, not later than"},
		{"Overwrite", "nodeSelector", 0, func() { kubectl(t, cp, "label", "node", "node-0", "pool=b", "--overwrite") }, "the label was last written by kubectl-label, not later than"},
		{"Affinity", "affinity", 0, func() {
			kubectl(t, cp, "patch", "ds/exporter", "-p", `{"spec":{"template":{"spec":{"affinity":`+affinity+`}}}}`)
		}, "kubectl-patch, not later than"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			tc.breaks()
			c, ok := failedCheck(storyOf(t, cp, "node-0", "exporter"), tc.check)
			if !ok || len(c.Fixes) <= tc.fix || c.Fixes[tc.fix].Command == "" {
				t.Fatalf("no such check with a command: %+v", c)
			}
			if !strings.Contains(c.By, tc.by) {
				t.Errorf("by %q, want %q in it", c.By, tc.by)
			}
			inShell(t, c.Fixes[tc.fix].Command)
			if c, still := failedCheck(storyOf(t, cp, "node-0", "exporter"), tc.check); still {
				t.Errorf("it still fails: %+v", c)
			}
		})
	}
	t.Run("OnDelete", func(t *testing.T) {
		kubectl(t, cp, "patch", "ds/exporter", "-p", `{"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":null},"template":{"spec":{"containers":[{"name":"c","image":"registry.example/exporter:2"}]}}}}`)
		var s report.StoryOfASet
		eventually(t, "waiting for the deletion", func() bool {
			s = storyOf(t, cp, "node-0", "exporter")
			_, old := failedCheck(s, "up to date")
			return old
		})
		c, _ := failedCheck(s, "up to date")
		inShell(t, c.Fixes[0].Command)
		eventually(t, "up to date", func() bool {
			s = storyOf(t, cp, "node-0", "exporter")
			return s.Node.State == "Covered" && s.Node.UpToDate != nil && *s.Node.UpToDate
		})
	})
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(40 * time.Second); time.Now().Before(deadline); time.Sleep(300 * time.Millisecond) {
		if is() {
			return
		}
	}
	t.Fatalf("not %s in time", what)
}
