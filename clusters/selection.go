package clusters

import (
	"fmt"
	"path"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Matches tells whether a cluster is picked: by its name where names are
// given, and by its labels where a selector is.
func (s Selection) Matches(name string, set map[string]string) bool {
	if len(s.Names) > 0 && !slices.Contains(s.Names, name) {
		return false
	}
	selector := s.selector()
	return selector == nil || selector.Matches(labels.Set(set))
}

// Why says what decides whether a cluster is picked, such as
// "label env=prod" or "label env=dev is not env in (prod,staging)".
func (s Selection) Why(name string, set map[string]string) string {
	if len(s.Names) > 0 && !slices.Contains(s.Names, name) {
		return fmt.Sprintf("name %q is not one of %s", name, strings.Join(s.Names, ", "))
	}
	var because []string
	if len(s.Names) > 0 {
		because = append(because, fmt.Sprintf("name %q", name))
	}
	selector := s.selector()
	if selector == nil {
		selector = labels.Everything()
	}
	requirements, selectable := selector.Requirements()
	if !selectable {
		return "the selector is not valid"
	}
	for _, r := range requirements {
		if !r.Matches(labels.Set(set)) {
			return fmt.Sprintf("%s, wanted %s", worn(r.Key(), set), r.String())
		}
		because = append(because, worn(r.Key(), set))
	}
	if len(because) == 0 {
		return "all clusters"
	}
	return strings.Join(slices.Compact(because), ", ")
}

// worn words the label that a cluster has under a key.
func worn(key string, set map[string]string) string {
	value, ok := set[key]
	if !ok {
		return "no label " + key
	}
	return "label " + key + "=" + value
}

// selector returns the compiled selector, nil for any labels.
func (s Selection) selector() labels.Selector { return selectorOf(s.compiled, s.Selector) }

// Excludes tells whether a DaemonSet is one of those that are not judged.
func (e Exclude) Excludes(namespace, name string, set map[string]string) bool {
	matches := func(pattern string) bool {
		ns, ds, _ := strings.Cut(pattern, "/")
		return matchesPattern(ns, namespace) && matchesPattern(ds, name)
	}
	if slices.ContainsFunc(e.Names, matches) {
		return true
	}
	s := selectorOf(e.labels, e.Match)
	return s != nil && s.Matches(labels.Set(set))
}

// matchesPattern is false for a pattern that is not valid.
func matchesPattern(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

// Excluded tells whether the fleet excludes a DaemonSet from being judged.
func (f *Fleet) Excluded(namespace, name string, set map[string]string) bool {
	return slices.ContainsFunc(f.Exclude, func(e Exclude) bool { return e.Excludes(namespace, name, set) })
}

// selectorOf returns the compiled selector, nil where none was written. What
// was not parsed has none compiled.
func selectorOf(compiled labels.Selector, s *metav1.LabelSelector) labels.Selector {
	if compiled != nil || s == nil {
		return compiled
	}
	return compile(s)
}

// compile makes a selector of a valid one; an invalid one picks nothing.
func compile(s *metav1.LabelSelector) labels.Selector {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return labels.Nothing()
	}
	return selector
}
