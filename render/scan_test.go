package render

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const manifest = `apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: ns}
spec:
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec: {containers: [{name: c, image: "example.invalid/a:1"}]}
`

func TestScan(t *testing.T) {
	type want struct{ code, field, says string }
	cases := map[string]struct {
		reason string
		data   string
		want   want
	}{
		"plain":             {"a manifest passes", manifest, want{}},
		"crlf":              {"line ends of Windows pass", strings.ReplaceAll(manifest, "\n", "\r\n"), want{}},
		"bom":               {"a byte order mark of UTF-8 passes", "\xef\xbb\xbf" + manifest, want{}},
		"json":              {"JSON is YAML", `{"a": [1, 2, {"b": null}]}`, want{}},
		"documents":         {"several documents may use one key each", "a: 1\n---\na: 1\n---\n", want{}},
		"empty":             {"nothing passes: it renders to nothing, which others judge", "", want{}},
		"aliases":           {"an alias passes while it stays small", "a: &a {x: 1}\nb: *a\nc:\n  <<: *a\n", want{}},
		"marker in a text":  {"a conflict marker that is indented is content", "a: |\n  <<<<<<< HEAD\n  >>>>>>> b\n", want{}},
		"utf-16":            {"UTF-16 is named", "\xff\xfea\x00", want{InvalidManifest, "", "UTF-16"}},
		"utf-16 big endian": {"UTF-16 is named", "\xfe\xff\x00a", want{InvalidManifest, "", "UTF-16"}},
		"invalid utf-8":     {"with its line", manifest + "# \xff\xfe\n", want{InvalidManifest, "line 9", "UTF-8"}},
		"nul":               {"a binary file is named", "a: b\n\x00\x01", want{InvalidManifest, "line 2", "NUL"}},
		"lfs":               {"a pointer is not its file", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", want{InvalidManifest, "", "LFS"}},
		"conflict":          {"a merge was not resolved", "<<<<<<< HEAD\na: 1\n=======\na: 2\n>>>>>>> b\n", want{InvalidManifest, "line 1", "conflict"}},
		"conflict below":    {"anywhere in the file", "a: 1\n>>>>>>> b\n", want{InvalidManifest, "line 2", "conflict"}},
		"tab":               {"YAML refuses tabs, with the line", "a:\n\tb: c\n", want{InvalidManifest, "line 2", "valid YAML"}},
		"duplicate":         {"with both lines", manifest + "spec:\n  minReadySeconds: 5\n", want{InvalidManifest, "line 9", "first on line 4"}},
		"duplicate deep":    {"at any depth", "a:\n- b: {c: 1, c: 2}\n", want{InvalidManifest, "line 2", `"c"`}},
		"duplicate quoted":  {"quotes make no other key", "a: 1\n\"a\": 2\n", want{InvalidManifest, "line 2", `"a"`}},
		"duplicate merge":   {"two merges are two keys", "a: &a {}\nb:\n  <<: *a\n  <<: *a\n", want{InvalidManifest, "line 4", `"<<"`}},
		"integer key":       {"JSON has texts for keys", "data: {1: a}\n", want{InvalidManifest, "line 1", "quote"}},
		"boolean key":       {"also this one", "true: a\n", want{InvalidManifest, "line 1", "quote"}},
		"list as a key":     {"and this one", "? [a]\n: b\n", want{InvalidManifest, "line 1", "quote"}},
		"alias as a key":    {"a key may be an alias of a text", "a: &k x\n*k : y\n", want{}},
		"unknown alias":     {"YAML refuses it", "a: *b\n", want{InvalidManifest, "", "valid YAML"}},
		"100 levels":        {"the limit passes", nested(MaxFileDepth - 1), want{}},
		"102 levels":        {"one more does not", nested(MaxFileDepth + 1), want{OverBudget, "line 1", "deeper"}},
		"9,000 levels":      {"nor more than the stack likes", nested(9_000), want{OverBudget, "line 1", "deeper"}},
		"20,000 levels":     {"YAML itself refuses it", nested(20_000), want{InvalidManifest, "", "depth"}},
		"deep by aliases":   {"depth counts through aliases", deepAliases(), want{OverBudget, "line 3", "deeper"}},
		"too big":           {"by its size", strings.Repeat("#", MaxFileBytes+1), want{OverBudget, "", "bytes"}},
		"one long line":     {"a long line passes", strings.Repeat("#", 1<<20), want{}},
		"too many nodes":    {"counted", "a: [" + strings.Repeat("1,", MaxFileNodes) + "]\n", want{OverBudget, "line 1", "nodes"}},
		"far too many":      {"refused before it is parsed", "a: [" + strings.Repeat("1,", maxMarks) + "]\n", want{OverBudget, "", "nodes"}},
		"many documents":    {"counted over all", strings.Repeat("a: ["+strings.Repeat("1,", 996)+"]\n---\n", 201), want{OverBudget, "line 400", "nodes"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := Scan("f.yaml", []byte(c.data))
			fault, _ := errors.AsType[*Error](err)
			var got want
			if fault != nil {
				got = want{fault.Code, fault.Field, c.want.says}
				if !strings.Contains(fault.Message, c.want.says) || fault.File != "f.yaml" {
					t.Errorf("%s: got %v, want it to name f.yaml and say %q", c.reason, fault, c.want.says)
				}
			}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s: -want +got:\n%s%v", c.reason, diff, err)
			}
		})
	}
}

func nested(levels int) string {
	return "d: " + strings.Repeat("[", levels) + strings.Repeat("]", levels) + "\n"
}

// deepAliases nests 60 levels within 60 levels by an alias.
func deepAliases() string {
	half := strings.Repeat("[", 60)
	return "a: &a " + half + strings.Repeat("]", 60) + "\nb: " + half + "\n  *a" + strings.Repeat("]", 60) + "\n"
}

// TestScanHostile refuses what kills kustomize, and at once.
func TestScanHostile(t *testing.T) {
	cases := map[string]struct {
		file   string
		code   string
		within time.Duration
	}{
		"alias bomb":  {"build/testdata/hostile/01-yaml-alias-bomb/bomb.yaml", OverBudget, 100 * time.Millisecond},
		"alias cycle": {"build/testdata/hostile/02-yaml-alias-cycle/cycle.yaml", InvalidManifest, 10 * time.Millisecond},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(c.file)
			if err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			err = Scan("x", data)
			if took := time.Since(begin); took > c.within {
				t.Errorf("took %s, more than %s", took, c.within)
			}
			if fault, ok := errors.AsType[*Error](err); !ok || fault.Code != c.code {
				t.Errorf("got %v, want code %s", err, c.code)
			}
		})
	}
}

func TestObjects(t *testing.T) {
	cases := map[string]struct {
		reason string
		data   string
		want   []map[string]any
		fails  string
	}{
		"list in a list": {
			"lists are taken apart at any depth",
			"kind: List\napiVersion: v1\nitems:\n- {kind: PodList, apiVersion: v1, items: [{apiVersion: v1, kind: Pod, metadata: {name: a}}]}\n- {apiVersion: v1, kind: Pod, metadata: {name: b}}\n",
			[]map[string]any{object("a"), object("b")}, "",
		},
		"kind that ends in List": {
			"without items it is an object",
			"apiVersion: v1\nkind: AccessList\nmetadata: {name: a}\n",
			[]map[string]any{{"apiVersion": "v1", "kind": "AccessList", "metadata": map[string]any{"name": "a"}}}, "",
		},
		"merge keys": {
			"a merge adds what is not there, the first of several wins",
			"x: &x {name: b, p: 1}\ny: &y {p: 2, q: 3}\napiVersion: v1\nkind: Pod\nmetadata:\n  <<: [*x, *y]\n  name: a\n",
			[]map[string]any{{"apiVersion": "v1", "kind": "Pod", "x": map[string]any{"name": "b", "p": int64(1)}, "y": map[string]any{"p": int64(2), "q": int64(3)}, "metadata": map[string]any{"name": "a", "p": int64(1), "q": int64(3)}}}, "",
		},
		"no kind":       {"an object has a kind", "a: 1\n---\napiVersion: v1\nmetadata: {name: x}\n", nil, "apiVersion is missing"},
		"no name":       {"and a name", "apiVersion: v1\nkind: Pod\n", nil, "metadata.name is missing"},
		"a scalar":      {"text is no object", "hello\n", nil, "not a Kubernetes object"},
		"items of text": {"nor in a list", "apiVersion: v1\nkind: List\nitems: [a]\n", nil, "not a Kubernetes object"},
		"infinity":      {"JSON has no infinity", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nx: .inf\n", nil, "JSON can hold"},
		"a tag":         {"tags of programs are refused", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nx: !ruby/object {}\ny: !x y\n", nil, "tag"},
		"a bad merge":   {"only mappings merge", "apiVersion: v1\nkind: Pod\nmetadata: {name: a, <<: 5}\n", nil, "not a mapping"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := Parse("f.yaml", []byte(c.data))
			if err != nil {
				t.Fatal(err)
			}
			objects, err := Objects("f.yaml", p)
			if got := fmt.Sprint(err); c.fails != "" && !strings.Contains(got, c.fails) || c.fails == "" && err != nil {
				t.Fatalf("%s: got error %v, want %q", c.reason, err, c.fails)
			}
			var got []map[string]any
			for _, u := range objects {
				got = append(got, u.Object)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", c.reason, diff)
			}
		})
	}
}

func object(name string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": name}}
}

// FuzzScan finds no input that panics, and none that passes and cannot be
// taken apart without panic.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{manifest, "a: &a [*a]", "a: &a {b: 1}\nc: {<<: *a}", "? [a]\n: b", nested(150), "---\n---\n", "\xef\xbb\xbfa: b"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Parse("f", data)
		if err != nil {
			return
		}
		objects, err := Objects("f", p)
		if err == nil {
			_, _ = Finish("o", objects)
		}
	})
}

func TestFinish(t *testing.T) {
	parse := func(data string) []unstructured.Unstructured {
		p, err := Parse("f", []byte(data))
		if err != nil {
			t.Fatal(err)
		}
		objects, err := Objects("f", p)
		if err != nil {
			t.Fatal(err)
		}
		return objects
	}
	named := func(name, namespace string) string {
		return strings.Replace(manifest, "{name: agent, namespace: ns}", fmt.Sprintf("{name: %s, namespace: %s}", name, namespace), 1) + "---\n"
	}
	d, err := Finish("o", parse(named("b", "x")+named("a", "z")+named("c", "x")+"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: z, labels: {a: \"${X}\"}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for i := range d.Objects {
		order = append(order, Name(&d.Objects[i]))
	}
	if diff := cmp.Diff([]string{"ConfigMap z", "DaemonSet x/b", "DaemonSet x/c", "DaemonSet z/a"}, order); diff != "" {
		t.Errorf("order, -want +got:\n%s", diff)
	}
	if len(d.DaemonSets) != 3 || d.DaemonSets[2].Name != "a" {
		t.Errorf("DaemonSets: %v", d.DaemonSets)
	}
	if len(d.Warnings) != 1 || d.Warnings[0].Code != UndefinedSubstitution || d.Warnings[0].Field != "ConfigMap z: metadata.labels" {
		t.Errorf("warnings: %v", d.Warnings)
	}
	if _, err := Finish("o", parse(named("a", "x")+named("a", "x"))); err == nil || !strings.Contains(err.Error(), "rendered twice") {
		t.Errorf("an object twice: %v", err)
	}
	both := strings.Replace(named("a", "x"), "matchLabels", "matchLabel: 3, matchLabels", 1) + strings.Replace(named("b", "x"), "{name: c,", "{name: 5,", 1) + strings.Replace(named("c", "x"), "apps/v1", "apps/v1beta2", 1)
	_, err = Finish("o", parse(both))
	for _, part := range []string{`DaemonSet x/b: spec.template.spec.containers`, `DaemonSet x/c: apiVersion is "apps/v1beta2"`} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("every fault is reported: got %v, want %q in it", err, part)
		}
	}
}
