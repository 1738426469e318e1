package render

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A key with dots in it is one step of a field, and has its own line.
func TestLocateKeysWithDots(t *testing.T) {
	p, err := Parse("ds.yaml", []byte("apiVersion: apps/v1\nkind: DaemonSet\nmetadata:\n  name: agent\n  labels:\n    app: agent\n    app.kubernetes.io/version: 1.5\n"))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := Objects("ds.yaml", p)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]Parsed{"ds.yaml": p}
	at := func(u *unstructured.Unstructured, field string) int {
		return Locate(files, Origin{File: "ds.yaml", Name: "agent"}, u, field).Line
	}
	for field, want := range map[string]int{"metadata.labels[app.kubernetes.io/version]": 7, "metadata.labels.app": 6, "metadata.labels": 5} {
		if got := at(&objects[0], field); got != want {
			t.Errorf("%s: line %d, want %d", field, got, want)
		}
	}
}
