package build

import (
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

// declares finds what declares an object: by the name that the overlay gives it,
// of a generated one without its hash.
func declares(candidates []candidate, u *unstructured.Unstructured) int {
	gvk := u.GroupVersionKind()
	return slices.IndexFunc(candidates, func(c candidate) bool {
		if c.gvk.Group != gvk.Group || c.gvk.Kind != gvk.Kind {
			return false
		}
		name := c.names[len(c.names)-1]
		if c.object == nil {
			return u.GetName() == name || strings.HasPrefix(u.GetName(), name+"-")
		}
		namespace := c.namespaces[len(c.namespaces)-1]
		return u.GetName() == name && (namespace == "" || namespace == u.GetNamespace())
	})
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

// tolerations of a DaemonSet, each in one word.
func tolerations(u *unstructured.Unstructured) []string {
	list, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "template", "spec", "tolerations")
	items, _ := list.([]any)
	var out []string
	for _, item := range items {
		m, ok := item.(map[string]any)
		if !ok {
			continue
		}
		field := func(name string) string { text, _ := m[name].(string); return text }
		text := field("key")
		if text == "" {
			text = "(every key)"
		}
		if v := field("value"); v != "" {
			text += "=" + v
		}
		if e := field("effect"); e != "" {
			text += ":" + e
		}
		out = append(out, text)
	}
	return out
}

func lacking(before, after []string) []string {
	return slices.DeleteFunc(slices.Clone(before), func(t string) bool { return slices.Contains(after, t) })
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
