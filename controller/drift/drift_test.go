package drift_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollcall.dev/rollcall/controller/drift"
)

var (
	monday  = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	tuesday = monday.AddDate(0, 0, 1)
)

type option func(*appsv1.DaemonSet)

func daemonSet(name string, opts ...option) appsv1.DaemonSet {
	ds := appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "obs", Name: name}}
	for _, o := range opts {
		o(&ds)
	}
	return ds
}

func container(name, image string) option {
	return func(ds *appsv1.DaemonSet) {
		s := &ds.Spec.Template.Spec
		s.Containers = append(s.Containers, corev1.Container{Name: name, Image: image})
	}
}

func initContainer(name, image string) option {
	return func(ds *appsv1.DaemonSet) {
		s := &ds.Spec.Template.Spec
		s.InitContainers = append(s.InitContainers, corev1.Container{Name: name, Image: image})
	}
}

// wrote is an entry of managedFields, in which a zero time is no time.
func wrote(manager, subresource string, at time.Time, raw string) option {
	return func(ds *appsv1.DaemonSet) {
		m := metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource}
		if !at.IsZero() {
			m.Time = &metav1.Time{Time: at}
		}
		if raw != "" {
			m.FieldsV1 = metav1.NewFieldsV1(raw)
		}
		ds.ManagedFields = append(ds.ManagedFields, m)
	}
}

// owns is the fieldset of whoever owns the image of one container.
func owns(list, name string) string {
	return `{"f:spec":{"f:template":{"f:spec":{"f:` + list + `":{"k:{\"name\":\"` + name + `\"}":{".":{},"f:image":{}}}}}}}`
}

const ownsReplicas = `{"f:spec":{"f:minReadySeconds":{}}}`

func modified(fields ...drift.Field) []drift.Object {
	return []drift.Object{{Object: reference("agent"), State: drift.Modified, Fields: fields}}
}

func reference(name string) drift.Reference {
	return drift.Reference{APIVersion: "apps/v1", Kind: "DaemonSet", Namespace: "obs", Name: name}
}

func image(desired, live, manager string, at *time.Time) drift.Field {
	return drift.Field{Path: "spec.template.spec.containers[name=c].image", Desired: desired, Live: live, Manager: manager, NotAfter: at}
}

func TestCompare(t *testing.T) {
	wanted := daemonSet("agent", container("c", "img:1"))
	cases := map[string]struct {
		reason        string
		desired, live []appsv1.DaemonSet
		want          []drift.Object
	}{
		"Nothing": {reason: "no object differs where Git wants none, and the list is there", want: []drift.Object{}},
		"Equal": {
			reason:  "an object is never unlike itself",
			desired: []appsv1.DaemonSet{wanted}, live: []appsv1.DaemonSet{wanted}, want: []drift.Object{},
		},
		"Absent": {
			reason:  "one that is not there is told, whatever else lives",
			desired: []appsv1.DaemonSet{wanted}, live: []appsv1.DaemonSet{daemonSet("other", container("c", "img:1"))},
			want: []drift.Object{{Object: reference("agent"), State: drift.Absent}},
		},
		"OtherNamespace": {
			reason:  "a namesake in another namespace is another object",
			desired: []appsv1.DaemonSet{wanted},
			live:    []appsv1.DaemonSet{{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "agent"}, Spec: wanted.Spec}},
			want:    []drift.Object{{Object: reference("agent"), State: drift.Absent}},
		},
		"NotInGit": {
			reason: "what only lives is not compared",
			live:   []appsv1.DaemonSet{wanted}, want: []drift.Object{},
		},
		"Image": {
			reason:  "a differing image names who owns it and when that was written",
			desired: []appsv1.DaemonSet{wanted},
			live:    []appsv1.DaemonSet{daemonSet("agent", container("c", "img:2"), wrote("kubectl-edit", "", monday, owns("containers", "c")))},
			want:    modified(image("img:1", "img:2", "kubectl-edit", &monday)),
		},
		"LocalTime": {
			reason:  "times are UTC, so that one input gives one text in every zone",
			desired: []appsv1.DaemonSet{wanted},
			live:    []appsv1.DaemonSet{daemonSet("agent", container("c", "img:2"), wrote("m", "", monday.In(time.FixedZone("x", 3600)), owns("containers", "c")))},
			want:    modified(image("img:1", "img:2", "m", &monday)),
		},
		"LastWriterFirst": {
			reason:  "of several owners it is the one that wrote last",
			desired: []appsv1.DaemonSet{wanted},
			live: []appsv1.DaemonSet{daemonSet("agent", container("c", "img:2"),
				wrote("late", "", tuesday, owns("containers", "c")), wrote("early", "", monday, owns("containers", "c")))},
			want: modified(image("img:1", "img:2", "late", &tuesday)),
		},
		"LastWriterLast": {
			reason:  "the order of managedFields does not decide",
			desired: []appsv1.DaemonSet{wanted},
			live: []appsv1.DaemonSet{daemonSet("agent", container("c", "img:2"),
				wrote("early", "", monday, owns("containers", "c")), wrote("late", "", tuesday, owns("containers", "c")))},
			want: modified(image("img:1", "img:2", "late", &tuesday)),
		},
		"TimelessOwner": {
			reason:  "an owner without a time yields to one with a time",
			desired: []appsv1.DaemonSet{wanted},
			live: []appsv1.DaemonSet{daemonSet("agent", container("c", "img:2"),
				wrote("dated", "", monday, owns("containers", "c")), wrote("timeless", "", time.Time{}, owns("containers", "c")))},
			want: modified(image("img:1", "img:2", "dated", &monday)),
		},
		"OnlyTimelessOwner": {
			reason:  "an owner without a time is named all the same",
			desired: []appsv1.DaemonSet{wanted},
			live:    []appsv1.DaemonSet{daemonSet("agent", container("c", "img:2"), wrote("timeless", "", time.Time{}, owns("containers", "c")))},
			want:    modified(image("img:1", "img:2", "timeless", nil)),
		},
		"OtherOwners": {
			reason:  "who owns another field, another container, a subresource or nothing readable is not named",
			desired: []appsv1.DaemonSet{wanted},
			live: []appsv1.DaemonSet{daemonSet("agent", container("c", "img:2"),
				wrote("field", "", monday, ownsReplicas), wrote("container", "", monday, owns("containers", "d")),
				wrote("list", "", monday, owns("initContainers", "c")), wrote("status", "status", monday, owns("containers", "c")),
				wrote("none", "", monday, ""), wrote("broken", "", monday, `{"f:spec":[]}`))},
			want: modified(image("img:1", "img:2", "", nil)),
		},
		"ContainerMissing": {
			reason:  "a container that does not live is told as such",
			desired: []appsv1.DaemonSet{wanted}, live: []appsv1.DaemonSet{daemonSet("agent")},
			want: modified(image("img:1", "(no such container)", "", nil)),
		},
		"ExtraContainer": {
			reason:  "a container that only lives, such as an injected one, is no difference",
			desired: []appsv1.DaemonSet{wanted}, live: []appsv1.DaemonSet{daemonSet("agent", container("sidecar", "mesh:1"), container("c", "img:1"))},
			want: []drift.Object{},
		},
		"InitContainer": {
			reason:  "init containers are compared as a list of their own, by their own owner",
			desired: []appsv1.DaemonSet{daemonSet("agent", initContainer("i", "init:1"), container("i", "img:1"))},
			live: []appsv1.DaemonSet{daemonSet("agent", initContainer("i", "init:2"), container("i", "img:1"),
				wrote("init-writer", "", monday, owns("initContainers", "i")), wrote("img-writer", "", tuesday, owns("containers", "i")))},
			want: modified(drift.Field{Path: "spec.template.spec.initContainers[name=i].image", Desired: "init:1", Live: "init:2", Manager: "init-writer", NotAfter: &monday}),
		},
		"Reordered": {
			reason:  "containers are matched by name, not by place",
			desired: []appsv1.DaemonSet{daemonSet("agent", container("a", "a:1"), container("b", "b:1"))},
			live:    []appsv1.DaemonSet{daemonSet("agent", container("b", "b:1"), container("a", "a:1"))}, want: []drift.Object{},
		},
		"Sorted": {
			reason:  "objects come by namespace and name",
			desired: []appsv1.DaemonSet{daemonSet("b"), daemonSet("a"), {ObjectMeta: metav1.ObjectMeta{Namespace: "abc", Name: "z"}}},
			want: []drift.Object{
				{Object: drift.Reference{APIVersion: "apps/v1", Kind: "DaemonSet", Namespace: "abc", Name: "z"}, State: drift.Absent},
				{Object: reference("a"), State: drift.Absent}, {Object: reference("b"), State: drift.Absent},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := drift.Compare(tc.desired, tc.live)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
			for _, o := range got {
				for _, f := range o.Fields {
					if f.NotAfter != nil && f.NotAfter.Location() != time.UTC {
						t.Errorf("%s is in zone %s", f.Path, f.NotAfter.Location())
					}
				}
			}
		})
	}
}
