package main

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"rollcall.dev/rollcall/clusters/kubetest"
	"rollcall.dev/rollcall/controller/plan"
)

// A pull request adds a toleration by a strategic merge patch, which replaces the
// whole list: fourteen nodes would lose the agent. It is loud in each form, from
// commits, from rendered folders and from a snapshot alike.
func TestRealPlanBetweenCommits(t *testing.T) {
	cp := kubetest.Start(t, kubetest.Options{Nodes: 20})
	var tainted []string
	for i := range 14 {
		tainted = append(tainted, fmt.Sprintf("node-%d", i))
	}
	kubectl(t, cp, append(append([]string{"taint", "nodes"}, tainted...), "dedicated=gpu:NoSchedule")...)

	tolerant := strings.Replace(obsAgent("1", "app: agent", ""), "      serviceAccountName", "      tolerations: [{key: dedicated, operator: Exists}]\n      serviceAccountName", 1)
	g := newGitOps(t, cp, "may: []", map[string]string{"agent.yaml": tolerant, "kustomization.yaml": "resources: [agent.yaml]\n"})
	base := g.git("rev-parse", "HEAD")
	g.git("checkout", "-q", "-b", "pr")
	head := g.put("kustomization.yaml", `resources: [agent.yaml]
patches:
  - target: {kind: DaemonSet}
    patch: |-
      apiVersion: apps/v1
      kind: DaemonSet
      metadata: {name: any}
      spec: {template: {spec: {tolerations: [{key: spot, operator: Exists}]}}}
`)
	g.git("checkout", "-q", "main")

	from := []string{"plan", "--from", base, "--to", head}
	g.run(1, from, base[:10]+" → "+head[:10], "✗ obs/agent LOSES 14 nodes: node-0, node-1", "taint dedicated=gpu:NoSchedule is not tolerated", "↻ obs/agent restarts on 6 nodes", "6 nodes in 6 steps of 1 (maxUnavailable 1)", "14 LOST")
	g.run(1, append(from, "-o", "markdown"), "[!CAUTION]", "✗ LOSES 14 nodes", "taint dedicated=gpu:NoSchedule is not tolerated")
	g.run(1, []string{"plan", "--from", "main", "--to", "pr"}, "LOSES 14 nodes")
	g.run(0, []string{"plan", "--to", "refs/heads/pr"}, "live → "+head[:10], "obs/agent gains 6 nodes") // nothing lives, so that nothing is lost
	var p plan.Plan
	if err := json.Unmarshal([]byte(g.run(1, append(from, "-o", "json"))), &p); err != nil {
		t.Fatal(err)
	}
	if p.Summary.Loses != 14 || p.Summary.Restarts != 6 || len(p.Clusters[0].Nodes) != 20 || p.From != base || p.To != head {
		t.Errorf("the plan in JSON is %+v", p.Summary)
	}

	// Without a cluster's credential: from what was recorded of it.
	snapshot := filepath.Join(g.dir, "one.snapshot.json.gz")
	g.runAlone(0, []string{"record", "one", "--kubeconfig", cp.Kubeconfig(), "--to", snapshot})
	for name, commit := range map[string]string{"before": base, "after": head} {
		g.git("checkout", "-q", commit)
		write(t, g.dir, name+"/all.yaml", kubectl(t, cp, "kustomize", filepath.Join(g.dir, "repository/base")))
	}
	g.runAlone(1, []string{"plan", "--before", filepath.Join(g.dir, "before"), "--after", filepath.Join(g.dir, "after"), "-f", snapshot}, "LOSES 14 nodes", "taint dedicated=gpu:NoSchedule is not tolerated", "recorded 20")
	through(g, snapshot, base, head)
}

// through: what a running rollcall saw last is enough, with its read token.
func through(g *gitOps, snapshot, base, head string) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/clusters/one/snapshot" || r.Header.Get("Authorization") != "Bearer reader" {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		http.ServeFile(w, r, snapshot)
	}))
	defer server.Close()
	write(g.t, g.dir, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	write(g.t, g.dir, "token", "reader\n")
	write(g.t, g.dir, "clusters/one.yaml", "apiVersion: rollcall.dev/v1alpha1\nkind: Cluster\nmetadata: {name: one}\nspec: {kubeconfig: {path: nowhere}}\n")
	args := []string{"plan", "--from", base, "--to", head, "--server", server.URL, "--ca-file", filepath.Join(g.dir, "ca.pem"), "--token-file"}
	g.run(1, append(args, filepath.Join(g.dir, "token")), "LOSES 14 nodes")
	write(g.t, g.dir, "other", "another")
	g.run(3, append(args, filepath.Join(g.dir, "other")), "UNKNOWN: getting the snapshot", "403 Forbidden")
	g.run(2, []string{"plan", "--server", "http://rollcall.example"}, "plain http would send the token in the open")
}

// runAlone runs rollcall without the fleet file.
func (g *gitOps) runAlone(want int, args []string, words ...string) {
	g.t.Helper()
	status, out := runWith(g.t, args...)
	if status != want {
		g.t.Errorf("exit status %d, want %d", status, want)
	}
	contains(g.t, out, words...)
}

func runWith(t *testing.T, args ...string) (status int, out string) {
	t.Helper()
	var o, e strings.Builder
	status = run(args, streams{strings.NewReader(""), &o, &e})
	t.Logf("$ rollcall %s\n%s%s(exit status %d)", strings.Join(args, " "), e.String(), o.String(), status)
	return status, o.String() + e.String()
}
