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

	"k8s.io/client-go/tools/clientcmd"

	"rollcall.dev/rollcall/clusters/kubetest"
	"rollcall.dev/rollcall/controller/report"
)

// A cluster is registered, given an account of its own and removed, on a real
// control plane; what the account may not do, the cluster refuses.
func TestRealRegistration(t *testing.T) {
	cp, other := kubetest.Start(t, kubetest.Options{}), kubetest.Start(t, kubetest.Options{})
	cp.Apply(t, exporter+bareNode("n1"))
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "rollcall.yaml"), "apiVersion: rollcall.dev/v1alpha1\nkind: Fleet\nmetadata: {name: f}\nspec: {}\n")
	file := filepath.Join(dir, "clusters", "prod-eu.yaml")

	out := runs(t, dir, 0, "cluster", "add", "prod-eu", "--kubeconfig", cp.Kubeconfig(), "-l", "env=prod,region=eu")
	wants(t, out, "cluster/prod-eu added: "+cp.Address(), "v1.37.2", "the credential is an administrator's")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	wants(t, runs(t, dir, exitIncomplete, "cluster", "add", "prod-eu", "--kubeconfig", cp.Kubeconfig()), "declares it already")
	wants(t, runs(t, dir, exitIncomplete, "cluster", "add", "again", "--kubeconfig", cp.Kubeconfig()), `registers as "prod-eu"`, "--identity for a clone")
	wants(t, runs(t, dir, 0, "cluster", "add", "prod", "--kubeconfig", cp.Kubeconfig(), "-l", "env=prod", "--replace"), "registered under another name", "prod-eu.yaml is removed")
	runs(t, dir, 0, "cluster", "add", "prod-eu", "--kubeconfig", cp.Kubeconfig(), "-l", "env=prod", "--replace")

	// The administrator's login is a finding; a granted one is none.
	if !found(t, dir, "CredentialCanWrite") {
		t.Error("the administrator's login is no finding")
	}
	wants(t, runs(t, dir, 0, "cluster", "grant", "prod-eu"), "kind: ClusterRole\n", "name: rollcall-read")
	out = runs(t, dir, 0, "cluster", "grant", "prod-eu", "--apply", "--expires", "1h")
	wants(t, out, "cluster/prod-eu granted: ServiceAccount rollcall/rollcall, token until ")
	granted := filepath.Join(dir, "clusters", "prod-eu.kubeconfig")
	if info, err := os.Stat(granted); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	settled := func() bool { // the authorizer learns of the roles by a watch
		return !strings.Contains(runs(t, dir, -1, "cluster", "check"), "Denied")
	}
	for i := 0; !settled() && i < 50; i++ {
		time.Sleep(100 * time.Millisecond)
	}
	wants(t, runs(t, dir, 0, "cluster", "check"), "Ready", "v1.37.2", "token", time.Now().UTC().Format("2006-01"), "nothing", "resourcequotas")
	if found(t, dir, "CredentialCanWrite") || found(t, dir, "CredentialExpires") {
		t.Error("the granted login may write, or a new one ends soon")
	}
	var r report.Report
	if err := json.Unmarshal([]byte(stdout(t, dir, "report", "-o", "json", "--fail-on", "none")), &r); err != nil {
		t.Fatal(err)
	}
	if c := clusterOf(t, r, "prod-eu"); c.Identity == "" || len(c.DaemonSets) != 1 {
		t.Errorf("the granted login reads %+v", c)
	}
	for verb, args := range map[string][]string{"Secrets": {"get", "secrets", "-A"}, "Delete": {"delete", "ds", "exporter"}} {
		assets, err := kubetest.Assets()
		if err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(filepath.Join(assets, "kubectl"), append([]string{"--kubeconfig", granted}, args...)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "forbidden") {
			t.Errorf("%s: the account may: %s", verb, out)
		}
	}

	// The same file leads to another cluster now.
	admin, err := os.ReadFile(other.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, granted, string(admin))
	fixed, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, file, strings.Replace(string(fixed), "context: prod-eu", "context: "+contextIn(t, other.Kubeconfig()), 1))
	if !found(t, dir, "IdentityChanged") {
		t.Error("another cluster answers, and nobody tells")
	}
	wants(t, runs(t, dir, 0, "cluster", "remove", "prod-eu"), "cluster/prod-eu removed", "kubectl delete namespace rollcall")
	if left, _ := filepath.Glob(filepath.Join(dir, "clusters", "*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// Many contexts are registered in one go; one that does not answer costs only
// itself.
func TestRealRegistrationOfMany(t *testing.T) {
	cp := kubetest.Start(t, kubetest.Options{})
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "rollcall.yaml"), "apiVersion: rollcall.dev/v1alpha1\nkind: Fleet\nmetadata: {name: f}\nspec: {}\n")
	admin, err := os.ReadFile(cp.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	user := contextIn(t, cp.Kubeconfig())
	many := strings.Replace(string(admin), "contexts:\n", "contexts:\n- context: {cluster: gone, user: "+userIn(t, cp.Kubeconfig())+"}\n  name: arn:aws:eks:eu-1:1:cluster/Gone\n", 1)
	many = strings.Replace(many, "clusters:\n", "clusters:\n- cluster: {server: \"https://127.0.0.1:1\"}\n  name: gone\n", 1)
	writeFile(t, filepath.Join(dir, "many"), many)
	out := runs(t, dir, exitIncomplete, "cluster", "add", "--from-kubeconfig", filepath.Join(dir, "many"), "--all-contexts", "-l", "env=x")
	wants(t, out, "cluster/"+nameOf(user)+" added", `cluster "gone": it does not answer, so it is not registered`, "1 of 2 clusters were not registered")
	wants(t, runs(t, dir, 0, "cluster", "list"), nameOf(user))
	wants(t, runs(t, dir, exitBad, "cluster", "add", "--from-kubeconfig", "x"), "--all-contexts or --contexts")
	wants(t, runs(t, dir, exitBad, "cluster", "add"), "name the cluster")
	wants(t, runs(t, dir, exitBad, "cluster", "remove", "nobody"), `no Cluster file of "nobody"`)
}

func found(t *testing.T, dir, code string) bool {
	t.Helper()
	return strings.Contains(stdout(t, dir, "report", "-o", "wide", "--fail-on", "none"), code)
}

// runs runs a verb of a fleet and returns all that it printed. A status below
// zero is any.
func runs(t *testing.T, dir string, status int, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	got := run(append(args, "-f", filepath.Join(dir, "rollcall.yaml")), streams{strings.NewReader(""), &out, &out})
	if status >= 0 && got != status {
		t.Fatalf("rollcall %s: exit status %d, want %d: %s", strings.Join(args, " "), got, status, out.String())
	}
	return out.String()
}

// stdout runs a verb that must succeed and returns its result.
func stdout(t *testing.T, dir string, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if got := run(append(args, "-f", filepath.Join(dir, "rollcall.yaml")), streams{strings.NewReader(""), &out, &errs}); got != 0 {
		t.Fatalf("rollcall %s: exit status %d: %s", strings.Join(args, " "), got, errs.String())
	}
	return out.String()
}

func wants(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("want %q in:\n%s", p, text)
		}
	}
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func contextIn(t *testing.T, kubeconfig string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return config.CurrentContext
}

func userIn(t *testing.T, kubeconfig string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return config.Contexts[config.CurrentContext].AuthInfo
}
