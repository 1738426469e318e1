package kubetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
)

// manager owns the fields that tests apply.
const manager = "kubetest"

// Apply server-side applies the YAML documents in their order, as the
// administrator. A document's status is applied too, to the status subresource.
func (cp *ControlPlane) Apply(t testing.TB, manifests string) {
	t.Helper()
	if err := cp.apply(t.Context(), manifests); err != nil {
		t.Fatal(err)
	}
}

// Delete deletes the objects that the YAML documents name, without grace. One
// that is not there is a fault of the test.
func (cp *ControlPlane) Delete(t testing.TB, manifests string) {
	t.Helper()
	objects, err := decode(manifests)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		client, err := cp.resource(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Delete(t.Context(), o.GetName(), metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
			t.Fatalf("deleting %s %q: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

// WaitDaemonSetReady waits until a DaemonSet's controller has seen its last
// change and reports n ready pods.
func (cp *ControlPlane) WaitDaemonSetReady(t testing.TB, namespace, name string, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	client := cp.dynamic.Resource(appsv1.SchemeGroupVersion.WithResource("daemonsets")).Namespace(namespace)
	err := poll(ctx, fmt.Sprintf("DaemonSet %s/%s to have %d ready pods", namespace, name, n), func() error {
		o, err := client.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		var ds appsv1.DaemonSet
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &ds); err != nil {
			return fatal{err}
		}
		if ds.Status.ObservedGeneration != ds.Generation || int(ds.Status.NumberReady) != n {
			return fmt.Errorf("generation %d of %d, %d ready", ds.Status.ObservedGeneration, ds.Generation, ds.Status.NumberReady)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (cp *ControlPlane) apply(ctx context.Context, manifests string) error {
	objects, err := decode(manifests)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if err := cp.applyOne(ctx, o); err != nil {
			return fmt.Errorf("applying %s %q: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

// applyOne tries again while its kind or namespace is being made: a CRD is
// served a moment after it was created.
func (cp *ControlPlane) applyOne(ctx context.Context, o *unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	_, hasStatus := o.Object["status"]
	return poll(ctx, "the API server to take it", func() error {
		client, err := cp.resource(o)
		if err != nil {
			return err
		}
		options := metav1.ApplyOptions{FieldManager: manager, Force: true}
		_, err = client.Apply(ctx, o.GetName(), o, options)
		if err == nil && hasStatus {
			_, err = client.ApplyStatus(ctx, o.GetName(), o, options)
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return fatal{err}
		}
		return err
	})
}

// resource returns the client of an object's resource and namespace.
func (cp *ControlPlane) resource(o *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := o.GroupVersionKind()
	mapping, err := cp.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		cp.mapper.Reset()
		mapping, err = cp.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	}
	if err != nil {
		return nil, fmt.Errorf("looking up kind %q: %w", kind.Kind, err)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return cp.dynamic.Resource(mapping.Resource), nil
	}
	namespace := o.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	return cp.dynamic.Resource(mapping.Resource).Namespace(namespace), nil
}

func decode(manifests string) ([]*unstructured.Unstructured, error) {
	decoder := yaml.NewYAMLToJSONDecoder(strings.NewReader(manifests))
	var objects []*unstructured.Unstructured
	for {
		var raw json.RawMessage
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("decoding manifests: %w", err)
		}
		if len(raw) == 0 || string(raw) == "null" {
			continue
		}
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(raw); err != nil {
			return nil, fmt.Errorf("decoding manifests: %w", err)
		}
		objects = append(objects, o)
	}
}
