package clusters

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSelection(t *testing.T) {
	prod := &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}
	regions := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "region", Operator: metav1.LabelSelectorOpIn, Values: []string{"us", "eu"}},
		{Key: "old", Operator: metav1.LabelSelectorOpDoesNotExist},
	}}
	cases := map[string]struct {
		reason  string
		s       Selection
		name    string
		labels  map[string]string
		matches bool
		why     string
	}{
		"Zero":         {"{} is all", Selection{}, "a", nil, true, "all clusters"},
		"Named":        {"by name", Selection{Names: []string{"a", "b"}}, "b", nil, true, `name "b"`},
		"NotNamed":     {"by name", Selection{Names: []string{"a", "b"}}, "c", nil, false, `name "c" is not one of a, b`},
		"Labelled":     {"not compiled before", Selection{Selector: prod}, "a", map[string]string{"env": "prod"}, true, "label env=prod"},
		"Compiled":     {"compiled before", Selection{Selector: prod, compiled: compile(prod)}, "a", map[string]string{"env": "dev"}, false, "label env=dev, wanted env=prod"},
		"NoLabel":      {"the label that lacks", Selection{Selector: prod}, "a", nil, false, "no label env, wanted env=prod"},
		"Both":         {"both must hold", Selection{Names: []string{"a"}, Selector: prod}, "a", map[string]string{"env": "prod"}, true, `name "a", label env=prod`},
		"NameOnly":     {"both must hold", Selection{Names: []string{"a"}, Selector: prod}, "a", map[string]string{"env": "dev"}, false, "label env=dev, wanted env=prod"},
		"LabelOnly":    {"both must hold", Selection{Names: []string{"a"}, Selector: prod}, "b", map[string]string{"env": "prod"}, false, `name "b" is not one of a`},
		"Expressions":  {"all of them", Selection{Selector: regions}, "a", map[string]string{"region": "eu"}, true, "no label old, label region=eu"},
		"Expression":   {"the one that fails", Selection{Selector: regions}, "a", map[string]string{"region": "eu", "old": "y"}, false, "label old=y, wanted !old"},
		"EmptyLabels":  {"any label", Selection{Selector: &metav1.LabelSelector{}}, "a", nil, true, "all clusters"},
		"InvalidValue": {"picks nothing, never all", Selection{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "?"}}}, "a", map[string]string{"env": "?"}, false, "the selector is not valid"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.s.Matches(tc.name, tc.labels); got != tc.matches {
				t.Errorf("%s: Matches: got %v", tc.reason, got)
			}
			if got := tc.s.Why(tc.name, tc.labels); got != tc.why {
				t.Errorf("%s: Why: got %q, want %q", tc.reason, got, tc.why)
			}
		})
	}
}
