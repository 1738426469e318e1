package kube_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/clusters/hub"
	"rollcall.dev/rollcall/clusters/kube"
	"rollcall.dev/rollcall/clusters/kubetest"
)

// secretManifest is a Secret whose data are given as text.
func secretManifest(namespace, name, typ string, labels, data map[string]string) string {
	object := map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": typ, "stringData": data,
		"metadata": map[string]any{"namespace": namespace, "name": name, "labels": labels},
	}
	text, err := json.Marshal(object)
	if err != nil {
		panic(err) // strings only
	}
	return string(text) + "\n---\n"
}

// registered are Secrets of the three kinds for one cluster, and some that
// register nothing.
func registered(t *testing.T, member *kubetest.ControlPlane) string {
	t.Helper()
	kubeconfig := inlineOf(t, member.Kubeconfig())
	config, err := clientcmd.LoadFromFile(member.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	c := config.Clusters["kubetest"]
	argo, err := json.Marshal(map[string]any{"bearerToken": config.AuthInfos["admin"].Token, "tlsClientConfig": map[string]any{"caData": c.CertificateAuthorityData}})
	if err != nil {
		t.Fatal(err)
	}
	capi := map[string]string{"cluster.x-k8s.io/cluster-name": "workload"}
	return namespace("rollcall") + namespace("argocd") + namespace("capi") +
		secretManifest("rollcall", "own", "Opaque", map[string]string{hub.Label: "true", "env": "prod"}, map[string]string{"kubeconfig": kubeconfig}) +
		secretManifest("rollcall", "other", "Opaque", nil, map[string]string{"kubeconfig": "CANARY"}) +
		secretManifest("argocd", "cluster-1", "Opaque", map[string]string{"argocd.argoproj.io/secret-type": "cluster"}, map[string]string{"name": "argo", "server": c.Server, "config": string(argo)}) +
		secretManifest("argocd", "repo-1", "Opaque", map[string]string{"argocd.argoproj.io/secret-type": "repository"}, map[string]string{"password": "CANARY"}) +
		secretManifest("capi", "workload-kubeconfig", "cluster.x-k8s.io/secret", capi, map[string]string{"value": kubeconfig}) +
		secretManifest("capi", "workload-ca", "cluster.x-k8s.io/secret", capi, map[string]string{"tls.key": "CANARY"})
}

func names(set hub.Set) []string {
	var out []string
	for _, r := range set.Registrations {
		out = append(out, fmt.Sprintf("%s %s/%s %s", r.Kind, r.Namespace, r.Secret, r.Name))
	}
	return out
}

var allRegistered = []string{"argocd argocd/cluster-1 argo", "clusterapi capi/workload-kubeconfig workload", "rollcall rollcall/own own"}

// Secrets of a real API server: which of them register a cluster, that what
// they say is enough to observe it, and what a hub that does not answer means.
func TestRealSecrets(t *testing.T) {
	cp, member := kubetest.Start(t, kubetest.Options{}), kubetest.Start(t, kubetest.Options{})
	member.Apply(t, daemonSet("default", "exporter", ""))
	cp.Apply(t, registered(t, member))
	h := clusters.Hub{Kubeconfig: clusters.Kubeconfig{Paths: []string{cp.Kubeconfig()}}, Secrets: clusters.SecretKinds, Credentials: clusters.SecretKinds, AllowLoopback: true}
	t.Run("Observed", func(t *testing.T) { testRegistered(t, cp, h) })
	t.Run("Namespaces", func(t *testing.T) {
		some := h
		some.Namespaces, some.Secrets = []string{"argocd", "rollcall"}, []string{clusters.RollcallSecrets, clusters.ClusterAPISecrets}
		set := readSecrets(t, some)
		if diff := cmp.Diff([]string{"rollcall rollcall/own own"}, names(set)); diff != "" {
			t.Errorf("only what is asked for: -want +got:\n%s", diff)
		}
	})
	t.Run("LeastRights", func(t *testing.T) { testSecretRights(t, cp, h) })
	t.Run("Followed", func(t *testing.T) { testFollowSecrets(t, cp, h) })
	t.Run("Gone", func(t *testing.T) {
		cp.Stop()
		_, err := new(kube.Observer).Secrets(t.Context(), h, clusters.DefaultPolicy())
		wantFault(t, err, clusters.Unreachable, "refuses connections")
	})
}

func readSecrets(t *testing.T, h clusters.Hub) hub.Set {
	t.Helper()
	set, err := new(kube.Observer).Secrets(t.Context(), h, clusters.DefaultPolicy())
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func testRegistered(t *testing.T, cp *kubetest.ControlPlane, h clusters.Hub) {
	set := readSecrets(t, h)
	if diff := cmp.Diff(allRegistered, names(set)); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{cp.Address()}, set.Addresses); diff != "" {
		t.Errorf("addresses of the hub: -want +got:\n%s", diff)
	}
	for _, r := range set.Registrations {
		c, err := r.Cluster(h, set.Addresses, clusters.Cluster{})
		if err != nil {
			t.Fatal(err)
		}
		live, err := new(kube.Observer).Observe(t.Context(), c, clusters.Want{})
		if err != nil || len(live.DaemonSets) != 1 || live.DaemonSets[0].Name != "exporter" {
			t.Errorf("%s: %v, %d DaemonSets", r.Name, err, len(live.DaemonSets))
		}
	}
}

// A user that may list Secrets of one namespace needs no more, and one who may
// not is told so.
func testSecretRights(t *testing.T, cp *kubetest.ControlPlane, h clusters.Hub) {
	h.Kubeconfig.Paths = []string{cp.User(t, "secret-reader")}
	h.Secrets, h.Namespaces = []string{clusters.ArgoCDSecrets}, []string{"argocd"}
	_, err := new(kube.Observer).Secrets(t.Context(), h, clusters.DefaultPolicy())
	wantFault(t, err, clusters.Denied, `listing secrets in namespace "argocd"`, "may not list secrets", "kubectl auth can-i list secrets -n argocd")
	cp.Apply(t, secretRole("secret-reader", "argocd"))
	var set hub.Set
	eventually(t, func() (err error) {
		set, err = new(kube.Observer).Secrets(t.Context(), h, clusters.DefaultPolicy())
		return err
	})
	if diff := cmp.Diff(allRegistered[:1], names(set)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func secretRole(user, namespace string) string {
	return fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: %[1]s, namespace: %[2]s}
rules: [{apiGroups: [""], resources: [secrets], verbs: [list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: %[1]s, namespace: %[2]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: %[1]s}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %[1]s}]
---
`, user, namespace)
}

// eventually waits until f has no error any more: RBAC takes a moment.
func eventually(t *testing.T, f func() error) {
	t.Helper()
	var err error
	for range 300 {
		if err = f(); err == nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal(err)
}

// Secrets that come, change and go are told; a hub that is silent is not taken
// for one without Secrets.
func testFollowSecrets(t *testing.T, cp *kubetest.ControlPlane, h clusters.Hub) {
	o := &kube.Observer{Quiet: 50 * time.Millisecond, Beat: 200 * time.Millisecond, Patience: 2 * time.Second}
	var mu sync.Mutex
	var last hub.Set
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- o.FollowSecrets(ctx, h, clusters.DefaultPolicy(), func(set hub.Set) error {
			mu.Lock()
			defer mu.Unlock()
			last = set
			return nil
		})
	}()
	defer stop()
	seen := func(want func(hub.Set) bool) {
		t.Helper()
		eventually(t, func() error {
			mu.Lock()
			defer mu.Unlock()
			if !want(last) {
				return fmt.Errorf("last seen: %v", names(last))
			}
			return nil
		})
	}
	seen(func(s hub.Set) bool { return slices.Equal(names(s), allRegistered) })
	more := secretManifest("rollcall", "more", "Opaque", map[string]string{hub.Label: "more"}, map[string]string{"kubeconfig": "x"})
	cp.Apply(t, more)
	seen(func(s hub.Set) bool { return len(s.Registrations) == 4 })
	cp.Apply(t, secretManifest("rollcall", "own", "Opaque", map[string]string{hub.Label: "true", "env": "test"}, nil))
	seen(func(s hub.Set) bool {
		return slices.ContainsFunc(s.Registrations, func(r hub.Registration) bool { return r.Name == "own" && r.Labels["env"] == "test" })
	})
	cp.Delete(t, more)
	seen(func(s hub.Set) bool { return slices.Equal(names(s), allRegistered) })
	cp.Pause()
	defer cp.Resume()
	select {
	case err := <-ended:
		if fault, ok := errors.AsType[*clusters.ObserveError](err); !ok || fault.State != clusters.Unreachable {
			t.Errorf("got %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("a hub that is silent was followed for a minute")
	}
	if mu.Lock(); !slices.Equal(names(last), allRegistered) {
		t.Errorf("last seen: %v", names(last))
	}
	mu.Unlock()
}

// An answer that is no list of Secrets is an error, not a list of none, and the
// list has an end.
func TestSecretsWrongAnswers(t *testing.T) {
	var items []string
	for i := range 10001 {
		items = append(items, fmt.Sprintf(`{"metadata":{"name":"s%d","namespace":"n"},"data":{}}`, i))
	}
	cases := map[string]struct{ reason, body, want string }{
		"Null":    {"client-go makes an empty list of it", "null", "Kind"},
		"Other":   {"an empty list of another kind", list("PodList", "v1", `"resourceVersion":"1"`), "PodList instead of a SecretList"},
		"TooMany": {"the memory has an end", list("SecretList", "v1", `"resourceVersion":"1"`, strings.Join(items, ",")), "more than 10000 Secrets register clusters"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := fake(t, func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Path, "/secrets") {
					return false
				}
				send(w, 200, tc.body)
				return true
			})
			s.Start()
			h := clusters.Hub{Kubeconfig: clusters.Kubeconfig{Paths: []string{kubeconfig(t, s.URL)}}, Secrets: []string{clusters.RollcallSecrets}}
			set, err := new(kube.Observer).Secrets(t.Context(), h, clusters.DefaultPolicy())
			wantFault(t, err, clusters.Failed, "listing secrets", tc.want)
			if len(set.Registrations) != 0 {
				t.Errorf("%s: got %d registrations beside the error", tc.reason, len(set.Registrations))
			}
		})
	}
}
