package check

import (
	"encoding/json"
	"encoding/xml"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func issues() []Issue {
	one := Issue{Level: Error, Code: "UnknownField", File: "base/ds.yaml", Line: 8, Object: "DaemonSet obs/a", Field: "spec.x", Message: "no such field", Clusters: []string{"b"}}
	two := one
	two.Clusters = []string{"a"}
	return []Issue{one, {Level: Warning, Code: "PatchEmpty", File: "a.yaml", Message: "<empty> & so", Clusters: []string{"b"}}, two}
}

// What is alike for several clusters is one issue; strict makes errors of warnings.
func TestMerge(t *testing.T) {
	got := Merge(issues(), false)
	if len(got) != 2 || got[0].File != "a.yaml" || got[0].Level != Warning {
		t.Fatalf("got %+v", got)
	}
	if diff := cmp.Diff([]string{"a", "b"}, got[1].Clusters); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := Merge(issues(), true); got[0].Level != Error {
		t.Errorf("strict: got %+v", got[0])
	}
	if got := Merge(nil, false); got == nil {
		t.Error("no issues print as null")
	}
}

func TestFormats(t *testing.T) {
	r := Result{Clusters: []string{"a", "b", "c"}, Built: 1, Shared: 2, Issues: Merge(issues(), false)}
	want := "a.yaml: warning: PatchEmpty: <empty> & so (b)\nbase/ds.yaml:8: error: UnknownField: DaemonSet obs/a: spec.x: no such field (a, b)\nclusters: 3, built: 1, shared: 2; 1 error, 1 warning, 0 note\n"
	if diff := cmp.Diff(want, r.Text()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	data, err := r.SARIF("1")
	if err != nil {
		t.Fatal(err)
	}
	var sarif struct {
		Version string
		Runs    []struct {
			Results []struct{ RuleID, Level string }
		}
	}
	if err := json.Unmarshal(data, &sarif); err != nil || sarif.Version != "2.1.0" || len(sarif.Runs[0].Results) != 2 || sarif.Runs[0].Results[1].Level != "error" {
		t.Errorf("%v: %s", err, data)
	}
	if data, err = r.JUnit(); err != nil {
		t.Fatal(err)
	}
	var junit suite
	if err := xml.Unmarshal(data, &junit); err != nil || junit.Tests != 3 || junit.Failures != 2 || len(junit.Cases[2].Failures) != 0 || !strings.Contains(junit.Cases[1].Out, "<empty> & so") {
		t.Errorf("%v: %s", err, data)
	}
}
