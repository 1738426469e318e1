package kube_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// objectsOf are the objects of manifests.
func objectsOf(t *testing.T, text string) []unstructured.Unstructured {
	t.Helper()
	decoder := yaml.NewYAMLToJSONDecoder(strings.NewReader(text))
	var out []unstructured.Unstructured
	for {
		var u unstructured.Unstructured
		err := decoder.Decode(&u)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(u.Object) > 0 {
			out = append(out, u)
		}
	}
}

func pointers(all []unstructured.Unstructured) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for i := range all {
		out = append(out, &all[i])
	}
	return out
}

func unstructuredOf(t *testing.T, object any) *unstructured.Unstructured {
	t.Helper()
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: m}
}
