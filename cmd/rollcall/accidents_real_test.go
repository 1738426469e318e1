package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rollcall.dev/rollcall/clusters/kubetest"
	"rollcall.dev/rollcall/controller/report"
)

// kubectl is the real one, on one control plane.
func kubectl(t *testing.T, cp *kubetest.ControlPlane, args ...string) string {
	t.Helper()
	assets, err := kubetest.Assets()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(assets, "kubectl"), append([]string{"--kubeconfig", cp.Kubeconfig()}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func guardOf(name string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: DaemonSet
metadata: {name: %[1]s, namespace: default, labels: {app: %[1]s}}
spec:
  selector: {matchLabels: {app: %[1]s}}
  updateStrategy: {rollingUpdate: {maxUnavailable: 100%%}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      tolerations: [{key: gpu, operator: Exists}]
      containers: [{name: c, image: "registry.example/%[1]s:1"}]
`, name)
}

// scanned runs a scan that must find something.
func scanned(t *testing.T) report.Report {
	t.Helper()
	var out, errs bytes.Buffer
	if got := run([]string{"scan", "-o", "json"}, streams{strings.NewReader(""), &out, &errs}); got != exitFound {
		t.Fatalf("exit status %d: %s%s", got, errs.String(), out.String())
	}
	var r report.Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// lossOf is the finding of a loss by its cause, nil without.
func lossOf(r report.Report, kind, key string) *report.Finding {
	at := slices.IndexFunc(r.Findings, func(f report.Finding) bool {
		return f.Code == "CoverageLost" && f.Cause.Kind == kind && f.Cause.Key == key
	})
	if at < 0 {
		return nil
	}
	return &r.Findings[at]
}

func checkLoss(t *testing.T, f *report.Finding, nodes int, words ...string) {
	t.Helper()
	if f == nil {
		t.Fatal("the loss is not found")
	}
	if f.Severity != report.Error || f.Nodes.Count != nodes {
		t.Errorf("%s on %d nodes, want an error on %d: %s", f.Severity, f.Nodes.Count, nodes, f.Message)
	}
	for _, w := range words {
		if !strings.Contains(f.Message, w) {
			t.Errorf("the message lacks %q: %s", w, f.Message)
		}
	}
}

// The accidents that leave every counter of Kubernetes green, made by the real
// kubectl on a real control plane.
func TestRealAccidents(t *testing.T) {
	cp := kubetest.Start(t, kubetest.Options{Controllers: true, Scheduler: true, Nodes: 42})
	t.Setenv("KUBECONFIG", cp.Kubeconfig())
	cp.AddNodes(t, []string{"pool=gpu"}, "gpu-0", "gpu-1")
	kubectl(t, cp, "taint", "nodes", "-l", "pool=gpu", "gpu=yes:NoSchedule")
	for _, name := range []string{"tainted", "patched", "moved"} {
		cp.Apply(t, guardOf(name))
		cp.WaitDaemonSetReady(t, "default", name, 44)
	}

	t.Run("FortyNodesTainted", func(t *testing.T) {
		var nodes []string
		for i := range 40 {
			nodes = append(nodes, fmt.Sprintf("node-%d", i))
		}
		kubectl(t, cp, append(append([]string{"taint", "nodes"}, nodes...), "dedicated=db:NoSchedule")...)
		r := scanned(t) // the counters are green: not even looked at again by the controller
		f := lossOf(r, "taint", "dedicated=db:NoSchedule")
		checkLoss(t, f, 40, "dedicated=db:NoSchedule", "kubectl-taint, not later than "+time.Now().UTC().Format("2006-01-02"))
		if len(f.DaemonSets) != 3 {
			t.Errorf("one cause is one finding, for all three DaemonSets: %v", f.DaemonSets)
		}
		if n := r.Summary.Findings.Error + r.Summary.Findings.Warning; n != 1 {
			t.Errorf("%d findings of one accident: %+v", n, r.Findings)
		}
		kubectl(t, cp, append(append([]string{"taint", "nodes"}, nodes...), "dedicated=db:NoSchedule-")...)
	})
	t.Run("StrategicMergeReplacesTolerations", func(t *testing.T) {
		kubectl(t, cp, "patch", "ds/patched", "-p", `{"spec":{"template":{"spec":{"tolerations":[{"key":"edge","operator":"Exists"}]}}}}`)
		cp.WaitDaemonSetReady(t, "default", "patched", 42) // green
		checkLoss(t, lossOf(scanned(t), "template", "default/patched tolerations"), 2,
			"revision 2 of ", "[gpu Exists] became [edge Exists]", "strategic merge", "kubectl-patch, not later than")
	})
	t.Run("NodeSelectorMatchesNothing", func(t *testing.T) {
		kubectl(t, cp, "patch", "ds/moved", "-p", `{"spec":{"template":{"spec":{"nodeSelector":{"non-existing":"true"}}}}}`)
		cp.WaitDaemonSetReady(t, "default", "moved", 0) // green
		checkLoss(t, lossOf(scanned(t), "template", "default/moved nodeSelector"), 44, "{} became {non-existing=true}", "kubectl-patch, not later than")
	})
	t.Run("StartupTaintStays", func(t *testing.T) {
		kubectl(t, cp, "taint", "nodes", "node-41", "node.cilium.io/agent-not-ready:NoSchedule")
		kubectl(t, cp, "delete", "pods", "-l", "app=tainted", "--field-selector", "spec.nodeName=node-41", "--force", "--grace-period=0")
		dir := impatient(t, cp)
		r := reportOf(t, dir, exitFound)
		at := slices.IndexFunc(r.Findings, func(f report.Finding) bool { return f.Code == "StartupTaintStays" })
		if at < 0 {
			t.Fatalf("not found: %+v", r.Findings)
		}
		if f := r.Findings[at]; f.Severity != report.Error || f.Cause.Key != "node.cilium.io/agent-not-ready:NoSchedule" || strings.Join(f.Nodes.Sample, " ") != "node-41" {
			t.Errorf("got %+v", f)
		}
	})
	t.Run("RuntimeClassSelector", func(t *testing.T) {
		cp.Apply(t, "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: sandbox}\nhandler: sandbox\nscheduling: {nodeSelector: {sandbox: \"yes\"}}\n")
		cp.Apply(t, strings.Replace(guardOf("boxed"), "    spec:\n", "    spec:\n      runtimeClassName: sandbox\n", 1))
		dir := impatient(t, cp)
		var got []report.Finding
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(500 * time.Millisecond) {
			got = reportOf(t, dir, exitFound).Findings
			at := slices.IndexFunc(got, func(f report.Finding) bool { return f.Code == "AdmissionDrift" && f.Nodes.Count == 43 }) // node-41 still has its startup taint
			if at >= 0 && got[at].Cause.Key == "default/boxed admission nodeSelector sandbox=yes" && strings.Contains(got[at].Message, "RuntimeClass sandbox") {
				return
			}
		}
		t.Errorf("not found: %+v", got)
	})
}

// impatient is a fleet without a source, in which no start takes any time.
func impatient(t *testing.T, cp *kubetest.ControlPlane) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "rollcall.yaml", "apiVersion: rollcall.dev/v1alpha1\nkind: Fleet\nmetadata: {name: real}\nspec: {clusters: {directory: clusters}, policy: {startupGrace: 1ms}}\n")
	write(t, dir, "clusters/one.yaml", fmt.Sprintf("apiVersion: rollcall.dev/v1alpha1\nkind: Cluster\nmetadata: {name: one}\nspec: {kubeconfig: {path: %q}}\n", cp.Kubeconfig()))
	return dir
}
