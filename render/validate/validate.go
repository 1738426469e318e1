// Package validate judges rendered objects as an API server of Kubernetes 1.37
// would, without one: against the Go types of its API, and by the rules for
// DaemonSets and their pods that people break. It knows neither files nor
// clusters, and does not judge custom resources.
package validate

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The codes of a Fault.
const (
	UnknownField = "UnknownField" // the API server refuses it under strict validation, and drops it else
	WrongType    = "WrongType"
	UnknownKind  = "UnknownKind" // a built-in group of 1.37 does not serve it
	Invalid      = "InvalidField"
	Suspicious   = "SuspiciousField" // accepted, and surely a mistake
)

// Fault is something that is wrong with an object.
type Fault struct {
	Object  int    // index of the object
	Path    string // such as spec.template.spec.containers[0].image; empty for all of it
	Code    string
	Message string // never a value that may be secret
	Warning bool   // the API server accepts it
}

// Validator knows the types. It is read-only once made.
type Validator struct{ scheme *runtime.Scheme }

// New makes a Validator.
func New() *Validator {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionv1.AddToScheme, appsv1.AddToScheme, autoscalingv1.AddToScheme, autoscalingv2.AddToScheme, batchv1.AddToScheme,
		coordinationv1.AddToScheme, corev1.AddToScheme, discoveryv1.AddToScheme, networkingv1.AddToScheme, nodev1.AddToScheme,
		policyv1.AddToScheme, rbacv1.AddToScheme, schedulingv1.AddToScheme, storagev1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err) // two types of one name: a mistake of this program
		}
	}
	return &Validator{scheme}
}

// Objects judges objects, in order of objects and paths.
func (v *Validator) Objects(all []unstructured.Unstructured) []Fault {
	var out []Fault
	for i := range all {
		faults := v.object(&all[i])
		slices.SortStableFunc(faults, func(a, b Fault) int { return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Message, b.Message)) })
		for _, f := range slices.Compact(faults) {
			f.Object = i
			out = append(out, f)
		}
	}
	return out
}

// foreign are groups of the API server's whose types are not known here.
var foreign = []string{"apiextensions.k8s.io", "apiregistration.k8s.io", "certificates.k8s.io", "events.k8s.io", "flowcontrol.apiserver.k8s.io", "resource.k8s.io", "storagemigration.k8s.io", "internal.apiserver.k8s.io"}

func (v *Validator) object(u *unstructured.Unstructured) []Fault {
	gvk := u.GroupVersionKind()
	if sealed(u) {
		return nil
	}
	if !v.scheme.Recognizes(gvk) {
		return v.unknown(gvk)
	}
	typed, err := v.scheme.New(gvk)
	if err != nil {
		return nil
	}
	w := &walk{}
	w.value(u.Object, reflect.TypeOf(typed).Elem(), "")
	faults := append(w.faults, metadata(u)...)
	if len(w.faults) > 0 { // what does not fit its type cannot be judged further
		return faults
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, typed); err != nil {
		return append(faults, Fault{Code: WrongType, Message: "it does not fit its type"})
	}
	return append(faults, rules(typed)...)
}

// sealed tells whether an object is encrypted by SOPS: what it will be is not
// known here.
func sealed(u *unstructured.Unstructured) bool {
	s, ok := u.Object["sops"].(map[string]any)
	return ok && (s["mac"] != nil || s["lastmodified"] != nil)
}

// unknown judges a kind that is not known: of a built-in group it is not served.
func (v *Validator) unknown(gvk schema.GroupVersionKind) []Fault {
	if slices.Contains(foreign, gvk.Group) {
		return nil
	}
	if gvk.Group == "extensions" {
		return []Fault{{Path: "apiVersion", Code: UnknownKind, Message: fmt.Sprintf("Kubernetes 1.37 serves no %s: use %s", gvk.GroupVersion(), v.servedBy(gvk.Kind))}}
	}
	builtin := slices.ContainsFunc(v.scheme.PreferredVersionAllGroups(), func(gv schema.GroupVersion) bool { return gv.Group == gvk.Group })
	if !builtin || gvk.Group == "storage.k8s.io" && strings.HasPrefix(gvk.Version, "v1alpha") || strings.Contains(gvk.Version, "alpha") || strings.Contains(gvk.Version, "beta") && v.servedBy(gvk.Kind) == "" {
		return nil
	}
	message := fmt.Sprintf("Kubernetes 1.37 serves no %s of %s", gvk.Kind, gvk.GroupVersion())
	if by := v.servedBy(gvk.Kind); by != "" {
		message += ": use " + by
	}
	return []Fault{{Path: "apiVersion", Code: UnknownKind, Message: message}}
}

// servedBy names the version that has a kind.
func (v *Validator) servedBy(kind string) string {
	for _, gv := range v.scheme.PreferredVersionAllGroups() {
		if v.scheme.Recognizes(gv.WithKind(kind)) {
			return gv.String()
		}
	}
	return ""
}
