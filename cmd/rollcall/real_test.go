package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rollcall.dev/rollcall/clusters/kubetest"
	"rollcall.dev/rollcall/controller/report"
)

const exporter = `apiVersion: apps/v1
kind: DaemonSet
metadata: {name: exporter, namespace: default, labels: {app: exporter}}
spec:
  selector: {matchLabels: {app: exporter}}
  template:
    metadata: {labels: {app: exporter}}
    spec: {containers: [{name: c, image: "registry.example/exporter:1"}]}
`

func bareNode(name string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: Node\nmetadata: {name: %s}\nstatus: {conditions: [{type: Ready, status: \"True\"}]}\n", name)
}

// The whole line on real parts: a Git repository, three real control planes,
// one of which dies while it is being read.
func TestRealFleet(t *testing.T) {
	full := kubetest.Start(t, kubetest.Options{Controllers: true, Scheduler: true, Nodes: 4})
	bare, dying := kubetest.Start(t, kubetest.Options{}), kubetest.Start(t, kubetest.Options{})
	full.Apply(t, exporter)
	full.WaitDaemonSetReady(t, "default", "exporter", 4)
	full.Apply(t, "apiVersion: v1\nkind: Node\nmetadata: {name: node-1}\nspec: {taints: [{key: dedicated, value: db, effect: NoSchedule}]}\n")
	full.Delete(t, "apiVersion: v1\nkind: Node\nmetadata: {name: node-3}\n")
	for _, cp := range []*kubetest.ControlPlane{bare, dying} {
		cp.Apply(t, exporter+bareNode("n1")+bareNode("n2"))
	}
	dir := fleetOf(t, map[string]string{"full": full.Kubeconfig(), "bare": bare.Kubeconfig(), "dying": dying.Kubeconfig()})

	before := reportOf(t, dir, exitFound)
	if !before.Complete {
		t.Fatalf("incomplete: %+v", before.Findings)
	}
	dying.Pause()
	killed := make(chan struct{})
	time.AfterFunc(time.Second, func() { defer close(killed); dying.Stop() })
	after := reportOf(t, dir, exitIncomplete)
	<-killed

	t.Run("Full", func(t *testing.T) {
		want := map[string]string{"node-0": "", "node-1": "Misscheduled UntoleratedTaint", "node-2": ""}
		if diff := cmp.Diff(want, statesOf(after, "full", "node-0", "node-1", "node-2")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if c := clusterOf(t, after, "full"); c.Version != "v1.37.2" || *c.Nodes != 3 || c.Sync.State != report.InSync {
			t.Errorf("got version %s, %d nodes, sync %+v", c.Version, *c.Nodes, c.Sync)
		}
	})
	t.Run("NobodyTried", func(t *testing.T) {
		want := map[string]string{"n1": "Missing NotAttempted", "n2": "Missing NotAttempted"}
		if diff := cmp.Diff(want, statesOf(after, "bare", "n1", "n2")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("Dying", func(t *testing.T) {
		c := clusterOf(t, after, "dying")
		if c.Observation.State != "Unreachable" || c.Observation.Stage == "" || c.Nodes != nil || len(c.DaemonSets) != 0 {
			t.Errorf("got %+v, %d DaemonSets", c.Observation, len(c.DaemonSets))
		}
	})
	t.Run("OthersUnchanged", func(t *testing.T) {
		for _, name := range []string{"full", "bare"} {
			a, b := clusterOf(t, before, name), clusterOf(t, after, name)
			if diff := cmp.Diff(a.DaemonSets, b.DaemonSets, cmp.AllowUnexported(report.DaemonSet{})); diff != "" {
				t.Errorf("cluster %s (-before +after):\n%s", name, diff)
			}
		}
		if after.Summary.Unknown != 1 || after.Summary.Clusters != 3 {
			t.Errorf("got %+v", after.Summary)
		}
	})
}

// A newcomer's first command, on the current context of a kubeconfig.
func TestRealScan(t *testing.T) {
	cp := kubetest.Start(t, kubetest.Options{})
	cp.Apply(t, exporter+bareNode("n1"))
	t.Setenv("KUBECONFIG", cp.Kubeconfig())
	var out, errs bytes.Buffer
	// All of it is younger than the startup grace: information, no failure yet.
	if got := run([]string{"scan"}, streams{strings.NewReader(""), &out, &errs}); got != 0 {
		t.Errorf("exit status %d, want 0: %s", got, errs.String())
	}
	for _, want := range []string{"default/exporter", "0/1 covered", "Starting", "NotAttempted", "n1"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
}

func fleetOf(t *testing.T, kubeconfigs map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "repository/base/kustomization.yaml", "resources: [ds.yaml]\n")
	write(t, dir, "repository/base/ds.yaml", exporter)
	write(t, dir, "rollcall.yaml", "apiVersion: rollcall.dev/v1alpha1\nkind: Fleet\nmetadata: {name: real}\nspec:\n  source: {url: repository}\n  clusters: {directory: clusters}\n  targets: [{name: all, clusters: {}, overlay: base}]\n  policy: {startupGrace: 1ms}\n")
	for name, path := range kubeconfigs {
		write(t, dir, "clusters/"+name+".yaml", fmt.Sprintf("apiVersion: rollcall.dev/v1alpha1\nkind: Cluster\nmetadata: {name: %s}\nspec: {kubeconfig: {path: %q}}\n", name, path))
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qm", "daemons"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = filepath.Join(dir, "repository")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	return dir
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func reportOf(t *testing.T, dir string, status int) report.Report {
	t.Helper()
	var out, errs bytes.Buffer
	args := []string{"report", "-f", filepath.Join(dir, "rollcall.yaml"), "-o", "json", "--timeout", "20s"}
	if got := run(args, streams{strings.NewReader(""), &out, &errs}); got != status {
		t.Fatalf("exit status %d, want %d: %s%s", got, status, errs.String(), out.String())
	}
	var r report.Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func clusterOf(t *testing.T, r report.Report, name string) report.Cluster {
	t.Helper()
	for _, c := range r.Clusters {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no cluster %s", name)
	return report.Cluster{}
}

// statesOf are state and first reason of nodes; empty for one that needs no
// attention.
func statesOf(r report.Report, cluster string, nodes ...string) map[string]string {
	out := map[string]string{}
	for _, n := range nodes {
		out[n] = ""
	}
	for _, c := range r.Clusters {
		for _, d := range c.DaemonSets {
			for _, n := range d.Nodes {
				if c.Name == cluster {
					out[n.Name] = n.State + " " + n.Reasons[0].Code
				}
			}
		}
	}
	return out
}
