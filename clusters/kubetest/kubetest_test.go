package kubetest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDaemonSetRunsOnNodes(t *testing.T) {
	cp := Start(t, Options{Controllers: true, Scheduler: true, Nodes: 2})
	cp.Apply(t, manifest)
	cp.WaitDaemonSetReady(t, "default", "agent", 2)
	cp.AddNodes(t, []string{"pool=gpu"}, "gpu-1")
	cp.WaitDaemonSetReady(t, "default", "agent", 3)

	nodes, err := cp.dynamic.Resource(corev1.SchemeGroupVersion.WithResource("nodes")).
		List(t.Context(), metav1.ListOptions{LabelSelector: "pool=gpu"})
	if err != nil || len(nodes.Items) != 1 || nodes.Items[0].GetName() != "gpu-1" {
		t.Errorf("got nodes %v, %v, want gpu-1", nodes, err)
	}
}

// A server that cannot start is told at once and by name, not after minutes.
func TestStartFailsAtOnce(t *testing.T) {
	assets := t.TempDir()
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if err := os.WriteFile(filepath.Join(assets, name), []byte("#!/bin/sh\necho no license; exit 3\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cp := &ControlPlane{assets: assets, dir: t.TempDir()}
	defer cp.Stop()
	start := time.Now()
	err := cp.start(t.Context(), Options{})
	if err == nil || !strings.Contains(err.Error(), "ended: exit status 3") {
		t.Errorf("got %v, want which process ended and how", err)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
}
