package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/clusters/kubetest"
	"rollcall.dev/rollcall/controller/report"
)

// Clusters that Secrets of a hub register, on real control planes: they are
// reported, what is not taken says how to register it, and when the hub goes
// away they stay and the report says that they are old.
func TestRealHub(t *testing.T) {
	hub, member := kubetest.Start(t, kubetest.Options{}), kubetest.Start(t, kubetest.Options{})
	member.Apply(t, exporter+bareNode("n1"))
	token, secrets := hubSecrets(t, member)
	hub.Apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: fleet}\n---\n"+secrets)
	dir := t.TempDir()
	fleetFile := func(credentials string) {
		write(t, dir, "rollcall.yaml", fmt.Sprintf("apiVersion: rollcall.dev/v1alpha1\nkind: Fleet\nmetadata: {name: hubbed}\nspec:\n  clusters:\n    hub:\n      kubeconfig: {path: %q, context: kubetest}\n      namespaces: [fleet]\n      secrets: [rollcall, argocd, clusterapi]\n      credentials: [%s]\n      allowLoopback: true\n  policy: {observe: \"@every 10s\"}\n", hub.Kubeconfig(), credentials))
	}
	fleetFile("rollcall")
	t.Run("OursOnly", func(t *testing.T) {
		r := reportOf(t, dir, exitIncomplete)
		if own := clusterOf(t, r, "own"); own.Observation.State != clusters.Fresh || len(own.DaemonSets) != 1 || own.Labels["env"] != "prod" {
			t.Errorf("got %+v", own)
		}
		for name, words := range map[string]string{
			"argo": `no credential is taken from Argo CD's Secret "fleet/cluster-1"`, "workload": `no credential is taken from Cluster API's Secret "fleet/workload-kubeconfig"`,
		} {
			if c := clusterOf(t, r, name); c.Observation.State != clusters.Failed || !strings.Contains(c.Observation.Error, words) || !strings.Contains(c.Observation.Error, "rollcall cluster add "+name) {
				t.Errorf("%s: got %+v", name, c.Observation)
			}
		}
	})
	t.Run("All", func(t *testing.T) {
		fleetFile("rollcall, argocd, clusterapi")
		r := reportOf(t, dir, exitFound) // one cluster under three names
		for _, name := range []string{"own", "argo", "workload"} {
			if c := clusterOf(t, r, name); c.Observation.State != clusters.Fresh || len(c.DaemonSets) != 1 {
				t.Errorf("%s: got %+v", name, c.Observation)
			}
		}
	})
	t.Run("List", func(t *testing.T) {
		var out, errs bytes.Buffer
		status := run([]string{"cluster", "list", "-f", filepath.Join(dir, "rollcall.yaml"), "-o", "json"}, streams{strings.NewReader(""), &out, &errs})
		if status != 0 || !strings.Contains(out.String(), `Secret \"fleet/cluster-1\"`) || !strings.Contains(out.String(), `Secret \"fleet/own\" with impersonate`) || strings.Contains(out.String()+errs.String(), token) {
			t.Errorf("exit status %d: %s%s", status, out.String(), errs.String())
		}
	})
	t.Run("Watched", func(t *testing.T) { testHubWatched(t, hub, dir) })
	t.Run("Gone", func(t *testing.T) { testHubGone(t, hub, dir, token) })
}

// testHubWatched registers one more cluster while a fleet is watched: the next
// report has it, and the end of the watch is the end of following the hub.
func testHubWatched(t *testing.T, hub *kubetest.ControlPlane, dir string) {
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		defer in.Close()
		ended <- runReport(ctx, streams{strings.NewReader(""), in, io.Discard}, fleetFlags{file: filepath.Join(dir, "rollcall.yaml")},
			wantFlags{timeout: 20 * time.Second}, outputFlags{outputs: []string{"jsonl"}, nodes: "attention", failOn: "none"}, true)
	}()
	const later = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"later","namespace":"fleet","labels":{"rollcall.dev/cluster":"true"}},"stringData":{"kubeconfig":"x"}}`
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	reports := 0
	for lines.Scan() {
		switch line := lines.Text(); {
		case strings.Contains(line, `"kind":"Report"`):
			if reports++; reports == 1 {
				hub.Apply(t, later)
			}
		case strings.Contains(line, `"later"`) && strings.Contains(line, "kubeconfig: must be a plain mapping"):
			stop()
		}
	}
	if err := <-ended; !errors.Is(err, context.Canceled) || reports < 2 {
		t.Errorf("ended with %v after %d reports, want one that has the later cluster", err, reports)
	}
	hub.Delete(t, later)
}

// testHubGone looks at a fleet again and again while its hub changes and ends.
func testHubGone(t *testing.T, hub *kubetest.ControlPlane, dir, token string) {
	var out, errs bytes.Buffer
	s := streams{strings.NewReader(""), &out, &errs}
	f := fleetFlags{file: filepath.Join(dir, "rollcall.yaml")}
	loaded, err := f.load(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	p, err := loaded.pass(s, clusters.Want{}, 20*time.Second, outputFlags{nodes: "attention"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	look := func(stale string, names ...string) {
		t.Helper()
		r, err := p.once(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range r.Clusters {
			got = append(got, c.Name)
		}
		i := slices.IndexFunc(r.Findings, func(f report.Finding) bool { return f.Code == "RegistryStale" })
		if !slices.Equal(got, names) || (i >= 0) != (stale != "") || i >= 0 && !strings.Contains(r.Findings[i].Message, stale) {
			t.Errorf("got %v, findings %+v", got, r.Findings)
		}
		if text := fmt.Sprintf("%+v", r); strings.Contains(text, token) {
			t.Error("a token is in the report")
		}
	}
	look("", "argo", "own", "workload")
	hub.Delete(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: cluster-1, namespace: fleet}\n")
	look("", "own", "workload")
	hub.Stop()
	look("the clusters that it registered at 20", "own", "workload")
	if status := run([]string{"report", "-f", f.file}, s); status != exitBad || !strings.Contains(errs.String(), "spec.clusters.hub: reading the hub's Secrets: ") {
		t.Errorf("a first read that fails is an error, got status %d: %s", status, errs.String())
	}
}

// hubSecrets are a Secret of each kind for one cluster, and the token in them.
func hubSecrets(t *testing.T, member *kubetest.ControlPlane) (token, manifests string) {
	t.Helper()
	kubeconfig, err := os.ReadFile(member.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	token = config.AuthInfos["admin"].Token
	argo, err := json.Marshal(map[string]any{"bearerToken": token, "tlsClientConfig": map[string]any{"caData": config.Clusters["kubetest"].CertificateAuthorityData}})
	if err != nil {
		t.Fatal(err)
	}
	secret := func(name, typ string, labels, data map[string]string) string {
		text, err := json.Marshal(map[string]any{
			"apiVersion": "v1", "kind": "Secret", "type": typ, "stringData": data,
			"metadata": map[string]any{"namespace": "fleet", "name": name, "labels": labels},
		})
		if err != nil {
			t.Fatal(err)
		}
		return string(text) + "\n---\n"
	}
	return token, secret("own", "Opaque", map[string]string{"rollcall.dev/cluster": "true", "env": "prod"}, map[string]string{"kubeconfig": string(kubeconfig), "cluster.yaml": "impersonate: {user: viewer, groups: [system:masters]}"}) +
		secret("cluster-1", "Opaque", map[string]string{"argocd.argoproj.io/secret-type": "cluster"}, map[string]string{"name": "argo", "server": "https://" + member.Address(), "config": string(argo)}) +
		secret("workload-kubeconfig", "cluster.x-k8s.io/secret", map[string]string{"cluster.x-k8s.io/cluster-name": "workload"}, map[string]string{"value": string(kubeconfig)})
}
