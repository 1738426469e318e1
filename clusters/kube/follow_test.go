package kube_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/clusters/kube"
	"rollcall.dev/rollcall/clusters/kubetest"
)

// following is a Follow that runs beside a test.
type following struct {
	mu    sync.Mutex
	last  clusters.Live
	calls int
	err   error
	ended chan struct{}
	stop  context.CancelFunc
}

func follow(t *testing.T, o *kube.Observer, path string, w clusters.Want) *following {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	f := &following{ended: make(chan struct{}), stop: stop}
	var inside atomic.Bool
	go func() {
		defer close(f.ended)
		f.err = o.Follow(ctx, cluster(path), w, func(l clusters.Live) error {
			if inside.Swap(true) {
				t.Error("called while it is called")
			}
			defer inside.Store(false)
			f.mu.Lock()
			defer f.mu.Unlock()
			f.last, f.calls = l, f.calls+1
			return nil
		})
	}()
	t.Cleanup(func() { stop(); <-f.ended })
	return f
}

func (f *following) seen() (clusters.Live, int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last, f.calls
}

// until waits for a Live that is as it should be.
func (f *following) until(t *testing.T, what string, is func(clusters.Live) bool) clusters.Live {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if l, n := f.seen(); n > 0 && is(l) {
			return l
		}
		select {
		case <-f.ended:
			t.Fatalf("it ended before %s: %v", what, f.err)
		default:
		}
	}
	l, n := f.seen()
	t.Fatalf("not %s after %d calls: %d nodes, %d DaemonSets, %d pods, %d revisions, blanks %v", what, n, len(l.Nodes), len(l.DaemonSets), len(l.Pods), len(l.Revisions), l.Blanks)
	return l
}

func readyPods(l clusters.Live, name string) (n int) {
	for _, p := range l.Pods {
		if p.Owner.Name == name && p.Ready {
			n++
		}
	}
	return n
}

// A real cluster with its controllers, from joining nodes to the API server's
// end.
func TestFollow(t *testing.T) {
	cp := kubetest.Start(t, kubetest.Options{Controllers: true, Scheduler: true, Nodes: 3})
	cp.Apply(t, daemonSet("default", "agent", ""))
	cp.WaitDaemonSetReady(t, "default", "agent", 3)
	o := &kube.Observer{Beat: 2 * time.Second, Patience: 4 * time.Second, Timeout: 3 * time.Second}
	f := follow(t, o, cp.Kubeconfig(), clusters.Want{})
	first := f.until(t, "complete", func(l clusters.Live) bool { return readyPods(l, "agent") == 3 && len(l.Nodes) == 3 })
	if first.Identity == "" || first.Version != "v1.37.2" || len(first.Revisions) != 1 || len(first.Events) == 0 || len(first.Blanks) > 0 {
		t.Errorf("got identity %q, version %s, %d revisions, %d events, blanks %v", first.Identity, first.Version, len(first.Revisions), len(first.Events), first.Blanks)
	}

	cp.AddNodes(t, nil, "late")
	f.until(t, "joined", func(l clusters.Live) bool { return len(l.Nodes) == 4 && readyPods(l, "agent") == 4 })
	cp.Apply(t, "apiVersion: v1\nkind: Node\nmetadata: {name: late}\nspec: {taints: [{key: gpu, effect: NoSchedule}]}\n")
	f.until(t, "tainted", func(l clusters.Live) bool {
		for _, n := range l.Nodes {
			if n.Name == "late" && len(n.Taints) == 1 {
				return true
			}
		}
		return false
	})
	cp.Apply(t, namespace("more")+daemonSet("more", "second", ""))
	f.until(t, "another namespace", func(l clusters.Live) bool { return readyPods(l, "second") == 3 && len(l.Revisions) == 2 })
	cp.Apply(t, strings.Replace(daemonSet("default", "agent", ""), "agent:1", "agent:2", 1))
	followed := f.until(t, "rolled", func(l clusters.Live) bool { // the pod of the tainted node does not come back
		return len(l.Revisions) == 3 && readyPods(l, "agent") == 3 && len(l.Pods) == 6
	})
	if readyPods(followed, "second") != 3 {
		t.Errorf("got %d pods of the other namespace", readyPods(followed, "second"))
	}
	t.Run("AsObserved", func(t *testing.T) { asObserved(t, cp, f) })
	cp.Delete(t, "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: second, namespace: more}\n")
	f.until(t, "gone", func(l clusters.Live) bool {
		return len(l.DaemonSets) == 1 && readyPods(l, "second") == 0 && len(l.Revisions) == 2
	})

	t.Run("Silent", func(t *testing.T) {
		cp.Pause()
		time.Sleep(2 * o.Beat / 4)
		_, before := f.seen()
		time.Sleep(2 * o.Beat)
		if _, after := f.seen(); after > before+1 {
			t.Errorf("called %d times while the server says nothing", after-before)
		}
		cp.Resume()
	})
	t.Run("Stopped", func(t *testing.T) {
		cp.Stop()
		select {
		case <-f.ended:
			wantFault(t, f.err, clusters.Unreachable, cp.Address())
		case <-time.After(30 * time.Second):
			t.Error("it does not end")
		}
	})
}

// asObserved compares what was followed with what is observed now.
func asObserved(t *testing.T, cp *kubetest.ControlPlane, f *following) {
	options := []cmp.Option{
		cmpopts.IgnoreFields(clusters.Live{}, "ObservedAt", "Events"), cmpopts.IgnoreFields(clusters.Node{}, "Conditions", "Writers"), cmpopts.EquateEmpty(),
		cmpopts.SortSlices(func(a, b clusters.Node) bool { return a.Name < b.Name }), cmpopts.SortSlices(func(a, b clusters.Pod) bool { return a.UID < b.UID }),
		cmpopts.SortSlices(func(a, b clusters.Revision) bool { return a.Namespace+a.Name < b.Namespace+b.Name }),
		cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".DaemonSets" }, cmp.Comparer(func(a, b any) bool { return true })),
	}
	diff := ""
	for range 20 {
		l, _ := f.seen()
		if diff = cmp.Diff(observe(t, cp.Kubeconfig(), clusters.Want{}), l, options...); diff == "" {
			return
		}
		time.Sleep(500 * time.Millisecond)
	}
	t.Errorf("-observed +followed:\n%s", diff)
}

// Who may list and not watch is asked again and again; what may not be listed
// is blank.
func TestFollowWithoutWatch(t *testing.T) {
	cp := kubetest.Start(t, kubetest.Options{})
	cp.Apply(t, daemonSet("default", "agent", ""))
	path := cp.User(t, "lister")
	cp.Apply(t, grant("lister", rule("", "nodes", "pods", "namespaces")+", "+rule("apps", "daemonsets")))
	if _, err := observeGranted(t, path); err != nil {
		t.Fatal(err)
	}
	f := follow(t, &kube.Observer{}, path, clusters.Want{Forecast: true})
	l := f.until(t, "complete", func(l clusters.Live) bool { return len(l.DaemonSets) == 1 && len(l.Blanks) == 3 })
	if l.Blanks[0].Resource != "claims" || l.Blanks[1].Resource != "controllerrevisions" || l.Blanks[2].Resource != "events" {
		t.Errorf("got blanks %v", l.Blanks)
	}
	cp.Apply(t, "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n")
	f.until(t, "polled", func(l clusters.Live) bool { return len(l.Nodes) == 1 })
}

// What is refused before anything was read ends it at once.
func TestFollowDenied(t *testing.T) {
	s := fake(t, daemonSets(func(w http.ResponseWriter, _ *http.Request) { send(w, 403, status(403, "Forbidden")) }))
	s.Start()
	began := time.Now()
	err := new(kube.Observer).Follow(t.Context(), cluster(kubeconfig(t, s.URL)), clusters.Want{}, func(clusters.Live) error { return nil })
	wantFault(t, err, clusters.Denied, "may not list daemonsets")
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
}

// watched answers watches of nodes by turns, and leaves all others open.
func watched(lists *atomic.Int32, turns ...func(http.ResponseWriter)) func(http.ResponseWriter, *http.Request) bool {
	var turn atomic.Int32
	return func(w http.ResponseWriter, r *http.Request) bool {
		nodes := strings.HasSuffix(r.URL.Path, "/nodes")
		if r.URL.Query().Get("watch") == "" {
			if nodes {
				n := lists.Add(1)
				send(w, 200, list("NodeList", "v1", `"resourceVersion":"1"`, fmt.Sprintf(`{"metadata":{"name":"n%d","uid":"n%d"}}`, n, n)))
			}
			return nodes
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(200)
		w.(http.Flusher).Flush()
		if i := int(turn.Add(1)) - 1; nodes && i < len(turns) {
			turns[i](w)
			return true
		} else if !nodes {
			turn.Add(-1)
		}
		<-r.Context().Done()
		return true
	}
}

func event(kind, object string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		_, _ = io.WriteString(w, fmt.Sprintf(`{"type":%q,"object":%s}`+"\n", kind, object))
		w.(http.Flusher).Flush()
		time.Sleep(1200 * time.Millisecond) // a watch that lasts
	}
}

// A watch that is too old is begun anew with a list, also when it is told so in
// the middle; one that tells nonsense, too.
func TestFollowWatchFaults(t *testing.T) {
	cases := map[string]struct {
		reason string
		turn   func(http.ResponseWriter)
	}{
		"Gone":     {"410 as an event", event("ERROR", status(410, "Expired"))},
		"OtherObj": {"an object of another kind", event("ADDED", `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p"}}`)},
		"NoJSON":   {"no JSON", func(w http.ResponseWriter) { _, _ = io.WriteString(w, "nonsense\n") }},
		"AtOnce":   {"it ends at once", func(http.ResponseWriter) {}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var lists atomic.Int32
			s := fake(t, watched(&lists, tc.turn))
			s.Start()
			f := follow(t, &kube.Observer{}, kubeconfig(t, s.URL), clusters.Want{})
			f.until(t, tc.reason, func(l clusters.Live) bool { return len(l.Nodes) == 1 && l.Nodes[0].Name == "n2" })
		})
	}
}

// A heartbeat is no change; it ends with the error of what it calls, and leaves
// nothing behind.
func TestFollowQuietly(t *testing.T) {
	before := runtime.NumGoroutine()
	var lists atomic.Int32
	beat := func(version, at, unschedulable string) func(http.ResponseWriter) {
		return event("MODIFIED", fmt.Sprintf(`{"kind":"Node","apiVersion":"v1","metadata":{"name":"n1","uid":"n1","resourceVersion":%q,"labels":{"a":%q}},"status":{"conditions":[{"type":"Ready","status":"True","lastHeartbeatTime":%q}]}}`, version, unschedulable, at))
	}
	now := time.Now().UTC()
	stamp := func(d time.Duration) string { return now.Add(d).Format(time.RFC3339) }
	s := fake(t, watched(&lists, beat("2", stamp(0), "x"), beat("3", stamp(time.Second), "x"), beat("4", stamp(time.Second), "y")))
	s.Start()
	enough := errors.New("enough")
	var labels []string
	err := (&kube.Observer{Quiet: 10 * time.Millisecond}).Follow(t.Context(), cluster(kubeconfig(t, s.URL)), clusters.Want{}, func(l clusters.Live) error {
		label := ""
		for _, n := range l.Nodes {
			label = n.Labels["a"]
		}
		if labels = append(labels, label); label == "y" {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) {
		t.Fatal(err)
	}
	// Each watch that is opened may call once more; between the second and the
	// third there is the heartbeat, and nothing else.
	if n := strings.Count(strings.Join(labels, ""), "x"); n > 4 {
		t.Errorf("a heartbeat counts as a change: %q", labels)
	}
	s.CloseClientConnections()
	for range 50 {
		if runtime.NumGoroutine() <= before+3 { // the server's own
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("%d goroutines before, %d after", before, runtime.NumGoroutine())
}
