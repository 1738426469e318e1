package render

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Place is a line of a file in the repository.
type Place struct {
	File string
	Line int // 1 where only the file is known
}

// Locate finds where the repository writes a field of a rendered object: in the
// file that declares it, or in a patch, of which the one that says most of the
// field counts, a patch before what it changes. The files are those that a build
// read; field is a path such as spec.template.spec.containers[0].image.
func Locate(files map[string]Parsed, origin Origin, u *unstructured.Unstructured, field string) Place {
	s := search{origin: origin, object: u, steps: stepsOf(field), best: Place{File: origin.File, Line: 1}, depth: -1}
	if p, ok := files[origin.File]; ok {
		s.documents(origin.File, p.Docs, 0)
	}
	var others []string
	for name := range files {
		if name != origin.File {
			others = append(others, name)
		}
	}
	slices.Sort(others)
	for _, name := range others {
		s.documents(name, files[name].Docs, 0)
		for _, doc := range files[name].Docs {
			s.inline(name, content(doc))
		}
	}
	return s.best
}

// search looks for a field in one document after another.
type search struct {
	origin Origin
	object *unstructured.Unstructured
	steps  []string
	best   Place
	depth  int // steps of the field that are written at best
}

// stepsOf takes a path apart: keys, and indexes as numbers. Between brackets a
// key may have dots in it.
func stepsOf(field string) []string {
	var steps []string
	for field != "" {
		if rest, ok := strings.CutPrefix(field, "["); ok {
			var step string
			step, field, _ = strings.Cut(rest, "]")
			steps = append(steps, step)
			continue
		}
		field = strings.TrimPrefix(field, ".")
		end := strings.IndexAny(field, ".[")
		if end < 0 {
			end = len(field)
		}
		if end > 0 {
			steps = append(steps, field[:end])
		}
		field = field[end:]
	}
	return steps
}

func (s *search) found(file string, line, depth int) {
	if depth > s.depth || depth == s.depth && depth == len(s.steps) {
		s.best, s.depth = Place{file, line}, depth
	}
}

// documents looks at those that are about the object: manifests and strategic
// merge patches by kind and name, JSON patches by their paths.
func (s *search) documents(file string, docs []*yaml.Node, offset int) {
	for _, doc := range docs {
		n := content(doc)
		switch {
		case n == nil:
		case n.Kind == yaml.SequenceNode:
			for _, op := range n.Content {
				s.operation(file, content(op), offset)
			}
		case n.Kind == yaml.MappingNode && s.about(n):
			line, depth := s.follow(n, s.object.Object, s.steps)
			s.found(file, line+offset, depth)
		case n.Kind == yaml.MappingNode && strings.HasSuffix(text(scalar(n, "kind")), "List"):
			if items := child(n, "items"); items != nil {
				s.documents(file, items.Content, offset)
			}
		}
	}
}

func (s *search) about(n *yaml.Node) bool {
	name, namespace := scalar(child(n, "metadata"), "name"), scalar(child(n, "metadata"), "namespace")
	if namespace != "" && namespace != s.origin.Namespace && namespace != s.object.GetNamespace() {
		return false
	}
	return scalar(n, "kind") == s.object.GetKind() && (name == s.origin.Name || name == s.object.GetName())
}

// follow walks into a document as far as it has the field. Items of a list are
// found by their names, which patches keep and whose places they do not.
func (s *search) follow(n *yaml.Node, value any, steps []string) (line, depth int) {
	line = n.Line
	for _, step := range steps {
		var next *yaml.Node
		switch v := value.(type) {
		case map[string]any:
			next, value = child(n, step), v[step]
			if next != nil {
				line = keyLine(n, step)
			}
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(v) {
				return line, depth
			}
			next, value = item(n, v[i], i), v[i]
			if next != nil {
				line = next.Line
			}
		}
		if next == nil {
			return line, depth
		}
		n, depth = next, depth+1
	}
	return line, depth
}

// operation looks at one of a JSON patch.
func (s *search) operation(file string, n *yaml.Node, offset int) {
	if n == nil || n.Kind != yaml.MappingNode || scalar(n, "op") == "" {
		return
	}
	tokens := strings.Split(strings.TrimPrefix(scalar(n, "path"), "/"), "/")
	for i, t := range tokens {
		t = strings.ReplaceAll(strings.ReplaceAll(t, "~1", "/"), "~0", "~")
		if i >= len(s.steps) || t != s.steps[i] && t != "-" {
			return
		}
	}
	depth := len(tokens)
	line := n.Line
	if value := child(n, "value"); value != nil {
		rest, more := s.follow(value, valueAt(s.object.Object, s.steps[:depth]), s.steps[depth:])
		if depth += more; more > 0 {
			line = rest
		}
	}
	s.found(file, line+offset, depth)
}

// inline looks at the patches that a kustomization holds as text.
func (s *search) inline(file string, n *yaml.Node) {
	if n == nil || n.Kind != yaml.MappingNode || !strings.HasPrefix(strings.ToLower(path.Base(file)), "kustomization") {
		return
	}
	for _, key := range []string{"patches", "patchesStrategicMerge", "patchesJson6902"} {
		list := child(n, key)
		if list == nil || list.Kind != yaml.SequenceNode {
			continue
		}
		for _, entry := range list.Content {
			at := entry
			if entry.Kind == yaml.MappingNode {
				kind := scalar(child(entry, "target"), "kind")
				if at = child(entry, "patch"); at == nil || kind != "" && kind != s.object.GetKind() {
					continue
				}
			}
			p, err := Parse(file, []byte(at.Value))
			if at.Kind != yaml.ScalarNode || err != nil {
				continue
			}
			offset := at.Line - 1
			if at.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
				offset = at.Line // the text begins on the line after the mark
			}
			s.documents(file, p.Docs, offset)
		}
	}
}

func valueAt(value any, steps []string) any {
	for _, step := range steps {
		switch v := value.(type) {
		case map[string]any:
			value = v[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}

func content(n *yaml.Node) *yaml.Node {
	for n != nil && (n.Kind == yaml.DocumentNode || n.Kind == yaml.AliasNode) {
		if n.Kind == yaml.AliasNode {
			n = n.Alias
			continue
		}
		if len(n.Content) == 0 {
			return nil
		}
		n = n.Content[0]
	}
	return n
}

func child(n *yaml.Node, key string) *yaml.Node {
	n = content(n)
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return content(n.Content[i+1])
		}
	}
	return nil
}

func keyLine(n *yaml.Node, key string) int {
	n = content(n)
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i].Line
		}
	}
	return n.Line
}

func scalar(n *yaml.Node, key string) string {
	if v := child(n, key); v != nil && v.Kind == yaml.ScalarNode {
		return v.Value
	}
	return ""
}

// item is the one of a list that has the name of a rendered one, else the one at
// its place.
func item(n *yaml.Node, rendered any, i int) *yaml.Node {
	n = content(n)
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	if m, ok := rendered.(map[string]any); ok && text(m["name"]) != "" {
		for _, c := range n.Content {
			if scalar(c, "name") == m["name"] {
				return content(c)
			}
		}
		return nil
	}
	if i < len(n.Content) {
		return content(n.Content[i])
	}
	return nil
}
