package render

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"
)

// Finish makes of the objects that an overlay rendered to what is desired:
// sorted, with every DaemonSet read into its type. A render to nothing, an
// object that is there twice and a DaemonSet that no API server would take
// are errors, because a desired state without them would be a lie; the objects
// are returned beside such an error, to be looked at.
func Finish(overlay string, objects []unstructured.Unstructured) (Desired, error) {
	d := Desired{Overlay: overlay, Objects: slices.Clone(objects)}
	slices.SortStableFunc(d.Objects, compareObjects)
	var faults []error
	for i := range d.Objects {
		u := &d.Objects[i]
		if i > 0 && compareObjects(d.Objects[i-1], *u) == 0 {
			faults = append(faults, &Error{Code: InvalidManifest, File: overlay, Field: Name(u), Message: "the object is rendered twice: keep one"})
		}
		d.Warnings = append(d.Warnings, leftovers(overlay, u)...)
		ds, warnings, err := daemonSet(overlay, u)
		d.Warnings = append(d.Warnings, warnings...)
		if err != nil {
			faults = append(faults, err)
		}
		if ds != nil {
			d.DaemonSets = append(d.DaemonSets, *ds)
		}
	}
	slices.SortFunc(d.DaemonSets, func(a, b appsv1.DaemonSet) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	if err := errors.Join(faults...); err != nil {
		return Desired{Overlay: overlay, Objects: d.Objects}, err
	}
	return d, d.empty()
}

// Name names an object for a message.
func Name(u *unstructured.Unstructured) string {
	if u.GetNamespace() == "" {
		return u.GetKind() + " " + u.GetName()
	}
	return u.GetKind() + " " + u.GetNamespace() + "/" + u.GetName()
}

// Identity is what tells an object from all others of a cluster.
func Identity(u *unstructured.Unstructured) string {
	return strings.Join([]string{u.GroupVersionKind().Group, u.GetKind(), u.GetNamespace(), u.GetName()}, "/")
}

func compareObjects(a, b unstructured.Unstructured) int {
	return cmp.Or(
		cmp.Compare(a.GroupVersionKind().Group, b.GroupVersionKind().Group),
		cmp.Compare(a.GetKind(), b.GetKind()),
		cmp.Compare(a.GetNamespace(), b.GetNamespace()),
		cmp.Compare(a.GetName(), b.GetName()),
	)
}

func (d Desired) empty() error {
	switch {
	case len(d.Objects) == 0:
		return &Error{Code: RenderEmpty, File: d.Overlay, Message: fmt.Sprintf("overlay %q renders no objects: list resources, or point the target elsewhere", d.Overlay)}
	case len(d.DaemonSets) == 0:
		return &Error{Code: RenderEmpty, File: d.Overlay, Message: fmt.Sprintf("overlay %q renders %d objects, none of them a DaemonSet: list one, or point the target elsewhere", d.Overlay, len(d.Objects))}
	}
	return nil
}

// daemonSet reads a DaemonSet into its type, nil for another kind. A field
// that the type does not know is only a warning: the API server drops it.
func daemonSet(overlay string, u *unstructured.Unstructured) (*appsv1.DaemonSet, []Error, error) {
	if u.GetKind() != "DaemonSet" {
		return nil, nil, nil
	}
	if u.GetAPIVersion() != "apps/v1" {
		return foreignVersion(overlay, u)
	}
	data, err := json.Marshal(u.Object)
	if err != nil {
		return nil, nil, &Error{Code: InvalidManifest, File: overlay, Field: Name(u), Message: "the object is not JSON", Err: err}
	}
	var ds appsv1.DaemonSet
	strict, err := kjson.UnmarshalStrict(data, &ds)
	if err != nil {
		return nil, nil, misfit(overlay, u, err)
	}
	var warnings []Error
	for _, e := range strict {
		warnings = append(warnings, Error{Code: InvalidManifest, File: overlay, Field: Name(u), Message: e.Error() + ": the API server drops it; correct or remove it"})
	}
	return &ds, warnings, nil
}

// foreignVersion judges a DaemonSet of another API: an old version of
// Kubernetes' own is refused, a custom resource is just another object.
func foreignVersion(overlay string, u *unstructured.Unstructured) (*appsv1.DaemonSet, []Error, error) {
	e := Error{Code: InvalidManifest, File: overlay, Field: Name(u)}
	switch u.GroupVersionKind().Group {
	case "apps", "extensions", "":
		e.Message = fmt.Sprintf("apiVersion is %q: a DaemonSet is served as apps/v1 only", short(u.GetAPIVersion()))
		return nil, nil, &e
	}
	e.Code, e.Message = Unsupported, fmt.Sprintf("a DaemonSet of %q is not Kubernetes' own: its coverage is not judged", short(u.GetAPIVersion()))
	return nil, []Error{e}, nil
}

// wrongType reads the field and the type that it should have off a decoder's
// message, which names them but is of a type of its own.
var wrongType = regexp.MustCompile(`cannot unmarshal (\w+).* into Go struct field \w+\.(\S+) of type (\S+)`)

func misfit(overlay string, u *unstructured.Unstructured, err error) *Error {
	e := &Error{Code: InvalidManifest, File: overlay, Field: Name(u)}
	if m := wrongType.FindStringSubmatch(err.Error()); m != nil {
		e.Field += ": " + m[2]
		e.Message = fmt.Sprintf("a %s is not what apps/v1 has there (%s)", m[1], m[3])
		return e
	}
	e.Message, e.Err = "the object does not fit apps/v1", err
	return e
}

// leftovers warns of "${" where no shell ever expands it.
func leftovers(overlay string, u *unstructured.Unstructured) []Error {
	var found []Error
	look := func(path string, value any) {
		if hasLeftover(value) {
			found = append(found, Error{Code: UndefinedSubstitution, File: overlay, Field: Name(u) + ": " + path, Message: "a ${ is left in it: nothing replaces it; rollcall replaces ${cluster.…} and ${fleet.…} only"})
		}
	}
	for _, path := range []string{"metadata.name", "metadata.namespace", "metadata.labels", "spec.selector", "spec.template.metadata.labels", "spec.template.spec.nodeSelector"} {
		value, _, _ := unstructured.NestedFieldNoCopy(u.Object, strings.Split(path, ".")...)
		look(path, value)
	}
	for _, list := range []string{"initContainers", "containers"} {
		value, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "template", "spec", list)
		containers, _ := value.([]any)
		for i, c := range containers {
			if m, ok := c.(map[string]any); ok {
				look(fmt.Sprintf("spec.template.spec.%s[%d].name", list, i), m["name"])
				look(fmt.Sprintf("spec.template.spec.%s[%d].image", list, i), m["image"])
			}
		}
	}
	return found
}

func hasLeftover(value any) bool {
	switch v := value.(type) {
	case string:
		return strings.Contains(v, "${")
	case []any:
		return slices.ContainsFunc(v, hasLeftover)
	case map[string]any:
		for key, item := range v {
			if strings.Contains(key, "${") || hasLeftover(item) {
				return true
			}
		}
	}
	return false
}
