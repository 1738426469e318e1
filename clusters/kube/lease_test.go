package kube_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/clusters/kube"
	"rollcall.dev/rollcall/clusters/kubetest"
)

const leasesPath = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/"

// beating is a node whose Ready condition has a status and was told some time
// ago; of no time when that is negative.
func beating(name, ready string, ago time.Duration) string {
	heartbeat := "null"
	if ago >= 0 {
		heartbeat = fmt.Sprintf("%q", time.Now().Add(-ago).UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","metadata":{"name":%q},"status":{"conditions":[{"type":"DiskPressure","status":"True","lastHeartbeatTime":"2026-01-01T00:00:00Z"},{"type":"Ready","status":%q,"lastHeartbeatTime":%s}]}}`, name, ready, heartbeat)
}

// leasing answers for nodes and their leases, and notes which were asked for.
type leasing struct {
	nodes  []string
	answer func(w http.ResponseWriter, node string)

	mu    sync.Mutex
	asked []string
}

func (l *leasing) serve(w http.ResponseWriter, r *http.Request) bool {
	if strings.HasSuffix(r.URL.Path, "/nodes") {
		send(w, 200, list("NodeList", "v1", `"resourceVersion":"1"`, l.nodes...))
		return true
	}
	if !strings.Contains(r.URL.Path, "coordination.k8s.io") && !strings.Contains(r.URL.Path, "leases") {
		return false
	}
	l.mu.Lock()
	l.asked = append(l.asked, r.Method+" "+r.URL.Path)
	l.mu.Unlock()
	l.answer(w, r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:])
	return true
}

// start returns a kubeconfig for a server that answers so.
func (l *leasing) start(t *testing.T) string {
	s := fake(t, l.serve)
	s.Start()
	return kubeconfig(t, s.URL)
}

func renewed(w http.ResponseWriter, node string) {
	send(w, 200, fmt.Sprintf(`{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":%q},"spec":{"renewTime":"2026-06-06T08:06:06.123456+02:00"}}`, node))
}

func refused(w http.ResponseWriter, node string) {
	send(w, 403, fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"leases.coordination.k8s.io \"%s\" is forbidden: User \"x\" cannot get"}`, node))
}

func TestLeases(t *testing.T) {
	at := time.Date(2026, 6, 6, 6, 6, 6, 123456000, time.UTC)
	late := beating("late", "True", 16*time.Minute)
	cases := map[string]struct {
		reason string
		nodes  []string
		answer func(http.ResponseWriter, string)
		asked  []string
		leases map[string]time.Time // that are not zero
		blanks []clusters.Blank
	}{
		"Healthy": {"a cluster that is well costs no request", []string{beating("a", "True", 0), beating("b", "True", 14*time.Minute), beating("c", "True", -1), `{"metadata":{"name":"d"}}`}, renewed, nil, map[string]time.Time{}, nil},
		"NotReady": {"what is told to be down is no matter of leases", []string{beating("a", "False", time.Hour), beating("b", "Unknown", time.Hour)},
			renewed, nil, map[string]time.Time{}, nil},
		"Late": {"one request for the node that is silent", []string{beating("a", "True", 0), late}, renewed, []string{"GET " + leasesPath + "late"}, map[string]time.Time{"late": at}, nil},
		"NotThere": {"a node need not have one", []string{late}, func(w http.ResponseWriter, _ string) { send(w, 404, status(404, "NotFound")) },
			[]string{"GET " + leasesPath + "late"}, map[string]time.Time{}, nil},
		"Forbidden": {"it is optional", []string{late}, refused, []string{"GET " + leasesPath + "late"}, map[string]time.Time{}, []clusters.Blank{{Resource: "leases", Reason: `forbidden: User "x" cannot get`}}},
		"NoTime": {"a lease that was never renewed", []string{late}, func(w http.ResponseWriter, node string) {
			send(w, 200, `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"late"},"spec":{}}`)
		}, []string{"GET " + leasesPath + "late"}, map[string]time.Time{}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := &leasing{nodes: tc.nodes, answer: tc.answer}
			live := observe(t, l.start(t), clusters.Want{})
			leases := map[string]time.Time{}
			for _, n := range live.Nodes {
				if !n.Lease.IsZero() {
					leases[n.Name] = n.Lease
				}
			}
			if diff := cmp.Diff(tc.leases, leases); diff != "" || len(live.Nodes) != len(tc.nodes) {
				t.Errorf("%s: leases of %d nodes (-want +got):\n%s", tc.reason, len(live.Nodes), diff)
			}
			if diff := cmp.Diff(tc.asked, l.asked); diff != "" {
				t.Errorf("%s: requests (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.blanks, live.Blanks); diff != "" {
				t.Errorf("%s: blanks (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// All nodes are silent at once: a fixed number of requests, and few where the
// answer is no.
func TestLeasesOfMany(t *testing.T) {
	var nodes []string
	for i := range 230 {
		nodes = append(nodes, beating(fmt.Sprintf("n-%d", i), "True", time.Hour))
	}
	all := &leasing{nodes: nodes, answer: renewed}
	live := observe(t, all.start(t), clusters.Want{})
	read := 0
	for _, n := range live.Nodes {
		if !n.Lease.IsZero() {
			read++
		}
	}
	if len(all.asked) != 200 || read != 200 || len(live.Nodes) != 230 {
		t.Errorf("got %d requests and %d leases of %d nodes, want 200 of 230", len(all.asked), read, len(live.Nodes))
	}
	none := &leasing{nodes: nodes, answer: refused}
	live = observe(t, none.start(t), clusters.Want{})
	if diff := cmp.Diff([]clusters.Blank{{Resource: "leases", Reason: `forbidden: User "x" cannot get`}}, live.Blanks); diff != "" {
		t.Errorf("blanks (-want +got):\n%s", diff)
	}
	if len(none.asked) > 20 {
		t.Errorf("got %d requests that were all refused", len(none.asked))
	}
}

// Whatever else goes wrong fails the observation, as with every other resource.
func TestLeasesFail(t *testing.T) {
	l := &leasing{nodes: []string{beating("late", "True", time.Hour)}}
	path := l.start(t)
	for words, answer := range map[string]func(http.ResponseWriter, string){
		"no":                        func(w http.ResponseWriter, _ string) { send(w, 500, status(500, "InternalError")) },
		"a Node instead of a Lease": func(w http.ResponseWriter, _ string) { send(w, 200, `{"kind":"Node","apiVersion":"v1"}`) },
	} {
		l.answer = answer
		_, err := new(kube.Observer).Observe(t.Context(), cluster(path), clusters.Want{})
		wantFault(t, err, clusters.Failed, `reading leases "late"`, words)
	}
}

// testLeases asks a real API server, as an administrator and as somebody who
// may read all but leases.
func testLeases(t *testing.T, cp *kubetest.ControlPlane) {
	node := func(name string, ago time.Duration) string {
		return fmt.Sprintf("apiVersion: v1\nkind: Node\nmetadata: {name: %s}\nstatus: {conditions: [{type: Ready, status: \"True\", lastHeartbeatTime: %q}]}\n---\n", name, time.Now().Add(-ago).UTC().Format(time.RFC3339))
	}
	renewed := time.Now().UTC().Truncate(time.Microsecond)
	nodes := node("beating", 0) + node("silent", time.Hour) + node("without", time.Hour)
	cp.Apply(t, nodes)
	defer cp.Delete(t, nodes) // t.Context is over in a Cleanup
	for _, name := range []string{"beating", "silent"} {
		cp.Apply(t, fmt.Sprintf("apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: %s, namespace: kube-node-lease}\nspec: {holderIdentity: %s, renewTime: %q}\n", name, name, renewed.Format("2006-01-02T15:04:05.000000Z07:00")))
	}
	leases := func(live clusters.Live) map[string]time.Time {
		out := map[string]time.Time{}
		for _, n := range live.Nodes {
			out[n.Name] = n.Lease
		}
		return out
	}
	live := observe(t, cp.Kubeconfig(), clusters.Want{})
	if diff := cmp.Diff(map[string]time.Time{"beating": {}, "silent": renewed, "without": {}}, leases(live)); diff != "" || live.Blanks != nil {
		t.Errorf("blanks %v, leases (-want +got):\n%s", live.Blanks, diff)
	}
	path := cp.User(t, "no-leases")
	cp.Apply(t, grant("no-leases", rule("apps", "daemonsets", "controllerrevisions")+","+rule("", "nodes", "pods", "events", "namespaces")))
	live, err := observeGranted(t, path)
	if err != nil {
		t.Fatal(err)
	}
	want := []clusters.Blank{{Resource: "leases", Reason: `forbidden: User "no-leases" cannot get resource "leases" in API group "coordination.k8s.io" in the namespace "kube-node-lease"`}}
	if diff := cmp.Diff(want, live.Blanks); diff != "" || !leases(live)["silent"].IsZero() {
		t.Errorf("leases %v, blanks (-want +got):\n%s", leases(live), diff)
	}
}
