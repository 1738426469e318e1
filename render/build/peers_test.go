package build

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/render"
	"rollcall.dev/rollcall/sync/source"
)

// peers names the folder of checkouts that TestPeers renders.
const peers = "ROLLCALL_PEERS"

// TestPeers renders every kustomization of repositories that were made for other
// tools, and with the library alone, and compares. It is for make peers; what it
// found is kept in testdata/peers.txt.
func TestPeers(t *testing.T) {
	dir := os.Getenv(peers)
	if dir == "" {
		t.Skip("make peers DIR=… runs it over checkouts that were made by hand")
	}
	checkouts, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(checkouts) == 0 {
		t.Fatalf("no checkouts in %q: %v", dir, err)
	}
	var out bytes.Buffer
	for _, c := range checkouts {
		peer(t, c, &out)
	}
	fmt.Print(out.String())
}

func peer(t *testing.T, dir string, out *bytes.Buffer) {
	commit, err := exec.Command("git", "-C", dir, "rev-parse", "HEAD").Output()
	if err != nil {
		t.Fatalf("%s: %v", dir, err)
	}
	r := New(Options{})
	defer r.Close()
	equal, objects, both := 0, 0, 0
	refused := map[string]int{}
	for _, overlay := range kustomizations(t, dir) {
		d, err := r.Render(t.Context(), source.Artifact{Files: os.DirFS(dir)}, fleetOf(overlay), clusters.Cluster{Name: "peer", Labels: map[string]string{}})
		fault, _ := errors.AsType[*render.Error](err)
		if fault != nil && fault.Code != render.RenderEmpty && fault.Code != render.InvalidManifest {
			refused[fault.Code]++
			continue
		}
		want, wantErr := library(filepath.Join(dir, overlay))
		switch {
		case wantErr != nil && err != nil:
			both++
		case wantErr != nil:
			t.Errorf("%s %s: the library fails and we do not: %v", dir, overlay, wantErr)
		case fault != nil && fault.Code == render.InvalidManifest && len(d.Objects) == 0:
			t.Errorf("%s %s: we fail and the library does not: %v", dir, overlay, err)
		default:
			if got := texts(t, d); !slices.Equal(got, want) {
				t.Errorf("%s %s: got\n%s\nwant\n%s", dir, overlay, strings.Join(got, "\n"), strings.Join(want, "\n"))
				continue
			}
			equal++
			objects += len(want)
		}
	}
	fmt.Fprintf(out, "%s %s: %d kustomizations equal (%d objects)", filepath.Base(dir), strings.TrimSpace(string(commit)), equal, objects)
	if both > 0 {
		fmt.Fprintf(out, ", %d fail in both", both)
	}
	for _, code := range slices.Sorted(mapsKeys(refused)) {
		fmt.Fprintf(out, ", %d refused: %s", refused[code], code)
	}
	fmt.Fprintln(out)
}

func mapsKeys(m map[string]int) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// kustomizations are the folders that have one and are no component.
func kustomizations(t *testing.T, dir string) []string {
	var all []string
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(name)) {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil && !bytes.Contains(text, []byte("kind: Component")) {
			all = append(all, path.Dir(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// library renders a folder with kustomize alone.
func library(dir string) ([]string, error) {
	o := krusty.MakeDefaultOptions()
	o.PluginConfig = types.DisabledPluginConfig()
	m, err := krusty.MakeKustomizer(o).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, r := range m.Resources() {
		text, err := r.MarshalJSON()
		if err != nil {
			return nil, err
		}
		all = append(all, strings.TrimSpace(string(text)))
	}
	slices.Sort(all)
	return all, nil
}

func texts(t *testing.T, d render.Desired) []string {
	var all []string
	for _, u := range d.Objects {
		text, err := json.Marshal(u.Object)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(text))
	}
	slices.Sort(all)
	return all
}
