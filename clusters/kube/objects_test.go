package kube_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/clusters/kube"
	"rollcall.dev/rollcall/clusters/kubetest"
)

const widgetCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
---
`

func configMap(namespace, name, value string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: ConfigMap
metadata: {name: %s, namespace: %s, annotations: {kubectl.kubernetes.io/last-applied-configuration: "CANARY", keep: "short"}}
data: {key: %q}
---
`, name, namespace, value)
}

const companions = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: agent}
rules: [{apiGroups: [""], resources: [nodes], verbs: [get]}]
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: agents}
value: 1000
---
apiVersion: example.com/v1
kind: Widget
metadata: {name: w, namespace: default}
spec: {token: CANARY}
---
`

func ref(apiVersion, kind, namespace, name string) clusters.Reference {
	return clusters.Reference{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name}
}

var wanted = []clusters.Reference{
	ref("v1", "ConfigMap", "default", "settings"),
	ref("v1", "ConfigMap", "default", "missing"),
	ref("rbac.authorization.k8s.io/v1", "ClusterRole", "", "agent"),
	ref("scheduling.k8s.io/v1", "PriorityClass", "", "agents"),
	ref("example.com/v1", "Widget", "default", "w"),
	ref("example.com/v1", "Gadget", "default", "g"),
	ref("example.com/v2", "Widget", "default", "other-version"),
	ref("nowhere.example.com/v1", "Thing", "default", "t"),
	ref("v1", "Secret", "default", "token"),
	ref("apps/v1", "DaemonSet", "default", "agent"),
	ref("v1", "ConfigMap", "default", "../../../secrets"),
	ref("v1", "ConfigMap", "", "nowhere"),
}

// What travels with DaemonSets, of a real API server.
func TestRealObjects(t *testing.T) {
	cp := kubetest.Start(t, kubetest.Options{})
	cp.Apply(t, widgetCRD+configMap("default", "settings", "v")+companions+daemonSet("default", "agent", "")+
		secretManifest("default", "token", "Opaque", nil, map[string]string{"t": "CANARY"}))
	t.Run("Read", func(t *testing.T) { testObjects(t, cp) })
	t.Run("Forbidden", func(t *testing.T) { testObjectsForbidden(t, cp) })
	t.Run("OneServerIsDown", func(t *testing.T) { testObjectsDown(t, cp) })
	t.Run("Confirm", func(t *testing.T) { testConfirm(t, cp) })
	t.Run("ConfirmForbidden", func(t *testing.T) { testConfirmForbidden(t, cp) })
}

func namesOf(all []unstructured.Unstructured) []string {
	var out []string
	for i := range all {
		out = append(out, clusters.ReferenceOf(&all[i]).String())
	}
	return out
}

// Each object is one GET, a kind that is not Kubernetes' own is looked up once,
// and no request is about a Secret.
func testObjects(t *testing.T, cp *kubetest.ControlPlane) {
	p := through(t, cp.Kubeconfig())
	before := observe(t, p.path, clusters.Want{})
	plain := len(p.requests(every))
	live := observe(t, p.path, clusters.Want{Objects: slices.Concat(wanted, wanted[:2])})
	if diff := cmp.Diff([]string{"ConfigMap default/settings", "Widget default/w", "ClusterRole agent", "PriorityClass agents"}, namesOf(live.Objects)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	var unread []string
	for id, why := range live.Unread {
		unread = append(unread, id+": "+why)
	}
	slices.Sort(unread)
	for i, words := range [][]string{
		{"/ConfigMap//nowhere", "has no namespace"},
		{"/ConfigMap/default/../../../secrets", "may not contain '/'"},
		{"/Secret/default/token", "Secrets are not read"},
		{"example.com/Widget/default/other-version", "does not serve kind Widget of example.com/v2"},
	} {
		if i >= len(unread) || !strings.HasPrefix(unread[i], words[0]) || !strings.Contains(unread[i], words[1]) {
			t.Errorf("got unread %q, want %q there", unread, words)
		}
	}
	if len(unread) != 4 || before.Unread != nil || before.Objects != nil {
		t.Errorf("got unread %q", unread)
	}
	for _, o := range live.Objects {
		text := fmt.Sprint(o.Object)
		if strings.Contains(text, "CANARY") {
			t.Errorf("%s holds what it should not: %s", o.GetName(), text)
		}
		if len(o.GetManagedFields()) == 0 || o.GetUID() == "" || o.GetAPIVersion() == "meta.k8s.io/v1" {
			t.Errorf("got %s", text)
		}
	}
	if o := live.Objects[0]; o.Object["data"].(map[string]any)["key"] != "v" || o.GetAnnotations()["keep"] != "short" {
		t.Errorf("got %v", o.Object)
	}
	more := p.requests(every)[plain:]
	if len(more) != 10 { // five objects, the kinds of three versions, and the versions of the two groups that have not those
		t.Errorf("got %d more requests: %s", len(more), strings.Join(more, "\n"))
	}
	for _, r := range more {
		if strings.Contains(r, "secrets") || writes(r) {
			t.Errorf("a request too many: %s", r)
		}
	}
}

func testObjectsForbidden(t *testing.T, cp *kubetest.ControlPlane) {
	path := cp.User(t, "half")
	cp.Apply(t, grant("half", strings.Join([]string{rule("apps", "daemonsets", "controllerrevisions"), rule("", "nodes", "pods", "events", "namespaces"), rule("scheduling.k8s.io", "priorityclasses")}, ",")))
	if _, err := observeGranted(t, path); err != nil {
		t.Fatal(err)
	}
	live := observe(t, path, clusters.Want{Objects: wanted[:5]})
	if diff := cmp.Diff([]string{"PriorityClass agents"}, namesOf(live.Objects)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(live.Unread) != 4 || live.Blanks != nil {
		t.Errorf("got %v, %v", live.Unread, live.Blanks)
	}
	for _, id := range []string{"/ConfigMap/default/settings", "/ConfigMap/default/missing", "example.com/Widget/default/w", "rbac.authorization.k8s.io/ClusterRole//agent"} {
		if why := live.Unread[id]; !strings.HasPrefix(why, "forbidden: ") || !strings.Contains(why, `User "half" cannot get`) {
			t.Errorf("%s: got %q", id, why)
		}
	}
}

// A kind whose own server does not answer costs no more than its objects.
func testObjectsDown(t *testing.T, cp *kubetest.ControlPlane) {
	p := through(t, cp.Kubeconfig())
	p.breaks(func(_ int, r *http.Request) fault {
		if strings.Contains(r.URL.Path, "/widgets/") {
			return busy
		}
		return none
	})
	live := observe(t, p.path, clusters.Want{Objects: wanted[:5]})
	if why := live.Unread["example.com/Widget/default/w"]; len(live.Unread) != 1 || why == "" || len(live.Objects) != 3 || len(live.DaemonSets) != 1 {
		t.Errorf("got %v, %v", live.Unread, namesOf(live.Objects))
	}
}

func objectOf(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	return &objectsOf(t, text)[0]
}

func testConfirm(t *testing.T, cp *kubetest.ControlPlane) {
	p := through(t, cp.Kubeconfig())
	confirmed, err := new(kube.Observer).Confirm(t.Context(), p.cluster(), pointers(objectsOf(t, configMap("default", "settings", "other")+
		configMap("default", "new", "v")+
		daemonSet("default", "agent", ", hostNetwork: true")+
		strings.Replace(daemonSet("default", "agent", ""), "matchLabels: {app: agent}", "matchLabels: {app: other}", 1)+
		configMap("nowhere", "new", "v")+
		"apiVersion: nowhere.example.com/v1\nkind: Thing\nmetadata: {name: t, namespace: default}\n---\n"+
		"apiVersion: v1\nkind: Secret\nmetadata: {name: token, namespace: default}\nstringData: {t: CANARY}\n---\n")))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct{ refused, unconfirmed, path string }{
		{path: "other data key"},
		{path: "v data key"},
		{path: "RollingUpdate spec updateStrategy type"},
		{refused: "Invalid: "},
		{unconfirmed: `NotFound: namespaces "nowhere" not found`},
		{unconfirmed: "NotServed: "},
		{unconfirmed: "Secrets are not sent"},
	} {
		c := confirmed[i]
		if !strings.HasPrefix(c.Refused, want.refused) || !strings.HasPrefix(c.Unconfirmed, want.unconfirmed) || (c.Refused == "") != (want.refused == "") || (c.Unconfirmed == "") != (want.unconfirmed == "") {
			t.Errorf("%s: got refused %q, unconfirmed %q, want %+v", c.Object, c.Refused, c.Unconfirmed, want)
		}
		if (c.After != nil) != (want.path != "") {
			t.Errorf("%s: got %v", c.Object, c.After)
		}
		if c.After != nil {
			words := strings.Fields(want.path)
			if got, _, _ := unstructured.NestedString(c.After.Object, words[1:]...); got != words[0] {
				t.Errorf("%s: got %q of %q", c.Object, got, want.path)
			}
		}
	}
	for _, r := range p.requests(writes) {
		if strings.Contains(r, "secrets") || !strings.Contains(r, "dryRun=All") {
			t.Errorf("a request that changes or shows: %s", r)
		}
	}
	live := observe(t, cp.Kubeconfig(), clusters.Want{Objects: []clusters.Reference{wanted[0], ref("v1", "ConfigMap", "default", "new")}})
	if len(live.Objects) != 1 || live.Objects[0].Object["data"].(map[string]any)["key"] != "v" {
		t.Errorf("something was kept: %v", live.Objects)
	}
}

// Who may not ask learns that it could not be asked, and not that it is refused.
func testConfirmForbidden(t *testing.T, cp *kubetest.ControlPlane) {
	confirmed, err := new(kube.Observer).Confirm(t.Context(), cluster(cp.User(t, "nobody")), []*unstructured.Unstructured{objectOf(t, configMap("default", "settings", "other"))})
	if err != nil {
		t.Fatal(err)
	}
	if c := confirmed[0]; c.Refused != "" || c.After != nil || !strings.Contains(c.Unconfirmed, "may not patch configmaps") {
		t.Errorf("got %+v", c)
	}
}
