// Package render says what a commit wants of a cluster: which overlay and
// components are its, what may be in their text, and what came of them. It
// knows neither kustomize nor the network nor where the files are.
package render

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rollcall.dev/rollcall/sync/source"
)

// Desired is what a commit wants of one cluster. Clusters with equal inputs
// share the objects in it, so all of it is read-only.
type Desired struct {
	Revision   source.Revision
	Overlay    string
	Components []string
	Objects    []unstructured.Unstructured // sorted by group, kind, namespace and name
	DaemonSets []appsv1.DaemonSet          // sorted by namespace and name
	Trace      []Rule
	Inputs     []Input // sorted by path
	Warnings   []Error
	Origins    map[string]Origin // of the objects, by Identity; one that is made from nothing has none
}

// Origin is where the repository declares an object, and the name that it has
// there.
type Origin struct {
	File, Name, Namespace string
}

// Input is a path that a build asked for, and what was there.
type Input struct {
	Path string
	Hash string // of the content; Absent, Folder or a hash of a listing
}

// What an Input's Hash says where there is no content to hash.
const (
	Absent = "absent"
	Folder = "folder" // asked only whether it is one
)
