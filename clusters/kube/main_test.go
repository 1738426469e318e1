package kube_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/clusters/kube"
)

// TestMain lets the test's own binary be the guard of exec plugins, as
// rollcall's is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == kube.GuardCommand {
		os.Exit(kube.ExecGuard(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func cluster(path string) clusters.Cluster {
	return clusters.Cluster{Name: "c", Kubeconfig: &clusters.Kubeconfig{Paths: []string{path}}}
}

// kubeconfig writes a kubeconfig of one context named test and lets the
// functions change it first.
func kubeconfig(t *testing.T, server string, change ...func(*api.Cluster, *api.AuthInfo)) string {
	t.Helper()
	config := api.NewConfig()
	config.Clusters["test"] = &api.Cluster{Server: server}
	config.AuthInfos["test"] = &api.AuthInfo{}
	for _, f := range change {
		f(config.Clusters["test"], config.AuthInfos["test"])
	}
	config.Contexts["test"] = &api.Context{Cluster: "test", AuthInfo: "test"}
	config.CurrentContext = "test"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// script writes an executable shell script.
func script(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "plugin")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func plugin(command string) func(*api.Cluster, *api.AuthInfo) {
	return func(_ *api.Cluster, u *api.AuthInfo) {
		u.Exec = &api.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1", Command: command,
			InteractiveMode: api.IfAvailableExecInteractiveMode, InstallHint: "brew install the-plugin",
		}
	}
}

// wantFault compares an error's state and looks for words in it.
func wantFault(t *testing.T, err error, state clusters.ObserveState, words ...string) {
	t.Helper()
	fault, ok := errors.AsType[*clusters.ObserveError](err)
	if !ok {
		t.Fatalf("got %T %v, want a *clusters.ObserveError", err, err)
	}
	if fault.State != state {
		t.Errorf("got state %s, want %s: %v", fault.State, state, err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("got %q, want %q in it", err, w)
		}
	}
}
