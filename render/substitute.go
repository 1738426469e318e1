package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"rollcall.dev/rollcall/clusters"
)

// Value is a name between ${ and } and what stands in its place.
type Value struct {
	Name  string // cluster.name, cluster.labels.KEY or fleet.name
	Value string
}

const labelPrefix = "cluster.labels."

// Substitutes tells whether a text holds something for Substitute to replace.
func Substitutes(text string) bool {
	return strings.Contains(text, "${cluster.") || strings.Contains(text, "${fleet.")
}

// Substitute replaces ${cluster.name}, ${cluster.labels.KEY} and ${fleet.name}
// and nothing else, so that shell scripts stay as they are. $${cluster. and
// $${fleet. are literals and lose one dollar. The values that were used are
// returned sorted; file is only for the error.
func Substitute(file, text string, c clusters.Cluster, fleet string) (string, []Value, error) {
	if !Substitutes(text) {
		return text, nil, nil
	}
	var out strings.Builder
	used := map[string]string{}
	for rest := text; ; {
		at := next(rest)
		if at < 0 {
			out.WriteString(rest)
			return out.String(), sorted(used), nil
		}
		if at > 0 && rest[at-1] == '$' {
			out.WriteString(rest[:at-1] + "${")
			rest = rest[at+2:]
			continue
		}
		name, closed := nameAt(rest[at:])
		value, defined := Lookup(name, c, fleet)
		if !closed || !defined || strings.ContainsFunc(value, unicode.IsControl) {
			line := 1 + strings.Count(text[:len(text)-len(rest)+at], "\n")
			return "", nil, undefined(file, line, name, closed, defined, c)
		}
		used[name] = value
		out.WriteString(rest[:at] + value)
		rest = rest[at+len("${")+len(name)+len("}"):]
	}
}

// next finds the next name of ours, -1 when there is none.
func next(text string) int {
	a, b := strings.Index(text, "${cluster."), strings.Index(text, "${fleet.")
	if a < 0 || (b >= 0 && b < a) {
		return b
	}
	return a
}

// nameAt reads the name of a "${name}" at the start of a text; it ends on the
// same line.
func nameAt(text string) (name string, closed bool) {
	end := strings.IndexAny(text, "}\r\n")
	if end < 0 {
		end = len(text)
	}
	return text[len("${"):end], end < len(text) && text[end] == '}'
}

// Lookup returns the value of a name for a cluster.
func Lookup(name string, c clusters.Cluster, fleet string) (value string, defined bool) {
	switch {
	case name == "cluster.name":
		return c.Name, true
	case name == "fleet.name":
		return fleet, true
	case strings.HasPrefix(name, labelPrefix):
		value, defined = c.Labels[strings.TrimPrefix(name, labelPrefix)]
	}
	return value, defined
}

func undefined(file string, line int, name string, closed, defined bool, c clusters.Cluster) *Error {
	const long = 80
	if len(name) > long {
		name = name[:long] + "…"
	}
	e := &Error{Code: UndefinedSubstitution, File: file, Field: fmt.Sprintf("line %d", line)}
	exist := []string{"cluster.name", "fleet.name"}
	for _, key := range slices.Sorted(maps.Keys(c.Labels)) {
		exist = append(exist, labelPrefix+key)
	}
	switch {
	case !closed:
		e.Message = fmt.Sprintf("${%s is not closed by a brace on its line; $${ is a literal ${", name)
	case defined:
		e.Message = fmt.Sprintf("the value of ${%s} for cluster %q holds a line break or a control character", name, c.Name)
	default:
		e.Message = fmt.Sprintf("${%s} is not defined for cluster %q; defined are %s", name, c.Name, strings.Join(exist, ", "))
	}
	return e
}

func sorted(used map[string]string) []Value {
	var values []Value
	for _, name := range slices.Sorted(maps.Keys(used)) {
		values = append(values, Value{Name: name, Value: used[name]})
	}
	return values
}
