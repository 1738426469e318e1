package drift

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"rollcall.dev/rollcall/clusters"
)

// Unified writes an object's drift as a unified diff in YAML, from the live
// object to what it would be as Git says; under names a and b. Defaults and
// what other programs own are on both sides. desired may be nil for what is not
// in Git, and live for what is not in the cluster.
func (o *Object) Unified(desired, live *unstructured.Unstructured, a, b string) (string, error) {
	from, to := tree(live), tree(live)
	switch {
	case live == nil:
		to = tree(desired)
	case o.State == Extra:
		to = nil
	}
	if from != nil && to != nil {
		if err := edit(to, o.Fields); err != nil {
			return "", fmt.Errorf("drawing the difference of %s: %w", o.Object, err)
		}
	}
	if from == nil {
		a = "/dev/null"
	}
	if to == nil {
		b = "/dev/null"
	}
	left, err := yamlLines(from)
	if err != nil {
		return "", fmt.Errorf("writing the live %s: %w", o.Object, err)
	}
	right, err := yamlLines(to)
	if err != nil {
		return "", fmt.Errorf("writing %s as Git says: %w", o.Object, err)
	}
	return Lines(left, right, a, b)
}

// Lines is the unified diff of two lists of lines, each with its end.
func Lines(left, right []string, a, b string) (string, error) {
	return difflib.GetUnifiedDiffString(difflib.UnifiedDiff{A: left, B: right, FromFile: a, ToFile: b, Context: 3})
}

// LiveOf is the live object of a reference, nil if it is not there.
func LiveOf(l *clusters.Live, r clusters.Reference) *unstructured.Unstructured {
	if isDaemonSet(r) {
		for i := range l.DaemonSets {
			if ds := &l.DaemonSets[i]; ds.Namespace == r.Namespace && ds.Name == r.Name {
				object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(ds)
				if err != nil {
					return nil // a typed object always converts
				}
				u := &unstructured.Unstructured{Object: object}
				u.SetAPIVersion("apps/v1")
				u.SetKind("DaemonSet")
				return u
			}
		}
		return nil
	}
	for i := range l.Objects {
		if u := &l.Objects[i]; clusters.ReferenceOf(u).Identity() == r.Identity() {
			return u
		}
	}
	return nil
}

// ofServer are the fields of metadata that are the API server's.
var ofServer = []string{"managedFields", "uid", "resourceVersion", "generation", "creationTimestamp", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"}

// tree is a copy of an object without what the API server writes, and without
// secrets.
func tree(u *unstructured.Unstructured) map[string]any {
	if u == nil {
		return nil
	}
	out := runtime.DeepCopyJSON(normal(u.Object))
	delete(out, "status")
	if m, ok := out["metadata"].(map[string]any); ok {
		for _, name := range ofServer {
			delete(m, name)
		}
		if notes, ok := m["annotations"].(map[string]any); ok {
			delete(notes, lastApplied)
		}
	}
	for _, path := range [][]string{{"spec", "template", "metadata", "creationTimestamp"}} {
		unstructured.RemoveNestedField(out, path...)
	}
	return hideIn(out).(map[string]any)
}

// normal is an object with the numbers that a deep copy takes.
func normal(object map[string]any) map[string]any {
	data, err := json.Marshal(object)
	if err != nil {
		return object
	}
	var u unstructured.Unstructured
	if u.UnmarshalJSON(data) != nil {
		return object
	}
	return u.Object
}

// hideIn replaces what may be a secret in a tree.
func hideIn(v any) any {
	switch t := v.(type) {
	case map[string]any:
		name, _ := t["name"].(string)
		for k, x := range t {
			_, isText := x.(string)
			if isText && (k == "value" && isSecretName(name) || isSecretName(k)) {
				t[k] = hidden
				continue
			}
			t[k] = hideIn(x)
		}
	case []any:
		for i := range t {
			t[i] = hideIn(t[i])
		}
	case string:
		return Masked(t)
	}
	return v
}

func yamlLines(t map[string]any) ([]string, error) {
	if t == nil {
		return nil, nil
	}
	data, err := yaml.Marshal(t)
	if err != nil {
		return nil, err
	}
	return strings.SplitAfter(strings.TrimSuffix(string(data), "\n")+"\n", "\n")[:strings.Count(string(data), "\n")], nil
}

// edit makes a live tree what Git says. What is changed comes first, for the
// places of list items are those of the live list; then what is removed, from
// the end, and what is added.
func edit(t map[string]any, fields []Field) error {
	fields = slices.Clone(fields)
	slices.SortStableFunc(fields, func(a, b Field) int {
		if a.rank() != b.rank() || a.rank() == 0 {
			return a.rank() - b.rank()
		}
		x, y := a.steps[len(a.steps)-1], b.steps[len(b.steps)-1]
		if a.rank() == 1 {
			return y.have - x.have
		}
		return x.want - y.want
	})
	for _, f := range fields {
		if err := f.apply(t, f.steps); err != nil {
			return fmt.Errorf("%s: %w", f.Path, err)
		}
	}
	return nil
}

// rank is when a field is edited.
func (f Field) rank() int {
	item := f.steps[len(f.steps)-1].item != ""
	switch {
	case f.Change == Order:
		return 3
	case item && f.Change == Added:
		return 1
	case item && f.Change == Missing:
		return 2
	}
	return 0
}

// apply edits what is below a map.
func (f Field) apply(m map[string]any, steps []step) error {
	name := steps[0].name
	if len(steps) == 1 {
		if f.Change == Added {
			delete(m, name)
			return nil
		}
		v, err := f.value()
		if f.Change == Order {
			v = permuted(m[name], v)
		}
		m[name] = v
		return err
	}
	if steps[1].item != "" {
		list, _ := m[name].([]any)
		list, err := f.applyItem(list, steps[1:])
		m[name] = list
		return err
	}
	child, ok := m[name].(map[string]any)
	if !ok {
		child = map[string]any{}
		m[name] = child
	}
	return f.apply(child, steps[1:])
}

// applyItem edits an item of a list, or what is below it.
func (f Field) applyItem(list []any, steps []step) ([]any, error) {
	s := steps[0]
	switch {
	case len(steps) == 1 && f.Change == Missing:
		v, err := f.value()
		return slices.Insert(list, min(max(s.want, 0), len(list)), v), err
	case s.have < 0 || s.have >= len(list):
		return list, fmt.Errorf("there is no item %s", s.item)
	case len(steps) == 1 && f.Change == Added:
		return slices.Delete(list, s.have, s.have+1), nil
	case len(steps) == 1:
		v, err := f.value()
		list[s.have] = v
		return list, err
	}
	m, ok := list[s.have].(map[string]any)
	if !ok {
		return list, fmt.Errorf("item %s has no fields", s.item)
	}
	return list, f.apply(m, steps[1:])
}

// value is what Git says, as JSON has it, without secrets.
func (f Field) value() (any, error) {
	if f.hide {
		return "(hidden, another one)", nil
	}
	data, err := json.Marshal(f.want)
	if err != nil {
		return nil, err
	}
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, err
	}
	return hideIn(v), nil
}

// permuted is a live list in Git's order, by the names of its items; Git's own
// where they have none.
func permuted(live, git any) any {
	a, ok := live.([]any)
	b, also := git.([]any)
	if !ok || !also || len(a) != len(b) {
		return git
	}
	place := map[string]int{}
	for i, v := range b {
		m, ok := v.(map[string]any)
		name, named := m["name"].(string)
		if !ok || !named {
			return git
		}
		place[name] = i
	}
	out := slices.Clone(a)
	slices.SortStableFunc(out, func(x, y any) int {
		p, _ := x.(map[string]any)["name"].(string)
		q, _ := y.(map[string]any)["name"].(string)
		return place[p] - place[q]
	})
	return out
}
