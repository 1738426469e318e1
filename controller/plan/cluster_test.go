package plan_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/drift"
	"rollcall.dev/rollcall/controller/plan"
)

// role is a ClusterRole, to which a file may give a namespace that means
// nothing.
func role(namespace string) unstructured.Unstructured {
	u := unstructured.Unstructured{Object: map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}}
	u.SetNamespace(namespace)
	u.SetName("reader")
	return u
}

// What is the whole cluster's and another deployer's is held, although Git
// gives it a namespace.
func TestHoldOfCluster(t *testing.T) {
	live := role("")
	live.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "helm", Operation: metav1.ManagedFieldsOperationUpdate}})
	for _, namespace := range []string{"", "obs"} {
		want := role(namespace)
		in := plan.Input{
			Cluster: clusters.Cluster{Name: "c", Policy: clusters.Policy{May: []string{"apply"}}}, Fleet: clusters.Fleet{Name: "f"},
			Live: &clusters.Live{Identity: "u", Objects: []unstructured.Unstructured{live}}, To: plan.Side{Objects: []unstructured.Unstructured{want}},
			Drift: drift.Outcome{Objects: []drift.Object{{Object: clusters.ReferenceOf(&want), State: drift.Modified, Fields: []drift.Field{{Path: "rules", Change: drift.Changed}}}}},
		}
		got := plan.Make(in).Actions
		if len(got) != 1 || got[0].Operation != plan.Configure || len(got[0].Holds) != 1 || got[0].Holds[0].Code != "OtherDeployer" {
			t.Errorf("namespace %q: got %+v", namespace, got)
		}
	}
}
