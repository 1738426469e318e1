package drift_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/clusters/recorded"
	"rollcall.dev/rollcall/controller/drift"
	"rollcall.dev/rollcall/render"
	"rollcall.dev/rollcall/render/build"
	"rollcall.dev/rollcall/sync/source"
)

// agents names the folder of manifests that TestAgents delivers: one folder an
// agent.
const agents = "ROLLCALL_AGENTS"

// TestMain lets the test's own binary build overlays, as main does.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == build.ChildCommand {
		os.Exit(build.Child(os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

// TestAgents renders public agents' manifests, delivers them in several ways,
// twice each, to a real control plane and demands that nothing differs, as it is
// observed live, in a dump and in a snapshot; and that an image which somebody
// then changes does, and that alone. It is for make agents; what it found is kept
// in testdata/agents.txt.
func TestAgents(t *testing.T) {
	dir := os.Getenv(agents)
	if dir == "" {
		t.Skip("make agents DIR=… runs it over manifests that were got by hand")
	}
	folders, err := filepath.Glob(filepath.Join(dir, "*", "*.yaml"))
	if err != nil || len(folders) == 0 {
		t.Fatalf("no agents in %q: %v", dir, err)
	}
	for i := range folders {
		folders[i] = filepath.Base(filepath.Dir(folders[i]))
	}
	s := newSite(t)
	renderer := build.New(build.Options{})
	defer renderer.Close()
	for _, name := range slices.Compact(folders) {
		t.Run(name, func(t *testing.T) {
			fleet := clusters.Fleet{Name: "fleet", Targets: []clusters.Target{{Name: "all", Overlay: name, Namespace: "agents"}}}
			desired, err := renderer.Render(t.Context(), source.Artifact{Files: os.DirFS(dir)}, fleet, clusters.Cluster{Name: "c", Labels: map[string]string{}})
			if err != nil {
				t.Fatal(err)
			}
			agent{t: t, site: s, name: name, desired: desired}.judge()
		})
	}
}

// agent is one agent under test.
type agent struct {
	*site
	t       *testing.T
	name    string
	desired render.Desired
}

// judge delivers the agent in all ways and prints its line.
func (a agent) judge() {
	differences, notes := 0, map[string]bool{}
	for _, w := range ways {
		all := a.prepare(a.t, a.desired.Objects)
		if n := len(a.desired.Objects) - len(all); n > 0 {
			notes[fmt.Sprintf("not delivered by %s: %d objects that the server had before", w.name, n)] = true
		}
		refused := w.deliver(a.t, a.site, all)
		taken := slices.DeleteFunc(slices.Clone(all), func(u unstructured.Unstructured) bool { return !a.there(a.t, &u) })
		if len(taken)+len(refused) < len(all) {
			a.t.Errorf("%s: %d of %d objects are there, and only %d were refused", w.name, len(taken), len(all), len(refused))
		}
		for id, why := range refused {
			notes["refused to "+w.name+": "+id+": "+why] = true
		}
		differences += a.compare(w.name, taken, notes)
		for id, why := range w.again(a.t, a.site, taken) {
			notes["refused to "+w.name+" again: "+id+": "+why] = true
		}
		differences += a.compare(w.name+" again", taken, notes)
		a.tamper(w.name, taken)
		a.remove(a.t, taken)
	}
	fmt.Printf("%s: %d objects, %d DaemonSets, %d differences\n", a.name, len(a.desired.Objects), len(a.desired.DaemonSets), differences)
	for _, n := range slices.Sorted(mapsKeys(notes)) {
		fmt.Println("  " + n)
	}
}

func mapsKeys(m map[string]bool) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// compare looks at the cluster in every way and counts what differs.
func (a agent) compare(way string, taken []unstructured.Unstructured, notes map[string]bool) (differences int) {
	a.t.Helper()
	var want clusters.Want
	for i := range taken {
		if ref := clusters.ReferenceOf(&taken[i]); ref.Kind != "DaemonSet" && ref.Kind != "Secret" {
			want.Objects = append(want.Objects, ref)
		}
	}
	live, err := a.observer.Observe(a.t.Context(), a.cluster, want)
	if err != nil {
		a.t.Fatal(err)
	}
	seen := map[string]clusters.Live{"live": live, "a dump": a.dump(a.t, want, taken), "a snapshot": a.snapshot(live, want)}
	for _, eye := range []string{"live", "a dump", "a snapshot"} {
		out := a.outcome(seen[eye], taken)
		for _, o := range out.Objects {
			for _, u := range o.Unknown {
				notes["unknown in "+o.Object.String()+": "+u] = true
			}
			if o.Drifted() {
				differences += max(1, len(o.Fields))
				a.t.Errorf("%s, %s:\n%s", way, eye, print(drift.Outcome{Objects: []drift.Object{o}}))
			}
		}
		for _, u := range out.Unread {
			if u.Object.Kind != "Secret" && eye != "a snapshot" {
				a.t.Errorf("%s, %s: %s is not read: %s", way, eye, u.Object, u.Reason)
			}
		}
		if n := out.Compared + len(out.Unread); n != len(taken) {
			a.t.Errorf("%s, %s: compared %d of %d", way, eye, n, len(taken))
		}
	}
	return differences
}

func (a agent) outcome(live clusters.Live, taken []unstructured.Unstructured) drift.Outcome {
	dss := slices.DeleteFunc(slices.Clone(a.desired.DaemonSets), func(ds appsv1.DaemonSet) bool {
		return !slices.ContainsFunc(taken, func(u unstructured.Unstructured) bool {
			return u.GetKind() == "DaemonSet" && u.GetNamespace() == ds.Namespace && u.GetName() == ds.Name
		})
	})
	return drift.NewTypes().Compare(drift.Input{DaemonSets: dss, Objects: taken, Live: &live})
}

// dump reads what kubectl get -o json prints: nobody's fields are managed in it.
func (a agent) dump(t *testing.T, want clusters.Want, taken []unstructured.Unstructured) clusters.Live {
	t.Helper()
	file := filepath.Join(t.TempDir(), "dump.json")
	var text bytes.Buffer
	list := unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List"}}
	for i := range taken {
		u, err := a.resource(&taken[i]).Get(t.Context(), taken[i].GetName(), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		u.SetManagedFields(nil)
		list.Items = append(list.Items, *u)
	}
	none := func(kind string) *unstructured.UnstructuredList {
		return &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
	}
	for _, l := range []*unstructured.UnstructuredList{&list, none("NodeList"), none("PodList"), none("NamespaceList")} {
		data, err := l.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		text.Write(data)
	}
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	live, err := recorded.Read(t.Context(), nil, want, file)
	if err != nil {
		t.Fatal(err)
	}
	return live
}

// snapshot is what rollcall record keeps of an observation.
func (a agent) snapshot(live clusters.Live, want clusters.Want) clusters.Live {
	a.t.Helper()
	file := filepath.Join(a.t.TempDir(), "snapshot.json.gz")
	var data bytes.Buffer
	if err := recorded.Write(&data, "c", "test", live); err != nil {
		a.t.Fatal(err)
	}
	if err := os.WriteFile(file, data.Bytes(), 0o600); err != nil {
		a.t.Fatal(err)
	}
	read, err := recorded.Read(a.t.Context(), nil, want, file)
	if err != nil {
		a.t.Fatal(err)
	}
	return read
}

// tamper changes the image of every DaemonSet by hand: that must be told.
func (a agent) tamper(way string, taken []unstructured.Unstructured) {
	a.t.Helper()
	var want, got []string
	for i := range taken {
		u := &taken[i]
		if u.GetKind() != "DaemonSet" {
			continue
		}
		containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
		first, _ := containers[0].(map[string]any)
		_, err := a.resource(u).Patch(a.t.Context(), u.GetName(), types.JSONPatchType, []byte(`[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"hotfix:1"}]`), metav1.PatchOptions{FieldManager: "kubectl-edit"})
		if err != nil {
			a.t.Fatal(err)
		}
		want = append(want, fmt.Sprintf("%s/%s changed spec.template.spec.containers[name=%s].image by kubectl-edit", u.GetNamespace(), u.GetName(), first["name"]))
	}
	live, err := a.observer.Observe(a.t.Context(), a.cluster, clusters.Want{})
	if err != nil {
		a.t.Fatal(err)
	}
	dss := slices.DeleteFunc(slices.Clone(taken), func(u unstructured.Unstructured) bool { return u.GetKind() != "DaemonSet" })
	for _, o := range a.outcome(live, dss).Objects {
		for _, f := range o.Fields {
			got = append(got, fmt.Sprintf("%s/%s %s %s by %s", o.Object.Namespace, o.Object.Name, f.Change, f.Path, f.Manager))
		}
	}
	if slices.Sort(want); !slices.Equal(got, want) {
		a.t.Errorf("%s: after a change by hand got\n%s\nwant\n%s", way, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
