package clusters

import (
	"fmt"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// IgnoreAnnotation of an object in Git is its own rule of what is no drift:
// pointers and manager=NAME, separated by commas or lines.
const IgnoreAnnotation = "rollcall.dev/ignore"

// Ignore is a rule of differences that are no drift: which objects, and either
// which of their fields or who wrote them. Where both are given both must hold.
type Ignore struct {
	Clusters Selection
	// Group, Kind, Namespace and Name are patterns of path.Match; empty: any.
	Group, Kind, Namespace, Name string
	Fields                       []Pointer
	Managers                     []string
	Reason                       string
}

// Selects tells whether the rule is about an object.
func (g *Ignore) Selects(r Reference) bool {
	return matchesWord(g.Group, r.Group()) && matchesWord(g.Kind, r.Kind) && matchesWord(g.Namespace, r.Namespace) && matchesWord(g.Name, r.Name)
}

func matchesWord(pattern, word string) bool {
	if pattern == "" {
		return true
	}
	ok, err := path.Match(pattern, word)
	return err == nil && ok
}

// Pointer is a JSON pointer (RFC 6901), decoded. A segment may also be *, for any
// one, or [name=c], for the item of a list with that key. It stands for what is
// below it, too.
type Pointer []string

// ParsePointer reads a pointer.
func ParsePointer(text string) (Pointer, error) {
	if !strings.HasPrefix(text, "/") || len(text) < 2 {
		return nil, fmt.Errorf("must be a JSON pointer such as /spec/template/spec/containers/[name=c]/image")
	}
	// A segment in brackets may hold a slash, as a mountPath does.
	var out Pointer
	rest := text[1:]
	for {
		end := strings.IndexByte(rest, '/')
		if strings.HasPrefix(rest, "[") {
			closing := strings.Index(rest, "]")
			if closing < 0 {
				return nil, fmt.Errorf("must close the bracket of %q", rest)
			}
			if end = closing + 1; end == len(rest) {
				end = -1
			} else if rest[end] != '/' {
				return nil, fmt.Errorf("must have a / after %q", rest[:end])
			}
		}
		segment := rest
		if end >= 0 {
			segment = rest[:end]
		}
		if segment == "" {
			return nil, fmt.Errorf("must not have an empty segment")
		}
		out = append(out, strings.NewReplacer("~1", "/", "~0", "~").Replace(segment))
		if end < 0 {
			return out, nil
		}
		rest = rest[end+1:]
	}
}

// String writes the pointer as ParsePointer reads it.
func (p Pointer) String() string {
	var b strings.Builder
	for _, s := range p {
		b.WriteByte('/')
		if strings.HasPrefix(s, "[") {
			b.WriteString(s)
			continue
		}
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(s))
	}
	return b.String()
}

// ignores reads the rules of spec.drift.ignore.
func (d *document) ignores(at *field.Path, ws []wireIgnore) []Ignore {
	var all []Ignore
	for i, w := range ws {
		at := at.Index(i)
		g := Ignore{Group: w.Group, Kind: w.Kind, Namespace: w.Namespace, Name: w.Name, Managers: w.Managers, Reason: w.Reason}
		if w.Clusters != nil {
			g.Clusters = d.clusters(at.Child("clusters"), w.Clusters)
		}
		for _, p := range []struct{ name, pattern string }{{"group", w.Group}, {"kind", w.Kind}, {"namespace", w.Namespace}, {"name", w.Name}} {
			if _, err := path.Match(p.pattern, ""); err != nil {
				d.add(field.Invalid(at.Child(p.name), p.pattern, "must be a word or a pattern such as kube-*"))
			}
		}
		for k, text := range w.Fields {
			p, err := ParsePointer(text)
			if err != nil {
				d.add(field.Invalid(at.Child("fields").Index(k), text, err.Error()))
			}
			g.Fields = append(g.Fields, p)
		}
		if len(w.Fields)+len(w.Managers) == 0 {
			d.add(field.Required(at.Child("fields"), "what of the objects to ignore: fields, or managers"))
		}
		all = append(all, g)
	}
	return all
}
