package build

import (
	"fmt"

	"go.yaml.in/yaml/v3"

	"rollcall.dev/rollcall/render"
)

// maxReferences bounds how often kustomize follows references between the
// definitions of a crds file.
const maxReferences = 10_000

// definitions are the names that each definition of a crds file refers to.
// Kustomize follows them from every definition (loadCrdIntoConfig) and never
// asks whether it was there before: a definition that refers to itself ends
// the process, and no recover catches that.
type definitions struct {
	refs  map[string][]string
	steps map[string]int // from a definition on; following while it is counted
}

const following = -1

// crds judges a file of definitions.
func crds(p render.Parsed) *render.Error {
	d := definitions{refs: map[string][]string{}, steps: map[string]int{}}
	var names []string
	for _, doc := range p.Docs {
		n := resolved(doc)
		if n == nil || n.Kind != yaml.MappingNode {
			continue
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			name := resolved(n.Content[i]).Value
			d.refs[name] = append(d.refs[name], references(n.Content[i+1])...)
			names = append(names, name)
		}
	}
	total := 0
	for _, name := range names {
		steps, cycle := d.follow(name)
		if cycle {
			return &render.Error{Code: render.Unsupported, Field: name, Message: "the definition refers back to itself, which kustomize follows without end: cut the reference, or use configurations"}
		}
		if total += steps; total > maxReferences {
			return &render.Error{Code: render.OverBudget, Field: name, Message: fmt.Sprintf("the definitions are more than %d references deep and wide: split the file, or use configurations", maxReferences)}
		}
	}
	return nil
}

// follow counts the steps that kustomize makes from a definition on.
func (d definitions) follow(name string) (steps int, cycle bool) {
	if known, ok := d.steps[name]; ok {
		return known, known == following
	}
	d.steps[name] = following
	steps = 1
	for _, ref := range d.refs[name] {
		n, cycle := d.follow(ref)
		if cycle {
			return following, true
		}
		steps = min(steps+n, maxReferences+1)
	}
	d.steps[name] = steps
	return steps, false
}

// references lists every $ref below a node, wherever it is, which is more than
// kustomize follows today, and as often as it is there.
func references(n *yaml.Node) []string {
	n = resolved(n)
	if n == nil {
		return nil
	}
	var all []string
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && resolved(child).Value == "$ref" {
			all = append(all, resolved(n.Content[i+1]).Value)
		}
		all = append(all, references(child)...)
	}
	return all
}
