package kubetest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
)

const agent = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: default}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: c, image: "registry.example/agent:1"}]}
`

func TestDaemonSetRunsOnNodes(t *testing.T) {
	cp := Start(t, Options{Controllers: true, Scheduler: true, Nodes: 2})
	cp.Apply(t, agent)
	cp.WaitDaemonSetReady(t, "default", "agent", 2)
	cp.AddNodes(t, []string{"pool=gpu"}, "gpu-1")
	cp.WaitDaemonSetReady(t, "default", "agent", 3)

	nodes, err := client(t, cp, cp.Kubeconfig()).Resource(corev1.SchemeGroupVersion.WithResource("nodes")).
		List(t.Context(), metav1.ListOptions{LabelSelector: "pool=gpu"})
	if err != nil || len(nodes.Items) != 1 || nodes.Items[0].GetName() != "gpu-1" {
		t.Errorf("got nodes %v, %v, want gpu-1", nodes, err)
	}
}

func TestWithoutDaemonSetController(t *testing.T) {
	cp := Start(t, Options{Controllers: true, WithoutDaemonSetController: true})
	cp.Apply(t, agent)
	c := client(t, cp, cp.Kubeconfig())
	// A ServiceAccount by itself shows that the other controllers are at work.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := poll(ctx, "the default ServiceAccount", func() error {
		_, err := c.Resource(corev1.SchemeGroupVersion.WithResource("serviceaccounts")).Namespace("default").Get(ctx, "default", metav1.GetOptions{})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	ds, err := c.Resource(appsv1.SchemeGroupVersion.WithResource("daemonsets")).Namespace("default").Get(t.Context(), "agent", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if status, _ := ds.Object["status"].(map[string]any); status["observedGeneration"] != nil {
		t.Errorf("got status %v, want none: nobody is there to write it", status)
	}
}

func TestUserMayNothing(t *testing.T) {
	cp := Start(t, Options{})
	_, err := client(t, cp, cp.User(t, "jane", "developers")).Resource(corev1.SchemeGroupVersion.WithResource("nodes")).List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `"jane"`) {
		t.Errorf("got %v, want that jane may not", err)
	}
}

func TestStopAndPause(t *testing.T) {
	cp := Start(t, Options{})
	list := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := client(t, cp, cp.Kubeconfig()).Resource(corev1.SchemeGroupVersion.WithResource("nodes")).List(ctx, metav1.ListOptions{})
		return err
	}
	cp.Pause()
	if err := list(); err == nil {
		t.Error("a paused server answers")
	}
	cp.Resume()
	if err := list(); err != nil {
		t.Errorf("a resumed server: %v", err)
	}
	cp.Stop()
	if err := list(); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("got %v of a stopped server, want that it refuses", err)
	}
}

func client(t *testing.T, cp *ControlPlane, kubeconfig string) dynamic.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != cp.Client(t).Host {
		t.Errorf("got host %q, want %q", config.Host, cp.Client(t).Host)
	}
	c, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAssetsMissing(t *testing.T) {
	t.Setenv("KUBEBUILDER_ASSETS", t.TempDir())
	if _, err := Assets(); err == nil || !strings.Contains(err.Error(), "run make kube") {
		t.Errorf("got %v, want the advice to run make kube", err)
	}
}

// The script and the tests must mean the same folder; with it there, the
// script does nothing.
func TestScriptNamesTheSameFolder(t *testing.T) {
	want, err := Assets()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "sh", "kube/build.sh").Output()
	if got := strings.TrimSpace(string(out)); err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
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
	if err == nil || !strings.Contains(err.Error(), "etcd ended: exit status 3") && !strings.Contains(err.Error(), "kube-apiserver ended: exit status 3") {
		t.Errorf("got %v, want which process ended and how", err)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
}

// helper makes the test's binary start a control plane and wait to be killed.
const helper = "ROLLCALL_KUBETEST_HELPER"

func TestChildrenDieWithTheirTest(t *testing.T) {
	if os.Getenv(helper) != "" {
		cp := Start(t, Options{})
		fmt.Printf("ready %s\n", cp.dir)
		select {}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^TestChildrenDieWithTheirTest$")
	cmd.Env = append(os.Environ(), helper+"=1", "TMPDIR="+t.TempDir())
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var dir string
	if _, err := fmt.Fscanf(stdout, "ready %s\n", &dir); err != nil {
		t.Fatalf("the helper does not start a control plane: %v", err)
	}
	if n := len(processesOf(t, dir)); n != 2 {
		t.Errorf("got %d processes, want etcd and kube-apiserver", n)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := poll(ctx, "the children to die", func() error {
		if left := processesOf(t, dir); len(left) > 0 {
			return fmt.Errorf("processes %v still run", left)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// processesOf are the processes with the folder on their command line.
func processesOf(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil && strings.Contains(string(data), dir) {
			out = append(out, filepath.Base(filepath.Dir(file)))
		}
	}
	return out
}
