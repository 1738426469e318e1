package render

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollcall.dev/rollcall/clusters"
)

func labelled(pairs ...string) clusters.Selection {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return clusters.Selection{Selector: &metav1.LabelSelector{MatchLabels: m}}
}

func fleet() clusters.Fleet {
	both := labelled("env", "prod")
	both.Names = []string{"prod-us"}
	return clusters.Fleet{
		Name: "platform",
		Targets: []clusters.Target{
			{Name: "us", Clusters: both, Overlay: "overlays/us"},
			{Name: "production", Clusters: labelled("env", "prod"), Overlay: "overlays/${cluster.labels.region}/", Namespace: "agents"},
			{Name: "rest", Overlay: "./base"},
		},
		Components: []clusters.Component{
			{Clusters: labelled("provider", "aws"), Path: "components/aws"},
			{Clusters: labelled("provider", "gcp"), Path: "components/gcp"},
			{Path: "components/${fleet.name}"},
		},
	}
}

func TestResolve(t *testing.T) {
	c := clusters.Cluster{Name: "prod-eu", Labels: map[string]string{"env": "prod", "region": "eu", "provider": "aws"}}
	got, err := Resolve(fleet(), c)
	if err != nil {
		t.Fatal(err)
	}
	for i := range got.Trace {
		if got.Trace[i].Because == "" {
			t.Errorf("rule %d says nothing of what decided", i)
		}
		got.Trace[i].Because = ""
	}
	want := Resolution{
		Target: "production", Overlay: "overlays/eu", Namespace: "agents", Components: []string{"components/aws", "components/platform"},
		Used: []Value{{"cluster.labels.region", "eu"}, {"fleet.name", "platform"}},
		Trace: []Rule{
			{Kind: "target", Name: "us", Path: "overlays/us", Result: NotMatched},
			{Kind: "target", Name: "production", Path: "overlays/eu", Result: Matched},
			{Kind: "target", Name: "rest", Path: "./base", Result: NotUsed},
			{Kind: "component", Name: "components[0]", Path: "components/aws", Result: Matched},
			{Kind: "component", Name: "components[1]", Path: "components/gcp", Result: NotMatched},
			{Kind: "component", Name: "components[2]", Path: "components/platform", Result: Matched},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestBecause names the very label or name that decided.
func TestBecause(t *testing.T) {
	got, err := Resolve(fleet(), clusters.Cluster{Name: "dev", Labels: map[string]string{"env": "dev"}})
	if err != nil {
		t.Fatal(err)
	}
	for i, parts := range [][]string{{"dev", "prod-us"}, {"env", "dev", "prod"}, {"all"}, {"provider", "aws"}, {"provider", "gcp"}, {"all"}} {
		for _, part := range parts {
			if !strings.Contains(got.Trace[i].Because, part) {
				t.Errorf("rule %d: %q does not name %q", i, got.Trace[i].Because, part)
			}
		}
	}
}

func TestResolveFaults(t *testing.T) {
	cases := map[string]struct {
		reason  string
		overlay string
		cluster clusters.Cluster
		code    string
		field   string
	}{
		"absolute":         {"a path is relative to the repository", "/etc", clusters.Cluster{Name: "c"}, PathNotFound, "spec.targets[0].overlay"},
		"outside":          {"and inside it", "a/../../b", clusters.Cluster{Name: "c"}, PathNotFound, "spec.targets[0].overlay"},
		"empty":            {"and there", "", clusters.Cluster{Name: "c"}, PathNotFound, "spec.targets[0].overlay"},
		"URL":              {"and not fetched", "https://git.example/x//y?ref=main", clusters.Cluster{Name: "c"}, RemoteReference, "spec.targets[0].overlay"},
		"SSH":              {"nor this way", "git@git.example:x/y", clusters.Cluster{Name: "c"}, RemoteReference, "spec.targets[0].overlay"},
		"value with slash": {"a name does not choose another folder", "overlays/${cluster.name}", clusters.Cluster{Name: "../secret"}, PathNotFound, "spec.targets[0].overlay"},
		"value of dots":    {"not even one up", "overlays/x/${cluster.name}", clusters.Cluster{Name: ".."}, PathNotFound, "spec.targets[0].overlay"},
		"undefined":        {"a label that is not there", "overlays/${cluster.labels.x}", clusters.Cluster{Name: "c"}, UndefinedSubstitution, "spec.targets[0].overlay"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := clusters.Fleet{Targets: []clusters.Target{{Name: "one", Overlay: c.overlay}}}
			got, err := Resolve(f, c.cluster)
			fault, ok := errors.AsType[*Error](err)
			if !ok || fault.Code != c.code || fault.Field != c.field {
				t.Errorf("%s: got %v, want code %s in %s", c.reason, err, c.code, c.field)
			}
			if c.code != UndefinedSubstitution && !strings.Contains(err.Error(), `target "one"`) {
				t.Errorf("%s: %v does not name the target", c.reason, err)
			}
			if len(got.Trace) != 1 {
				t.Errorf("%s: the trace is lost", c.reason)
			}
		})
	}
}

func TestResolveUnmatched(t *testing.T) {
	f := fleet()
	f.Targets = f.Targets[:2]
	got, err := Resolve(f, clusters.Cluster{Name: "lab"})
	fault, ok := errors.AsType[*Error](err)
	if !errors.Is(err, ErrUnmatched) || !ok || fault.Code != ClusterUnmatched {
		t.Errorf("got %v, want ErrUnmatched with code ClusterUnmatched", err)
	}
	if len(got.Trace) != 5 {
		t.Errorf("got %d rules in the trace, want 5", len(got.Trace))
	}
}

func TestUnmatchedTargets(t *testing.T) {
	all := []clusters.Cluster{{Name: "prod-us"}, {Name: "a", Labels: map[string]string{"env": "prod"}}}
	if diff := cmp.Diff([]string{"us"}, UnmatchedTargets(fleet(), all)); diff != "" {
		t.Errorf("names and labels must both hold, -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"us", "production", "rest"}, UnmatchedTargets(fleet(), nil)); diff != "" {
		t.Errorf("without clusters, -want +got:\n%s", diff)
	}
}

func TestSubstitute(t *testing.T) {
	c := clusters.Cluster{Name: "prod-eu", Labels: map[string]string{"region": "eu", "example.com/tier.x": "gold", "odd": "a\nb", "empty": ""}}
	cases := map[string]struct {
		reason string
		text   string
		want   string
		used   []Value
		fails  string
	}{
		"nothing":        {"text without a name is left alone", "a $HOME $${KEEP} ${X:-1} ${cluster} $cluster.name", "a $HOME $${KEEP} ${X:-1} ${cluster} $cluster.name", nil, ""},
		"all names":      {"each is replaced, the values are sorted", "${fleet.name}/${cluster.name}/${cluster.labels.region}", "f/prod-eu/eu", []Value{{"cluster.labels.region", "eu"}, {"cluster.name", "prod-eu"}, {"fleet.name", "f"}}, ""},
		"key of a label": {"a key may hold dots and a slash", "${cluster.labels.example.com/tier.x}", "gold", []Value{{"cluster.labels.example.com/tier.x", "gold"}}, ""},
		"empty value":    {"a label may be empty", "[${cluster.labels.empty}]", "[]", []Value{{"cluster.labels.empty", ""}}, ""},
		"literal":        {"two dollars are one, and the name stays", "$${cluster.name} $${fleet.name} ${cluster.name}", "${cluster.name} ${fleet.name} prod-eu", []Value{{"cluster.name", "prod-eu"}}, ""},
		"three dollars":  {"one dollar is lost", "$$${cluster.name}", "$${cluster.name}", nil, ""},
		"literal of any": {"a literal needs no value", "$${cluster.labels.none", "${cluster.labels.none", nil, ""},
		"twice":          {"a value is used once", "${cluster.name}${cluster.name}", "prod-euprod-eu", []Value{{"cluster.name", "prod-eu"}}, ""},
		"undefined":      {"with line, name, cluster and what exists", "a\nb ${cluster.labels.tag}", "", nil, `"f.yaml": line 2: ${cluster.labels.tag} is not defined for cluster "prod-eu"; defined are cluster.name, fleet.name, cluster.labels.empty, cluster.labels.example.com/tier.x, cluster.labels.odd, cluster.labels.region`},
		"default":        {"shells' defaults are not ours", "${cluster.name:-x}", "", nil, "${cluster.name:-x} is not defined"},
		"other name":     {"nor other names", "${fleet.region}", "", nil, "${fleet.region} is not defined"},
		"unclosed":       {"a name ends on its line", "a: ${cluster.name\nb: }", "", nil, "not closed"},
		"unclosed end":   {"or with the text", "${cluster.name", "", nil, "not closed"},
		"line break":     {"a value must not add lines", "${cluster.labels.odd}", "", nil, "line break"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, used, err := Substitute("f.yaml", tc.text, c, "f")
			if tc.fails != "" {
				if fault, ok := errors.AsType[*Error](err); !ok || fault.Code != UndefinedSubstitution || !strings.Contains(err.Error(), tc.fails) {
					t.Errorf("%s: got %v, want %q", tc.reason, err, tc.fails)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.used, used); diff != "" {
				t.Errorf("%s: values used, -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestIsRemote(t *testing.T) {
	remote := []string{"http://x/y", "HTTPS://x", "http:x", "ssh://x", "file:///x", "oci://x", "git::x", "git@x:y", "user@host/x", "github.com/a/b", "GitHub.com:a/b", "a//b", "x?ref=main", "C:/x"}
	for _, s := range remote {
		if !IsRemote(s) {
			t.Errorf("%q passes as a path", s)
		}
	}
	for _, s := range []string{"a.yaml", "../base", "./x/y-z_1.yaml", ".", "github.company/x", "a b", "mail/@scope/x.yaml", ""} {
		if IsRemote(s) {
			t.Errorf("%q is refused", s)
		}
	}
	for _, s := range []string{"apiVersion: v1\nkind: X\nurl: http://x//y", "- op: add\n  path: /x"} {
		if IsRemoteText(s) {
			t.Errorf("the text %q is refused", s)
		}
	}
}

func TestKeyOf(t *testing.T) {
	r := Resolution{Overlay: "o", Components: []string{"a", "b"}, Namespace: "n"}
	used := []Value{{"cluster.name", "x"}, {"fleet.name", "f"}}
	inputs := []Input{{"a", "1"}, {"b", Absent}}
	base := KeyOf(r, used, inputs)
	if base != KeyOf(Resolution{Overlay: "o", Components: []string{"a", "b"}, Namespace: "n", Target: "t", Trace: []Rule{{}}}, []Value{used[1], used[0]}, []Input{inputs[1], inputs[0]}) {
		t.Error("order, target and trace must not matter")
	}
	others := map[string]Key{
		"overlay":    KeyOf(Resolution{Overlay: "o2", Components: r.Components, Namespace: "n"}, used, inputs),
		"namespace":  KeyOf(Resolution{Overlay: "o", Components: r.Components}, used, inputs),
		"components": KeyOf(Resolution{Overlay: "o", Components: []string{"b", "a"}, Namespace: "n"}, used, inputs),
		"joined":     KeyOf(Resolution{Overlay: "o", Components: []string{"ab"}, Namespace: "n"}, used, inputs),
		"value":      KeyOf(r, []Value{{"cluster.name", "y"}, used[1]}, inputs),
		"unused":     KeyOf(r, used[:1], inputs),
		"hash":       KeyOf(r, used, []Input{{"a", "2"}, inputs[1]}),
		"absent":     KeyOf(r, used, []Input{inputs[0], {"b", "1"}}),
		"path":       KeyOf(r, used, inputs[:1]),
	}
	seen := map[Key]string{base: "base"}
	for name, k := range others {
		if same, twice := seen[k]; twice {
			t.Errorf("%s has the key of %s", name, same)
		}
		seen[k] = name
	}
}

func TestError(t *testing.T) {
	cause := errors.New("why")
	cases := map[string]struct {
		e    Error
		want string
	}{
		"all":     {Error{File: "a b", Field: "f[0]", Message: "m", Err: cause}, `"a b": f[0]: m: why`},
		"message": {Error{Message: "m"}, "m"},
		"field":   {Error{Field: "f", Message: "m"}, "f: m"},
	}
	for name, c := range cases {
		if got := c.e.Error(); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	if !errors.Is(&Error{Err: cause}, cause) {
		t.Error("the cause is hidden")
	}
}
