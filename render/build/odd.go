package build

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rollcall.dev/rollcall/render"
)

// odd tells what an overlay does to what its files declare that its author may
// not know of: objects and tolerations that are gone, labels that reach where
// they cannot be changed later, DaemonSets of other names, deprecated fields.
// Where objects came from is returned by their identities.
func (g *guard) odd(res render.Resolution, all scope, objects []unstructured.Unstructured) (map[string]render.Origin, []render.Error) {
	origins := map[string]render.Origin{}
	seen := make([]bool, len(all.candidates))
	var out []render.Error
	for i := range objects {
		u := &objects[i]
		at := declares(all.candidates, u)
		if at < 0 {
			continue
		}
		seen[at] = true
		c := all.candidates[at]
		origins[render.Identity(u)] = render.Origin{File: c.file, Name: c.names[0], Namespace: c.namespaces[0]}
		if c.object != nil && u.GetKind() == "DaemonSet" {
			out = append(out, changes(c, u)...)
		}
	}
	for i, c := range all.candidates {
		if !seen[i] && !all.unsure && c.object != nil {
			out = append(out, dropped(res.Overlay, c))
		}
	}
	return origins, append(out, g.deprecated()...)
}

// declares finds what declares an object, the surest of those that may.
func declares(candidates []candidate, u *unstructured.Unstructured) int {
	found, best := -1, 0
	for i, c := range candidates {
		if sure := c.declares(u); sure > best {
			found, best = i, sure
		}
	}
	return found
}

// declares tells how surely it is what declares an object, zero for not: by the
// name that the overlay gives it, of a generated one without its hash.
func (c candidate) declares(u *unstructured.Unstructured) int {
	gvk := u.GroupVersionKind()
	name, namespace := c.names[len(c.names)-1], c.namespaces[len(c.namespaces)-1]
	switch {
	case c.gvk.Group != gvk.Group || c.gvk.Kind != gvk.Kind:
		return 0
	case c.object == nil && strings.HasPrefix(u.GetName(), name+"-"):
		return 1
	case u.GetName() != name:
		return 0
	case c.object == nil:
		return 2
	case namespace == u.GetNamespace():
		return 4
	case namespace == "":
		return 3
	}
	return 0
}

func dropped(overlay string, c candidate) render.Error {
	e := render.Error{Code: render.ObjectDropped, File: c.file, Field: render.Name(c.object), Message: fmt.Sprintf("overlay %q drops it: a patch deletes it", overlay)}
	if c.gvk.Kind == "DaemonSet" {
		e.Code = render.DaemonSetDropped
	}
	return e
}

// changes compares a DaemonSet as declared with what became of it.
func changes(c candidate, u *unstructured.Unstructured) []render.Error {
	var out []render.Error
	say := func(code, format string, args ...any) {
		out = append(out, render.Error{Code: code, File: c.file, Field: render.Name(u), Message: fmt.Sprintf(format, args...)})
	}
	if lost := lacking(tolerations(c.object), tolerations(u)); len(lost) > 0 {
		say(render.TolerationsDropped, "the overlay drops its tolerations %s: a strategic merge patch replaces the whole list; repeat them, or add one by a JSON patch to /spec/template/spec/tolerations/-", strings.Join(lost, ", "))
	}
	if keys := added(c.object, u, "spec", "selector", "matchLabels"); len(keys) > 0 {
		say(render.SelectorRelabelled, "the overlay adds %s to its selector, which cannot be changed once the DaemonSet is there: use labels: [{pairs: …}] in place of commonLabels and includeSelectors", strings.Join(keys, ", "))
	} else if keys := added(c.object, u, "spec", "template", "metadata", "labels"); len(keys) > 0 {
		say(render.TemplateRelabelled, "the overlay adds %s to the labels of its pods: a change of them rolls all pods", strings.Join(keys, ", "))
	}
	if from := c.names[0]; from != u.GetName() {
		say(render.DaemonSetRenamed, "the overlay names it so, the file %q: where it was applied under that name, it stays behind and both run", from)
	}
	return out
}

// toleration is one of a DaemonSet, as far as it says which taints it is for.
type toleration struct{ key, operator, value, effect string }

func tolerations(u *unstructured.Unstructured) []toleration {
	list, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "template", "spec", "tolerations")
	items, _ := list.([]any)
	var out []toleration
	for _, item := range items {
		m, ok := item.(map[string]any)
		if !ok {
			continue
		}
		field := func(name string) string { text, _ := m[name].(string); return text }
		out = append(out, toleration{field("key"), cmp.Or(field("operator"), "Equal"), field("value"), field("effect")})
	}
	return out
}

// String is one word.
func (t toleration) String() string {
	text := cmp.Or(t.key, "(every key)")
	if t.value != "" {
		text += "=" + t.value
	}
	if t.effect != "" {
		text += ":" + t.effect
	}
	return text
}

// covers tells whether it is for every taint that another is for.
func (t toleration) covers(other toleration) bool {
	switch {
	case t == other:
		return true
	case t.effect != "" && t.effect != other.effect:
		return false
	case t.operator == "Exists":
		return t.key == "" || t.key == other.key
	}
	return t.key == other.key && t.operator == other.operator && t.value == other.value
}

// lacking names those of before that none of after covers.
func lacking(before, after []toleration) []string {
	var lost []string
	for _, b := range before {
		if !slices.ContainsFunc(after, func(a toleration) bool { return a.covers(b) }) {
			lost = append(lost, b.String())
		}
	}
	return lost
}

// added are the keys that a mapping has in one object and not in the other.
func added(before, after *unstructured.Unstructured, path ...string) []string {
	old, _, _ := unstructured.NestedFieldNoCopy(before.Object, path...)
	now, _, _ := unstructured.NestedFieldNoCopy(after.Object, path...)
	have, _ := old.(map[string]any)
	want, _ := now.(map[string]any)
	keys := slices.Sorted(maps.Keys(want))
	return slices.DeleteFunc(keys, func(k string) bool { _, there := have[k]; return there })
}

// deprecation is how kustomize words what it will not take any more.
var deprecation = regexp.MustCompile(`'([^']+)' is deprecated\. Please use '([^']+)' instead`)

// deprecated names the deprecated fields of each kustomization.
func (g *guard) deprecated() []render.Error {
	var out []render.Error
	for _, dir := range slices.Sorted(maps.Keys(g.judged)) {
		k := g.judged[dir]
		messages := k.deprecated
		if messages == nil || dir == fleetRoot {
			continue
		}
		for _, m := range *messages {
			if found := deprecation.FindStringSubmatch(m); found != nil {
				out = append(out, render.Error{Code: render.DeprecatedField, File: show(k.file), Field: found[1], Message: fmt.Sprintf("kustomize will drop it: use %s", found[2])})
			}
		}
	}
	return out
}
