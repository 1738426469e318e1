package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rollcall.dev/rollcall/clusters/kubetest"
)

// asMain lets a copy of the test binary be rollcall, so that it can be killed.
const asMain = "ROLLCALL_TEST_MAIN"

// state is all that was applied, as the cluster has it, and the inventory.
func (g *gitOps) state() map[string]any {
	g.t.Helper()
	var list struct{ Items []map[string]any }
	text := kubectl(g.t, g.cp, "get", "namespaces,configmaps,serviceaccounts,daemonsets.apps,clusterroles,clusterrolebindings,customresourcedefinitions", "-A", "-l", "rollcall.dev/fleet=real", "-o", "json")
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		g.t.Fatal(err)
	}
	out := map[string]any{}
	for _, item := range list.Items {
		meta := item["metadata"].(map[string]any)
		name := fmt.Sprintf("%v %v/%v", item["kind"], meta["namespace"], meta["name"])
		if strings.Contains(name, "rollcall-inventory-") {
			out["inventory"] = inventoryOf(g.t, item["data"].(map[string]any))
			continue
		}
		for _, own := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"} {
			delete(meta, own)
		}
		if notes, ok := meta["annotations"].(map[string]any); ok {
			delete(notes, "deprecated.daemonset.template.generation")
		}
		delete(item, "status")
		out[name] = item
	}
	return out
}

// inventoryOf is an inventory without what differs from run to run.
func inventoryOf(t *testing.T, data map[string]any) any {
	t.Helper()
	var head map[string]any
	if err := json.Unmarshal([]byte(data["inventory"].(string)), &head); err != nil {
		t.Fatal(err)
	}
	delete(head, "appliedAt")
	var items []string
	for line := range strings.Lines(data["items"].(string)) {
		var item map[string]any
		if err := json.Unmarshal([]byte(line), &item); err != nil {
			t.Fatal(err)
		}
		if item["uid"] == nil {
			t.Errorf("the inventory has an item without a UID: %s", line)
		}
		delete(item, "uid")
		text, err := json.Marshal(item)
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, string(text))
	}
	head["items"] = items
	return head
}

// A process that is killed at any moment of an apply leaves what the next run
// makes the same state of as if nothing had happened. ROLLCALL_KILLS is how
// often.
func TestRealKill(t *testing.T) {
	kills := 10
	if n, err := strconv.Atoi(os.Getenv("ROLLCALL_KILLS")); err == nil {
		kills = n
	}
	cp := kubetest.Start(t, kubetest.Options{Controllers: true, Scheduler: true, Nodes: 2})
	g := newGitOps(t, cp, "may: [apply, prune], maxDeletes: 10, force: fields", agentFiles())
	revisions := []func() string{
		func() string {
			g.files(map[string]string{"agent.yaml": obsAgent("1", "app: agent", "rollcall.dev/replace: orphan"), "a.yaml": configs("a", 6), "b.yaml": ""})
			return g.commit()
		},
		func() string {
			g.files(map[string]string{"agent.yaml": obsAgent("2", "app: agent, tier: node", "rollcall.dev/replace: orphan"), "a.yaml": "", "b.yaml": configs("b", 6)})
			return g.commit()
		},
	}
	var want []map[string]any
	var took time.Duration
	for _, revision := range revisions {
		revision()
		began := time.Now()
		g.process(-1)
		took = max(took, time.Since(began))
		want = append(want, g.state())
	}
	random := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
	broken := 0
	for i := range kills {
		at := i % 2
		commit := revisions[at]()
		after := time.Duration(random.Int64N(int64(took)))
		if g.process(after) {
			broken++
		}
		g.process(-1)
		got := g.state()
		expected := want[at]
		inventory := expected["inventory"].(map[string]any)
		inventory["commit"] = commit
		if diff := cmp.Diff(expected, got); diff != "" {
			t.Fatalf("killed after %s of %s, then run again, is another state than without (-want +got):\n%s", after, took, diff)
		}
		g.apply(0, "nothing to do")
	}
	t.Logf("%d runs, %d of them killed within the run of %s", kills, broken, took)
	if broken == 0 {
		t.Error("no run was killed while it ran")
	}
}

// files writes files of the repository; empty ones are removed.
func (g *gitOps) files(all map[string]string) {
	g.t.Helper()
	for name, text := range all {
		if text != "" {
			write(g.t, g.dir, "repository/base/"+name, text)
			continue
		}
		if err := os.Remove(filepath.Join(g.dir, "repository/base", name)); err != nil && !os.IsNotExist(err) {
			g.t.Fatal(err)
		}
	}
}

func configs(prefix string, n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s%d, namespace: obs}\ndata: {k: %q}\n", prefix, i, prefix))
	}
	return strings.Join(all, "---\n")
}

// process runs rollcall apply in a process of its own and kills it after a
// time, which it tells; it lets it come to its end where that is negative.
func (g *gitOps) process(after time.Duration) (killed bool) {
	g.t.Helper()
	self, err := os.Executable()
	if err != nil {
		g.t.Fatal(err)
	}
	cmd := exec.Command(self, "apply", "--all", "-f", filepath.Join(g.dir, "rollcall.yaml"))
	cmd.Env = append(os.Environ(), asMain+"=1")
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		g.t.Fatal(err)
	}
	if after >= 0 {
		time.Sleep(after)
		_ = cmd.Process.Kill() // it may have ended
	}
	err = cmd.Wait()
	if after < 0 && err != nil {
		g.t.Fatalf("rollcall apply: %v\n%s", err, out.String())
	}
	return err != nil
}
