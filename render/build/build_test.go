package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/api/types"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/render"
	"rollcall.dev/rollcall/sync/source"
)

// sharing is a repository whose overlay uses the label region of a cluster,
// and whose other overlay uses nothing of it.
func sharing(image string) fstest.MapFS {
	return fstest.MapFS{
		"base/kustomization.yaml":  {Data: []byte("resources: [ds.yaml]")},
		"base/ds.yaml":             {Data: []byte(strings.Replace(daemonSet, "agent:1", image, 1))},
		"eu/kustomization.yaml":    {Data: []byte("resources: [../base]\ncommonAnnotations: {region: \"${cluster.labels.region}\"}")},
		"plain/ds.yaml":            {Data: []byte(daemonSet)},
		"unrelated/README.md":      {Data: []byte("one")},
		"other/kustomization.yaml": {Data: []byte("resources: [../plain-base]")},
		"plain-base/ds.yaml":       {Data: []byte(daemonSet)},
		"plain-base/kustomization.yaml": {
			Data: []byte("resources: [ds.yaml]")},
	}
}

func with(files fstest.MapFS, name, text string) fstest.MapFS {
	out := fstest.MapFS{}
	for k, v := range files {
		out[k] = v
	}
	out[name] = &fstest.MapFile{Data: []byte(text)}
	return out
}

func without(files fstest.MapFS, name string) fstest.MapFS {
	out := with(files, name, "")
	delete(out, name)
	return out
}

// TestMemory renders in steps with one Renderer; each step says whether it is
// built or shares an earlier build.
func TestMemory(t *testing.T) {
	one := sharing("agent:1")
	steps := []struct {
		reason  string
		files   fstest.MapFS
		overlay string
		cluster clusters.Cluster
		want    Stats
	}{
		{"nothing is known at first", one, "eu", clusterOf([]string{"a", "region=eu"}), Stats{Built: 1}},
		{"a cluster with equal values shares the build, whatever its name", one, "eu", clusterOf([]string{"b", "region=eu", "tier=x"}), Stats{Built: 1, Shared: 1}},
		{"a value that was used is part of the key", one, "eu", clusterOf([]string{"c", "region=us"}), Stats{Built: 2, Shared: 1}},
		{"another overlay is another build", one, "base", clusterOf([]string{"a", "region=eu"}), Stats{Built: 3, Shared: 1}},
		{"a commit that touches no input shares it", with(one, "unrelated/README.md", "two"), "eu", clusterOf([]string{"a", "region=eu"}), Stats{Built: 3, Shared: 2}},
		{"a commit that touches a base builds again", sharing("agent:2"), "eu", clusterOf([]string{"a", "region=eu"}), Stats{Built: 4, Shared: 2}},
		{"but not what does not use the base", sharing("agent:2"), "other", clusterOf([]string{"a"}), Stats{Built: 5, Shared: 2}},
		{"and going back is free", one, "eu", clusterOf([]string{"a", "region=eu"}), Stats{Built: 5, Shared: 3}},
		{"a file that was asked for and absent counts once it is there", with(one, "eu/kustomization.yml", "resources: []"), "eu", clusterOf([]string{"a", "region=eu"}), Stats{Built: 6, Shared: 3}},
		{"a plain folder is remembered", one, "plain", clusterOf([]string{"a"}), Stats{Built: 7, Shared: 3}},
		{"with a file more it is another", with(one, "plain/x/y.json", `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}`), "plain", clusterOf([]string{"a"}), Stats{Built: 8, Shared: 3}},
		{"a file that is no manifest does not matter", with(one, "plain/notes.txt", "x"), "plain", clusterOf([]string{"a"}), Stats{Built: 8, Shared: 4}},
		{"a fault is remembered too", without(one, "base/ds.yaml"), "base", clusterOf([]string{"a"}), Stats{Built: 9, Shared: 4}},
		{"as it has the same inputs", without(one, "base/ds.yaml"), "base", clusterOf([]string{"b"}), Stats{Built: 9, Shared: 5}},
		{"a file that is too large is a fault", with(one, "base/ds.yaml", strings.Repeat("#", render.MaxFileBytes+1)), "base", clusterOf([]string{"a"}), Stats{Built: 10, Shared: 5}},
		{"which is not that of another file in its place", with(one, "base/ds.yaml", "kind: Nothing\n"), "base", clusterOf([]string{"a"}), Stats{Built: 11, Shared: 5}},
		{"a missing label is not, since it names the cluster", one, "eu", clusterOf([]string{"d"}), Stats{Built: 12, Shared: 5}},
		{"and fails again", one, "eu", clusterOf([]string{"e"}), Stats{Built: 13, Shared: 5}},
	}
	r := New(Options{})
	defer r.Close()
	for _, s := range steps {
		d, err := r.Render(t.Context(), source.Artifact{Files: s.files}, fleetOf(s.overlay), s.cluster)
		if got := r.Stats(); got != s.want {
			t.Fatalf("%s: got %+v, want %+v (%v)", s.reason, got, s.want, err)
		}
		if region := s.cluster.Labels["region"]; err == nil && s.overlay == "eu" && d.DaemonSets[0].Annotations["region"] != region {
			t.Errorf("%s: cluster %s got the objects of another region", s.reason, s.cluster.Name)
		}
	}
}

// TestInputs names what a build asked for, what was not there included.
func TestInputs(t *testing.T) {
	r := New(Options{})
	defer r.Close()
	d, err := r.Render(t.Context(), source.Artifact{Files: sharing("agent:1")}, fleetOf("base"), clusters.Cluster{Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, in := range d.Inputs {
		got[in.Path] = in.Hash
		if len(in.Hash) == 64 {
			got[in.Path] = "hash"
		}
	}
	want := map[string]string{
		"base": render.Folder, "base/kustomization.yaml": "hash", "base/ds.yaml": "hash",
		"base/kustomization.yml": render.Absent, "base/Kustomization": render.Absent,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("inputs, -want +got:\n%s", diff)
	}
}

// hashing is a file system that knows the hashes of its files, as Git does,
// and counts how often their content is read.
type hashing struct {
	fstest.MapFS
	reads *atomic.Int64
}

func (h hashing) Hash(name string) (string, error) {
	if f, ok := h.MapFS[name]; ok {
		return fmt.Sprintf("size-%d", len(f.Data)), nil
	}
	return "", fs.ErrNotExist
}

func (h hashing) ReadFile(name string) ([]byte, error) {
	h.reads.Add(1)
	return h.MapFS.ReadFile(name)
}

// TestHash takes hashes from a file system that has them: a build that is
// shared reads no file.
func TestHash(t *testing.T) {
	files := hashing{sharing("agent:1"), &atomic.Int64{}}
	r := New(Options{})
	defer r.Close()
	for i, name := range []string{"a", "b"} {
		before := files.reads.Load()
		d, err := r.Render(t.Context(), source.Artifact{Files: files}, fleetOf("base"), clusters.Cluster{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(d.Inputs, render.Input{Path: "base/kustomization.yaml", Hash: "size-20"}) {
			t.Errorf("the file system's hash is not used: %v", d.Inputs)
		}
		if read := files.reads.Load() > before; read != (i == 0) {
			t.Errorf("cluster %s: files read: %t", name, read)
		}
	}
}

// TestForget keeps the memory within its size and the newest in it.
func TestForget(t *testing.T) {
	r := New(Options{Remember: 8})
	defer r.Close()
	files := sharing("agent:1")
	region := func(i int) clusters.Cluster { return clusterOf([]string{"c", fmt.Sprintf("region=r%d", i)}) }
	for i := range 40 {
		if _, err := r.Render(t.Context(), source.Artifact{Files: files}, fleetOf("eu"), region(i)); err != nil {
			t.Fatal(err)
		}
		if n := len(r.memory.outcomes); n > 8 {
			t.Fatalf("%d builds are remembered, want at most 8", n)
		}
	}
	if _, err := r.Render(t.Context(), source.Artifact{Files: files}, fleetOf("eu"), region(39)); err != nil {
		t.Fatal(err)
	}
	if got, want := r.Stats(), (Stats{Built: 40, Shared: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestConcurrency renders many clusters at once: each gets its own objects,
// and each distinct build is made once.
func TestConcurrency(t *testing.T) {
	r := New(Options{})
	defer r.Close()
	files := sharing("agent:1")
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			region := fmt.Sprintf("r%d", i%3)
			c := clusterOf([]string{fmt.Sprintf("c%d", i), "region=" + region})
			d, err := r.Render(t.Context(), source.Artifact{Files: files}, fleetOf("eu"), c)
			if err != nil || len(d.DaemonSets) != 1 || d.DaemonSets[0].Annotations["region"] != region {
				t.Errorf("cluster %s: %v, %v", c.Name, d.DaemonSets, err)
			}
		})
	}
	wg.Wait()
	if got, want := r.Stats(), (Stats{Built: 3, Shared: 57}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// stuck is a file system whose reads wait until they are let go.
type stuck struct {
	fstest.MapFS
	reached chan struct{}
	letGo   chan struct{}
	once    *sync.Once
}

func newStuck() stuck {
	return stuck{sharing("agent:1"), make(chan struct{}), make(chan struct{}), &sync.Once{}}
}

func (s stuck) ReadFile(name string) ([]byte, error) {
	s.once.Do(func() { close(s.reached) })
	<-s.letGo
	return s.MapFS.ReadFile(name)
}

// TestContext returns when the context ends, for the build that hangs and for
// one that waits for it; afterwards the Renderer works as before.
func TestContext(t *testing.T) {
	r := New(Options{})
	defer r.Close()
	files := newStuck()
	ctx, cancel := context.WithCancel(t.Context())
	errs := make(chan error)
	go func() {
		_, err := r.Render(ctx, source.Artifact{Files: files}, fleetOf("base"), clusters.Cluster{Name: "hangs"})
		errs <- err
	}()
	<-files.reached
	go func() {
		_, err := r.Render(ctx, source.Artifact{Files: sharing("agent:1")}, fleetOf("other"), clusters.Cluster{Name: "waits"})
		errs <- err
	}()
	cancel()
	for range 2 {
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want that the context was cancelled", err)
		}
	}
	close(files.letGo)
	d, err := r.Render(t.Context(), source.Artifact{Files: files.MapFS}, fleetOf("base"), clusters.Cluster{Name: "after"})
	if err != nil || len(d.DaemonSets) != 1 {
		t.Errorf("after the hang: %v, %v", d.DaemonSets, err)
	}
}

// TestDuration ends a build that takes too long, with a budget's error.
func TestDuration(t *testing.T) {
	r := New(Options{Duration: 20 * time.Millisecond})
	files := newStuck()
	_, err := r.Render(t.Context(), source.Artifact{Files: files}, fleetOf("base"), clusters.Cluster{Name: "a"})
	wantCode(t, err, render.OverBudget)
	close(files.letGo)
	r.Close()
	if got := len(r.memory.outcomes); got != 0 {
		t.Errorf("%d cut-off builds are remembered, want none", got)
	}
}

// TestClose waits for the build that runs and refuses others.
func TestClose(t *testing.T) {
	r := New(Options{})
	files := newStuck()
	done := make(chan error)
	go func() {
		_, err := r.Render(t.Context(), source.Artifact{Files: files}, fleetOf("base"), clusters.Cluster{Name: "a"})
		done <- err
	}()
	<-files.reached
	closed := make(chan struct{})
	go func() { r.Close(); close(closed) }()
	if err := <-done; !errors.Is(err, errClosed) {
		t.Errorf("got %v, want that the renderer is closed", err)
	}
	select {
	case <-closed:
		t.Error("Close did not wait for the build")
	default:
	}
	close(files.letGo)
	<-closed
	if _, err := r.Render(t.Context(), source.Artifact{Files: files}, fleetOf("other"), clusters.Cluster{Name: "b"}); !errors.Is(err, errClosed) {
		t.Errorf("after Close: got %v, want that the renderer is closed", err)
	}
}

// TestBudgets stops at each budget.
func TestBudgets(t *testing.T) {
	cases := map[string]struct {
		reason  string
		options Options
		overlay string
		want    string
	}{
		"files":         {"a kustomization and three files", Options{Files: 3}, "flat", "3 files"},
		"bytes":         {"their bytes", Options{Bytes: 500}, "flat", "500 bytes"},
		"nodes":         {"their nodes", Options{Nodes: 50}, "flat", "50 YAML nodes"},
		"objects":       {"their objects", Options{Objects: 2}, "flat", "2 objects"},
		"plain files":   {"the same without a kustomization", Options{Files: 2}, "plain", "2 files"},
		"plain objects": {"the same without a kustomization", Options{Objects: 2}, "plain", "2 objects"},
		"plain bytes":   {"the same without a kustomization", Options{Bytes: 500}, "plain", "500 bytes"},
	}
	files := fstest.MapFS{}
	for name, f := range flat(3) {
		files["flat/"+name] = f
		if name != "kustomization.yaml" {
			files["plain/"+name] = f
		}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := New(c.options)
			defer r.Close()
			_, err := r.Render(t.Context(), source.Artifact{Files: files}, fleetOf(c.overlay), clusters.Cluster{Name: "a"})
			if fault := wantCode(t, err, render.OverBudget); !strings.Contains(fault.Message, c.want) {
				t.Errorf("%s: got %q, want it to say %q", c.reason, fault.Message, c.want)
			}
		})
	}
}

// TestTrace gives the trace beside every error.
func TestTrace(t *testing.T) {
	r := New(Options{})
	defer r.Close()
	f := fleetOf("missing")
	d, err := r.Render(t.Context(), source.Artifact{Files: fstest.MapFS{}, Revision: source.Revision{Commit: "c"}}, f, clusters.Cluster{Name: "a"})
	wantCode(t, err, render.PathNotFound)
	if len(d.Trace) != 1 || d.Overlay != "missing" || d.Revision.Commit != "c" {
		t.Errorf("got %+v", d)
	}
	f.Targets[0].Clusters.Names = []string{"other"}
	d, err = r.Render(t.Context(), source.Artifact{Files: fstest.MapFS{}}, f, clusters.Cluster{Name: "a"})
	if !errors.Is(err, render.ErrUnmatched) || len(d.Trace) != 1 {
		t.Errorf("got %+v, %v", d, err)
	}
}

// TestBinary passes files of a generator as they are, unless they hold a
// substitution of ours or are Git LFS's.
func TestBinary(t *testing.T) {
	kustomization := "resources: [ds.yaml]\nconfigMapGenerator: [{name: x, files: [blob]}]"
	cases := map[string]struct {
		reason string
		blob   string
		code   string
	}{
		"binary":                 {"binary passes", "\xff\xfe\x00", ""},
		"a template":             {"so does what looks like broken YAML", "{{ range }}\na: b: c\n", ""},
		"binary with our name":   {"nothing is replaced in binary", "\xff\xfe${cluster.name}", render.Unsupported},
		"a pointer of Git LFS":   {"the content is not here", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", render.InvalidManifest},
		"more than 8 MiB":        {"it would not fit an object anyway", strings.Repeat("#", render.MaxFileBytes+1), render.OverBudget},
		"a name that is unknown": {"text is substituted", "${cluster.labels.none}", render.UndefinedSubstitution},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			files := fstest.MapFS{"kustomization.yaml": {Data: []byte(kustomization)}, "ds.yaml": {Data: []byte(daemonSet)}, "blob": {Data: []byte(c.blob)}}
			_, err := once(t, shared, files)
			if c.code == "" && err != nil {
				t.Errorf("%s: %v", c.reason, err)
			}
			if c.code != "" {
				wantCode(t, err, c.code)
			}
		})
	}
}

// TestReadOnly refuses every way to write.
func TestReadOnly(t *testing.T) {
	d := disk{tree: newTree(t.Context(), fstest.MapFS{}, clusters.Fleet{}, clusters.Cluster{}, Options{}.withDefaults())}
	_, create := d.Create("/tree/x")
	_, open := d.Open("/tree/x")
	_, readDir := d.ReadDir("/tree")
	_, glob := d.Glob("/tree/*")
	for name, err := range map[string]error{
		"Create": create, "Open": open, "ReadDir": readDir, "Glob": glob, "Mkdir": d.Mkdir("/tree/x"), "MkdirAll": d.MkdirAll("/tree/x"),
		"RemoveAll": d.RemoveAll("/tree"), "WriteFile": d.WriteFile("/tree/x", nil), "Walk": d.Walk("/tree", nil),
	} {
		if !errors.Is(err, errReadOnly) {
			t.Errorf("%s: got %v, want that the file system is read-only", name, err)
		}
	}
}

// TestFieldsAreKnown fails when kustomize learns a field that entries does not
// judge. Add the field there, or here if it names no path.
func TestFieldsAreKnown(t *testing.T) {
	judged := []string{"openapi", "patchesStrategicMerge", "patchesJson6902", "patches", "replacements", "resources", "components", "crds", "bases",
		"configMapGenerator", "secretGenerator", "helmGlobals", "helmCharts", "helmChartInflationGenerator", "configurations", "generators", "transformers", "validators"}
	pathless := []string{"", "metadata", "namePrefix", "nameSuffix", "namespace", "commonLabels", "labels", "commonAnnotations", "images", "imageTags",
		"replicas", "vars", "sortOptions", "generatorOptions", "buildMetadata"}
	same(t, "Kustomization", types.Kustomization{}, slices.Concat(judged, pathless))
	same(t, "Patch", types.Patch{}, []string{"path", "patch", "target", "options"})
	same(t, "KvPairSources", types.KvPairSources{}, []string{"literals", "files", "envs", "env"})
	same(t, "GeneratorArgs", types.GeneratorArgs{}, []string{"namespace", "name", "behavior", "", "options"})
	same(t, "ReplacementField", types.ReplacementField{}, []string{"", "path"})
}

func same(t *testing.T, name string, of any, want []string) {
	t.Helper()
	var got []string
	for f := range reflect.TypeOf(of).Fields() {
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		got = append(got, tag)
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields of %s that are judged, -judged +kustomize's:\n%s", name, diff)
	}
}
