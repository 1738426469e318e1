package render

import (
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Objects returns the objects of a scanned file, with lists taken apart.
func Objects(file string, p Parsed) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	for _, doc := range p.Docs {
		value, err := decoder{file}.value(doc)
		if err != nil {
			return nil, err
		}
		if value == nil {
			continue
		}
		object, ok := value.(map[string]any)
		if !ok {
			return nil, notAnObject(file, doc)
		}
		if all, err = flatten(file, doc, object, all); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Object returns the object that a node holds. Scalars are read as kubectl
// reads them, YAML 1.1 booleans included.
func Object(file string, n *yaml.Node) (unstructured.Unstructured, error) {
	value, err := decoder{file}.value(n)
	if err != nil {
		return unstructured.Unstructured{}, err
	}
	object, ok := value.(map[string]any)
	if !ok {
		return unstructured.Unstructured{}, notAnObject(file, n)
	}
	return unstructured.Unstructured{Object: object}, nil
}

// flatten appends an object, or the items of a list, which has a kind that
// ends in List and a field items, as kustomize and kubectl see it.
func flatten(file string, doc *yaml.Node, object map[string]any, all []unstructured.Unstructured) ([]unstructured.Unstructured, error) {
	u := unstructured.Unstructured{Object: object}
	items, list := object["items"]
	if !list || !strings.HasSuffix(text(object["kind"]), "List") {
		if fault := identity(file, doc, u); fault != nil {
			return nil, fault
		}
		return append(all, u), nil
	}
	entries, ok := items.([]any)
	if !ok && items != nil {
		return nil, notAnObject(file, doc)
	}
	for _, entry := range entries {
		item, ok := entry.(map[string]any)
		if !ok {
			return nil, notAnObject(file, doc)
		}
		var err error
		if all, err = flatten(file, doc, item, all); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// identity checks what every object must have.
func identity(file string, doc *yaml.Node, u unstructured.Unstructured) error {
	metadata, _ := u.Object["metadata"].(map[string]any)
	fields := []struct{ path, value string }{
		{"apiVersion", text(u.Object["apiVersion"])},
		{"kind", text(u.Object["kind"])},
		{"metadata.name", text(metadata["name"])},
	}
	for _, f := range fields {
		if f.value == "" {
			return &Error{Code: InvalidManifest, File: file, Field: fmt.Sprintf("line %d", doc.Line), Message: f.path + " is missing or not text: this is no Kubernetes object; remove it from the folder or complete it"}
		}
	}
	return nil
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

func notAnObject(file string, n *yaml.Node) *Error {
	return &Error{Code: InvalidManifest, File: file, Field: fmt.Sprintf("line %d", n.Line), Message: "this is not a Kubernetes object: remove it from the folder"}
}

// decoder turns nodes into the values that JSON has.
type decoder struct{ file string }

func (d decoder) value(n *yaml.Node) (any, error) {
	switch n.Kind {
	case yaml.DocumentNode:
		if len(n.Content) == 0 {
			return nil, nil
		}
		return d.value(n.Content[0])
	case yaml.AliasNode:
		return d.value(n.Alias)
	case yaml.MappingNode:
		return d.mapping(n)
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for _, child := range n.Content {
			v, err := d.value(child)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	case yaml.ScalarNode:
		return d.scalar(n)
	}
	return nil, nil
}

func (d decoder) mapping(n *yaml.Node) (map[string]any, error) {
	out := make(map[string]any, len(n.Content)/2)
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.ShortTag() == "!!merge" {
			merged = append(merged, n.Content[i+1])
			continue
		}
		v, err := d.value(n.Content[i+1])
		if err != nil {
			return nil, err
		}
		out[key.Value] = v
	}
	for _, m := range merged {
		if err := d.merge(out, m); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// merge adds the keys of << that are not there yet; of several mappings the
// first wins.
func (d decoder) merge(into map[string]any, n *yaml.Node) error {
	v, err := d.value(n)
	if err != nil {
		return err
	}
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, entry := range list {
		m, ok := entry.(map[string]any)
		if !ok {
			return d.bad(n, "<< merges something that is not a mapping")
		}
		for key, value := range m {
			if _, there := into[key]; !there {
				into[key] = value
			}
		}
	}
	return nil
}

const quoted = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle

func (d decoder) scalar(n *yaml.Node) (any, error) {
	switch tag := n.ShortTag(); tag {
	case "!!str", "!!timestamp", "!!merge":
		if b, old := oldBool(n.Value); old && n.Style&(quoted|yaml.TaggedStyle) == 0 {
			return b, nil
		}
		return n.Value, nil
	case "!!null":
		return nil, nil
	case "!!bool":
		b, err := strconv.ParseBool(strings.ToLower(n.Value))
		if err != nil {
			return nil, d.bad(n, "the value is tagged !!bool and is none")
		}
		return b, nil
	case "!!int":
		return d.integer(n)
	case "!!float":
		return d.float(n)
	case "!!binary":
		b, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(n.Value), ""))
		if err != nil {
			return nil, d.bad(n, "the value is tagged !!binary and is not base64")
		}
		return string(b), nil
	default:
		return nil, d.bad(n, fmt.Sprintf("the tag %q is not known: remove it", short(tag)))
	}
}

// oldBool tells whether YAML 1.1, which kubectl and the API server read, takes
// a word for a boolean that YAML 1.2 takes for text.
func oldBool(s string) (value, old bool) {
	switch s {
	case "y", "Y", "yes", "Yes", "YES", "on", "On", "ON":
		return true, true
	case "n", "N", "no", "No", "NO", "off", "Off", "OFF":
		return false, true
	}
	return false, false
}

func (d decoder) integer(n *yaml.Node) (any, error) {
	plain := strings.ReplaceAll(n.Value, "_", "")
	if i, err := strconv.ParseInt(plain, 0, 64); err == nil {
		return i, nil
	}
	return d.float(n)
}

func (d decoder) float(n *yaml.Node) (any, error) {
	f, err := strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return nil, d.bad(n, "the number is not one that JSON can hold: quote it if it is text")
	}
	return f, nil
}

func (d decoder) bad(n *yaml.Node, message string) *Error {
	e := &Error{Code: InvalidManifest, File: d.file, Message: message}
	if n.Line > 0 {
		e.Field = fmt.Sprintf("line %d", n.Line)
	}
	return e
}
