package drift

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"rollcall.dev/rollcall/clusters"
)

// IgnoreAnnotation is clusters.IgnoreAnnotation.
const IgnoreAnnotation = clusters.IgnoreAnnotation

// Rule is a rule of the fleet file, at its index there.
type Rule struct {
	clusters.Ignore
	At int
}

// ignoredBy is the first rule that covers a difference, empty without one. What
// decides where pods go is ignored only by a rule that names the field.
func (c *comparison) ignoredBy(ref clusters.Reference, f Field, own []ownRule, used []bool) string {
	found := ""
	for i := range c.in.Ignore {
		r := &c.in.Ignore[i]
		if r.Selects(ref) && covers(r.Fields, r.Managers, f) {
			c.out.Used[i] = true
			if found == "" {
				found = fmt.Sprintf("spec.drift.ignore[%d]", r.At)
			}
		}
	}
	for i, r := range own {
		if covers(r.fields, r.managers, f) {
			used[i] = true
			if found == "" {
				found = "annotation " + IgnoreAnnotation
			}
		}
	}
	return found
}

func covers(fields []clusters.Pointer, managers []string, f Field) bool {
	if len(fields) == 0 && f.Placement {
		return false
	}
	return (len(fields) == 0 || slices.ContainsFunc(fields, func(p clusters.Pointer) bool { return reaches(p, f.steps) })) &&
		(len(managers) == 0 || slices.Contains(managers, f.Manager))
}

// reaches tells whether a pointer leads to a field or to something above it.
func reaches(p clusters.Pointer, steps []step) bool {
	if len(p) > len(steps) {
		return false
	}
	for i, segment := range p {
		if s := steps[i]; segment != "*" && segment != s.name && (s.item == "" || segment != s.item && segment != strconv.Itoa(s.want) && !(s.want < 0 && segment == strconv.Itoa(s.have))) {
			return false
		}
	}
	return true
}

// Pointer is where the field is, for a rule.
func (f Field) Pointer() clusters.Pointer {
	var out clusters.Pointer
	for _, s := range f.steps {
		if s.item != "" {
			out = append(out, s.item)
			continue
		}
		out = append(out, s.name)
	}
	return out
}

// ownRule is one entry of an object's annotation.
type ownRule struct {
	fields   []clusters.Pointer
	managers []string
}

func (r ownRule) text() string {
	if len(r.fields) > 0 {
		return r.fields[0].String()
	}
	return "manager=" + r.managers[0]
}

type ownFault struct{ text, why string }

// ownRules reads the annotation of an object.
func ownRules(annotation string) (rules []ownRule, faults []ownFault) {
	for _, entry := range splitEntries(annotation) {
		if manager, ok := strings.CutPrefix(entry, "manager="); ok && manager != "" {
			rules = append(rules, ownRule{managers: []string{manager}})
			continue
		}
		p, err := clusters.ParsePointer(entry)
		if err != nil {
			faults = append(faults, ownFault{entry, err.Error() + ", or manager=NAME"})
			continue
		}
		rules = append(rules, ownRule{fields: []clusters.Pointer{p}})
	}
	return rules, faults
}

// splitEntries cuts at commas and lines that are not inside of brackets.
func splitEntries(text string) []string {
	depth, start := 0, 0
	var out []string
	cut := func(end int) {
		if entry := strings.TrimSpace(text[start:end]); entry != "" {
			out = append(out, entry)
		}
		start = end + 1
	}
	for i, c := range text {
		switch {
		case c == '[':
			depth++
		case c == ']':
			depth--
		case c == '\n', c == ',' && depth <= 0:
			cut(i)
		}
	}
	start = min(start, len(text))
	cut(len(text))
	return out
}
