package clusters

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// AddIgnore writes rules into the text of a fleet file, first of
// spec.drift.ignore, and leaves every other line as it is. It fails rather than
// return a fleet file that says anything else than before and these rules.
func AddIgnore(file string, data []byte, rules []Ignore) ([]byte, error) {
	before, err := ParseFleet(file, data)
	if err != nil {
		return nil, err
	}
	text, err := ignoreText(rules)
	if err != nil {
		return nil, err
	}
	out, err := spliceIgnore(data, text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; write below spec.drift.ignore yourself:\n%s", file, err, text)
	}
	after, err := ParseFleet(file, out)
	if err != nil {
		return nil, fmt.Errorf("%s: the rule does not fit in: %w; write below spec.drift.ignore yourself:\n%s", file, err, text)
	}
	if !slices.EqualFunc(after.Ignore, append(slices.Clone(rules), before.Ignore...), func(a, b Ignore) bool { return reflect.DeepEqual(a.plain(), b.plain()) }) {
		return nil, fmt.Errorf("%s: the rules would not read as they were meant; write below spec.drift.ignore yourself:\n%s", file, text)
	}
	after.Ignore = before.Ignore
	if !reflect.DeepEqual(after, before) {
		return nil, fmt.Errorf("%s: the file would say something else; write below spec.drift.ignore yourself:\n%s", file, text)
	}
	return out, nil
}

// plain is a rule in a form that compares.
func (g Ignore) plain() Ignore {
	if len(g.Managers) == 0 {
		g.Managers = nil
	}
	if len(g.Fields) == 0 {
		g.Fields = nil
	}
	if len(g.Clusters.Names) == 0 {
		g.Clusters.Names = nil
	}
	return g
}

// ignoreText writes rules as items of a YAML list, not indented.
func ignoreText(rules []Ignore) (string, error) {
	type wire struct {
		Clusters  map[string][]string `yaml:"clusters,omitempty,flow"`
		Group     string              `yaml:"group,omitempty"`
		Kind      string              `yaml:"kind,omitempty"`
		Namespace string              `yaml:"namespace,omitempty"`
		Name      string              `yaml:"name,omitempty"`
		Fields    []string            `yaml:"fields,omitempty"`
		Managers  []string            `yaml:"managers,omitempty,flow"`
		Reason    string              `yaml:"reason,omitempty"`
	}
	var all []wire
	for _, g := range rules {
		w := wire{Group: g.Group, Kind: g.Kind, Namespace: g.Namespace, Name: g.Name, Managers: g.Managers, Reason: g.Reason}
		if len(g.Clusters.Names) > 0 {
			w.Clusters = map[string][]string{"names": g.Clusters.Names}
		}
		for _, p := range g.Fields {
			w.Fields = append(w.Fields, p.String())
		}
		all = append(all, w)
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(all); err != nil {
		return "", fmt.Errorf("writing the rule: %w", err)
	}
	return b.String(), nil
}

// spliceIgnore puts list items right below the key that they belong to.
func spliceIgnore(data []byte, items string) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) == 0 {
		return nil, fmt.Errorf("it is empty")
	}
	key, at := doc.Content[0], doc.Content[0]
	path, lead := []string{"spec", "drift", "ignore"}, ""
	for i, name := range path {
		k, v := child(at, name)
		if k == nil {
			for _, missing := range slices.Backward(path[i:]) {
				items = missing + ":\n" + indented(items, "  ")
			}
			break
		}
		key, at, lead = k, v, name
	}
	if at.Style&yaml.FlowStyle != 0 || len(at.Content) == 0 || at.Content[0].Line <= key.Line {
		return nil, fmt.Errorf("%s is not written line by line", lead)
	}
	column := at.Content[0].Column - 1
	if at.Kind == yaml.SequenceNode { // an item's column is that of what follows its dash
		column = at.Column - 1
	}
	lines := strings.SplitAfter(string(data), "\n")
	lines = slices.Insert(lines, key.Line, indented(items, strings.Repeat(" ", column)))
	return []byte(strings.Join(lines, "")), nil
}

func indented(text, by string) string {
	var b strings.Builder
	for l := range strings.Lines(text) {
		b.WriteString(by + l)
	}
	return b.String()
}

// child is a key of a mapping, and its value.
func child(m *yaml.Node, name string) (key, value *yaml.Node) {
	if m.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == name {
			return m.Content[i], m.Content[i+1]
		}
	}
	return nil, nil
}
