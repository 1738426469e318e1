package main

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"rollcall.dev/rollcall/clusters/kubetest"
)

// counter is an API server behind which the requests are counted.
type counter struct {
	mu  sync.Mutex
	all []string // METHOD /path
}

// counted puts a counting server before a control plane and returns a kubeconfig
// that leads to it.
func counted(t *testing.T, cp *kubetest.ControlPlane) (*counter, string) {
	t.Helper()
	config := cp.Client(t)
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	c := &counter{}
	proxy := &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Header.Del("Authorization") // the transport logs in
	}}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		c.all = append(c.all, r.Method+" "+r.URL.Path+map[bool]string{true: " on trial"}[r.URL.Query().Has("dryRun")])
		c.mu.Unlock()
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	write(t, dir, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	write(t, dir, "kubeconfig", fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q, certificate-authority: ca.pem}}]\nusers: [{name: u, user: {token: none}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n", server.URL))
	return c, filepath.Join(dir, "kubeconfig")
}

// take returns what was asked since the last take.
func (c *counter) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.all
	c.all = nil
	return out
}

// writes are requests that would write, or could on another day: all but GET,
// and reviews, by which one asks what one may and of which nothing is kept.
func writes(all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(r string) bool {
		return strings.HasPrefix(r, "GET ") || strings.HasPrefix(r, "POST /apis/authorization.k8s.io/")
	})
}

// A cluster in line is asked nothing by a verb that writes, not even on trial;
// only what differs is. Beside it: kubectl diff on the same objects.
func TestRealRequests(t *testing.T) {
	cp := kubetest.Start(t, kubetest.Options{Controllers: true, Scheduler: true, Nodes: 2})
	files := agentFiles()
	delete(files, "secret.yaml")
	g := newGitOps(t, cp, "may: [apply]", files)
	g.apply(0, "9 created")
	cp.WaitDaemonSetReady(t, "obs", "agent", 2)
	requests, kubeconfig := counted(t, cp)
	write(t, g.dir, "clusters/one.yaml", fmt.Sprintf("apiVersion: rollcall.dev/v1alpha1\nkind: Cluster\nmetadata: {name: one}\nspec: {kubeconfig: {path: %q}}\n", kubeconfig))

	g.run(0, []string{"report", "--fail-on", "error"}, "InSync with base")
	line := requests.take()
	if w := writes(line); len(w) > 0 {
		t.Errorf("a fleet in line sends %q", w)
	}
	g.apply(0, "nothing to do")
	if w := writes(requests.take()); len(w) > 0 {
		t.Errorf("an apply of nothing sends %q", w)
	}

	kubectl(t, cp, "-n", "obs", "set", "image", "ds/agent", "c=agent:hotfix")
	g.run(1, []string{"report", "--fail-on", "warning"}, "manager obs/agent kubectl-set")
	want := []string{"PATCH /apis/apps/v1/namespaces/obs/daemonsets/agent on trial"}
	if w := writes(requests.take()); !slices.Equal(w, want) {
		t.Errorf("one DaemonSet differs: sent %q, want %q", w, want)
	}
	kubectl(t, cp, "-n", "obs", "set", "image", "ds/agent", "c=agent:1")

	peer := kubectlDiff(t, kubeconfig, filepath.Join(g.dir, "repository/base"))
	asked := requests.take()
	t.Logf("9 objects in line: rollcall report %d requests, %d of them by a verb that writes, coverage of 2 nodes included; kubectl diff %d, %d of them", len(line), len(writes(line)), len(asked), len(writes(asked)))
	if len(writes(asked)) == 0 {
		t.Errorf("kubectl diff sends no dry run: it is no measure\n%s\n%s", strings.Join(asked, "\n"), peer)
	}
}

// kubectlDiff is kubectl diff --server-side, whatever it finds.
func kubectlDiff(t *testing.T, kubeconfig, dir string) string {
	t.Helper()
	assets, err := kubetest.Assets()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(assets, "kubectl"), "--kubeconfig", kubeconfig, "diff", "--server-side", "--force-conflicts", "-f", dir)
	cmd.Env = append(cmd.Environ(), "HOME="+t.TempDir()) // no cache of discovery
	out, _ := cmd.CombinedOutput()                       // 1: it found differences
	return string(out)
}
