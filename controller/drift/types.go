package drift

import (
	"reflect"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Types are the kinds that are compared field by field. It is read-only once
// made.
type Types struct{ scheme *runtime.Scheme }

// NewTypes makes Types.
func NewTypes() *Types {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionv1.AddToScheme, appsv1.AddToScheme, autoscalingv2.AddToScheme, batchv1.AddToScheme, corev1.AddToScheme, networkingv1.AddToScheme,
		nodev1.AddToScheme, policyv1.AddToScheme, rbacv1.AddToScheme, schedulingv1.AddToScheme, storagev1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err) // two types of one name: a mistake of this program
		}
	}
	return &Types{scheme}
}

// Knows tells whether a kind is compared field by field.
func (t *Types) Knows(u *unstructured.Unstructured) bool {
	return t.scheme.Recognizes(u.GroupVersionKind())
}

// decode reads an object into its type. unknown are fields that the type does
// not have; known tells that there is one.
func (t *Types) decode(u *unstructured.Unstructured) (object reflect.Value, unknown []string, known bool, err error) {
	if !t.Knows(u) {
		return reflect.Value{}, nil, false, nil
	}
	typed, err := t.scheme.New(u.GroupVersionKind())
	if err != nil {
		return reflect.Value{}, nil, false, err
	}
	err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, typed, true)
	if strict, ok := runtime.AsStrictDecodingError(err); ok {
		for _, e := range strict.Errors() {
			unknown = append(unknown, e.Error())
		}
		err = nil
	}
	return reflect.ValueOf(typed).Elem(), unknown, true, err
}
