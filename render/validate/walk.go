package validate

import (
	"encoding/base64"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"rollcall.dev/rollcall/clusters"
)

// walk compares a value with a Go type, as encoding/json reads it into one, and
// notes all that does not fit where a decoder stops at the first.
type walk struct{ faults []Fault }

func (w *walk) say(code, path, format string, args ...any) {
	w.faults = append(w.faults, Fault{Path: path, Code: code, Message: fmt.Sprintf(format, args...)})
}

func (w *walk) value(v any, t reflect.Type, path string) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if v == nil || w.special(v, t, path) {
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		if m, ok := w.mapping(v, path); ok {
			w.fields(m, t, path)
		}
	case reflect.Map:
		if m, ok := w.mapping(v, path); ok {
			for _, key := range slices.Sorted(maps.Keys(m)) {
				w.value(m[key], t.Elem(), join(path, key))
			}
		}
	case reflect.Slice:
		list, ok := v.([]any)
		if !ok {
			w.say(WrongType, path, "it must be a list, and is %s", form(v))
			return
		}
		for i, item := range list {
			w.value(item, t.Elem(), fmt.Sprintf("%s[%d]", path, i))
		}
	default:
		w.scalar(v, t, path)
	}
}

func (w *walk) mapping(v any, path string) (map[string]any, bool) {
	m, ok := v.(map[string]any)
	if !ok {
		w.say(WrongType, path, "it must be a mapping, and is %s", form(v))
	}
	return m, ok
}

// special are types that read themselves from JSON.
func (w *walk) special(v any, t reflect.Type, path string) bool {
	text, isText := v.(string)
	_, isNumber := number(v)
	switch t {
	case reflect.TypeFor[resource.Quantity]():
		if isText {
			if _, err := resource.ParseQuantity(text); err != nil {
				w.say(WrongType, path, "it must be a quantity such as 100m or 2Gi")
			}
		} else if !isNumber {
			w.say(WrongType, path, "it must be a quantity such as 100m or 2Gi, and is %s", form(v))
		}
	case reflect.TypeFor[intstr.IntOrString]():
		if f, ok := number(v); !isText && (!ok || f != math.Trunc(f) || math.Abs(f) > math.MaxInt32) {
			w.say(WrongType, path, "it must be a whole number or text, and is %s", form(v))
		}
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime]():
		if _, err := time.Parse(time.RFC3339, text); !isText || err != nil {
			w.say(WrongType, path, "it must be a time such as 2026-12-01T09:00:00Z")
		}
	case reflect.TypeFor[metav1.Duration]():
		if _, err := time.ParseDuration(text); !isText || err != nil {
			w.say(WrongType, path, "it must be a duration such as 30s")
		}
	case reflect.TypeFor[runtime.RawExtension](), reflect.TypeFor[metav1.FieldsV1]():
	case reflect.TypeFor[[]byte]():
		if _, err := base64.StdEncoding.DecodeString(text); !isText || err != nil {
			w.say(WrongType, path, "it must be base64")
		}
	default:
		return false
	}
	return true
}

func (w *walk) scalar(v any, t reflect.Type, path string) {
	f, isNumber := number(v)
	_, isText := v.(string)
	_, isBool := v.(bool)
	switch kind := t.Kind(); {
	case kind == reflect.String && !isText:
		w.say(WrongType, path, "it must be text, and is %s: put it in quotes", form(v))
	case kind == reflect.Bool && !isBool:
		w.say(WrongType, path, "it must be true or false, and is %s", form(v))
	case kind >= reflect.Int && kind <= reflect.Uint64:
		if !isNumber || f != math.Trunc(f) {
			w.say(WrongType, path, "it must be a whole number, and is %s", form(v))
		} else if kind == reflect.Int32 && math.Abs(f) > math.MaxInt32 {
			w.say(WrongType, path, "it must be a whole number of 32 bits")
		}
	case (kind == reflect.Float32 || kind == reflect.Float64) && !isNumber:
		w.say(WrongType, path, "it must be a number, and is %s", form(v))
	}
}

// fields compares a mapping with a struct, embedded ones included.
func (w *walk) fields(m map[string]any, t reflect.Type, path string) {
	known := map[string]reflect.Type{}
	collect(t, known)
	for _, key := range slices.Sorted(maps.Keys(m)) {
		at := join(path, key)
		if ft, ok := known[key]; ok {
			w.value(m[key], ft, at)
			continue
		}
		hint := "remove it"
		if near := clusters.Nearest(key, slices.Sorted(maps.Keys(known))); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		w.say(UnknownField, at, "Kubernetes 1.37 knows no such field: %s", hint)
	}
}

func collect(t reflect.Type, known map[string]reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
		case name == "" && (f.Anonymous || strings.Contains(options, "inline")):
			ft := f.Type
			if ft.Kind() == reflect.Pointer {
				ft = ft.Elem()
			}
			collect(ft, known)
		case name == "":
			known[f.Name] = f.Type
		default:
			known[name] = f.Type
		}
	}
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	case int:
		return float64(n), true
	}
	return 0, false
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	if strings.ContainsAny(key, "./[]") {
		return path + "[" + key + "]"
	}
	return path + "." + key
}

// form names what a value is, never the value: it may be secret.
func form(v any) string {
	switch v.(type) {
	case map[string]any:
		return "a mapping"
	case []any:
		return "a list"
	case string:
		return "text"
	case bool:
		return "true or false"
	}
	return "a number"
}
