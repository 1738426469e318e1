package main

import (
	"bytes"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rollcall.dev/rollcall/clusters/kubetest"
)

// rolloutStatus is what kubectl says of a rollout, and whether it says that it
// is complete before its own timeout.
func rolloutStatus(t *testing.T, cp *kubetest.ControlPlane, timeout string) (text string, done bool) {
	t.Helper()
	assets, err := kubetest.Assets()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(assets, "kubectl"), "--kubeconfig", cp.Kubeconfig(), "rollout", "status", "ds/exporter", "--timeout", timeout)
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	t.Logf("$ kubectl rollout status ds/exporter --timeout %s\n%s(%v)", timeout, out, cmd.ProcessState)
	return string(out), err == nil
}

// waitFor is what rollcall says.
func waitFor(t *testing.T, cp *kubetest.ControlPlane, args ...string) (status int, out string) {
	t.Helper()
	return waitWith(t, append([]string{"--kubeconfig", cp.Kubeconfig()}, args...)...)
}

func waitWith(t *testing.T, args ...string) (status int, out string) {
	t.Helper()
	var o, e bytes.Buffer
	all := append([]string{"wait", "ds/exporter", "-n", "default"}, args...)
	status = run(all, streams{strings.NewReader(""), &o, &e})
	t.Logf("$ rollcall %s\n%s%s(exit status %d)", strings.Join(all, " "), e.String(), o.String(), status)
	return status, o.String()
}

func contains(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("no %q in:\n%s", w, text)
		}
	}
}

// exporterWith is the DaemonSet with another image and more of a spec.
func exporterWith(image, more string) string {
	return strings.Replace(strings.Replace(exporter, "exporter:1", "exporter:"+image, 1), "  template:\n", more+"  template:\n", 1)
}

// Where kubectl rollout status passes at once, hangs or says nothing, side by
// side on a real cluster.
func TestRealWait(t *testing.T) {
	cp := kubetest.Start(t, kubetest.Options{Controllers: true, Scheduler: true, Nodes: 4})
	cp.Apply(t, exporter)
	cp.WaitDaemonSetReady(t, "default", "exporter", 4)

	t.Run("BothMet", func(t *testing.T) {
		if _, done := rolloutStatus(t, cp, "20s"); !done {
			t.Error("kubectl does not see it complete")
		}
		if status, out := waitFor(t, cp, "--timeout", "20s"); status != 0 {
			t.Errorf("exit status %d: %s", status, out)
		}
	})
	t.Run("RollsBetween", func(t *testing.T) {
		cp.Apply(t, exporterWith("2", ""))
		status, out := waitFor(t, cp, "--revision", "2", "--timeout", "60s")
		if contains(t, out, "met", "4/4 covered, 4/4 up to date"); status != 0 {
			t.Errorf("exit status %d", status)
		}
	})
	t.Run("KubectlPassesWithTaintedNodes", func(t *testing.T) {
		kubectl(t, cp, "taint", "nodes", "node-0", "node-1", "dedicated=db:NoSchedule")
		if _, done := rolloutStatus(t, cp, "5s"); !done {
			t.Error("kubectl does not pass")
		}
		status, out := waitFor(t, cp, "--timeout", "4s")
		if contains(t, out, "node-0", "node-1", "CoverageLost", "kubectl-taint"); status != exitFound {
			t.Errorf("exit status %d", status)
		}
		kubectl(t, cp, "taint", "nodes", "node-0", "node-1", "dedicated=db:NoSchedule-")
	})
	t.Run("KubectlPassesWithASelectorOfNothing", func(t *testing.T) {
		kubectl(t, cp, "patch", "ds/exporter", "-p", `{"spec":{"template":{"spec":{"nodeSelector":{"non-existing":"true"}}}}}`)
		if text, done := rolloutStatus(t, cp, "20s"); !done || !strings.Contains(text, "successfully rolled out") {
			t.Error("kubectl does not pass")
		}
		status, out := waitFor(t, cp, "--timeout", "4s")
		if contains(t, out, "{} became {non-existing=true}"); status != exitFound {
			t.Errorf("exit status %d", status)
		}
		kubectl(t, cp, "rollout", "undo", "ds/exporter")
		if status, out := waitFor(t, cp, "--timeout", "60s"); status != 0 {
			t.Errorf("after the undo: exit status %d: %s", status, out)
		}
	})
	t.Run("KubectlPassesBeforeTheChange", func(t *testing.T) {
		if _, done := rolloutStatus(t, cp, "5s"); !done {
			t.Error("kubectl does not pass")
		}
		status, out := waitFor(t, cp, "--revision", "99", "--timeout", "3s")
		if contains(t, out, "not 99"); status != exitFound {
			t.Errorf("exit status %d", status)
		}
	})
	t.Run("KubectlSaysNothingOfOnDelete", func(t *testing.T) {
		cp.Apply(t, exporterWith("3", "  updateStrategy: {type: OnDelete}\n"))
		if text, done := rolloutStatus(t, cp, "5s"); done || !strings.Contains(text, "only available for RollingUpdate") {
			t.Errorf("kubectl says %q", text)
		}
		status, out := waitFor(t, cp, "--timeout", "4s")
		if contains(t, out, "4/4 covered, 0/4 up to date", "node-0", "WaitingForDelete", "OnDelete"); status != exitFound {
			t.Errorf("exit status %d", status)
		}
	})
	t.Run("KubectlHangsOnADeadNode", func(t *testing.T) { hangs(t, cp) })
}

// hangs: an agent that tolerates everything stays wanted on a node whose kubelet
// is gone, where its pod never runs.
func hangs(t *testing.T, cp *kubetest.ControlPlane) {
	cp.Apply(t, "apiVersion: v1\nkind: Node\nmetadata: {name: dead}\nstatus: {conditions: [{type: Ready, status: Unknown, reason: NodeStatusUnknown, message: Kubelet stopped posting node status.}]}\n")
	cp.Apply(t, strings.Replace(exporterWith("4", "  updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 3}}\n"), "spec: {containers", "spec: {tolerations: [{operator: Exists}], containers", 1))
	status, out := waitWith(t, "-f", filepath.Join(impatient(t, cp), "rollcall.yaml"), "--timeout", "60s") // else the node is merely young
	if contains(t, out, "met", "4/4 covered, 4/4 up to date; left out: 1 NodeNotReady"); status != 0 {
		t.Errorf("exit status %d", status)
	}
	if text, done := rolloutStatus(t, cp, "10s"); done || !strings.Contains(text, "timed out") {
		t.Errorf("kubectl does not hang: %q", text)
	}
}
