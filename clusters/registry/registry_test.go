package registry

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rollcall.dev/rollcall/clusters"
)

func clusterFile(name, spec string) string {
	return "apiVersion: rollcall.dev/v1alpha1\nkind: Cluster\nmetadata: {name: " + name + "}\nspec: {" + spec + "}\n"
}

// folder writes files and returns the folder that holds them.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestLoad(t *testing.T) {
	t.Setenv("HOME", "/home/op")
	defaults := clusters.DefaultPolicy()
	defaults.MaxDeletes = "7"
	own := defaults
	own.May = []string{"roll"}
	kubeconfig := func(path string) *clusters.Kubeconfig { return &clusters.Kubeconfig{Paths: []string{path}} }
	cases := map[string]struct {
		reason string
		files  map[string]string
		ok     []clusters.Cluster // file and paths below the folder, which DIR stands for
		broken map[string]string  // by name: the error
	}{
		"Sorted": {
			reason: "by name, whatever the file's; other files, folders and dot files are left out",
			files: map[string]string{
				"a.yaml": clusterFile("z", "recorded: [../d, /abs]"), "b.yml": clusterFile("y", "kubeconfig: {path: k.kubeconfig}, policy: {may: [roll]}"),
				"k.kubeconfig": "not read", ".hidden.yaml": "not read", "notes.txt": "not read", "sub/c.yaml": "not read", "d.yaml/e.yaml": "not read",
			},
			ok: []clusters.Cluster{
				{Name: "y", File: "DIR/b.yml", Kubeconfig: kubeconfig("DIR/k.kubeconfig"), Policy: own},
				{Name: "z", File: "DIR/a.yaml", Recorded: []string{"DIR/../d", "/abs"}, Policy: defaults},
			},
		},
		"Home": {
			reason: "as a shell would have it",
			files:  map[string]string{"a.yaml": clusterFile("a", "kubeconfig: {path: ~/.kube/config}")},
			ok:     []clusters.Cluster{{Name: "a", File: "DIR/a.yaml", Kubeconfig: kubeconfig("/home/op/.kube/config"), Policy: defaults}},
		},
		"NoKubeconfig": {
			reason: "who reads it tells, for it may come later",
			files:  map[string]string{"a.yaml": clusterFile("a", "kubeconfig: {path: gone}")},
			ok:     []clusters.Cluster{{Name: "a", File: "DIR/a.yaml", Kubeconfig: kubeconfig("DIR/gone"), Policy: defaults}},
		},
		"Broken": {
			reason: "each concerns one cluster; every fault is there",
			files: map[string]string{
				"a.yaml": clusterFile("one", "recorded: d, identiti: x, policy: {may: [fly]}"), "b.yaml": "a: [\n", "c.yaml": clusterFile("three", "recorded: d"),
			},
			ok: []clusters.Cluster{{Name: "three", File: "DIR/c.yaml", Recorded: []string{"DIR/d"}, Policy: defaults}},
			broken: map[string]string{
				"one": "DIR/a.yaml:4: spec.identiti: Forbidden: unknown field, did you mean \"identity\"?\nDIR/a.yaml:4: spec.policy.may[0]: Unsupported value: \"fly\": supported values: \"roll\", \"apply\", \"prune\", \"manage\"",
				"b":   "DIR/b.yaml:1: did not find expected node content",
			},
		},
		"Twice": {
			reason: "nothing tells which is meant",
			files:  map[string]string{"a.yaml": clusterFile("one", "recorded: d"), "b.yaml": clusterFile("one", "recorded: e"), "c.yaml": clusterFile("two", "recorded: f")},
			ok:     []clusters.Cluster{{Name: "two", File: "DIR/c.yaml", Recorded: []string{"DIR/f"}, Policy: defaults}},
			broken: map[string]string{"one": `cluster "one" is declared in "DIR/a.yaml" and "DIR/b.yaml": rename all but one`},
		},
		"TwiceBroken": {
			reason: "a name is reported once, with all that is wrong",
			files:  map[string]string{"a.yaml": clusterFile("one", "recorded: d"), "b.yaml": clusterFile("one", "")},
			broken: map[string]string{"one": "cluster \"one\" is declared in \"DIR/a.yaml\" and \"DIR/b.yaml\": rename all but one\nDIR/b.yaml:4: spec: Required value: one of kubeconfig and recorded"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, tc.files)
			ok, broken, err := Load(dir, defaults)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			place := func(s string) string { return strings.ReplaceAll(s, "DIR", dir) }
			for i := range tc.ok {
				cl := &tc.ok[i]
				cl.File = place(cl.File)
				for j := range cl.Recorded {
					cl.Recorded[j] = filepath.Clean(place(cl.Recorded[j]))
				}
				if cl.Kubeconfig != nil {
					cl.Kubeconfig.Paths[0] = place(cl.Kubeconfig.Paths[0])
				}
			}
			if diff := cmp.Diff(tc.ok, ok); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			got := map[string]string{}
			for _, b := range broken {
				got[b.Name] = strings.ReplaceAll(b.Err.Error(), dir, "DIR")
				if filepath.Dir(b.File) != dir {
					t.Errorf("%s: broken file %q", tc.reason, b.File)
				}
			}
			if tc.broken == nil {
				tc.broken = map[string]string{}
			}
			if diff := cmp.Diff(tc.broken, got); diff != "" {
				t.Errorf("%s: broken: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// Files that cannot be read at all are broken clusters, too, named by the file.
func TestLoadUnreadable(t *testing.T) {
	dir := folder(t, map[string]string{"a.yaml": clusterFile("a", "recorded: d")})
	if err := os.Symlink("gone", filepath.Join(dir, "b.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", filepath.Join(dir, "c.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "a.yaml"), filepath.Join(dir, "d.yaml")); err != nil {
		t.Fatal(err)
	}
	_, broken, err := Load(dir, clusters.DefaultPolicy())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, b := range broken {
		got = append(got, b.Name+": "+strings.ReplaceAll(b.Err.Error(), dir, "DIR"))
	}
	want := []string{
		`a: cluster "a" is declared in "DIR/a.yaml" and "DIR/d.yaml": rename all but one`,
		`b: reading "DIR/b.yaml": no such file or directory`,
		`c: reading "DIR/c.yaml": it is not a regular file`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestLoadNothing(t *testing.T) {
	cases := map[string]struct{ reason, dir, want string }{
		"Missing": {"the remedy is told", filepath.Join(t.TempDir(), "clusters"), "there is no such folder: create it with one Cluster file for each cluster, or name another in spec.clusters.directory"},
		"Empty":   {"no cluster is no green fleet", folder(t, map[string]string{"README.md": "", ".a.yaml": ""}), "no .yaml file is in it: write one with kind: Cluster for each cluster"},
		"File":    {"a file is no folder", filepath.Join(folder(t, map[string]string{"a.yaml": ""}), "a.yaml"), "not a directory"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, _, err := Load(tc.dir, clusters.DefaultPolicy())
			want := `reading clusters from "` + tc.dir + `": ` + tc.want
			if err == nil || err.Error() != want {
				t.Errorf("%s: got %v, want %s", tc.reason, err, want)
			}
		})
	}
}
