package clusters

import (
	"fmt"
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

// selector returns the compiled selector, nil for any labels. A selection that
// was not parsed has none compiled.
func (s Selection) selector() labels.Selector {
	if s.compiled != nil || s.Selector == nil {
		return s.compiled
	}
	return compile(s.Selector)
}

// compile makes a selector of a valid one; an invalid one picks nothing.
func compile(s *metav1.LabelSelector) labels.Selector {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return labels.Nothing()
	}
	return selector
}
