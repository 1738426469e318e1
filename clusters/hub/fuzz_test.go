package hub

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"rollcall.dev/rollcall/clusters"
)

// Whatever a Secret holds, a kubeconfig that is made of it runs nothing, reads
// no file, verifies TLS, goes nowhere by a proxy and is nobody else; and there
// is no panic.
func FuzzSecretKubeconfig(f *testing.F) {
	files, err := filepath.Glob("testdata/hostile/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		f.Add([]byte(strings.ReplaceAll(string(data), "127.0.0.1", "api.example")))
	}
	f.Add([]byte(strings.ReplaceAll(userless, "%s", "{token: t}")))
	f.Add([]byte(`{"bearerToken": "t", "tlsClientConfig": {"insecure": true, "serverName": "x"}, "proxyUrl": "http://x"}`))
	f.Add([]byte(`{"awsAuthConfig": {"clusterName": "x"}, "execProviderConfig": {"command": "sh", "env": {"A": "b"}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for kind, s := range map[string]map[string]string{
			clusters.RollcallSecrets: {"kubeconfig": string(data)}, clusters.ArgoCDSecrets: {"name": "c", "server": "https://api.example", "config": string(data)},
		} {
			cl, _, err := made(trusting, kind, secret("c", nil, s), clusters.Settings{})
			if err != nil {
				continue
			}
			harmless(t, cl.Kubeconfig.Inline.Content.Reveal())
		}
	})
}

// harmless knows the fields of a kubeconfig by itself, so that what the builder
// might let through is not missed.
func harmless(t *testing.T, content []byte) {
	t.Helper()
	var c struct {
		Contexts []struct{ Name string }
		Clusters []struct{ Cluster map[string]any }
		Users    []struct{ User map[string]any }
	}
	if err := json.Unmarshal(content, &c); err != nil || len(c.Clusters) != 1 || len(c.Users) != 1 || len(c.Contexts) != 1 {
		t.Fatalf("%v in %s", err, content)
	}
	allowed := map[string]bool{
		"server": true, "certificate-authority-data": true, "disable-compression": true,
		"token": true, "username": true, "password": true, "client-certificate-data": true, "client-key-data": true,
	}
	for _, fields := range []map[string]any{c.Clusters[0].Cluster, c.Users[0].User} {
		for name, value := range fields {
			if !allowed[name] || reflect.ValueOf(value).Kind() == reflect.Map {
				t.Errorf("field %q survived in %s", name, content)
			}
		}
	}
	if server, _ := c.Clusters[0].Cluster["server"].(string); !strings.HasPrefix(server, "https://") || checkServer(server, clusters.Inline{}) != "" {
		t.Errorf("server %q survived", server)
	}
}
