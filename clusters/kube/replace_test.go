package kube_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/clusters/kubetest"
)

// selecting is a DaemonSet with labels of its selector and of its pods.
func selecting(namespace, selector, labels string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: %s}
spec:
  updateStrategy: {type: OnDelete}
  selector: {matchLabels: {%s}}
  template:
    metadata: {labels: {%s}}
    spec: {containers: [{name: c, image: "registry.example/agent:1"}]}
---
`, namespace, selector, labels)
}

// What Kubernetes' own controllers make of what is applied: pods that are kept.
func TestRealReplace(t *testing.T) {
	cp := kubetest.Start(t, kubetest.Options{Controllers: true, Scheduler: true, Nodes: 2})
	t.Run("Adopt", func(t *testing.T) { testAdoptKeepsPods(t, cp) })
	t.Run("Relabelled", func(t *testing.T) {
		testReplace(t, cp, "relabelled", selecting("relabelled", "app: old", "app: old"), selecting("relabelled", "app: new, tier: node", "app: new, tier: node"), 0, none)
	})
	t.Run("Narrower", func(t *testing.T) {
		testReplace(t, cp, "narrower", selecting("narrower", "app: a", "app: a, tier: node"), selecting("narrower", "app: a, tier: node", "app: a, tier: node"), 0, none)
	})
	t.Run("Refused", func(t *testing.T) { testReplaceRefused(t, cp) })
	t.Run("Kills", func(t *testing.T) {
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		random := rand.New(rand.NewPCG(seed, 0))
		for at := range kills(t, 4) {
			ns := "replace-" + strconv.Itoa(at)
			t.Run(ns, func(t *testing.T) {
				testReplace(t, cp, ns, selecting(ns, "app: old", "app: old"), selecting(ns, "app: new", "app: new"), 1+random.IntN(14), []fault{dieBefore, dieAfter}[random.IntN(2)])
			})
		}
	})
}

// podsOf are the UIDs of a namespace's pods by node, when there are two that are
// a DaemonSet's own.
func podsOf(t *testing.T, r rollout) (uids map[string]string, owner string) {
	t.Helper()
	eventually(t, func() error {
		live := observe(t, r.cp.Kubeconfig(), clusters.Want{Namespace: r.fleet, Name: "agent"})
		if len(live.DaemonSets) != 1 {
			return fmt.Errorf("%d DaemonSets", len(live.DaemonSets))
		}
		uids, owner = map[string]string{}, string(live.DaemonSets[0].UID)
		for _, p := range live.Pods {
			if p.Owner.UID == owner && p.Ready && p.Deleting.IsZero() {
				uids[p.Node] = p.UID
			}
		}
		if len(uids) != 2 || len(live.Pods) != 2 || live.DaemonSets[0].Status.NumberReady != 2 {
			return fmt.Errorf("pods %+v, status %+v", live.Pods, live.DaemonSets[0].Status)
		}
		return nil
	})
	return uids, owner
}

// A DaemonSet gets another selector and keeps its pods, also where the first
// attempt was killed at a request.
func testReplace(t *testing.T, cp *kubetest.ControlPlane, ns, before, after string, killAt int, how fault) {
	cp.Apply(t, namespace(ns))
	r := rollout{cp: cp, fleet: ns, commit: "c1", stages: []string{before}}
	r.apply(t, "DaemonSet "+ns+"/agent: created")
	pods, owner := podsOf(t, r)
	r.commit, r.stages = "c2", []string{after}
	if killAt > 0 {
		r.killed(t, killAt, how)
	}
	results, err := r.run(t.Context(), t)
	if err != nil {
		t.Fatal(err)
	}
	x := results[0]
	if x.Operation == clusters.OpFailed || killAt == 0 && (x.Operation != clusters.OpCreated || x.Reason != "Replaced" || !strings.Contains(x.Message, "2 pods were kept")) {
		t.Errorf("got %+v", x)
	}
	kept, now := podsOf(t, r)
	if diff := cmp.Diff(pods, kept); diff != "" || now == owner {
		t.Errorf("the DaemonSet was %s and is %s; pods: -before +after:\n%s", owner, now, diff)
	}
	r.inventory(t, "c2", "", 1)
	if item := r.observe(t).Inventory.Items[0]; item.UID != now || item.Selector != nil {
		t.Errorf("got %+v", item)
	}
}

// A DaemonSet of kubectl's is taken over without a new revision or pod.
func testAdoptKeepsPods(t *testing.T, cp *kubetest.ControlPlane) {
	cp.Apply(t, namespace("adopted"))
	git := gitDaemonSet("adopted", "agent")
	kubectlApply(t, cp, objectOf(t, git))
	r := rollout{cp: cp, fleet: "adopted", commit: "c1", stages: []string{git}, change: func(c *clusters.Change) { c.Adopt = []string{"kubectl-client-side-apply"} }}
	pods, owner := podsOf(t, r)
	r.apply(t, "DaemonSet adopted/agent: configured")
	time.Sleep(2 * time.Second) // in which a controller would make a revision
	kept, now := podsOf(t, r)
	if diff := cmp.Diff(pods, kept); diff != "" || now != owner {
		t.Errorf("the DaemonSet was %s and is %s; pods: -before +after:\n%s", owner, now, diff)
	}
	live := r.observe(t)
	n := 0
	for _, rev := range live.Revisions {
		if rev.Owner.UID == owner {
			n++
		}
	}
	if n != 1 {
		t.Errorf("got %d revisions", n)
	}
	r.apply(t, "DaemonSet adopted/agent: unchanged")
}

// What the cluster would not take is found out before anything is deleted, and
// so is that it is another DaemonSet than the one that was meant.
func testReplaceRefused(t *testing.T, cp *kubetest.ControlPlane) {
	cp.Apply(t, namespace("refused"))
	r := rollout{cp: cp, fleet: "refused", commit: "c1", stages: []string{selecting("refused", "app: old", "app: old")}}
	r.apply(t, "DaemonSet refused/agent: created")
	pods, owner := podsOf(t, r)
	r.commit, r.stages = "c2", []string{selecting("refused", "app: new", "app: other")}
	if x := r.apply(t, "DaemonSet refused/agent: failed")[0]; x.Reason != "Invalid" || !strings.Contains(x.Message, "selector") {
		t.Errorf("got %+v", x)
	}
	r.stages = []string{selecting("refused", "app: new", "app: new")}
	r.change = func(c *clusters.Change) { c.UID = "another" }
	if x := r.apply(t, "DaemonSet refused/agent: held")[0]; x.Reason != "NotOurs" {
		t.Errorf("got %+v", x)
	}
	kept, now := podsOf(t, r)
	if diff := cmp.Diff(pods, kept); diff != "" || now != owner {
		t.Errorf("the DaemonSet was %s and is %s; pods: -before +after:\n%s", owner, now, diff)
	}
	if i := r.observe(t).Inventory; i.Commit != "c1" || i.Pending != "c2" || i.Items[0].Selector["app"] != "old" {
		t.Errorf("got %+v", i)
	}
}
