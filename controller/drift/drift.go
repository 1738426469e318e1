// Package drift compares the DaemonSets that Git wants with those that live,
// and names who wrote what differs. It knows no client; at this stage it looks
// at existence and at the images of the pod template.
package drift

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollcall.dev/rollcall/clusters"
)

// Object is a live object that is not as Git says.
type Object struct {
	Object Reference `json:"object"`
	State  State     `json:"state"`
	Fields []Field   `json:"fields,omitempty"`
}

// Reference names an object.
type Reference struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

// State is how an object differs.
type State string

// The states of an object that differs.
const (
	Modified State = "Modified"
	Absent   State = "Absent"
)

// Field is one difference. Manager is a program's name, from managedFields;
// it wrote the field not later than NotAfter.
type Field struct {
	Path     string     `json:"path"`
	Desired  string     `json:"desired"`
	Live     string     `json:"live"`
	Manager  string     `json:"manager,omitempty"`
	NotAfter *time.Time `json:"notAfter,omitempty"`
}

// Compare returns the DaemonSets of desired that are absent or have another
// image, in order of namespace and name.
func Compare(desired, live []appsv1.DaemonSet) []Object {
	out := []Object{}
	for i := range desired {
		want := &desired[i]
		at := slices.IndexFunc(live, func(ds appsv1.DaemonSet) bool { return ds.Namespace == want.Namespace && ds.Name == want.Name })
		ref := Reference{"apps/v1", "DaemonSet", want.Namespace, want.Name}
		if at < 0 {
			out = append(out, Object{Object: ref, State: Absent})
			continue
		}
		if fields := images(want, &live[at]); len(fields) > 0 {
			out = append(out, Object{ref, Modified, fields})
		}
	}
	slices.SortFunc(out, func(a, b Object) int {
		return cmp.Or(strings.Compare(a.Object.Namespace, b.Object.Namespace), strings.Compare(a.Object.Name, b.Object.Name))
	})
	return out
}

func images(want, live *appsv1.DaemonSet) []Field {
	w, l := &want.Spec.Template.Spec, &live.Spec.Template.Spec
	return slices.Concat(
		containers("initContainers", w.InitContainers, l.InitContainers, live.ManagedFields),
		containers("containers", w.Containers, l.Containers, live.ManagedFields))
}

// containers compares images by container name. A container that only the live
// template has is no image of Git's to compare.
func containers(list string, want, live []corev1.Container, managed []metav1.ManagedFieldsEntry) []Field {
	var out []Field
	for _, w := range want {
		at := slices.IndexFunc(live, func(c corev1.Container) bool { return c.Name == w.Name })
		have := "(no such container)"
		if at >= 0 {
			have = live[at].Image
		}
		if have == w.Image {
			continue
		}
		f := Field{Path: fmt.Sprintf("spec.template.spec.%s[name=%s].image", list, w.Name), Desired: w.Image, Live: have}
		writer, ok := clusters.LastWriter(managed, "f:spec", "f:template", "f:spec", "f:"+list, fmt.Sprintf(`k:{"name":%q}`, w.Name), "f:image")
		if f.Manager = writer.Manager; ok && !writer.NotAfter.IsZero() {
			f.NotAfter = &writer.NotAfter
		}
		out = append(out, f)
	}
	return out
}
