package kube_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd/api"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/clusters/kube"
)

func TestKubeconfigFaults(t *testing.T) {
	dir := t.TempDir()
	write := func(name, data string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const two = `{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}], users: [{name: u, user: {}}],
contexts: [{name: b, context: {cluster: c, user: u}}, {name: a, context: {cluster: c, user: u}}, {name: lost, context: {cluster: gone, user: u}}]}`
	good := write("good", two)
	broken := write("broken", "{")
	secretURL := kubeconfig(t, "https://me:hunter2@host:port")
	secretProxy := kubeconfig(t, "https://host", func(c *api.Cluster, _ *api.AuthInfo) { c.ProxyURL = "http://me:hunter2@pro xy" })
	secretToken := write("token", `{apiVersion: v1, kind: Config, users: [{name: u, user: {token: {hunter2: x}}}]}`)
	missing := func(f func(*api.Cluster, *api.AuthInfo)) string { return kubeconfig(t, "https://127.0.0.1:1", f) }

	cases := map[string]struct {
		reason  string
		paths   []string
		context string
		words   []string
	}{
		"NoFile":           {"one that is named alone must exist", []string{filepath.Join(dir, "none")}, "", []string{"loading the kubeconfig", filepath.Join(dir, "none")}},
		"NoneOfTwo":        {"as kubectl has it", []string{filepath.Join(dir, "x"), filepath.Join(dir, "y")}, "", []string{"none of the files exists"}},
		"NoPath":           {"the caller's mistake", nil, "", []string{"no file is named"}},
		"Broken":           {"no YAML", []string{broken}, "", []string{broken}},
		"NoCurrentContext": {"which of them is meant", []string{good}, "", []string{"no current-context", `available: "a", "b", "lost"`}},
		"UnknownContext":   {"a typing error", []string{good}, "prod", []string{`no context "prod"`, `available: "a", "b", "lost"`}},
		"LostCluster":      {"a context of a cluster that is not there", []string{good}, "lost", []string{`"gone"`}},
		"MissingCA": {"certificates are often files", []string{missing(func(c *api.Cluster, _ *api.AuthInfo) { c.CertificateAuthority = "/no/ca.crt" })}, "",
			[]string{`kubeconfig "`, `its certificate-authority "/no/ca.crt": no such file`}},
		"MissingCertificate": {"and so are keys", []string{missing(func(_ *api.Cluster, u *api.AuthInfo) { u.ClientCertificate, u.ClientKey = "/no/tls.crt", "/no/tls.key" })}, "",
			[]string{`its client-certificate "/no/tls.crt"`, `its client-key "/no/tls.key"`}},
		"MissingToken": {"client-go would send no token", []string{missing(func(_ *api.Cluster, u *api.AuthInfo) { u.TokenFile = "/no/token" })}, "", []string{`its tokenFile "/no/token"`}},
		"SecretServer": {"a password in a URL is not repeated", []string{secretURL}, "", []string{"the server of cluster", "no URL"}},
		"SecretProxy":  {"nor in that of a proxy", []string{secretProxy}, "", []string{"the proxy-url of cluster", "no URL"}},
		"SecretToken":  {"nor a token that is malformed", []string{secretToken}, "", []string{secretToken}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := clusters.Cluster{Kubeconfig: &clusters.Kubeconfig{Paths: tc.paths, Context: tc.context}}
			_, err := new(kube.Observer).Observe(t.Context(), c, clusters.Want{})
			wantFault(t, err, clusters.Failed, tc.words...)
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: got %q, with a secret", tc.reason, err)
			}
		})
	}
	t.Run("Recorded", func(t *testing.T) {
		_, err := new(kube.Observer).Observe(t.Context(), clusters.Cluster{Recorded: []string{"dump"}}, clusters.Want{})
		wantFault(t, err, clusters.Failed, "has no kubeconfig")
	})
}

// Files are merged as kubectl merges them; a missing one is passed over, and
// the first that sets a value wins.
func TestKubeconfigsAreMerged(t *testing.T) {
	s := fake(t, nil)
	s.StartTLS()
	first, second := kubeconfig(t, s.URL, trust(s)), filepath.Join(t.TempDir(), "second")
	data := `{apiVersion: v1, kind: Config, current-context: other, contexts: [{name: mine, context: {cluster: test, user: test}}]}`
	if err := os.WriteFile(second, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, context := range []string{"", "mine"} {
		c := clusters.Cluster{Kubeconfig: &clusters.Kubeconfig{Paths: []string{"/no/such/file", first, second}, Context: context}}
		live, err := new(kube.Observer).Observe(t.Context(), c, clusters.Want{})
		if err != nil {
			t.Fatalf("context %q: %v", context, err)
		}
		if live.Identity != "the-uid" {
			t.Errorf("context %q: got identity %q", context, live.Identity)
		}
	}
}
