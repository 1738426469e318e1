package kube_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/clusters/kube"
	"rollcall.dev/rollcall/clusters/kubetest"
)

// kills is how often an apply is killed: ROLLCALL_KILLS, else the default.
func kills(t *testing.T, otherwise int) int {
	t.Helper()
	text := os.Getenv("ROLLCALL_KILLS")
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// killed runs a rollout through a proxy until its n-th request, of those of
// Apply, which is the last: it never comes to the server, or nobody hears what
// it did. One below zero is the n-th writing of the inventory. It tells how many requests there were.
func (r rollout) killed(t *testing.T, n int, how fault) (requests int) {
	t.Helper()
	b := r.batch(t, r.observe(t))
	p := through(t, r.cp.Kubeconfig())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p.died = cancel
	written, hit := 0, false
	p.breaks(func(at int, q *http.Request) fault {
		if q.Method != http.MethodGet && strings.Contains(q.URL.Path, "/namespaces/rollcall/configmaps") {
			written++
		}
		if at == n || n < 0 && written == -n {
			hit = true
			return how
		}
		return none
	})
	results, err := new(kube.Observer).Apply(ctx, p.cluster(), b, func() time.Time { return applyTime })
	p.idle(t)
	requests = len(p.requests(every))
	failed := err != nil || slices.ContainsFunc(results, func(x clusters.Result) bool { return x.Operation == clusters.OpFailed })
	if failed != hit || n < 0 && !hit {
		t.Errorf("killed at request %d of %d: got %+v, %v", n, requests, results, err)
	}
	return requests
}

// killable is a rollout of everything that takes more than one request, in two
// commits: of the first, and of the second that changes, adds and removes.
func killable(cp *kubetest.ControlPlane, at string) (first, second rollout) {
	ns, group := "kill-"+at, "kill"+at+".example.com"
	first = rollout{cp: cp, fleet: ns, commit: "c1", stages: []string{
		namespace(ns) + crdOf(group),
		configMap(ns, "kept", "one") + configMap(ns, "removed", "one") + widget(group, ns, "removed") + daemonSet(ns, "agent", ""),
	}}
	second = rollout{cp: cp, fleet: ns, commit: "c2", stages: []string{
		namespace(ns) + crdOf(group),
		configMap(ns, "kept", "two") + configMap(ns, "added", "two") + widget(group, ns, "added") + daemonSet(ns, "agent", ", hostNetwork: true"),
	}}
	return first, second
}

// state is what a fleet's objects have come to, without what differs from one
// to the next.
func (r rollout) state(t *testing.T) map[string]string {
	t.Helper()
	live := r.observe(t)
	out := map[string]string{}
	general := func(s string) string {
		return strings.NewReplacer(r.fleet, "FLEET", strings.ReplaceAll(r.fleet, "-", ""), "GROUP").Replace(s)
	}
	if live.Inventory == nil {
		return out
	}
	i := live.Inventory
	out["inventory"] = general(fmt.Sprintf("%s %s %s %q %s", i.Fleet, i.Commit, i.AppliedAt, i.Pending, i.Overlay))
	for _, item := range i.Items {
		u := r.live(t, item.Reference)
		if u == nil {
			out[general(item.String())] = "not there"
			continue
		}
		same := "as recorded"
		if string(u.GetUID()) != item.UID {
			same = "another UID"
		}
		out[general(item.String())] = general(fmt.Sprint(same, item.Selector, u.GetLabels(), u.Object["data"], u.Object["spec"], managersOf(u)))
	}
	for _, name := range []string{"kept", "removed", "added"} {
		for _, ref := range []clusters.Reference{ref("v1", "ConfigMap", r.fleet, name), ref(strings.ReplaceAll(r.fleet, "-", "")+".example.com/v1", "Widget", r.fleet, name)} {
			if id := general(ref.String()); out[id] == "" && r.live(t, ref) != nil {
				out[id] = "there, and not recorded"
			}
		}
	}
	return out
}

// Whatever moment an apply is killed in, the next one, of the same commit or
// another, ends where it would have ended.
func testKills(t *testing.T, cp *kubetest.ControlPlane) {
	first, second := killable(cp, "0")
	var requests [2]int
	var want [2]map[string]string
	for i, r := range []rollout{first, second} {
		requests[i] = r.killed(t, 0, none)
		want[i] = r.state(t)
	}
	if got := slices.Sorted(maps.Keys(want[1])); len(got) != 7 {
		t.Fatalf("got %v", got)
	}
	t.Run("BeforeItsRecord", func(t *testing.T) {
		first, second := killable(cp, "record")
		first.killed(t, -2, dieBefore)
		second.finish(t) // knows what to remove by what was to be applied
		if diff := cmp.Diff(want[1], second.state(t)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d; %v requests", seed, requests)
	random := rand.New(rand.NewPCG(seed, 0))
	for at := range kills(t, 10) {
		name := strconv.Itoa(at + 1)
		t.Run(name, func(t *testing.T) {
			first, second := killable(cp, name)
			for i, r := range []rollout{first, second} {
				for range 1 + random.IntN(2) {
					how := []fault{dieBefore, dieAfter}[random.IntN(2)]
					n := 1 + random.IntN(requests[i])
					r.killed(t, n, how)
				}
				if i == 0 && random.IntN(2) == 0 {
					continue // and the next commit comes before it was tried again
				}
				r.finish(t)
				if diff := cmp.Diff(want[i], r.state(t)); diff != "" {
					t.Errorf("commit %s: -want +got:\n%s", r.commit, diff)
				}
			}
		})
	}
}

// finish runs a rollout to its end.
func (r rollout) finish(t *testing.T) {
	t.Helper()
	results, err := r.run(t.Context(), t)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range results {
		if x.Operation == clusters.OpFailed || x.Operation == clusters.OpHeld {
			t.Errorf("got %+v", x)
		}
	}
}
