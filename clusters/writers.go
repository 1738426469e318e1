package clusters

import (
	"bytes"
	"encoding/json"
	"slices"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LastWriter is who last wrote a field of an object, by its managedFields. The
// path is written as they write it: f:spec, f:template, k:{"name":"c"}. Of the
// result only the manager and the time are set.
func LastWriter(managed []metav1.ManagedFieldsEntry, path ...string) (last Writer, ok bool) {
	for i := range managed {
		m := &managed[i]
		if m.Subresource != "" || m.FieldsV1 == nil || !owns(m.FieldsV1.GetRawBytes(), path) {
			continue
		}
		if w := writerOf(m); !ok || w.NotAfter.After(last.NotAfter) {
			last, ok = w, true
		}
	}
	return last, ok
}

// Owners are all who own a field of an object or something below it, by its
// managedFields, the last to write first. The path is written as of LastWriter.
// Itself tells of an owner that the field is in his set, and not only part of a
// whole that is.
func Owners(managed []metav1.ManagedFieldsEntry, path ...string) []Writer {
	var out []Writer
	for i := range managed {
		m := &managed[i]
		if m.Subresource != "" || m.FieldsV1 == nil {
			continue
		}
		if itself, whole := ownership(m.FieldsV1.GetRawBytes(), path); itself || whole {
			w := writerOf(m)
			w.Operation, w.Itself = string(m.Operation), itself
			out = append(out, w)
		}
	}
	slices.SortStableFunc(out, func(a, b Writer) int { return b.NotAfter.Compare(a.NotAfter) })
	return out
}

// writerOf shares the manager's name, which very many objects have.
func writerOf(m *metav1.ManagedFieldsEntry) Writer {
	w := Writer{Manager: unique.Make(m.Manager).Value()}
	if m.Time != nil {
		w.NotAfter = m.Time.UTC()
	}
	return w
}

// owns tells whether a path is in a set of fields, or a whole above it: a field
// of no others, as a list is that the API server does not merge.
func owns(raw []byte, path []string) bool {
	itself, whole := ownership(raw, path)
	return itself || whole
}

func ownership(raw []byte, path []string) (itself, whole bool) {
	f := fieldset{text: raw}
	for depth, step := range path {
		f.enter()
		leaf, found := depth > 0, false
		for name, ok := f.next(); ok; name, ok = f.next() {
			if found = string(name) == step; found {
				break
			}
			leaf = leaf && string(name) == "."
			f.skip()
		}
		if !found {
			return false, leaf && !f.broken
		}
	}
	return len(path) > 0, false
}

// writersOf are the entries that own the taints or labels of a node. Through
// which subresource they were written does not matter: the kubelet labels its
// node through status.
func writersOf(n *corev1.Node) []Writer {
	var out []Writer
	var keys, owned []string
	for i := range n.ManagedFields {
		m := &n.ManagedFields[i]
		if m.FieldsV1 == nil {
			continue
		}
		raw := m.FieldsV1.GetRawBytes()
		if !bytes.Contains(raw, []byte(`"f:taints"`)) && !bytes.Contains(raw, []byte(`"f:labels"`)) {
			continue // the long ones of status are not worth a closer look
		}
		if keys == nil {
			keys, owned = make([]string, 0, len(n.Labels)), make([]string, 0, len(n.Labels))
			for key := range n.Labels {
				keys = append(keys, key)
			}
		}
		var taints bool
		if taints, owned = nodeFields(raw, keys, owned[:0]); taints || len(owned) > 0 {
			w := writerOf(m)
			w.Taints, w.Labels = taints, append(w.Labels, owned...)
			out = append(out, w)
		}
	}
	return out
}

// nodeFields finds the taints in a set of fields, and appends to owned which of
// the label keys are there.
func nodeFields(raw []byte, keys, owned []string) (taints bool, labels []string) {
	f := fieldset{text: raw}
	f.enter()
	for name, ok := f.next(); ok; name, ok = f.next() {
		switch string(name) {
		case "f:spec":
			f.enter()
			for name, ok := f.next(); ok; name, ok = f.next() {
				taints = taints || string(name) == "f:taints"
				f.skip()
			}
		case "f:metadata":
			owned = labelFields(&f, keys, owned)
		default:
			f.skip()
		}
	}
	return taints, owned
}

// labelFields appends the very strings of keys, not copies.
func labelFields(f *fieldset, keys, owned []string) []string {
	f.enter()
	for name, ok := f.next(); ok; name, ok = f.next() {
		if string(name) != "f:labels" {
			f.skip()
			continue
		}
		f.enter()
		for name, ok := f.next(); ok; name, ok = f.next() {
			f.skip()
			for _, key := range keys {
				if len(name) == len(key)+2 && string(name[2:]) == key {
					owned = append(owned, key)
				}
			}
		}
	}
	return owned
}

// fieldset walks through a set of fields as managedFields have it: JSON objects
// within objects and nothing else. It copies nothing, for a cluster has
// thousands of nodes with kilobytes of it. What is not of this form breaks the
// walk off.
type fieldset struct {
	text   []byte // what was not walked through yet
	broken bool
}

// enter goes into the object that comes next.
func (f *fieldset) enter() { f.take('{') }

// next returns the name of the next field of the object that was entered, or
// leaves the object after its last one. The field's own set must then be
// entered or skipped.
func (f *fieldset) next() (name []byte, ok bool) {
	f.space()
	if len(f.text) > 0 && f.text[0] == ',' {
		f.text = f.text[1:]
		f.space()
	}
	if len(f.text) > 0 && f.text[0] == '}' {
		f.text = f.text[1:]
		return nil, false
	}
	n := stringEnd(f.text)
	if n == 0 {
		f.fail()
		return nil, false
	}
	quoted := f.text[:n]
	f.text = f.text[n:]
	f.take(':')
	name = quoted[1 : n-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		var s string
		if json.Unmarshal(quoted, &s) != nil {
			f.fail()
		}
		name = []byte(s)
	}
	return name, !f.broken
}

// skip passes over the object that comes next.
func (f *fieldset) skip() {
	f.enter()
	for depth, i := 1, 0; i < len(f.text); i++ {
		switch f.text[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				f.text = f.text[i+1:]
				return
			}
		case '"':
			n := stringEnd(f.text[i:])
			if n == 0 {
				f.fail()
				return
			}
			i += n - 1
		}
	}
	f.fail()
}

// stringEnd is the length of the JSON string that a text begins with, 0 if it
// begins with none.
func stringEnd(text []byte) int {
	if len(text) == 0 || text[0] != '"' {
		return 0
	}
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return 0
}

func (f *fieldset) take(c byte) {
	f.space()
	if len(f.text) == 0 || f.text[0] != c {
		f.fail()
		return
	}
	f.text = f.text[1:]
}

func (f *fieldset) space() {
	for len(f.text) > 0 && (f.text[0] == ' ' || f.text[0] == '\n' || f.text[0] == '\t' || f.text[0] == '\r') {
		f.text = f.text[1:]
	}
}

func (f *fieldset) fail() { f.text, f.broken = nil, true }
