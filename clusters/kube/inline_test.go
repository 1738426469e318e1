package kube_test

import (
	"encoding/pem"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/clusters/kube"
)

// inline is a cluster whose kubeconfig a Secret supplied.
func inline(t *testing.T, in clusters.Inline, server string, change ...func(*api.Cluster, *api.AuthInfo)) clusters.Cluster {
	t.Helper()
	data, err := os.ReadFile(kubeconfig(t, server, change...))
	if err != nil {
		t.Fatal(err)
	}
	in.Content, in.Origin = clusters.Hide(data), `Secret "ns/c"`
	return clusters.Cluster{Name: "c", Kubeconfig: &clusters.Kubeconfig{Context: "test", Inline: &in}}
}

func trusted(s *httptest.Server) func(*api.Cluster, *api.AuthInfo) {
	return func(c *api.Cluster, u *api.AuthInfo) {
		c.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
		c.TLSServerName, u.Token = "example.com", "CANARY"
	}
}

// A Secret's kubeconfig is read from memory, and where its server leads after
// its name was resolved is checked before anything is sent.
func TestInline(t *testing.T) {
	s := fake(t, nil)
	s.StartTLS()
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	named := "https://localhost:" + port // of a kubeconfig whose text nobody checked
	live, err := new(kube.Observer).Observe(t.Context(), inline(t, clusters.Inline{AllowLoopback: true}, named, trusted(s)), clusters.Want{})
	if err != nil || live.Identity != "the-uid" {
		t.Fatalf("allowed: %v, identity %q", err, live.Identity)
	}
	cases := map[string]struct {
		reason, server string
		words          []string
	}{
		"Loopback":  {"a name that leads there", named, []string{`Secret "ns/c" leads to "127.0.0.1:` + port + `", which is a loopback address: allow it with spec.clusters.hub.allowLoopback`}},
		"LinkLocal": {"where clouds keep credentials", "https://169.254.169.254", []string{`leads to "169.254.169.254:443", which is a link-local address`}},
		"Hub":       {"the hub itself", "https://192.0.2.1:6443", []string{"is the hub's own API server"}},
		"PlainHTTP": {"no TLS", "http://localhost:" + port, []string{`the kubeconfig of Secret "ns/c": it names a file, an auth-provider or a server without TLS`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := new(kube.Observer).Observe(t.Context(), inline(t, clusters.Inline{Hub: []string{"192.0.2.1:6443"}}, tc.server, trusted(s)), clusters.Want{})
			wantFault(t, err, clusters.Failed, tc.words...)
		})
	}
	t.Run("Files", func(t *testing.T) {
		token := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(token, []byte("CANARY"), 0o600); err != nil {
			t.Fatal(err)
		}
		c := inline(t, clusters.Inline{AllowLoopback: true}, named, trusted(s), func(_ *api.Cluster, u *api.AuthInfo) { u.TokenFile = token })
		_, err := new(kube.Observer).Observe(t.Context(), c, clusters.Want{})
		wantFault(t, err, clusters.Failed, "it names a file")
	})
	t.Run("NoKubeconfig", func(t *testing.T) {
		c := inline(t, clusters.Inline{}, named)
		c.Kubeconfig.Inline.Content = clusters.Hide([]byte(`{users: [{name: x, user: {token: {CANARY: x}}}]}`))
		_, err := new(kube.Observer).Observe(t.Context(), c, clusters.Want{})
		wantFault(t, err, clusters.Failed, `reading the kubeconfig of Secret "ns/c": it cannot be decoded`)
		if strings.Contains(err.Error(), "CANARY") {
			t.Errorf("got %v", err)
		}
	})
}

// In a pod the hub is the cluster that the pod is of; elsewhere that is told.
func TestInCluster(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	h := clusters.Hub{Kubeconfig: clusters.Kubeconfig{InCluster: true}, Secrets: []string{clusters.RollcallSecrets}}
	_, err := new(kube.Observer).Secrets(t.Context(), h, clusters.DefaultPolicy())
	wantFault(t, err, clusters.Failed, "reading the credential of the pod that this runs in", "KUBERNETES_SERVICE_HOST")
}

// inlineOf is the text of a kubeconfig whose files are put into it.
func inlineOf(t *testing.T, path string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A plugin that a Secret names is found by its name, and does not take the
// check of the address away.
func TestInlinePlugin(t *testing.T) {
	s := fake(t, nil)
	s.StartTLS()
	command := script(t, `echo ran >>"$0.ran"; echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"CANARY"}}'`)
	t.Setenv("PATH", filepath.Dir(command)+string(filepath.ListSeparator)+os.Getenv("PATH"))
	named := func(c *api.Cluster, u *api.AuthInfo) {
		trusted(s)(c, u)
		plugin(filepath.Base(command))(c, u)
		u.Token = ""
	}
	c := inline(t, clusters.Inline{AllowLoopback: true}, s.URL, named)
	if _, err := new(kube.Observer).Observe(t.Context(), c, clusters.Want{}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(command + ".ran"); err != nil {
		t.Errorf("the plugin was not run: %v", err)
	}
	_, err := new(kube.Observer).Observe(t.Context(), inline(t, clusters.Inline{}, s.URL, named), clusters.Want{})
	wantFault(t, err, clusters.Failed, "which is a loopback address")
}
