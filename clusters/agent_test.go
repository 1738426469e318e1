package clusters

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func labelled(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

func TestAgentHas(t *testing.T) {
	falco := labelled("app", "falco")
	cases := map[string]struct {
		reason string
		a      Agent
		name   string
		labels map[string]string
		want   bool
	}{
		"Named":     {"one of its names", Agent{Names: []string{"a/x", "sec/falco"}}, "falco", nil, true},
		"Namesake":  {"in another namespace", Agent{Names: []string{"a/falco"}}, "falco", nil, false},
		"Labelled":  {"not compiled before", Agent{Match: falco}, "x", map[string]string{"app": "falco"}, true},
		"Compiled":  {"what is compiled counts", Agent{Match: labelled("app", "other"), daemonSets: compile(falco)}, "x", map[string]string{"app": "falco"}, true},
		"Otherwise": {"other labels", Agent{Match: falco}, "falco", map[string]string{"app": "falcon"}, false},
		"Either":    {"a name is enough", Agent{Names: []string{"sec/x"}, Match: falco}, "x", nil, true},
		"Nothing":   {"an agent of nothing has nothing", Agent{}, "", nil, false},
		"Invalid":   {"has nothing, never all", Agent{Match: labelled("app", "?")}, "x", map[string]string{"app": "?"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.a.Has("sec", tc.name, tc.labels); got != tc.want {
				t.Errorf("%s: got %v", tc.reason, got)
			}
		})
	}
}

func TestAgentNodeSelector(t *testing.T) {
	linux := labelled("os", "linux")
	cases := map[string]struct {
		reason string
		a      Agent
		os     string
		want   bool
	}{
		"None":     {"without a selector all are selected", Agent{}, "linux", true},
		"Empty":    {"likewise", Agent{Nodes: &metav1.LabelSelector{}}, "linux", true},
		"Matches":  {"not compiled before", Agent{Nodes: linux}, "linux", true},
		"Compiled": {"what is compiled counts", Agent{Nodes: labelled("os", "x"), nodes: compile(linux)}, "linux", true},
		"Differs":  {"another label", Agent{Nodes: linux}, "windows", false},
		"Invalid":  {"selects nothing, never all", Agent{Nodes: labelled("os", "?")}, "?", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.a.NodeSelector().Matches(labels.Set{"os": tc.os}); got != tc.want {
				t.Errorf("%s: got %v", tc.reason, got)
			}
		})
	}
}

func TestAgentReached(t *testing.T) {
	cases := map[string]struct {
		reason            string
		min               string
		covered, intended int
		want              bool
	}{
		"All":         {"exactly all", "100%", 7, 7, true},
		"NotAll":      {"one less", "100%", 6, 7, false},
		"Exact":       {"98% of 50 is 49", "98%", 49, 50, true},
		"Short":       {"and 48 are less", "98%", 48, 50, false},
		"Fraction":    {"99.5% of 1000 is 995", "99.5%", 995, 1000, true},
		"LessThan":    {"and 994 are less", "99.5%", 994, 1000, false},
		"NoRounding":  {"a third is more than 33.3%", "33.333334%", 1, 3, false},
		"Tenths":      {"0.1 has no end in binary", "0.1%", 1, 1000, true},
		"Huge":        {"of many nodes", "100%", 9_999_999, 10_000_000, false},
		"NoneOfNone":  {"nothing is lacking", "100%", 0, 0, true},
		"Number":      {"a number is absolute", "3", 3, 100, true},
		"NumberShort": {"also above what is intended", "3", 2, 2, false},
		"NotParsed":   {"an agent without min must be everywhere", "", 6, 7, false},
		"NotParsed2":  {"likewise", "", 7, 7, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := (Agent{Min: tc.min}).Reached(tc.covered, tc.intended); got != tc.want {
				t.Errorf("%s: got %v", tc.reason, got)
			}
		})
	}
}

func TestExclude(t *testing.T) {
	lab := labelled("tier", "lab")
	cases := map[string]struct {
		reason          string
		e               Exclude
		namespace, name string
		labels          map[string]string
		want            bool
	}{
		"Name":      {"a plain name", Exclude{Names: []string{"x/y", "a/b"}}, "a", "b", nil, true},
		"Namesake":  {"in another namespace", Exclude{Names: []string{"a/b"}}, "c", "b", nil, false},
		"Namespace": {"all of one namespace", Exclude{Names: []string{"kube-*/*"}}, "kube-system", "proxy", nil, true},
		"Parts":     {"a part is matched whole", Exclude{Names: []string{"kube-*/prox"}}, "kube-system", "proxy", nil, false},
		"Labels":    {"not compiled before", Exclude{Match: lab}, "a", "b", map[string]string{"tier": "lab"}, true},
		"Compiled":  {"what is compiled counts", Exclude{Match: labelled("x", "y"), labels: compile(lab)}, "a", "b", map[string]string{"tier": "lab"}, true},
		"NoLabels":  {"without the label", Exclude{Match: lab}, "a", "b", nil, false},
		"Nothing":   {"a rule of nothing excludes nothing", Exclude{}, "a", "b", nil, false},
		"Malformed": {"likewise", Exclude{Names: []string{"[/b", "a/[b"}}, "a", "b", nil, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.e.Excludes(tc.namespace, tc.name, tc.labels); got != tc.want {
				t.Errorf("%s: got %v", tc.reason, got)
			}
			f := Fleet{Exclude: []Exclude{{Names: []string{"no/no"}}, tc.e}}
			if got := f.Excluded(tc.namespace, tc.name, tc.labels); got != tc.want {
				t.Errorf("%s: by the fleet: got %v", tc.reason, got)
			}
		})
	}
	if new(Fleet).Excluded("a", "b", nil) {
		t.Error("a fleet without rules excludes")
	}
}
