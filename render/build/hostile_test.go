package build

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/render"
	"rollcall.dev/rollcall/sync/source"
)

const daemonSet = `apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: ns}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: c, image: "example.invalid/agent:1"}]}
`

// fleetOf is a fleet whose every cluster gets one overlay.
func fleetOf(overlay string) clusters.Fleet {
	return clusters.Fleet{Name: "fleet", Targets: []clusters.Target{{Name: "all", Overlay: overlay}}}
}

// once renders one overlay of a repository with a Renderer of its own.
func once(t *testing.T, r *Renderer, files fs.FS) (render.Desired, error) {
	t.Helper()
	return r.Render(t.Context(), source.Artifact{Files: files}, fleetOf("."), clusters.Cluster{Name: "c"})
}

// shared is a Renderer for tests that need none of their own. It forgets at once,
// and its children are those of the test binary.
var shared = New(Options{Remember: 1})

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == ChildCommand {
		os.Exit(Child(os.Stdin, os.Stdout))
	}
	status := m.Run()
	shared.Close()
	os.Exit(status)
}

// mapOf reads a folder, with a port of the hostile inputs replaced.
func mapOf(t *testing.T, dir, address string) fstest.MapFS {
	t.Helper()
	out := fstest.MapFS{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, name))
		out[name] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(string(data), "127.0.0.1:9", address))}
		return err
	})
	if err != nil || len(out) == 0 {
		t.Fatalf("reading %s: %v", dir, err)
	}
	return out
}

// outside counts what leaves the process: connections to a listener, and runs
// of a git that stands first on PATH.
type outside struct {
	address     string
	connections atomic.Int64
	gitRuns     string
}

func watchOutside(t *testing.T) *outside {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := &outside{address: listener.Addr().String(), gitRuns: filepath.Join(t.TempDir(), "runs")}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			o.connections.Add(1)
			conn.Close()
		}
	}()
	t.Cleanup(func() { listener.Close(); <-done })
	bin := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\necho \"$@\" >>%q\nexit 1\n", o.gitRuns)
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("TMPDIR", t.TempDir())
	return o
}

// seen tells how often something left, and begins again.
func (o *outside) seen() int {
	runs, _ := os.ReadFile(o.gitRuns)
	os.Remove(o.gitRuns)
	return int(o.connections.Swap(0)) + strings.Count(string(runs), "\n")
}

func wantCode(t *testing.T, err error, code string) *render.Error {
	t.Helper()
	fault, ok := errors.AsType[*render.Error](err)
	if !ok || fault.Code != code {
		t.Fatalf("got error %v, want code %s", err, code)
	}
	return fault
}

// TestNothingLeaves renders what kustomize would fetch, and counts what leaves
// the process. The second half of each case takes the guard away and shows
// that the count then is not zero, so that the test can fail.
func TestNothingLeaves(t *testing.T) {
	o := watchOutside(t)
	cases := map[string]fstest.MapFS{}
	dirs, err := filepath.Glob("testdata/hostile/04-ssrf-url-fields/*")
	if err != nil || len(dirs) < 14 {
		t.Fatalf("got %d hostile inputs, want 14: %v", len(dirs), err)
	}
	for _, dir := range dirs {
		cases[filepath.Base(dir)] = mapOf(t, dir, o.address)
	}
	for name, text := range moreFields(o.address) {
		files := fstest.MapFS{"ds.yaml": {Data: []byte(daemonSet)}}
		for file, content := range text {
			files[file] = &fstest.MapFile{Data: []byte(content)}
		}
		cases[name] = files
	}
	for name, files := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := once(t, shared, files)
			code := render.RemoteReference
			if name == "transformers-folder-patched" {
				code = render.Unsupported
			}
			fault := wantCode(t, err, code)
			if fault.Field == "" || fault.File == "" {
				t.Errorf("the error names file %q and field %q", fault.File, fault.Field)
			}
			if n := o.seen(); n != 0 {
				t.Errorf("%d connections or git processes, want 0", n)
			}
			bare := newTree(t.Context(), files, clusters.Fleet{}, clusters.Cluster{}, Options{}.withDefaults())
			if _, err := build(bare, render.Resolution{Overlay: "."}, true); err == nil {
				t.Error("without the guard: no error")
			}
			if n := o.seen(); n == 0 {
				t.Error("without the guard nothing left either: the test proves nothing")
			}
		})
	}
}

// moreFields holds the fields and forms that the hostile inputs do not.
func moreFields(address string) map[string]map[string]string {
	url := "http://" + address + "/x.yaml"
	one := func(text string) map[string]string { return map[string]string{"kustomization.yaml": text} }
	plugin := "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: x}\n"
	return map[string]map[string]string{
		"bases":               one("bases: [\"" + url + "\"]"),
		"components":          one("components: [\"" + url + "//x?ref=main\"]"),
		"key-in-capitals":     one("Resources: [\"" + url + "\"]"),
		"scheme-in-capitals":  one("resources: [\"HTTP://" + address + "/x.yaml\"]"),
		"git-prefix":          one("resources: [\"git::http://" + address + "/org/repo\"]"),
		"github-in-capitals":  one("resources: [\"GitHub.com/example-invalid/none\"]"),
		"patches-json":        one("resources: [ds.yaml]\npatchesJson6902: [{target: {kind: DaemonSet, name: agent, version: v1}, path: \"" + url + "\"}]"),
		"patches-merge":       one("resources: [ds.yaml]\npatchesStrategicMerge: [\"" + url + "\"]"),
		"crds":                one("resources: [ds.yaml]\ncrds: [\"" + url + "\"]"),
		"validators":          one("resources: [ds.yaml]\nvalidators: [\"" + url + "\"]"),
		"secret-env":          one("secretGenerator: [{name: x, env: \"" + url + "\"}]"),
		"secret-envs":         one("secretGenerator: [{name: x, envs: [\"" + url + "\"]}]"),
		"files-without-key":   one("configMapGenerator: [{name: x, files: [\"" + url + "\"]}]"),
		"generator-inline":    one("resources: [ds.yaml]\ngenerators:\n- |\n  apiVersion: builtin\n  kind: ConfigMapGenerator\n  metadata: {name: x}\n  files: [\"k=" + url + "\"]\n"),
		"generator-like-yaml": one("resources: [ds.yaml]\ngenerators: [\"" + url + ": b\"]"),
		"behind-an-alias":     one("resources: [ds.yaml]\nlabels: [{pairs: {a: &u \"" + url + "\"}}]\ncrds: [*u]"),
		"in-a-base":           {"kustomization.yaml": "resources: [base]", "base/kustomization.yaml": "resources: [\"" + url + "\"]"},
		"generator-file":      {"kustomization.yaml": "resources: [ds.yaml]\ngenerators: [g.yaml]", "g.yaml": plugin + "Files: [\"k=" + url + "\"]\n"},
		"generator-list":      {"kustomization.yaml": "resources: [ds.yaml]\ngenerators: [g.yaml]", "g.yaml": "apiVersion: v1\nkind: List\nitems: [{apiVersion: builtin, kind: ConfigMapGenerator, metadata: {name: x}, envs: [\"" + url + "\"]}]\n"},
		"transformer-file":    {"kustomization.yaml": "resources: [ds.yaml]\ntransformers: [t.yaml]", "t.yaml": "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: x}\npath: \"" + url + "\"\ntarget: {kind: DaemonSet}\n"},
		"transformer-paths":   {"kustomization.yaml": "resources: [ds.yaml]\ntransformers: [t.yaml]", "t.yaml": "apiVersion: builtin\nkind: PatchStrategicMergeTransformer\nmetadata: {name: x}\npaths: [\"" + url + "\"]\n"},
		"transformer-target":  {"kustomization.yaml": "resources: [ds.yaml]\ntransformers: [t.yaml]", "t.yaml": "apiVersion: builtin\nkind: ValueAddTransformer\nmetadata: {name: x}\nvalue: v\ntargetFilePath: \"" + url + "\"\n"},
		"replacement-plugin":  {"kustomization.yaml": "resources: [ds.yaml]\ntransformers: [t.yaml]", "t.yaml": "apiVersion: builtin\nkind: ReplacementTransformer\nmetadata: {name: x}\nreplacements: [{path: \"" + url + "\"}]\n"},
		"transformers-folder": {"kustomization.yaml": "resources: [ds.yaml]\ntransformers: [t]", "t/kustomization.yaml": "resources: [t.yaml]", "t/t.yaml": "apiVersion: builtin\nkind: ValueAddTransformer\nmetadata: {name: x}\nvalue: v\ntargetFilePath: \"" + url + "\"\n"},
		"transformers-folder-patched": {"kustomization.yaml": "resources: [ds.yaml]\ntransformers: [t]",
			"t/kustomization.yaml": "resources: [t.yaml]\npatches: [{target: {kind: ValueAddTransformer}, patch: '- {op: replace, path: /targetFilePath, value: \"" + url + "\"}'}]",
			"t/t.yaml":             "apiVersion: builtin\nkind: ValueAddTransformer\nmetadata: {name: x}\nvalue: v\ntargetFilePath: harmless\n"},
	}
}

// TestHookGuards opens files as kustomize would without the walk before it:
// the file system itself refuses them.
func TestHookGuards(t *testing.T) {
	cases := map[string]struct {
		reason string
		open   string
		code   string
	}{
		"kustomization": {"a kustomization is judged when it is opened", "/tree/kustomization.yaml", render.RemoteReference},
		"plugin":        {"a builtin plugin's configuration is judged wherever it is", "/tree/g.yaml", render.RemoteReference},
		"bomb":          {"a file that the walk did not see is scanned", "/tree/bomb.yaml", render.InvalidManifest},
	}
	files := fstest.MapFS{
		"kustomization.yaml": {Data: []byte("resources: [\"http://192.0.2.1/x\"]")},
		"g.yaml":             {Data: []byte("apiVersion: builtin\nkind: SecretGenerator\nmetadata: {name: x}\nfiles: [\"http://192.0.2.1/x\"]")},
		"bomb.yaml":          {Data: []byte("a: &a [*a]")},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			tr := newTree(t.Context(), files, clusters.Fleet{}, clusters.Cluster{}, Options{}.withDefaults())
			_, err := disk{tr, newGuard(tr)}.ReadFile(c.open)
			if fault, ok := errors.AsType[*render.Error](err); !ok || fault.Code != c.code {
				t.Errorf("%s: got %v, want code %s", c.reason, err, c.code)
			}
			if tr.refused == nil {
				t.Errorf("%s: the refusal is not remembered", c.reason)
			}
		})
	}
}

// TestHostile renders what harms or deceives a bare kustomize.
func TestHostile(t *testing.T) {
	cases := map[string]struct {
		reason string
		dir    string
		code   string
		file   string
		field  string
		within time.Duration
	}{
		"01":                 {"an alias bomb is counted, not expanded", "01-yaml-alias-bomb", render.OverBudget, "bomb.yaml", "line 9", 100 * time.Millisecond},
		"02":                 {"an alias that contains itself is found", "02-yaml-alias-cycle", render.InvalidManifest, "cycle.yaml", "line 4", 100 * time.Millisecond},
		"03":                 {"a duplicate key would empty the render", "03-duplicate-key-empty-render", render.InvalidManifest, "kustomization.yaml", "line 3", 20 * time.Second},
		"05 exec":            {"an exec function does not run", "05-exec-plugins/krm-exec", render.Unsupported, "g.yaml", "line 1", 20 * time.Second},
		"05 container":       {"a container function does not run", "05-exec-plugins/krm-container", render.Unsupported, "t.yaml", "line 1", 20 * time.Second},
		"05 helm":            {"a Helm chart is not fetched", "05-exec-plugins/helmcharts", render.Unsupported, "kustomization.yaml", "helmCharts", 20 * time.Second},
		"06 empty-file":      {"an empty kustomization is a state of its own", "06-renders-to-nothing/empty-file", render.RenderEmpty, "kustomization.yaml", "", 20 * time.Second},
		"06 empty-resources": {"no resources are a state of their own", "06-renders-to-nothing/empty-resources", render.RenderEmpty, ".", "", 20 * time.Second},
		"06 patch-delete":    {"all deleted is a state of its own", "06-renders-to-nothing/patch-delete", render.RenderEmpty, ".", "", 20 * time.Second},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			files := mapOf(t, filepath.Join("testdata/hostile", c.dir), "127.0.0.1:9")
			begin := time.Now()
			_, err := once(t, shared, files)
			took := time.Since(begin)
			fault := wantCode(t, err, c.code)
			if fault.File != c.file || fault.Field != c.field {
				t.Errorf("%s: got file %q, field %q; want %q, %q", c.reason, fault.File, fault.Field, c.file, c.field)
			}
			if took > c.within {
				t.Errorf("%s: took %s, more than %s", c.reason, took, c.within)
			}
		})
	}
	if found, _ := filepath.Glob("testdata/hostile/05-exec-plugins/*/HOSTILE_EXEC_RAN"); len(found) > 0 {
		t.Error("repository content was executed")
	}
}

// TestNothing renders the other two ways to nothing, and a bomb within a text.
func TestNothing(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n"
	cases := map[string]struct {
		reason string
		files  map[string]string
		code   string
	}{
		"a document that is empty": {"--- is no object", map[string]string{"kustomization.yaml": "resources: [x.yaml]", "x.yaml": "---\n"}, render.RenderEmpty},
		"a list of nothing":        {"items: null is no object", map[string]string{"kustomization.yaml": "resources: [x.yaml]", "x.yaml": "apiVersion: v1\nkind: List\nitems: null\n"}, render.RenderEmpty},
		"keys that differ in case": {"kustomize takes Resources for resources", map[string]string{"kustomization.yaml": "resources: [x.yaml]\nResources: []", "x.yaml": daemonSet}, render.InvalidManifest},
		"a bomb in a patch":        {"a patch in a kustomization is parsed like a file", map[string]string{"kustomization.yaml": "resources: [x.yaml]\npatches:\n- patch: |\n    " + strings.ReplaceAll(bomb, "\n", "\n    "), "x.yaml": daemonSet}, render.OverBudget},
		"a bomb in a plugin":       {"so is a patch in a plugin's configuration", map[string]string{"kustomization.yaml": "resources: [x.yaml]\ntransformers: [t.yaml]", "t.yaml": "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: x}\npatch: |\n    " + strings.ReplaceAll(bomb, "\n", "\n    "), "x.yaml": daemonSet}, render.OverBudget},
		"a bomb in a merge patch":  {"and one in the old list of patches", map[string]string{"kustomization.yaml": "resources: [x.yaml]\npatchesStrategicMerge:\n- |\n    " + strings.ReplaceAll(bomb, "\n", "\n    "), "x.yaml": daemonSet}, render.OverBudget},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			files := fstest.MapFS{}
			for file, text := range c.files {
				files[file] = &fstest.MapFile{Data: []byte(text)}
			}
			_, err := once(t, shared, files)
			if fault, ok := errors.AsType[*render.Error](err); !ok || fault.Code != c.code {
				t.Errorf("%s: got %v, want code %s", c.reason, err, c.code)
			}
		})
	}
}

// TestBombs stops small repositories that render to something huge.
func TestBombs(t *testing.T) {
	cases := map[string]struct {
		reason string
		files  fstest.MapFS
	}{
		"doubling": {"twelve levels of doubling are 4,096 objects", doubling(12)},
		"sixty":    {"sixty levels do not overflow the count", doubling(60)},
		"flat":     {"10,000 files are quadratic for kustomize", flat(10_000)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			begin := time.Now()
			_, err := once(t, shared, c.files)
			wantCode(t, err, render.OverBudget)
			if took := time.Since(begin); took > 20*time.Second {
				t.Errorf("%s: stopped only after %s", c.reason, took)
			}
		})
	}
}

func doubling(levels int) fstest.MapFS {
	files := fstest.MapFS{"m0/ds.yaml": {Data: []byte(daemonSet)}, "m0/kustomization.yaml": {Data: []byte("resources: [ds.yaml]")}}
	for i := 1; i <= levels; i++ {
		for _, s := range []string{"a", "b"} {
			text := fmt.Sprintf("namePrefix: %s%d-\nresources: [../m%d]", s, i, i-1)
			files[fmt.Sprintf("l%d%s/kustomization.yaml", i, s)] = &fstest.MapFile{Data: []byte(text)}
		}
		files[fmt.Sprintf("m%d/kustomization.yaml", i)] = &fstest.MapFile{Data: fmt.Appendf(nil, "resources: [../l%da, ../l%db]", i, i)}
	}
	files["kustomization.yaml"] = &fstest.MapFile{Data: fmt.Appendf(nil, "resources: [m%d]", levels)}
	return files
}

func flat(n int) fstest.MapFS {
	files := fstest.MapFS{}
	list := "resources:\n"
	for i := range n {
		name := fmt.Sprintf("f%d.yaml", i)
		list += "- " + name + "\n"
		files[name] = &fstest.MapFile{Data: []byte(strings.Replace(daemonSet, "agent", fmt.Sprintf("agent-%d", i), 1))}
	}
	files["kustomization.yaml"] = &fstest.MapFile{Data: []byte(list)}
	return files
}

// TestSecretsStayOut lets kustomize fail on what holds a secret.
func TestSecretsStayOut(t *testing.T) {
	cases := map[string]map[string]string{
		"literal without key":  {"kustomization.yaml": "secretGenerator: [{name: x, literals: [\"CANARY-PASS\"]}]"},
		"literal with bad key": {"kustomization.yaml": "secretGenerator: [{name: x, literals: [\"a b=CANARY-PASS\"]}]"},
		"literal given twice":  {"kustomization.yaml": "secretGenerator: [{name: x, literals: [\"a=CANARY-PASS\", \"a=CANARY-PASS\"]}]"},
		"env file":             {"kustomization.yaml": "secretGenerator: [{name: x, envs: [.env]}]", ".env": "CANARY-PASS word\n"},
		"file without a path":  {"kustomization.yaml": "secretGenerator: [{name: x, files: [\"CANARY-PASS=\"]}]"},
		"patch that fails":     {"kustomization.yaml": "resources: [ds.yaml]\npatches: [{target: {kind: DaemonSet}, patch: '- {op: add, path: /no/where, value: CANARY-PASS}'}]"},
		"patch of two kinds":   {"kustomization.yaml": "resources: [ds.yaml]\npatches: [{target: {kind: DaemonSet}, patch: '[CANARY-PASS, \"]\", CANARY-PASS]'}]"},
		"resource that fails":  {"kustomization.yaml": "resources: [s.yaml]\npatches: [{target: {kind: Secret}, patch: '- {op: remove, path: /stringData/none}'}]", "s.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: CANARY-PASS}\n"},
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			files := fstest.MapFS{"ds.yaml": {Data: []byte(daemonSet)}}
			for file, content := range text {
				files[file] = &fstest.MapFile{Data: []byte(content)}
			}
			_, err := once(t, shared, files)
			if err == nil {
				t.Fatal("no error")
			}
			if strings.Contains(err.Error(), "CANARY") {
				t.Errorf("the error holds a secret: %v", err)
			}
		})
	}
}
