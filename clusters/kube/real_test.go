package kube_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/clusters/kube"
	"rollcall.dev/rollcall/clusters/kubetest"
)

// daemonSet is a DaemonSet's manifest; extra is put into its pod template.
func daemonSet(namespace, name, extra string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: %[2]s
  namespace: %[1]s
  labels: {team: %[2]s}
  annotations: {kubectl.kubernetes.io/last-applied-configuration: "long", keep: "short"}
spec:
  selector: {matchLabels: {app: %[2]s}}
  template:
    metadata: {labels: {app: %[2]s}}
    spec: {containers: [{name: c, image: "registry.example/%[2]s:1"}]%[3]s}
---
`, namespace, name, extra)
}

func namespace(name string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n---\n", name)
}

// grant lets a user list and get the resources everywhere.
func grant(user, rules string) string {
	return fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %[1]s}
rules: [%[2]s]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[1]s}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %[1]s}]
---
`, user, rules)
}

// rule is one rule of a role.
func rule(group string, resources ...string) string {
	return fmt.Sprintf(`{apiGroups: [%q], resources: [%s], verbs: [list, get]}`, group, strings.Join(resources, ", "))
}

// A real API server without controllers: what is read, and as whom.
func TestRealServer(t *testing.T) {
	cp := kubetest.Start(t, kubetest.Options{})
	cp.Apply(t, namespace("monitoring")+namespace("logging")+daemonSet("monitoring", "exporter", "")+daemonSet("logging", "shipper", ""))
	cp.Apply(t, pod("monitoring", "exporter-1")+pod("default", "unrelated"))
	t.Run("Want", func(t *testing.T) { testWant(t, cp) })
	t.Run("Leases", func(t *testing.T) { testLeases(t, cp) })
	t.Run("Pages", func(t *testing.T) { testPages(t, cp) })
	t.Run("Forbidden", func(t *testing.T) { testForbidden(t, cp) })
	t.Run("Forecast", func(t *testing.T) { testForecast(t, cp) })
	t.Run("Check", func(t *testing.T) { testCheck(t, cp) })
	t.Run("Plugin", func(t *testing.T) { testPlugin(t, cp) })
	t.Run("Unauthorized", func(t *testing.T) { testUnauthorized(t, cp) })
	t.Run("Paused", func(t *testing.T) { testPaused(t, cp) })
}

func pod(namespace, name string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: %s, labels: {app: x}}\nspec: {containers: [{name: c, image: i}]}\n---\n", name, namespace)
}

func observe(t *testing.T, path string, w clusters.Want) clusters.Live {
	t.Helper()
	live, err := new(kube.Observer).Observe(t.Context(), cluster(path), w)
	if err != nil {
		t.Fatal(err)
	}
	return live
}

func testWant(t *testing.T, cp *kubetest.ControlPlane) {
	cases := map[string]struct {
		reason string
		want   clusters.Want
		names  []string
		pods   []string
	}{
		"All":        {"pods only of namespaces that hold a DaemonSet", clusters.Want{}, []string{"exporter", "shipper"}, []string{"exporter-1"}},
		"Namespace":  {"one namespace", clusters.Want{Namespace: "logging"}, []string{"shipper"}, nil},
		"Name":       {"one name", clusters.Want{Name: "exporter"}, []string{"exporter"}, []string{"exporter-1"}},
		"Selector":   {"by the DaemonSet's own labels", clusters.Want{Selector: labels.SelectorFromSet(labels.Set{"team": "shipper"})}, []string{"shipper"}, nil},
		"NotMatched": {"nothing is wanted, so no pods are read", clusters.Want{Name: "other"}, nil, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			live := observe(t, cp.Kubeconfig(), tc.want)
			var names, pods []string
			for _, ds := range live.DaemonSets {
				names = append(names, ds.Name)
				if diff := cmp.Diff(map[string]string{"keep": "short", "deprecated.daemonset.template.generation": "1"}, ds.Annotations); diff != "" {
					t.Errorf("annotations (-want +got):\n%s", diff)
				}
				if len(ds.ManagedFields) != 1 || ds.ManagedFields[0].Manager != "kubetest" || ds.UID == "" {
					t.Errorf("got managed fields %v, UID %q", ds.ManagedFields, ds.UID)
				}
			}
			for _, p := range live.Pods {
				pods = append(pods, p.Name)
			}
			if diff := cmp.Diff(tc.names, names, cmpopts.SortSlices(strings.Compare)); diff != "" {
				t.Errorf("%s: DaemonSets (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.pods, pods); diff != "" {
				t.Errorf("%s: pods (-want +got):\n%s", tc.reason, diff)
			}
			if len(live.Identity) != 36 || live.Version != "v1.37.2" || live.Blanks != nil || time.Since(live.ObservedAt) > time.Minute {
				t.Errorf("got identity %q, version %q, blanks %v, observed at %v", live.Identity, live.Version, live.Blanks, live.ObservedAt)
			}
		})
	}
}

func testPages(t *testing.T, cp *kubetest.ControlPlane) {
	var manifests [4]strings.Builder
	for i := range 1200 {
		fmt.Fprintf(&manifests[i%4], "apiVersion: v1\nkind: Node\nmetadata: {name: n-%d, labels: {number: \"%d\"}}\n---\n", i, i)
	}
	var wg sync.WaitGroup
	for i := range manifests {
		wg.Go(func() { cp.Apply(t, manifests[i].String()) })
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	live := observe(t, cp.Kubeconfig(), clusters.Want{})
	seen := map[string]bool{}
	for _, n := range live.Nodes {
		if n.Name != "n-"+n.Labels["number"] || n.Created.IsZero() {
			t.Errorf("got node %+v", n)
		}
		seen[n.Name] = true
	}
	if len(seen) != 1200 || len(live.Nodes) != 1200 {
		t.Errorf("got %d nodes of %d names, want 1200", len(live.Nodes), len(seen))
	}
	o := &kube.Observer{PageSize: 100, MaxPages: 11}
	_, err := o.Observe(t.Context(), cluster(cp.Kubeconfig()), clusters.Want{})
	wantFault(t, err, clusters.Failed, "listing nodes", "more than 11 pages")
}

func testForbidden(t *testing.T, cp *kubetest.ControlPlane) {
	daemonSets, revisions := rule("apps", "daemonsets"), rule("apps", "controllerrevisions")
	rest := rule("", "nodes", "pods", "events", "namespaces")
	cases := map[string]struct {
		rules  []string
		denied []string // words of the error
		blanks []string
	}{
		"everything":    {[]string{daemonSets, revisions, rest}, nil, nil},
		"no-nodes":      {[]string{daemonSets, revisions, rule("", "pods", "events", "namespaces")}, []string{"listing nodes", "may not list nodes", "kubectl auth can-i list nodes --kubeconfig "}, nil},
		"no-pods":       {[]string{daemonSets, revisions, rule("", "nodes", "events", "namespaces")}, []string{`listing pods in namespace "logging"`, "kubectl auth can-i list pods -n logging --kubeconfig "}, nil},
		"no-daemonsets": {[]string{revisions, rest}, []string{"listing daemonsets", "kubectl auth can-i list daemonsets.apps --kubeconfig "}, nil},
		"no-events":     {[]string{daemonSets, revisions, rule("", "nodes", "pods", "namespaces")}, nil, []string{"events"}},
		"no-revisions":  {[]string{daemonSets, rest}, nil, []string{"controllerrevisions"}},
		"no-namespaces": {[]string{daemonSets, revisions, rule("", "nodes", "pods", "events")}, nil, []string{"namespaces"}},
		"least":         {[]string{daemonSets, rule("", "nodes", "pods")}, nil, []string{"controllerrevisions", "events", "namespaces"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path := cp.User(t, name)
			cp.Apply(t, grant(name, strings.Join(tc.rules, ",")))
			live, err := observeGranted(t, path)
			if tc.denied != nil {
				wantFault(t, err, clusters.Denied, append(tc.denied, fmt.Sprintf("User %q", name))...)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var blanks []string
			for _, b := range live.Blanks {
				blanks = append(blanks, b.Resource)
				if !strings.HasPrefix(b.Reason, fmt.Sprintf("forbidden: User %q cannot ", name)) {
					t.Errorf("got reason %q of blank %q", b.Reason, b.Resource)
				}
			}
			if diff := cmp.Diff(tc.blanks, blanks); diff != "" {
				t.Errorf("blanks (-want +got):\n%s", diff)
			}
			if len(live.DaemonSets) != 2 || len(live.Pods) != 1 || (live.Identity == "") != (len(blanks) > 0 && blanks[len(blanks)-1] == "namespaces") {
				t.Errorf("got %d DaemonSets, %d pods, identity %q", len(live.DaemonSets), len(live.Pods), live.Identity)
			}
		})
	}
}

// observeGranted waits until the API server's authorizer has seen the grant,
// which it learns by a watch: until then nothing at all is allowed.
func observeGranted(t *testing.T, path string) (clusters.Live, error) {
	o := &kube.Observer{}
	for range 50 {
		a, err := o.Check(t.Context(), cluster(path))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range a.Permissions {
			if p.Allowed {
				return o.Observe(t.Context(), cluster(path), clusters.Want{})
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the grant does not arrive")
	return clusters.Live{}, nil
}

func testCheck(t *testing.T, cp *kubetest.ControlPlane) {
	path := cp.User(t, "checked", "auditors")
	cp.Apply(t, grant("checked", rule("apps", "daemonsets")+","+rule("", "nodes")))
	if _, err := observeGranted(t, path); err == nil {
		t.Error("got no error without the right to list pods")
	}
	got, err := new(kube.Observer).Check(t.Context(), cluster(path))
	if err != nil {
		t.Fatal(err)
	}
	flags := " --kubeconfig " + path
	can := func(what string) string { return "kubectl auth can-i " + what + flags }
	want := kube.Access{
		Server: cp.Address(), Version: "v1.37.2", User: "checked", Groups: []string{"auditors", "system:authenticated"},
		Route: kube.Route{Login: "client certificate"},
		Permissions: []kube.Permission{
			{For: "coverage", Verb: "list", Resource: "nodes", Required: true, Allowed: true, Remedy: can("list nodes --all-namespaces")},
			{For: "coverage", Verb: "list", Group: "apps", Resource: "daemonsets", Required: true, Allowed: true, Remedy: can("list daemonsets.apps --all-namespaces")},
			{For: "coverage", Verb: "list", Resource: "pods", Required: true, Remedy: can("list pods --all-namespaces")},
			{For: "coverage", Verb: "list", Group: "apps", Resource: "controllerrevisions", Remedy: can("list controllerrevisions.apps --all-namespaces")},
			{For: "coverage", Verb: "get", Resource: "namespaces", Name: "kube-system", Remedy: can("get namespaces/kube-system")},
			{For: "coverage", Verb: "get", Group: "coordination.k8s.io", Resource: "leases", Namespace: "kube-node-lease", Remedy: can("get leases.coordination.k8s.io -n kube-node-lease")},
			{For: "reasons", Verb: "list", Resource: "events", Remedy: can("list events --all-namespaces")},
			{For: "forecast", Verb: "list", Resource: "resourcequotas", Remedy: can("list resourcequotas --all-namespaces")},
			{For: "forecast", Verb: "list", Group: "scheduling.k8s.io", Resource: "priorityclasses", Remedy: can("list priorityclasses.scheduling.k8s.io --all-namespaces")},
		},
	}
	at := slices.IndexFunc(want.Permissions, func(p kube.Permission) bool { return p.For == "forecast" })
	for _, r := range []string{
		"configmaps", "namespaces", "serviceaccounts", "services", "clusterrolebindings.rbac.authorization.k8s.io", "clusterroles.rbac.authorization.k8s.io",
		"rolebindings.rbac.authorization.k8s.io", "roles.rbac.authorization.k8s.io", "networkpolicies.networking.k8s.io", "poddisruptionbudgets.policy", "priorityclasses.scheduling.k8s.io",
	} {
		name, group, _ := strings.Cut(r, ".")
		want.Permissions = slices.Insert(want.Permissions, at, kube.Permission{For: "drift", Verb: "get", Group: group, Resource: name, Remedy: can("get " + r + " --all-namespaces")})
		at++
	}
	if got.Expires == nil || got.Expires.Before(time.Now()) {
		t.Errorf("the certificate ends at %v", got.Expires)
	}
	lists := got
	lists.Expires = nil
	lists.Permissions = slices.DeleteFunc(slices.Clone(got.Permissions), func(p kube.Permission) bool { return p.Verb == "watch" })
	if diff := cmp.Diff(want, lists, cmpopts.IgnoreFields(kube.Permission{}, "Reason")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got.Complete() {
		t.Error("complete without pods")
	}
	admin, err := new(kube.Observer).Check(t.Context(), cluster(cp.Kubeconfig()))
	if err != nil || !admin.Complete() || len(admin.Identity) != 36 || !admin.Everything || len(admin.Powers) != 4 {
		t.Errorf("got %+v, %v, want all for the administrator", admin, err)
	}
}

// admin is the administrator's kubeconfig in parts.
func admin(t *testing.T, cp *kubetest.ControlPlane) (server string, ca []byte, token string) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(cp.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	return "https://" + cp.Address(), config.Clusters["kubetest"].CertificateAuthorityData, config.AuthInfos["admin"].Token
}

func testPlugin(t *testing.T, cp *kubetest.ControlPlane) {
	server, ca, token := admin(t, cp)
	works := script(t, fmt.Sprintf(`echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":%q}}'`, token))
	trusted := func(c *api.Cluster, _ *api.AuthInfo) { c.CertificateAuthorityData = ca }
	if live := observe(t, kubeconfig(t, server, trusted, plugin(works)), clusters.Want{}); len(live.DaemonSets) != 2 {
		t.Errorf("got %d DaemonSets, want 2", len(live.DaemonSets))
	}
	tokenFile := t.TempDir() + "/token"
	if err := os.WriteFile(tokenFile, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	fromFile := kubeconfig(t, server, trusted, func(_ *api.Cluster, u *api.AuthInfo) { u.TokenFile = tokenFile })
	if live := observe(t, fromFile, clusters.Want{}); len(live.DaemonSets) != 2 {
		t.Errorf("got %d DaemonSets by a token file, want 2", len(live.DaemonSets))
	}
}

func testUnauthorized(t *testing.T, cp *kubetest.ControlPlane) {
	server, ca, _ := admin(t, cp)
	path := kubeconfig(t, server, func(c *api.Cluster, u *api.AuthInfo) { c.CertificateAuthorityData, u.Token = ca, "stale-token" })
	_, err := new(kube.Observer).Observe(t.Context(), cluster(path), clusters.Want{})
	wantFault(t, err, clusters.Denied, "does not accept the credentials", "kubectl auth whoami --kubeconfig "+path)
	if strings.Contains(err.Error(), "stale-token") {
		t.Errorf("the token is in %q", err)
	}
}

func testPaused(t *testing.T, cp *kubetest.ControlPlane) {
	cp.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	start := time.Now()
	_, err := new(kube.Observer).Observe(ctx, cluster(cp.Kubeconfig()), clusters.Want{})
	if took := time.Since(start); took > 4*time.Second {
		t.Errorf("took %v", took)
	}
	wantFault(t, err, clusters.Unreachable, "did not begin TLS within 2s")
	cp.Resume()
	observe(t, cp.Kubeconfig(), clusters.Want{})
}

// One of three clusters is switched off: it alone is Unreachable.
func TestOneOfThreeStops(t *testing.T) {
	var cps [3]*kubetest.ControlPlane
	for i := range cps {
		cps[i] = kubetest.Start(t, kubetest.Options{})
		cps[i].Apply(t, daemonSet("default", fmt.Sprintf("agent-%d", i), "")+pod("default", "p")+fmt.Sprintf("apiVersion: v1\nkind: Node\nmetadata: {name: node-%d}\n", i))
	}
	o := &kube.Observer{}
	all := func() (lives [3]clusters.Live, errs [3]error) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		var wg sync.WaitGroup
		for i, cp := range cps {
			wg.Go(func() { lives[i], errs[i] = o.Observe(ctx, cluster(cp.Kubeconfig()), clusters.Want{}) })
		}
		wg.Wait()
		return lives, errs
	}
	identities := map[string]bool{}
	before, errs := all()
	for i, l := range before {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		identities[l.Identity] = true
	}
	if len(identities) != 3 {
		t.Errorf("got identities %v, want three", identities)
	}
	cps[1].Stop()
	after, errs := all()
	wantFault(t, errs[1], clusters.Unreachable, "contacting the API server", "refuses connections", cps[1].Address())
	if diff := cmp.Diff(clusters.Live{}, after[1]); diff != "" {
		t.Errorf("the stopped cluster (-want +got):\n%s", diff)
	}
	for _, i := range []int{0, 2} {
		if errs[i] != nil {
			t.Errorf("cluster %d: %v", i, errs[i])
		}
		if diff := cmp.Diff(before[i], after[i], cmpopts.IgnoreFields(clusters.Live{}, "ObservedAt")); diff != "" || len(after[i].Nodes) != 1 || len(after[i].Pods) != 1 {
			t.Errorf("cluster %d changed (-before +after):\n%s", i, diff)
		}
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
}

// Kubernetes' own controllers and kwok's kubelets: a node is tainted and one
// is deleted under a DaemonSet that has a second revision.
func TestNativeControllers(t *testing.T) {
	cp := kubetest.Start(t, kubetest.Options{Controllers: true, Scheduler: true, Nodes: 3})
	cp.Apply(t, daemonSet("default", "agent", ""))
	cp.WaitDaemonSetReady(t, "default", "agent", 3)
	cp.Apply(t, daemonSet("default", "agent", ", tolerations: [{key: t, operator: Exists}]"))
	cp.WaitDaemonSetReady(t, "default", "agent", 3)
	waitUpdated(t, cp)
	cp.Apply(t, "apiVersion: v1\nkind: Node\nmetadata: {name: node-1, labels: {pool: gpu}}\nspec: {taints: [{key: gpu, value: \"yes\", effect: NoSchedule}]}\n")
	cp.Delete(t, "apiVersion: v1\nkind: Node\nmetadata: {name: node-2}\n")

	live := observe(t, cp.Kubeconfig(), clusters.Want{})
	if len(live.DaemonSets) != 1 || live.Blanks != nil {
		t.Fatalf("got %d DaemonSets, blanks %v", len(live.DaemonSets), live.Blanks)
	}
	owner := clusters.Owner{Kind: "DaemonSet", Name: "agent", UID: string(live.DaemonSets[0].UID)}
	checkNodes(t, live.Nodes)
	checkRevisions(t, live.Revisions, owner)
	checkPods(t, live, owner)
	checkEvents(t, live.Events, owner)
}

func waitUpdated(t *testing.T, cp *kubetest.ControlPlane) {
	t.Helper()
	for range 300 {
		live := observe(t, cp.Kubeconfig(), clusters.Want{})
		if s := live.DaemonSets[0].Status; s.UpdatedNumberScheduled == 3 && s.NumberAvailable == 3 && len(live.Pods) == 3 {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
	t.Fatal("the second revision is not rolled out")
}

func checkNodes(t *testing.T, nodes []clusters.Node) {
	t.Helper()
	taints := map[string][]corev1.Taint{}
	for _, n := range nodes {
		taints[n.Name] = n.Taints
		ready := corev1.NodeCondition{}
		for _, c := range n.Conditions {
			if c.Type == corev1.NodeReady {
				ready = c
			}
		}
		if ready.Status != corev1.ConditionTrue || ready.LastHeartbeatTime.IsZero() || ready.LastTransitionTime.IsZero() || n.Created.IsZero() {
			t.Errorf("got node %q with Ready %+v", n.Name, ready)
		}
	}
	want := map[string][]corev1.Taint{"node-0": nil, "node-1": {{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}}}
	if diff := cmp.Diff(want, taints); diff != "" {
		t.Errorf("nodes and taints (-want +got):\n%s", diff)
	}
	for i := range nodes {
		if n := &nodes[i]; n.Name == "node-1" {
			tainter, tainted := n.TaintWriter()
			labeller, labelled := n.LabelWriter("pool")
			if !tainted || !labelled || tainter.Manager != "kubetest" || labeller.Manager != "kubetest" || time.Since(tainter.NotAfter) > 5*time.Minute {
				t.Errorf("got taints by %+v and label by %+v, want kubetest", tainter, labeller)
			}
		}
	}
}

func checkRevisions(t *testing.T, revisions []clusters.Revision, owner clusters.Owner) {
	t.Helper()
	want := map[int64]clusters.Revision{
		1: {Namespace: "default", Owner: owner, Number: 1},
		2: {Namespace: "default", Owner: owner, Number: 2, Placement: clusters.Placement{Tolerations: []corev1.Toleration{{Key: "t", Operator: corev1.TolerationOpExists}}}},
	}
	got := map[int64]clusters.Revision{}
	for _, r := range revisions {
		if r.Hash == "" || r.Name != "agent-"+r.Hash || r.Created.IsZero() {
			t.Errorf("got revision %+v", r)
		}
		got[r.Number] = r
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(clusters.Revision{}, "Name", "Hash", "Created")); diff != "" {
		t.Errorf("revisions (-want +got):\n%s", diff)
	}
}

// checkPods wants one ready pod of the second revision on each node, the
// deleted one included: its pod is bound to a node that is no more.
func checkPods(t *testing.T, live clusters.Live, owner clusters.Owner) {
	t.Helper()
	hash := ""
	for _, r := range live.Revisions {
		if r.Number == 2 {
			hash = r.Hash
		}
	}
	got := map[string]clusters.Pod{}
	for _, p := range live.Pods {
		got[p.Node] = p
		if p.UID == "" || p.Created.IsZero() || p.ReadySince.IsZero() {
			t.Errorf("got pod %+v", p)
		}
	}
	want := map[string]clusters.Pod{}
	for _, node := range []string{"node-0", "node-1", "node-2"} {
		want[node] = clusters.Pod{
			Namespace: "default", Labels: map[string]string{"app": "agent", "controller-revision-hash": hash, "pod-template-generation": "2"},
			Owner: owner, Node: node, Bound: true, Phase: corev1.PodRunning, Ready: true,
			Containers: []clusters.Container{{Name: "c", Image: "registry.example/agent:1", Ready: true}},
		}
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(clusters.Pod{}, "Name", "UID", "Created", "ReadySince", "Deleting")); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
}

func checkEvents(t *testing.T, events []clusters.Event, owner clusters.Owner) {
	t.Helper()
	reasons := map[string]int{}
	for _, e := range events {
		reasons[e.Kind+" "+e.Reason]++
		if e.Namespace != "default" || e.Last.IsZero() || e.First.IsZero() || e.Count < 1 || e.Kind == "DaemonSet" && e.UID != owner.UID {
			t.Errorf("got event %+v", e)
		}
	}
	if reasons["DaemonSet SuccessfulCreate"] < 6 || reasons["DaemonSet SuccessfulDelete"] < 3 || reasons["Pod Scheduled"] < 6 {
		t.Errorf("got events %v, want 6 pods created and scheduled and 3 deleted", reasons)
	}
}
