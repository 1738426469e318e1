package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/clusters/hub"
)

var ourHub = clusters.Hub{Secrets: clusters.SecretKinds, Credentials: []string{clusters.RollcallSecrets}}

func secretKubeconfig(server, more string) []byte {
	return fmt.Appendf(nil, "{current-context: x, contexts: [{name: x, context: {cluster: x, user: x}}], clusters: [{name: x, cluster: {server: %q%s}}], users: [{name: x, user: {token: CANARY}}]}", server, more)
}

// own is a Secret of ours, argo one of Argo CD.
func own(name, cluster string, change ...func(*corev1.Secret)) hub.Registration {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{hub.Label: cluster, "env": "secret", "zone": "z"}}}
	s.Data = map[string][]byte{"kubeconfig": secretKubeconfig("https://api.example", "")}
	for _, f := range change {
		f(s)
	}
	r, _ := hub.Read(ourHub, clusters.DefaultPolicy(), clusters.RollcallSecrets, s)
	return r
}

func argo(name string) hub.Registration {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "s-" + name, Labels: map[string]string{"env": "argo", "zone": "z"}}}
	s.Data = map[string][]byte{"name": []byte(name), "server": []byte("https://api.example"), "config": []byte(`{"bearerToken":"CANARY"}`)}
	r, _ := hub.Read(ourHub, clusters.DefaultPolicy(), clusters.ArgoCDSecrets, s)
	return r
}

// Files and Secrets that claim one name go together where only one of them
// says how it is reached.
func TestJoin(t *testing.T) {
	dir := folder(t, map[string]string{
		"recorded.yaml": clusterFile("recorded", "recorded: d"),
		"argo.yaml":     strings.Replace(clusterFile("argo", "kubeconfig: {path: k}, policy: {startupGrace: 1h}"), "name: argo", "name: argo, labels: {env: file}", 1),
		"both.yaml":     clusterFile("both", "kubeconfig: {path: k}"),
		"settings.yaml": strings.Replace(clusterFile("settings", "tlsServerName: other, reachability: intermittent"), "name: settings", "name: settings, labels: {env: file}", 1),
		"differs.yaml":  clusterFile("differs", "tlsServerName: wrong"),
		"nobody.yaml":   clusterFile("nobody", "identity: x"),
		"twice.yaml":    clusterFile("twice", "identity: x"),
		"broken.yaml":   clusterFile("broken", "identiti: x"),
		"for-argo.yaml": clusterFile("for-argo", "identity: x"),
	})
	files, broken, err := Members(dir, clusters.DefaultPolicy())
	if err != nil {
		t.Fatal(err)
	}
	asks := func(s *corev1.Secret) {
		s.Data["kubeconfig"] = secretKubeconfig("https://api.example", ", tls-server-name: other")
	}
	h := &Hub{Declared: ourHub, Policy: clusters.DefaultPolicy(), Files: files, Broken: broken, Read: func(context.Context, clusters.Hub) (hub.Set, error) {
		return hub.Set{Addresses: []string{"hub.example:443"}, Registrations: []hub.Registration{
			argo("argo"), argo("argo-alone"), argo("for-argo"), own("own", "true"), own("both", "true"), own("settings", "true", asks), own("differs", "true", asks),
			own("a", "same"), own("b", "same"), own("twice", "true", func(s *corev1.Secret) { s.Data["cluster.yaml"] = []byte("{}") }), own("broken", "true"),
			own("itself", "true", func(s *corev1.Secret) { s.Data["kubeconfig"] = secretKubeconfig("https://hub.example", "") }),
		}}, nil
	}}
	found, err := h.Load(t.Context())
	if err != nil || found.Stale != nil {
		t.Fatal(err, found.Stale)
	}
	got := map[string]string{}
	for _, c := range found.Clusters {
		from := fmt.Sprint(c.Recorded)
		if c.Kubeconfig != nil && c.Kubeconfig.Inline != nil {
			from = c.Kubeconfig.Inline.Origin
		} else if c.Kubeconfig != nil {
			from = fmt.Sprint(c.Kubeconfig.Paths)
		}
		got[c.Name] = fmt.Sprintf("%s %v %s %v", from, c.Labels, c.Policy.StartupGrace, c.Intermittent)
	}
	for _, b := range found.Broken {
		got[b.Name] = "BROKEN " + b.File + ": " + b.Err.Error()
	}
	const rule = ": rename or remove all but one; a file adds to a Secret if only one of them says how the cluster is reached and what its settings are"
	want := map[string]string{
		"recorded":   "[DIR/d] map[] 5m0s false",
		"argo":       "[DIR/k] map[env:file zone:z] 1h0m0s false",
		"argo-alone": `BROKEN Secret "argocd/s-argo-alone": no credential is taken from Argo CD's Secret "argocd/s-argo-alone" (its server is "api.example:443"): register one with "rollcall cluster add argo-alone", or allow it with spec.clusters.hub.credentials: [argocd]`,
		"for-argo":   `BROKEN DIR/for-argo.yaml: no credential is taken from Argo CD's Secret "argocd/s-for-argo" (its server is "api.example:443"): register one with "rollcall cluster add for-argo", or allow it with spec.clusters.hub.credentials: [argocd]`,
		"own":        `Secret "ns/own" map[env:secret zone:z] 5m0s false`,
		"both":       `BROKEN DIR/both.yaml: cluster "both" is declared in "DIR/both.yaml" and Secret "ns/both"` + rule,
		"settings":   `Secret "ns/settings" map[env:file zone:z] 5m0s true`,
		"differs":    `BROKEN DIR/differs.yaml: Secret "ns/differs": kubeconfig.clusters[0].cluster.tls-server-name: it is taken from a Secret only where the Cluster's own settings say the same: tlsServerName in a Cluster file of this name, or in cluster.yaml beside the kubeconfig`,
		"nobody":     `BROKEN DIR/nobody.yaml: DIR/nobody.yaml: spec: it names neither kubeconfig nor recorded, and no Secret of the hub registers cluster "nobody"`,
		"same":       `BROKEN Secret "ns/a": cluster "same" is declared in Secret "ns/a" and Secret "ns/b"` + rule,
		"twice":      `BROKEN DIR/twice.yaml: cluster "twice" is declared in "DIR/twice.yaml" and Secret "ns/twice"` + rule,
		"broken":     `BROKEN DIR/broken.yaml: cluster "broken" is declared in "DIR/broken.yaml" and Secret "ns/broken"` + rule + "\nDIR/broken.yaml:4: spec.identiti: Forbidden: unknown field, did you mean \"identity\"?",
		"itself":     `BROKEN Secret "ns/itself": Secret "ns/itself": kubeconfig.clusters[0].cluster.server: is the hub's own API server: allow it with spec.clusters.hub.allowLoopback`,
	}
	for name, text := range got {
		got[name] = strings.ReplaceAll(text, dir, "DIR")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !slices.IsSortedFunc(found.Clusters, func(a, b clusters.Cluster) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the clusters are not sorted by name")
	}
}

// A hub that fails never means that there are no clusters.
func TestHubFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fault := errors.New("the hub is away")
		var set hub.Set
		h := &Hub{Declared: ourHub, Policy: clusters.DefaultPolicy(), Read: func(context.Context, clusters.Hub) (hub.Set, error) { return set, fault }}
		if found, err := h.Load(t.Context()); !errors.Is(err, fault) || len(found.Clusters) != 0 {
			t.Fatalf("the first read failed, got %v, %v", found, err)
		}
		set, fault = hub.Set{Registrations: []hub.Registration{own("a", "true"), own("b", "true")}}, nil
		wantFound(t, h, "", "a", "b")
		since := time.Now().UTC().Format(time.RFC3339)
		time.Sleep(time.Hour)
		set, fault = hub.Set{}, errors.New("the hub is away")
		for range 2 {
			wantFound(t, h, "reading the hub's Secrets: the hub is away; the clusters that it registered at "+since+" are judged", "a", "b")
		}
		set, fault = hub.Set{Registrations: []hub.Registration{own("b", "true")}}, nil
		wantFound(t, h, "", "b")
		set = hub.Set{}
		if _, err := h.Load(t.Context()); err == nil || !strings.Contains(err.Error(), "no Secret of the hub in any namespace registers a cluster (rollcall, argocd, clusterapi): label a Secret that holds a kubeconfig rollcall.dev/cluster=true") {
			t.Errorf("a fleet without a cluster would look green, got %v", err)
		}
	})
}

func wantFound(t *testing.T, h *Hub, stale string, names ...string) {
	t.Helper()
	found, err := h.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range found.Clusters {
		got = append(got, c.Name)
	}
	text := ""
	if found.Stale != nil {
		text = found.Stale.Error()
	}
	if !slices.Equal(got, names) || text != stale {
		t.Errorf("got %v, stale %q; want %v, %q", got, text, names, stale)
	}
}

// While the Secrets are followed they are not read as well; when that ends they
// are, and what was known stays known.
func TestHubRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sets, ends := make(chan hub.Set), make(chan error)
		reads := 0
		h := &Hub{
			Declared: ourHub, Policy: clusters.DefaultPolicy(),
			Read: func(context.Context, clusters.Hub) (hub.Set, error) { reads++; return hub.Set{}, errors.New("away") },
			Follow: func(ctx context.Context, _ clusters.Hub, each func(hub.Set) error) error {
				for {
					select {
					case s := <-sets:
						if err := each(s); err != nil {
							return err
						}
					case err := <-ends:
						return err
					case <-ctx.Done():
						return ctx.Err()
					}
				}
			},
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); h.Run(ctx) }()
		sets <- hub.Set{Registrations: []hub.Registration{own("a", "true")}}
		synctest.Wait()
		wantFound(t, h, "", "a")
		sets <- hub.Set{Registrations: []hub.Registration{own("a", "true"), own("b", "true")}}
		synctest.Wait()
		wantFound(t, h, "", "a", "b")
		if reads != 0 {
			t.Errorf("it was read %d times while it was followed", reads)
		}
		since := time.Now().UTC().Format(time.RFC3339)
		ends <- errors.New("cut off")
		synctest.Wait()
		wantFound(t, h, "reading the hub's Secrets: away; the clusters that it registered at "+since+" are judged", "a", "b")
		sets <- hub.Set{Registrations: []hub.Registration{own("b", "true")}} // Follow is tried again
		synctest.Wait()
		wantFound(t, h, "", "b")
		if reads != 1 {
			t.Errorf("it was read %d times, want once", reads)
		}
		stop()
		<-ended
	})
}
