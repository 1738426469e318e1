package build

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/render"
	"rollcall.dev/rollcall/sync/source"
)

var update = flag.Bool("update", false, "rewrite the want section of every scenario")

// TestScenarios renders the clusters of every scenario. A scenario holds
// fleet.yaml, clusters (a line each: name key=value …), the repository below
// repo/, and want.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/scenarios/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { scenario(t, file) })
	}
}

func scenario(t *testing.T, file string) {
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	archive := txtar.Parse(content)
	fleet, all, repo := parts(t, archive)
	r := New(Options{})
	defer r.Close()
	var got bytes.Buffer
	for _, c := range all {
		d, err := r.Render(t.Context(), source.Artifact{Files: repo}, fleet, c)
		describe(&got, c, d, err)
	}
	for i := range archive.Files {
		if archive.Files[i].Name != "want" {
			continue
		}
		if *update {
			archive.Files[i].Data = got.Bytes()
			if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
				t.Fatal(err)
			}
			return
		}
		if diff := cmp.Diff(string(archive.Files[i].Data), got.String()); diff != "" {
			t.Errorf("%s\n-want +got:\n%s", strings.TrimSpace(string(archive.Comment)), diff)
		}
		return
	}
	t.Error("the scenario has no want section")
}

func parts(t *testing.T, archive *txtar.Archive) (clusters.Fleet, []clusters.Cluster, fstest.MapFS) {
	t.Helper()
	var fleet clusters.Fleet
	var all []clusters.Cluster
	repo := fstest.MapFS{}
	for _, f := range archive.Files {
		name, inRepo := strings.CutPrefix(f.Name, "repo/")
		switch {
		case inRepo:
			repo[name] = &fstest.MapFile{Data: f.Data}
		case f.Name == "fleet.yaml":
			var err error
			if fleet, err = clusters.ParseFleet(f.Name, f.Data); err != nil {
				t.Fatal(err)
			}
		case f.Name == "clusters":
			for line := range strings.Lines(string(f.Data)) {
				all = append(all, clusterOf(strings.Fields(line)))
			}
		}
	}
	return fleet, all, repo
}

func clusterOf(words []string) clusters.Cluster {
	c := clusters.Cluster{Name: words[0], Labels: map[string]string{}}
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		c.Labels[key] = value
	}
	return c
}

func describe(w *bytes.Buffer, c clusters.Cluster, d render.Desired, err error) {
	fmt.Fprintf(w, "## %s\n", c.Name)
	for _, r := range d.Trace {
		fmt.Fprintf(w, "%s %s %s: %s (%s)\n", r.Kind, r.Name, r.Path, r.Result, r.Because)
	}
	for _, e := range d.Warnings {
		fmt.Fprintf(w, "warning %s %v\n", e.Code, &e)
	}
	if err != nil {
		code := "no code"
		if fault, ok := errors.AsType[*render.Error](err); ok {
			code = fault.Code
		}
		fmt.Fprintf(w, "error %s %v\n", code, err)
		return
	}
	for _, u := range d.Objects {
		text, err := yaml.Marshal(u.Object)
		if err != nil {
			text = []byte(err.Error())
		}
		fmt.Fprintf(w, "---\n%s", text)
	}
}
