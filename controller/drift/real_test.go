package drift_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/clusters/kubetest"
	"rollcall.dev/rollcall/controller/drift"
)

// api is an API server as programs see it that deliver manifests.
type api struct {
	t      *testing.T
	client dynamic.Interface
	mapper meta.RESTMapper // nil: the kinds of testdata are known here
}

var clusterScoped = map[string]bool{
	"Namespace": true, "ClusterRole": true, "ClusterRoleBinding": true, "PriorityClass": true, "ValidatingWebhookConfiguration": true,
	"CSIDriver": true, "StorageClass": true, "RuntimeClass": true,
}

func (a api) resource(u *unstructured.Unstructured) dynamic.ResourceInterface {
	gvk := u.GroupVersionKind()
	if a.mapper != nil {
		m, err := a.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			return a.client.Resource(schema.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: "unserved"})
		}
		if m.Scope.Name() == meta.RESTScopeNameRoot {
			return a.client.Resource(m.Resource)
		}
		return a.client.Resource(m.Resource).Namespace(u.GetNamespace())
	}
	plural := strings.ToLower(gvk.Kind) + "s"
	switch gvk.Kind {
	case "NetworkPolicy":
		plural = "networkpolicies"
	case "PriorityClass", "RuntimeClass", "StorageClass", "Ingress":
		plural = strings.ToLower(gvk.Kind) + "es"
	}
	r := a.client.Resource(schema.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: plural})
	if clusterScoped[gvk.Kind] {
		return r
	}
	return r.Namespace(u.GetNamespace())
}

// deliverers are the ways in which manifests get into clusters.
var deliverers = map[string]func(a api, u *unstructured.Unstructured) error{
	"server-side apply of Flux": func(a api, u *unstructured.Unstructured) error {
		_, err := a.resource(u).Apply(a.t.Context(), u.GetName(), u, metav1.ApplyOptions{FieldManager: "kustomize-controller", Force: true})
		return err
	},
	"client-side apply of kubectl": func(a api, u *unstructured.Unstructured) error {
		text, _ := json.Marshal(u.Object)
		u = u.DeepCopy()
		annotations := u.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[corev1.LastAppliedConfigAnnotation] = string(text)
		u.SetAnnotations(annotations)
		_, err := a.resource(u).Create(a.t.Context(), u, metav1.CreateOptions{FieldManager: "kubectl-client-side-apply"})
		return err
	},
	"Helm": func(a api, u *unstructured.Unstructured) error {
		_, err := a.resource(u).Create(a.t.Context(), u, metav1.CreateOptions{FieldManager: "helm"})
		return err
	},
	"a program that nobody knows": func(a api, u *unstructured.Unstructured) error {
		_, err := a.resource(u).Create(a.t.Context(), u, metav1.CreateOptions{FieldManager: "some-operator"})
		return err
	},
}

// live reads back what Git wants.
func (a api) live(all []unstructured.Unstructured) *clusters.Live {
	a.t.Helper()
	live := &clusters.Live{}
	for i := range all {
		u, err := a.resource(&all[i]).Get(a.t.Context(), all[i].GetName(), metav1.GetOptions{})
		if err != nil {
			a.t.Fatal(err)
		}
		dss, rest := daemonSets(a.t, []unstructured.Unstructured{*u})
		live.DaemonSets = append(live.DaemonSets, dss...)
		live.Objects = append(live.Objects, rest...)
	}
	return live
}

func (a api) remove(all []unstructured.Unstructured) {
	a.t.Helper()
	for i := range all {
		if all[i].GetKind() == "Namespace" {
			continue // it would never go without its controller
		}
		if err := a.resource(&all[i]).Delete(a.t.Context(), all[i].GetName(), metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
			a.t.Fatal(err)
		}
	}
}

// Manifests of agents that a real API server took, with all its defaults, are
// not drift, whoever delivered them; and what somebody else then changes by hand
// is told, that alone, with his name.
func TestRealServer(t *testing.T) {
	cp := kubetest.Start(t, kubetest.Options{})
	config, err := clientcmd.BuildConfigFromFlags("", cp.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/agents/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("there are no agents", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for name, deliver := range deliverers {
			t.Run(filepath.Base(file)+"/"+name, func(t *testing.T) {
				a := api{t: t, client: client}
				all := objects(t, data)
				for i := range all {
					if err := deliver(a, &all[i]); err != nil && all[i].GetKind() != "Namespace" {
						t.Fatalf("%s %s: %v", all[i].GetKind(), all[i].GetName(), err)
					}
				}
				defer a.remove(all)
				dss, _ := daemonSets(t, all)
				compare := func() drift.Outcome {
					return drift.NewTypes().Compare(drift.Input{DaemonSets: dss, Objects: all, Live: a.live(all)})
				}
				if out := compare(); out.Compared != len(all) || len(out.Objects)+len(out.Unread) > 0 {
					t.Fatalf("compared %d of %d, and found what is none:\n%s", out.Compared, len(all), print(out))
				}
				if filepath.Base(file) == "metrics.yaml" {
					a.changes(all, deliver, compare)
				}
			})
		}
	}
}

// changes makes each change to a DaemonSet that was delivered anew.
func (a api) changes(all []unstructured.Unstructured, deliver func(api, *unstructured.Unstructured) error, compare func() drift.Outcome) {
	at := slices.IndexFunc(all, func(u unstructured.Unstructured) bool { return u.GetKind() == "DaemonSet" })
	for _, c := range changes {
		a.remove(all[at : at+1])
		if err := deliver(a, &all[at]); err != nil {
			a.t.Fatal(err)
		}
		if _, err := a.resource(&all[at]).Patch(a.t.Context(), all[at].GetName(), types.JSONPatchType, []byte(c.patch), metav1.PatchOptions{FieldManager: "kubectl-edit"}); err != nil {
			a.t.Fatalf("%s: %v", c.what, err)
		}
		var got []string
		for _, o := range compare().Objects {
			for _, f := range o.Fields {
				got = append(got, string(f.Change)+" "+f.Path+" by "+f.Manager+" "+f.Operation)
			}
		}
		if text := strings.Join(got, "\n"); text != c.want {
			a.t.Errorf("%s: %s\ngot:\n%s\nwant:\n%s", c.what, c.patch, text, c.want)
		}
	}
}

// change is what somebody does by hand to a DaemonSet.
type change struct {
	what, patch, want string
}

var changes = []change{
	{"an annotation of the pod template is others'", `[{"op":"add","path":"/spec/template/metadata/annotations","value":{"injected.example/sha":"abc","prometheus.io/scrape":"true"}}]`, ""},
	{"a label and an annotation of the object are others'", `[{"op":"add","path":"/metadata/labels","value":{"x":"y","app":"metrics"}},{"op":"add","path":"/metadata/annotations/z","value":"1"}]`, ""},
	{"a value that has a default", `[{"op":"add","path":"/spec/revisionHistoryLimit","value":5}]`, "added spec.revisionHistoryLimit by kubectl-edit Update"},
	{"an image", `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"hotfix:2"}]`, "changed spec.template.spec.containers[name=metrics].image by kubectl-edit Update"},
	{"a toleration", `[{"op":"add","path":"/spec/template/spec/tolerations","value":[{"key":"gpu","operator":"Exists"}]}]`, "added spec.template.spec.tolerations by kubectl-edit Update"},
	{"a variable", `[{"op":"add","path":"/spec/template/spec/containers/0/env/-","value":{"name":"DEBUG","value":"1"}}]`, "added spec.template.spec.containers[name=metrics].env[name=DEBUG] by kubectl-edit Update"},
	{"a value beside Git's", `[{"op":"add","path":"/spec/template/spec/hostPID","value":true}]`, "added spec.template.spec.hostPID by kubectl-edit Update"},
	{"a selector of nodes", `[{"op":"add","path":"/spec/template/spec/nodeSelector","value":{"non-existing":"true"}}]`, "added spec.template.spec.nodeSelector.non-existing by kubectl-edit Update"},
	{"a sidecar", `[{"op":"add","path":"/spec/template/spec/containers/-","value":{"name":"side","image":"x"}}]`, "added spec.template.spec.containers[name=side] by kubectl-edit Update"},
}
