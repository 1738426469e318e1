package drift_test

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/clusters/kube"
	"rollcall.dev/rollcall/clusters/kubetest"
)

// site is an API server to which whole agents are delivered.
type site struct {
	client     dynamic.Interface
	mapper     *restmapper.DeferredDiscoveryRESTMapper
	observer   *kube.Observer
	cluster    clusters.Cluster
	kubeconfig string
	kubectl    string
}

func newSite(t *testing.T) *site {
	t.Helper()
	cp := kubetest.Start(t, kubetest.Options{Controllers: true})
	assets, err := kubetest.Assets()
	if err != nil {
		t.Fatal(err)
	}
	config := cp.Client(t)
	config.WarningHandler = rest.NoWarnings{}
	asking, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	s := &site{mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(asking)), observer: &kube.Observer{}, kubeconfig: cp.Kubeconfig(), kubectl: filepath.Join(assets, "kubectl")}
	if s.client, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	s.cluster = clusters.Cluster{Name: "c", Kubeconfig: &clusters.Kubeconfig{Paths: []string{s.kubeconfig}}}
	return s
}

// resource is the client of an object's resource; nil where the server has none.
func (s *site) resource(u *unstructured.Unstructured) dynamic.ResourceInterface {
	kind := u.GroupVersionKind()
	m, err := s.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		s.mapper.Reset()
		if m, err = s.mapper.RESTMapping(kind.GroupKind(), kind.Version); err != nil {
			return nil
		}
	}
	if m.Scope.Name() == meta.RESTScopeNameRoot {
		return s.client.Resource(m.Resource)
	}
	return s.client.Resource(m.Resource).Namespace(u.GetNamespace())
}

// there tells whether the server has the object.
func (s *site) there(t *testing.T, u *unstructured.Unstructured) bool {
	t.Helper()
	r := s.resource(u)
	if r == nil {
		return false
	}
	_, err := r.Get(t.Context(), u.GetName(), metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

// before is the order in which kinds are delivered: what others need comes
// first, and what may refuse others last.
func before(u *unstructured.Unstructured) int {
	switch u.GetKind() {
	case "Namespace":
		return -2
	case "CustomResourceDefinition":
		return -1
	case "ServiceAccount": // a controller removes tokens of those that are not there
		return 0
	case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "APIService":
		return 2
	}
	return 1
}

// prepare puts the objects in order, without those that the server had before
// anybody delivered them, and makes the namespaces that they bring not along.
func (s *site) prepare(t *testing.T, all []unstructured.Unstructured) []unstructured.Unstructured {
	t.Helper()
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b unstructured.Unstructured) int { return cmp.Compare(before(&a), before(&b)) })
	all = slices.DeleteFunc(all, func(u unstructured.Unstructured) bool { return s.there(t, &u) })
	for _, u := range all {
		brought := slices.ContainsFunc(all, func(n unstructured.Unstructured) bool {
			return n.GetKind() == "Namespace" && n.GetName() == u.GetNamespace()
		})
		if ns := namespace(u.GetNamespace()); u.GetNamespace() != "" && !brought && !s.there(t, ns) {
			if _, err := s.resource(ns).Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return all
}

func namespace(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}
}

// each sends the objects one by one and tells why some were refused. A kind
// that a CRD among them brings is waited for.
func (s *site) each(t *testing.T, all []unstructured.Unstructured, send func(context.Context, dynamic.ResourceInterface, *unstructured.Unstructured) error) map[string]string {
	t.Helper()
	refused := map[string]string{}
	for i := range all {
		u := all[i].DeepCopy()
		id := clusters.ReferenceOf(u).String()
		r := s.resource(u)
		if r == nil {
			refused[id] = "the server has no such kind"
			continue
		}
		if err := send(t.Context(), r, u); err != nil {
			refused[id] = err.Error()
			continue
		}
		if u.GetKind() == "CustomResourceDefinition" {
			s.served(t, u)
		}
	}
	return refused
}

// served waits until every version of a CRD is served.
func (s *site) served(t *testing.T, crd *unstructured.Unstructured) {
	t.Helper()
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		version, _ := v.(map[string]any)
		if version["served"] != true {
			continue
		}
		name, _ := version["name"].(string)
		custom := &unstructured.Unstructured{}
		custom.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: name, Kind: kind})
		wait(t, "the kind "+kind, func() bool {
			r := s.resource(custom)
			if r == nil {
				return false
			}
			_, err := r.List(t.Context(), metav1.ListOptions{Limit: 1})
			return err == nil
		})
	}
}

func wait(t *testing.T, what string, done func() bool) {
	t.Helper()
	for start := time.Now(); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Since(start) > 30*time.Second {
			t.Fatalf("waited 30 s for %s", what)
		}
	}
}

// remove takes everything away again, and the namespaces, without waiting for
// the controller that empties them.
func (s *site) remove(t *testing.T, all []unstructured.Unstructured) {
	t.Helper()
	none, left := []byte(`{"metadata":{"finalizers":null}}`), map[string]bool{}
	for i := len(all) - 1; i >= 0; i-- {
		u := &all[i]
		if left[u.GetNamespace()] = true; u.GetKind() == "Namespace" {
			left[u.GetName()] = true
			continue
		}
		r := s.resource(u)
		if r == nil {
			continue // its CRD is gone
		}
		if err := r.Delete(t.Context(), u.GetName(), metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		wait(t, "the end of "+u.GetName(), func() bool {
			if !s.there(t, u) {
				return true
			}
			if u.GetKind() != "CustomResourceDefinition" {
				_, _ = r.Patch(t.Context(), u.GetName(), types.MergePatchType, none, metav1.PatchOptions{})
			}
			return false
		})
	}
	for name := range left {
		ns := namespace(name)
		if name == "" || isSystem(name) || !s.there(t, ns) {
			continue
		}
		if err := s.resource(ns).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Update(t.Context(), ns, metav1.UpdateOptions{}, "finalize"); err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		wait(t, "the end of "+name, func() bool { return !s.there(t, ns) })
	}
}

func isSystem(namespace string) bool {
	return slices.Contains([]string{"default", "kube-system", "kube-public", "kube-node-lease"}, namespace)
}

// way is how an agent is delivered, and delivered once more when nothing
// changed. Both tell what was refused, by its name, and why.
type way struct {
	name           string
	deliver, again func(*testing.T, *site, []unstructured.Unstructured) map[string]string
}

var ways = []way{
	{"server-side apply of Flux", applied, applied},
	{"kubectl apply", kubectlApply, kubectlApply},
	{"Helm", created("helm"), func(t *testing.T, s *site, all []unstructured.Unstructured) map[string]string {
		return s.each(t, all, func(ctx context.Context, r dynamic.ResourceInterface, u *unstructured.Unstructured) error {
			text, err := u.MarshalJSON()
			if err == nil {
				_, err = r.Patch(ctx, u.GetName(), types.MergePatchType, text, metav1.PatchOptions{FieldManager: "helm"})
			}
			return err
		})
	}},
	{"a program that nobody knows", created("some-operator"), func(t *testing.T, s *site, all []unstructured.Unstructured) map[string]string {
		return s.each(t, all, func(ctx context.Context, r dynamic.ResourceInterface, u *unstructured.Unstructured) error {
			have, err := r.Get(ctx, u.GetName(), metav1.GetOptions{})
			if err != nil {
				return err
			}
			u.SetResourceVersion(have.GetResourceVersion())
			_, err = r.Update(ctx, u, metav1.UpdateOptions{FieldManager: "some-operator"})
			return err
		})
	}},
}

func applied(t *testing.T, s *site, all []unstructured.Unstructured) map[string]string {
	return s.each(t, all, func(ctx context.Context, r dynamic.ResourceInterface, u *unstructured.Unstructured) error {
		_, err := r.Apply(ctx, u.GetName(), u, metav1.ApplyOptions{FieldManager: "kustomize-controller", Force: true})
		return err
	})
}

func created(manager string) func(*testing.T, *site, []unstructured.Unstructured) map[string]string {
	return func(t *testing.T, s *site, all []unstructured.Unstructured) map[string]string {
		return s.each(t, all, func(ctx context.Context, r dynamic.ResourceInterface, u *unstructured.Unstructured) error {
			_, err := r.Create(ctx, u, metav1.CreateOptions{FieldManager: manager})
			return err
		})
	}
}

// kubectlApply lets kubectl itself apply them; the CRDs, and what they need,
// first.
func kubectlApply(t *testing.T, s *site, all []unstructured.Unstructured) map[string]string {
	said := ""
	first := slices.IndexFunc(all, func(u unstructured.Unstructured) bool { return before(&u) >= 0 })
	for _, part := range [][]unstructured.Unstructured{all[:first], all[first:]} {
		if len(part) == 0 {
			continue
		}
		data, err := (&unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List"}, Items: part}).MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "list.json")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), s.kubectl, "--kubeconfig", s.kubeconfig, "--cache-dir", t.TempDir(), "apply", "-f", file).CombinedOutput()
		if err != nil {
			said += string(out)
		}
		for i := range part {
			if part[i].GetKind() == "CustomResourceDefinition" && s.there(t, &part[i]) {
				s.served(t, &part[i])
			}
		}
	}
	return s.missing(t, all, said)
}

// missing are those objects that did not get there, and what was said of them.
func (s *site) missing(t *testing.T, all []unstructured.Unstructured, said string) map[string]string {
	refused := map[string]string{}
	for i := range all {
		if s.there(t, &all[i]) {
			continue
		}
		why := "kubectl says nothing of it"
		for line := range strings.Lines(said) {
			if strings.Contains(line, `"`+all[i].GetName()+`"`) && !strings.HasSuffix(strings.TrimSpace(line), "created") {
				why = strings.TrimSpace(line)
			}
		}
		refused[clusters.ReferenceOf(&all[i]).String()] = why
	}
	return refused
}
