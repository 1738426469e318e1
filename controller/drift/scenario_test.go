package drift_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/drift"
)

var update = flag.Bool("update", false, "rewrite the want sections; read the diff")

// world is an Input that a scenario spells out.
type world struct {
	input drift.Input
	types *drift.Types
}

func objects(t *testing.T, data []byte) []unstructured.Unstructured {
	t.Helper()
	var out []unstructured.Unstructured
	for _, doc := range bytes.Split(data, []byte("\n---\n")) {
		text, err := yaml.YAMLToJSON(doc)
		if err != nil {
			t.Fatal(err)
		}
		var u unstructured.Unstructured
		if bytes.Equal(text, []byte("null")) {
			continue
		}
		if err := u.UnmarshalJSON(text); err != nil {
			t.Fatal(err)
		}
		out = append(out, u)
	}
	return out
}

func daemonSets(t *testing.T, all []unstructured.Unstructured) (dss []appsv1.DaemonSet, rest []unstructured.Unstructured) {
	t.Helper()
	for _, u := range all {
		if u.GetKind() != "DaemonSet" {
			rest = append(rest, u)
			continue
		}
		var ds appsv1.DaemonSet
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &ds); err != nil {
			t.Fatal(err)
		}
		dss = append(dss, ds)
	}
	return dss, rest
}

// load reads desired.yaml, live.yaml and rules.yaml.
func load(t *testing.T, a *txtar.Archive) world {
	t.Helper()
	w := world{types: drift.NewTypes()}
	live := &clusters.Live{Unread: map[string]string{}}
	w.input.Live, w.input.Foreign = live, true
	for _, f := range a.Files {
		switch f.Name {
		case "desired.yaml":
			w.input.Objects = objects(t, f.Data)
			w.input.DaemonSets, _ = daemonSets(t, w.input.Objects)
		case "live.yaml":
			live.DaemonSets, live.Objects = daemonSets(t, objects(t, f.Data))
		case "unread.yaml":
			if err := yaml.Unmarshal(f.Data, &live.Unread); err != nil {
				t.Fatal(err)
			}
		case "inventory.yaml":
			live.Inventory = &clusters.Inventory{}
			var refs []clusters.Reference
			if err := yaml.UnmarshalStrict(f.Data, &refs); err != nil {
				t.Fatal(err)
			}
			for _, r := range refs {
				live.Inventory.Items = append(live.Inventory.Items, clusters.Item{Reference: r})
			}
		case "fleet.yaml":
			fleet, err := clusters.ParseFleet("fleet.yaml", f.Data)
			if err != nil {
				t.Fatal(err)
			}
			w.input.AppliedBy = fleet.AppliedBy
			for i, g := range fleet.Ignore {
				w.input.Ignore = append(w.input.Ignore, drift.Rule{Ignore: g, At: i})
			}
		case "want":
		default:
			t.Fatalf("what is %s?", f.Name)
		}
	}
	return w
}

func print(o drift.Outcome) string {
	var b strings.Builder
	fields := func(lead string, all []drift.Field) {
		for _, f := range all {
			fmt.Fprintf(&b, "  %s%s %s: %q -> %q", lead, f.Change, f.Path, f.Desired, f.Live)
			if f.Manager != "" {
				fmt.Fprintf(&b, " by %s (%s)", f.Manager, f.Operation)
			}
			if f.NotAfter != nil {
				fmt.Fprintf(&b, " %s", f.NotAfter.Format(time.RFC3339))
			}
			if f.Placement {
				b.WriteString(" PLACEMENT")
			}
			if f.Rule != "" {
				fmt.Fprintf(&b, " <%s>", f.Rule)
			}
			b.WriteByte('\n')
		}
	}
	for _, x := range o.Objects {
		fmt.Fprintf(&b, "%s %s", x.State, x.Object)
		if x.Immutable {
			b.WriteString(" immutable")
		}
		b.WriteByte('\n')
		fields("", x.Fields)
		fields("foreign ", x.Foreign)
		fields("ignored ", x.Ignored)
		for _, u := range x.Unknown {
			fmt.Fprintf(&b, "  %s\n", u)
		}
	}
	for _, u := range o.Unread {
		fmt.Fprintf(&b, "unread %s: %s\n", u.Object, u.Reason)
	}
	for i, used := range o.Used {
		if !used {
			fmt.Fprintf(&b, "unused rule %d\n", i)
		}
	}
	for _, u := range o.Unused {
		fmt.Fprintf(&b, "unused %s on %s %s\n", u.Rule, u.Object, u.Fault)
	}
	fmt.Fprintf(&b, "compared %d\n", o.Compared)
	return b.String()
}

func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("there are no scenarios", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			w := load(t, a)
			got := print(w.types.Compare(w.input))
			want := ""
			for i := range a.Files {
				if a.Files[i].Name == "want" {
					want = string(a.Files[i].Data)
					a.Files[i].Data = []byte(got)
				}
			}
			if *update {
				if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s-want +got:\n%s", a.Comment, diff)
			}
		})
	}
}

// An object never differs from itself, whoever wrote it, and what Git leaves out
// of it is no difference where nobody but defaults set it.
func TestReflexive(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txtar")
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		w := load(t, a)
		in := drift.Input{Live: w.input.Live, DaemonSets: w.input.Live.DaemonSets, Objects: w.input.Live.Objects}
		for _, o := range w.types.Compare(in).Objects {
			if o.Drifted() {
				text, _ := json.Marshal(o)
				t.Errorf("%s: an object differs from itself: %s", file, text)
			}
		}
	}
}
