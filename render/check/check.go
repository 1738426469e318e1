// Package check is what is wrong with what a commit renders to, place by place,
// and how a pull request is told of it. It knows neither how it was rendered nor
// what was found wrong.
package check

import (
	"cmp"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
)

// The levels of an Issue.
const (
	Error   = "error"
	Warning = "warning"
	Note    = "note"
)

// Issue is one thing that is wrong, at one place, for some clusters.
type Issue struct {
	Level    string   `json:"level"`
	Code     string   `json:"code"`
	File     string   `json:"file"` // empty for the fleet file
	Line     int      `json:"line,omitempty"`
	Object   string   `json:"object,omitempty"`
	Field    string   `json:"field,omitempty"`
	Message  string   `json:"message"`
	Clusters []string `json:"clusters"`
}

// Result is what was checked.
type Result struct {
	Commit   string   `json:"commit"`
	Clusters []string `json:"clusters"` // all that were rendered
	Built    int      `json:"built"`    // overlays
	Shared   int      `json:"shared"`   // clusters that needed no build of their own
	Issues   []Issue  `json:"issues"`
}

// Merge makes one issue of those that are alike but for their clusters, and
// sorts: by file, line and code. With strict, warnings are errors.
func Merge(all []Issue, strict bool) []Issue {
	type key struct {
		level, code, file, object, field, message string
		line                                      int
	}
	at := map[key]int{}
	out := []Issue{}
	for _, i := range all {
		if strict && i.Level == Warning {
			i.Level = Error
		}
		k := key{i.Level, i.Code, i.File, i.Object, i.Field, i.Message, i.Line}
		if n, known := at[k]; known {
			out[n].Clusters = append(out[n].Clusters, i.Clusters...)
			continue
		}
		at[k] = len(out)
		i.Clusters = slices.Clone(i.Clusters)
		out = append(out, i)
	}
	for i := range out {
		slices.Sort(out[i].Clusters)
		out[i].Clusters = slices.Compact(out[i].Clusters)
	}
	slices.SortStableFunc(out, func(a, b Issue) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Message, b.Message))
	})
	return out
}

// Count is how many issues are of a level.
func (r Result) Count(level string) int {
	n := 0
	for _, i := range r.Issues {
		if i.Level == level {
			n++
		}
	}
	return n
}

// text is an issue in one line, without its place.
func (i Issue) text() string {
	parts := []string{i.Message}
	if i.Field != "" {
		parts = slices.Insert(parts, 0, i.Field)
	}
	if i.Object != "" {
		parts = slices.Insert(parts, 0, i.Object)
	}
	return strings.Join(parts, ": ") + " (" + some(i.Clusters) + ")"
}

func some(clusters []string) string {
	const most = 3
	text := strings.Join(clusters[:min(most, len(clusters))], ", ")
	if more := len(clusters) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Text prints a line an issue, as compilers do, and a last one that sums up.
func (r Result) Text() string {
	var b strings.Builder
	for _, i := range r.Issues {
		place := cmp.Or(i.File, "fleet file")
		if i.Line > 0 {
			place += fmt.Sprintf(":%d", i.Line)
		}
		fmt.Fprintf(&b, "%s: %s: %s: %s\n", place, i.Level, i.Code, i.text())
	}
	fmt.Fprintf(&b, "clusters: %d, built: %d, shared: %d; %d error, %d warning, %d note\n", len(r.Clusters), r.Built, r.Shared, r.Count(Error), r.Count(Warning), r.Count(Note))
	return b.String()
}

// SARIF prints the issues as the Static Analysis Results Interchange Format
// 2.1.0, which forges show beside the lines of a pull request.
func (r Result) SARIF(version string) ([]byte, error) {
	type m = map[string]any
	rules, results := []m{}, []m{}
	seen := map[string]bool{}
	for _, i := range r.Issues {
		if !seen[i.Code] {
			seen[i.Code] = true
			rules = append(rules, m{"id": i.Code})
		}
		location := m{"artifactLocation": m{"uri": cmp.Or(i.File, "rollcall.yaml"), "uriBaseId": "%SRCROOT%"}}
		if i.Line > 0 {
			location["region"] = m{"startLine": i.Line}
		}
		results = append(results, m{
			"ruleId": i.Code, "level": i.Level, "message": m{"text": i.text()},
			"locations": []m{{"physicalLocation": location}},
		})
	}
	return json.MarshalIndent(m{
		"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
		"runs": []m{{"tool": m{"driver": m{"name": "rollcall", "version": version, "rules": rules}}, "results": results}},
	}, "", "  ")
}

type (
	suite struct {
		XMLName  xml.Name `xml:"testsuite"`
		Name     string   `xml:"name,attr"`
		Tests    int      `xml:"tests,attr"`
		Failures int      `xml:"failures,attr"`
		Cases    []tested `xml:"testcase"`
	}

	tested struct {
		Name     string   `xml:"name,attr"`
		Class    string   `xml:"classname,attr"`
		Failures []failed `xml:"failure"`
		Out      string   `xml:"system-out,omitempty"`
	}

	failed struct {
		Type    string `xml:"type,attr"`
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// JUnit prints a test case for each cluster: it fails of the errors, and prints
// the warnings.
func (r Result) JUnit() ([]byte, error) {
	s := suite{Name: "rollcall render", Tests: len(r.Clusters)}
	for _, c := range r.Clusters {
		t := tested{Name: c, Class: "render"}
		for _, i := range r.Issues {
			if !slices.Contains(i.Clusters, c) {
				continue
			}
			place := fmt.Sprintf("%s:%d", i.File, i.Line)
			if i.Level == Error {
				t.Failures = append(t.Failures, failed{i.Code, i.Message, place + ": " + i.text()})
				continue
			}
			t.Out += fmt.Sprintf("%s: %s: %s: %s\n", place, i.Level, i.Code, i.text())
		}
		if len(t.Failures) > 0 {
			s.Failures++
		}
		s.Cases = append(s.Cases, t)
	}
	out, err := xml.MarshalIndent(s, "", "  ")
	return append([]byte(xml.Header), append(out, '\n')...), err
}
