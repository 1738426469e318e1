package build

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/render"
	"rollcall.dev/rollcall/sync/source"
)

func filesOf(text map[string]string) fstest.MapFS {
	files := fstest.MapFS{"ds.yaml": {Data: []byte(daemonSet)}}
	for name, content := range text {
		files[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return files
}

// copying makes an object hold itself twice at each step, which no scan of the
// text can tell and kustomize carries out.
func copying(steps int) fstest.MapFS {
	var patch strings.Builder
	for i := range steps {
		fmt.Fprintf(&patch, "- {op: copy, from: /metadata/annotations, path: /metadata/annotations/x%d}\n", i)
	}
	return filesOf(map[string]string{
		"kustomization.yaml": "resources: [ds.yaml]\ncommonAnnotations: {region: \"${cluster.labels.region}\"}\npatches: [{target: {kind: DaemonSet}, path: p.yaml}]\n",
		"p.yaml":             patch.String(),
	})
}

// TestMemoryBomb ends the child and nothing else; after three ends the overlay
// is tried no more at that commit, but at the next.
func TestMemoryBomb(t *testing.T) {
	r := New(Options{Duration: 30 * time.Second})
	defer r.Close()
	bomb := copying(40)
	at := func(commit string, i int) error {
		_, err := r.Render(t.Context(), source.Artifact{Files: bomb, Revision: source.Revision{Commit: commit}}, fleetOf("."), clusterOf([]string{fmt.Sprintf("c%d", i), fmt.Sprintf("region=r%d", i)}))
		return err
	}
	for i := range maxDeaths {
		fault := wantCode(t, at("one", i), render.OverBudget)
		if !strings.Contains(fault.Message, "MiB of memory") && !strings.Contains(fault.Message, "took longer") {
			t.Errorf("got %q", fault.Message)
		}
	}
	if fault := wantCode(t, at("one", 9), render.OverBudget); !strings.Contains(fault.Message, "not tried any more") {
		t.Errorf("got %q", fault.Message)
	}
	if d, err := r.Render(t.Context(), source.Artifact{Files: sharing("agent:1")}, fleetOf("base"), clusters.Cluster{Name: "a"}); err != nil || len(d.DaemonSets) != 1 {
		t.Errorf("another overlay: %v", err)
	}
	bomb = copying(1)
	if err := at("two", 9); err != nil {
		t.Errorf("the next commit: %v", err)
	}
}

// schema makes kustomize merge the list items of a custom resource by name.
const schema = `{"definitions": {"v1.Thing": {
  "properties": {"spec": {"properties": {"items": {"type": "array", "x-kubernetes-patch-merge-key": "name", "x-kubernetes-patch-strategy": "merge", "items": {"properties": {"name": {"type": "string"}}}}}}},
  "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Thing"}]}}}`

func thing(withSchema bool) fstest.MapFS {
	kustomization := "resources: [ds.yaml, thing.yaml]\npatches: [{path: p.yaml}]\n"
	if withSchema {
		kustomization += "openapi: {path: schema.json}\n"
	}
	item := func(name string) string {
		return fmt.Sprintf("apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: t, namespace: obs}\nspec: {items: [{name: %s}]}\n", name)
	}
	return filesOf(map[string]string{"kustomization.yaml": kustomization, "thing.yaml": item("one"), "p.yaml": item("two"), "schema.json": schema})
}

// Threat T11: one overlay's schema must not change how another is rendered, in
// whatever order and however many are rendered at once.
func TestSchemaStaysInItsBuild(t *testing.T) {
	r := New(Options{Parallel: 2})
	defer r.Close()
	text := func(withSchema bool, i int) string {
		files := with(thing(withSchema), "unused", fmt.Sprint(i))
		files["kustomization.yaml"] = &fstest.MapFile{Data: append(files["kustomization.yaml"].Data, fmt.Sprintf("commonAnnotations: {n: \"%d\"}\n", i)...)}
		d, err := r.Render(t.Context(), source.Artifact{Files: files}, fleetOf("."), clusters.Cluster{Name: "c"})
		if err != nil {
			t.Error(err)
			return ""
		}
		for _, u := range d.Objects {
			if u.GetKind() == "Thing" {
				b, err := json.Marshal(u.Object["spec"])
				if err != nil {
					t.Error(err)
				}
				return string(b)
			}
		}
		return "no Thing"
	}
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			want := `{"items":[{"name":"two"}]}`
			if i%4 == 0 {
				want = `{"items":[{"name":"two"},{"name":"one"}]}`
			}
			if got := text(i%4 == 0, i); got != want {
				t.Errorf("build %d: got %s, want %s", i, got, want)
			}
		})
	}
	wg.Wait()
}

// TestKilledChild: a child that was ended from outside costs a new one.
func TestKilledChild(t *testing.T) {
	r := New(Options{Parallel: 1})
	defer r.Close()
	for i := range 3 {
		_, err := r.Render(t.Context(), source.Artifact{Files: sharing("agent:1")}, fleetOf("eu"), clusterOf([]string{"c", fmt.Sprintf("region=r%d", i)}))
		if err != nil {
			t.Fatalf("build %d: %v", i, err)
		}
		if err := r.pool.idle[0].cmd.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestCloseEndsChildren leaves no process behind.
func TestCloseEndsChildren(t *testing.T) {
	r := New(Options{})
	if _, err := r.Render(t.Context(), source.Artifact{Files: sharing("agent:1")}, fleetOf("base"), clusters.Cluster{Name: "a"}); err != nil {
		t.Fatal(err)
	}
	c := r.pool.idle[0]
	r.Close()
	if c.cmd.ProcessState == nil {
		t.Error("the child was not waited for")
	}
	if err := syscall.Kill(c.cmd.Process.Pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the child is still there: %v", err)
	}
}

// A child that sends what is no answer, or too much, ends its build only.
func TestChildThatLies(t *testing.T) {
	for name, said := range map[string]string{"Nothing": "", "Rubbish": strings.Repeat("\xff\x00rubbish", 100), "Empty": "\x03\x04\x00\x00"} {
		t.Run(name, func(t *testing.T) {
			program := t.TempDir() + "/liar"
			writeExecutable(t, program, fmt.Sprintf("#!/bin/sh\nprintf '%s'\n", strings.ReplaceAll(fmt.Sprintf("%q", said)[1:len(fmt.Sprintf("%q", said))-1], `\x`, `\\x`)))
			r := New(Options{Program: program})
			defer r.Close()
			_, err := r.Render(t.Context(), source.Artifact{Files: sharing("agent:1")}, fleetOf("base"), clusters.Cluster{Name: "a"})
			wantCode(t, err, render.InvalidManifest)
		})
	}
	r := New(Options{Program: "/nonexistent"})
	defer r.Close()
	if _, err := r.Render(t.Context(), source.Artifact{Files: sharing("agent:1")}, fleetOf("base"), clusters.Cluster{Name: "a"}); err == nil {
		t.Error("no program and no error")
	}
}

// FuzzDelivery reads what a hostile child might deliver.
func FuzzDelivery(f *testing.F) {
	f.Add([]byte(`[{"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "a"}}]`))
	f.Add([]byte(`[null]`))
	f.Fuzz(func(t *testing.T, objects []byte) {
		out := (&delivery{Objects: objects}).outcome(render.Resolution{Overlay: "o"})
		if out.err == nil && len(out.desired.DaemonSets) == 0 {
			t.Errorf("no DaemonSet and no error: %s", bytes.TrimSpace(objects))
		}
	})
}

func writeExecutable(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}
