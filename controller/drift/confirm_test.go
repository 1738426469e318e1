package drift_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/drift"
)

const confirmable = `apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: obs}
spec:
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}}
    spec:
      containers: [{name: c, image: "i:1", env: [{name: LEVEL, value: info}]}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: absent, namespace: obs}
`

// livesOtherwise has another image, another value and one toleration more.
const livesOtherwise = `apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: obs}
spec:
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}}
    spec:
      tolerations: [{operator: Exists}]
      containers: [{name: c, image: "i:2", env: [{name: LEVEL, value: debug}]}]
`

func TestConfirm(t *testing.T) {
	const (
		image      = "spec.template.spec.containers[name=c].image"
		value      = "spec.template.spec.containers[name=c].env[name=LEVEL].value"
		toleration = "spec.template.spec.tolerations"
	)
	types := drift.NewTypes()
	desired, live := objects(t, []byte(confirmable)), objects(t, []byte(livesOtherwise))
	in := drift.Input{Objects: desired, Live: &clusters.Live{}}
	in.DaemonSets, _ = daemonSets(t, desired)
	in.Live.DaemonSets, _ = daemonSets(t, live)
	before := types.Compare(in)
	var doubtful []string
	for _, u := range in.Doubtful(before) {
		doubtful = append(doubtful, clusters.ReferenceOf(u).String())
	}
	if diff := cmp.Diff([]string{"DaemonSet obs/agent", "ConfigMap obs/absent"}, doubtful); diff != "" {
		t.Errorf("asked for (-want +got):\n%s", diff)
	}

	agent, absent := clusters.ReferenceOf(&desired[0]), clusters.ReferenceOf(&desired[1])
	after := func(edit func(spec map[string]any)) *unstructured.Unstructured {
		u := live[0].DeepCopy()
		containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
		edit(containers[0].(map[string]any))
		if err := unstructured.SetNestedSlice(u.Object, containers, "spec", "template", "spec", "containers"); err != nil {
			t.Fatal(err)
		}
		return u
	}
	type outcome struct {
		State        drift.State
		Confirmation drift.Confirmation
		Fields       []string
		Message      string
	}
	for name, tc := range map[string]struct {
		why  string
		said clusters.Confirmed
		want outcome
	}{
		"All": {"the server would take it all", clusters.Confirmed{Object: agent, After: after(func(c map[string]any) {
			c["image"], c["env"] = "i:1", []any{map[string]any{"name": "LEVEL", "value": "info"}}
		})}, outcome{drift.Modified, drift.Confirmed, []string{toleration, image, value}, ""}},
		"Normalised":  {"what the server would leave as it is is none", clusters.Confirmed{Object: agent, After: after(func(c map[string]any) { c["image"] = "i:1" })}, outcome{drift.Modified, drift.Confirmed, []string{toleration, image}, ""}},
		"OnlyAdded":   {"what others added stays, which an apply does not touch", clusters.Confirmed{Object: agent, After: after(func(map[string]any) {})}, outcome{drift.Modified, drift.Confirmed, []string{toleration}, ""}},
		"Refused":     {"the fields are still told", clusters.Confirmed{Object: agent, Refused: "Invalid: no"}, outcome{drift.Invalid, drift.Confirmed, []string{toleration, image, value}, "Invalid: no"}},
		"Unconfirmed": {"it stays drift", clusters.Confirmed{Object: agent, Unconfirmed: "Forbidden: no"}, outcome{drift.Modified, drift.Unconfirmed, []string{toleration, image, value}, "Forbidden: no"}},
		"Other":       {"an answer about another object says nothing", clusters.Confirmed{Object: absent, Refused: "x"}, outcome{drift.Modified, drift.Unasked, []string{toleration, image, value}, ""}},
	} {
		t.Run(name, func(t *testing.T) {
			var got outcome
			for _, o := range types.Confirm(in, before, []clusters.Confirmed{tc.said}).Objects {
				if o.Object != agent {
					continue
				}
				got = outcome{o.State, o.Confirmation, nil, o.Message}
				for _, f := range o.Fields {
					got.Fields = append(got.Fields, f.Path)
				}
			}
			slices.Sort(got.Fields)
			slices.Sort(tc.want.Fields)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.why, diff)
			}
		})
	}
	said := []clusters.Confirmed{{Object: absent, Refused: "denied by a policy"}}
	for _, o := range types.Confirm(in, before, said).Objects {
		if o.Object == absent && (o.State != drift.Invalid || o.Message != "denied by a policy") {
			t.Errorf("what is absent and would be refused is %+v", o)
		}
	}
}
