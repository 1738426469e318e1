package plan_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/drift"
	"rollcall.dev/rollcall/controller/plan"
)

// scene is the input of one plan, as a scenario spells it out.
type scene struct{ input plan.Input }

// about is section cluster.yaml: what is told of the cluster beside its policy,
// which is the fleet's.
type about struct {
	Name     string   `json:"name"`
	Overlay  string   `json:"overlay"`
	Commit   string   `json:"commit"`
	Identity string   `json:"identity"`
	Adopt    []string `json:"adopt"`
	Holds    []string `json:"holds"` // codes, of all that changes

	Blanks []clusters.Blank  `json:"blanks"`
	Unread map[string]string `json:"unread"` // by identity
}

// applied is section inventory.yaml.
type applied struct {
	Cluster string          `json:"cluster"`
	Overlay string          `json:"overlay"`
	Commit  string          `json:"commit"`
	Pending string          `json:"pending"`
	Items   []clusters.Item `json:"items"`
}

// load is section load.yaml: what runs on the nodes.
type load struct {
	Claims     []clusters.Claim             `json:"claims"`
	Priorities map[string]clusters.Priority `json:"priorities"`
}

func strictly(t testing.TB, f txtar.File, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict(f.Data, into); err != nil {
		t.Fatalf("%s: %v", f.Name, err)
	}
}

func readScene(t testing.TB, a *txtar.Archive) *scene {
	t.Helper()
	live := &clusters.Live{Identity: "uid-of-cluster", ObservedAt: noon}
	in := plan.Input{Cluster: clusters.Cluster{Name: "c1"}, Live: live, Commit: "c2", To: plan.Side{Overlay: "overlays/a"}}
	var before, after []unstructured.Unstructured
	from := false
	in.Fleet = fleet(t, "")
	for _, f := range a.Files {
		switch f.Name {
		case "fleet.yaml":
			in.Fleet = fleet(t, indented(f.Data))
		case "cluster.yaml":
			readCluster(t, f, &in)
		case "desired.yaml":
			after = documents(t, f)
		case "before.yaml":
			before, from = documents(t, f), true
		case "live.yaml":
			readLive(t, f, live)
		case "nodes.yaml":
			live.Nodes = nodes(t, f)
		case "inventory.yaml":
			var i applied
			strictly(t, f, &i)
			live.Inventory = &clusters.Inventory{Fleet: "p", Cluster: i.Cluster, Overlay: i.Overlay, Commit: i.Commit, Pending: i.Pending, Items: i.Items, Version: "7"}
		case "load.yaml":
			var l load
			strictly(t, f, &l)
			live.Claims, live.Priorities = append([]clusters.Claim{}, l.Claims...), l.Priorities
		case "want":
		default:
			t.Fatalf("what is %s?", f.Name)
		}
	}
	in.Cluster.Policy = in.Fleet.Policy
	in.To = side(t, in.Fleet, in.To.Overlay, after)
	if from {
		in.From = new(side(t, in.Fleet, "overlays/a", before))
		return &scene{in}
	}
	in.Drift = compared(in)
	return &scene{in}
}

func indented(data []byte) string {
	return "  " + strings.TrimRight(strings.ReplaceAll(string(data), "\n", "\n  "), " ")
}

func readCluster(t testing.TB, f txtar.File, in *plan.Input) {
	c := about{Name: "c1", Overlay: in.To.Overlay, Commit: in.Commit, Identity: in.Live.Identity}
	strictly(t, f, &c)
	in.Cluster.Name, in.To.Overlay, in.Commit, in.Live.Identity, in.Adopt = c.Name, c.Overlay, c.Commit, c.Identity, c.Adopt
	in.Live.Blanks, in.Live.Unread = c.Blanks, c.Unread
	for _, code := range c.Holds {
		in.Holds = append(in.Holds, plan.Hold{Code: code, Message: "said so"})
	}
}

// compared is the drift of what lives against Git, as the controller has it
// compared.
func compared(in plan.Input) drift.Outcome {
	var ignore []drift.Rule
	for i, g := range in.Fleet.Ignore {
		ignore = append(ignore, drift.Rule{Ignore: g, At: i})
	}
	return types.Compare(drift.Input{Ignore: ignore, DaemonSets: in.To.DaemonSets, Objects: in.To.Objects, Live: in.Live, AppliedBy: in.Fleet.AppliedBy, Fleet: in.Fleet.Name})
}

// side is what a revision wants, with the fleet's label where it may be applied
// and without what the fleet excludes.
func side(t testing.TB, f clusters.Fleet, overlay string, all []unstructured.Unstructured) plan.Side {
	t.Helper()
	for _, power := range f.Policy.May {
		if power == "apply" {
			all = plan.Labelled(all, f.Name)
			break
		}
	}
	out := plan.Side{Overlay: overlay, Objects: all}
	for i := range all {
		if all[i].GetKind() != "DaemonSet" {
			continue
		}
		if ds := daemonSetOf(t, &all[i]); !f.Excluded(ds.Namespace, ds.Name, ds.Labels) {
			out.DaemonSets = append(out.DaemonSets, ds)
		}
	}
	return out
}

func daemonSetOf(t testing.TB, u *unstructured.Unstructured) (ds appsv1.DaemonSet) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &ds); err != nil {
		t.Fatal(err)
	}
	return ds
}

func documents(t testing.TB, f txtar.File) []unstructured.Unstructured {
	t.Helper()
	var out []unstructured.Unstructured
	for _, doc := range bytes.Split(f.Data, []byte("\n---\n")) {
		text, err := yaml.YAMLToJSON(doc)
		if err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		if bytes.Equal(text, []byte("null")) {
			continue
		}
		var u unstructured.Unstructured
		if err := u.UnmarshalJSON(text); err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		out = append(out, u)
	}
	return out
}

// readLive reads what lives. Whatever names no manager was applied by rollcall,
// and what has no UID has one of its name.
func readLive(t testing.TB, f txtar.File, live *clusters.Live) {
	for _, u := range documents(t, f) {
		if u.GetUID() == "" {
			_ = unstructured.SetNestedField(u.Object, "uid-"+u.GetName(), "metadata", "uid")
		}
		if u.GetManagedFields() == nil {
			_ = unstructured.SetNestedSlice(u.Object, []any{map[string]any{"manager": clusters.FieldManager, "operation": "Apply"}}, "metadata", "managedFields")
		}
		if u.GetKind() == "DaemonSet" {
			live.DaemonSets = append(live.DaemonSets, daemonSetOf(t, &u))
			continue
		}
		live.Objects = append(live.Objects, u)
	}
}

// nodes reads Nodes, of which one named n-{3} stands for n-1, n-2 and n-3.
func nodes(t testing.TB, f txtar.File) []clusters.Node {
	t.Helper()
	var out []clusters.Node
	for _, u := range documents(t, f) {
		var n corev1.Node
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &n); err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		name, many, _ := strings.Cut(n.Name, "{")
		if many == "" {
			out = append(out, clusters.NodeOf(&n))
			continue
		}
		var last int
		if _, err := fmt.Sscanf(many, "%d}", &last); err != nil {
			t.Fatalf("%s: %q: %v", f.Name, n.Name, err)
		}
		for i := range last {
			n.Name = fmt.Sprintf("%s%d", name, i+1)
			out = append(out, clusters.NodeOf(&n))
		}
	}
	return out
}

// snapshot is all that a plan is made of, to see that it is left as it is.
func (s *scene) snapshot(t testing.TB) string {
	t.Helper()
	data, err := json.Marshal([]any{s.input.To, s.input.From, s.input.Live, s.input.Live.Inventory, s.input.Drift, s.input.Holds, s.input.Cluster.Policy})
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
