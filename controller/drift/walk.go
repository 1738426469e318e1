package drift

import (
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// walker goes through Git's and the live form of one object side by side.
type walker struct {
	owners    owners
	daemonSet bool
	drift     []Field
	foreign   []Field
}

// metadata compares the labels and annotations; the rest is the API server's.
func (w *walker) metadata(wantLabels, haveLabels, wantAnnotations, haveAnnotations map[string]string) {
	m := []step{fieldStep("metadata")}
	w.mapping(append(m, fieldStep("labels")), reflect.ValueOf(wantLabels), reflect.ValueOf(haveLabels))
	w.mapping(append(m, fieldStep("annotations")), reflect.ValueOf(own(wantAnnotations)), reflect.ValueOf(own(haveAnnotations)))
}

// own leaves out what kubectl and the API server write for themselves.
func own(annotations map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range annotations {
		if k != lastApplied && k != "deprecated.daemonset.template.generation" {
			out[k] = v
		}
	}
	return out
}

// object compares all fields of an object but its type, metadata and status.
func (w *walker) object(want, have reflect.Value) {
	t := want.Type()
	for i := range t.NumField() {
		name := jsonName(t.Field(i))
		if name == "" || name == "metadata" || name == "status" {
			continue
		}
		w.field([]step{fieldStep(name)}, t, name, want.Field(i), have.Field(i))
	}
}

// both compares one field of an object, given by pointers.
func (w *walker) both(name string, want, have any) {
	w.value([]step{fieldStep(name)}, reflect.ValueOf(want).Elem(), reflect.ValueOf(have).Elem())
}

// field is value, with the list kind that the field has.
func (w *walker) field(at []step, of reflect.Type, name string, want, have reflect.Value) {
	if want.Kind() == reflect.Slice && want.Type().Elem().Kind() != reflect.Uint8 {
		w.list(at, listOf(of, name), want, have)
		return
	}
	w.value(at, want, have)
}

func (w *walker) value(at []step, want, have reflect.Value) {
	switch t := want.Type(); {
	case isLeaf(t):
		w.leaf(at, want, have)
	case t.Kind() == reflect.Pointer:
		w.pointer(at, want, have)
	case t.Kind() == reflect.Struct:
		w.fields(at, want, have)
	case t.Kind() == reflect.Map:
		w.mapping(at, want, have)
	case t.Kind() == reflect.Slice:
		w.list(at, listKind{}, want, have)
	default:
		w.leaf(at, want, have)
	}
}

// isLeaf tells whether a type is compared as one value.
func isLeaf(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[resource.Quantity](), reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime](),
		reflect.TypeFor[intstr.IntOrString](), reflect.TypeFor[runtime.RawExtension](), reflect.TypeFor[[]byte]():
		return true
	}
	return false
}

// leaf compares two single values, of which zero is as good as none.
func (w *walker) leaf(at []step, want, have reflect.Value) {
	switch {
	case zero(want) && zero(have):
	case zero(want):
		w.added(at, have)
	case zero(have):
		w.report(Missing, at, want, reflect.Value{})
	case !equal(want, have):
		w.report(Changed, at, want, have)
	}
}

func zero(v reflect.Value) bool {
	if q, ok := v.Interface().(resource.Quantity); ok {
		return q.IsZero()
	}
	return v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0
}

func equal(a, b reflect.Value) bool {
	x, isQuantity := a.Interface().(resource.Quantity)
	if isQuantity {
		return x.Cmp(b.Interface().(resource.Quantity)) == 0
	}
	if t, ok := a.Interface().(metav1.Time); ok {
		other := b.Interface().(metav1.Time)
		return t.Equal(&other)
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

// pointer tells an explicit zero from none, as the API does.
func (w *walker) pointer(at []step, want, have reflect.Value) {
	whole := want.Type().Elem().Kind() == reflect.Struct && !isLeaf(want.Type().Elem())
	switch {
	case want.IsNil() && have.IsNil():
	case want.IsNil() && whole && !w.addedWhole(at, have.Elem()):
		w.value(at, reflect.Zero(want.Type().Elem()), have.Elem())
	case want.IsNil() && whole: // told as one
	case want.IsNil():
		w.added(at, have.Elem())
	case have.IsNil():
		w.report(Missing, at, want.Elem(), reflect.Value{})
	case whole:
		w.value(at, want.Elem(), have.Elem())
	case !equal(want.Elem(), have.Elem()):
		w.report(Changed, at, want.Elem(), have.Elem())
	}
}

func (w *walker) fields(at []step, want, have reflect.Value) {
	t := want.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		name := jsonName(f)
		if name == "" && f.Anonymous {
			w.fields(at, want.Field(i), have.Field(i))
			continue
		}
		if name == "" || name == "creationTimestamp" || t == reflect.TypeFor[metav1.ObjectMeta]() && name != "labels" && name != "annotations" {
			continue
		}
		w.field(append(slices.Clip(at), fieldStep(name)), t, name, want.Field(i), have.Field(i))
	}
}

func (w *walker) mapping(at []step, want, have reflect.Value) {
	for _, key := range keysOf(want, have) {
		at := append(slices.Clip(at), keyStep(key.String()))
		a, b := index(want, key), index(have, key)
		switch {
		case !a.IsValid():
			w.addedItem(at, b)
		case !b.IsValid():
			w.report(Missing, at, a, reflect.Value{})
		case isLeaf(a.Type()) || a.Kind() == reflect.String:
			if !equal(a, b) {
				w.report(Changed, at, a, b)
			}
		default:
			w.value(at, a, b)
		}
	}
}

func index(m, key reflect.Value) reflect.Value {
	if m.IsNil() {
		return reflect.Value{}
	}
	return m.MapIndex(key)
}

// keysOf are the keys of both maps, sorted.
func keysOf(a, b reflect.Value) []reflect.Value {
	keys := a.MapKeys()
	for _, k := range b.MapKeys() {
		if !index(a, k).IsValid() {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(x, y reflect.Value) int { return strings.Compare(x.String(), y.String()) })
	return keys
}

// report notes a difference that is drift.
func (w *walker) report(change Kind, at []step, want, have reflect.Value) {
	f := w.difference(change, at, want, have)
	f.owned(w.owners.last(at))
	w.drift = append(w.drift, f)
}

// difference words a difference.
func (w *walker) difference(change Kind, at []step, want, have reflect.Value) Field {
	f := Field{Path: pathOf(at), Change: change, steps: slices.Clone(at), Placement: w.daemonSet && places(at)}
	f.hide = hides(at)
	f.Desired, f.Live = text(want, f.hide), text(have, f.hide)
	if want.IsValid() {
		f.want = want.Interface()
	}
	return f
}

// placement are the fields of a pod template's spec that decide which nodes run
// its pods.
var placement = []string{"nodeName", "nodeSelector", "affinity", "tolerations", "hostNetwork"}

func places(at []step) bool {
	return len(at) > 3 && at[1].name == "template" && at[2].name == "spec" && slices.Contains(placement, at[3].name)
}
