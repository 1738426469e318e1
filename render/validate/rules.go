package validate

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// clusterScoped are the kinds of the known groups that have no namespace.
var clusterScoped = []string{
	"Namespace", "Node", "PersistentVolume", "ClusterRole", "ClusterRoleBinding", "PriorityClass", "StorageClass", "CSIDriver", "CSINode", "VolumeAttachment",
	"RuntimeClass", "IngressClass", "IPAddress", "ServiceCIDR", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
	"MutatingWebhookConfiguration", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "VolumeAttributesClass",
}

// metadata judges what every object has.
func metadata(u *unstructured.Unstructured) []Fault {
	at := field.NewPath("metadata")
	var errs field.ErrorList
	name := apivalidation.NameIsDNSSubdomain
	switch u.GetKind() {
	case "Namespace":
		name = apivalidation.NameIsDNSLabel
	case "Service":
		name = apivalidation.NameIsDNS1035Label
	case "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding":
		name = func(s string, _ bool) []string { return pathSegment(s) }
	}
	for _, wrong := range name(u.GetName(), false) {
		errs = append(errs, field.Invalid(at.Child("name"), u.GetName(), wrong))
	}
	scoped := slices.Contains(clusterScoped, u.GetKind())
	if ns := u.GetNamespace(); scoped && ns != "" {
		errs = append(errs, field.Forbidden(at.Child("namespace"), u.GetKind()+" has none: remove it"))
	} else if ns != "" {
		for _, wrong := range apivalidation.NameIsDNSLabel(ns, false) {
			errs = append(errs, field.Invalid(at.Child("namespace"), ns, wrong))
		}
	}
	errs = append(errs, metavalidation.ValidateLabels(u.GetLabels(), at.Child("labels"))...)
	for key := range u.GetAnnotations() {
		for _, wrong := range validation.IsQualifiedName(strings.ToLower(key)) {
			errs = append(errs, field.Invalid(at.Child("annotations"), key, wrong))
		}
	}
	if err := apivalidation.ValidateAnnotationsSize(u.GetAnnotations()); err != nil {
		errs = append(errs, field.TooLong(at.Child("annotations"), "", apivalidation.TotalAnnotationSizeLimitB))
	}
	return faultsOf(errs)
}

func pathSegment(name string) []string {
	if name == "." || name == ".." || strings.ContainsAny(name, "/%") {
		return []string{`may be neither "." nor "..", nor hold "/" or "%"`}
	}
	return nil
}

// faultsOf words errors. A value is shown only where it cannot be secret, which
// those who make them see to.
func faultsOf(errs field.ErrorList) []Fault {
	var out []Fault
	for _, e := range errs {
		out = append(out, Fault{Path: e.Field, Code: Invalid, Message: e.ErrorBody()})
	}
	return out
}

// rules are those of the kinds that have some here.
func rules(typed any) []Fault {
	switch o := typed.(type) {
	case *appsv1.DaemonSet:
		return daemonSet(o)
	case *corev1.ConfigMap:
		return keys(o.Data, o.BinaryData)
	case *corev1.Secret:
		return keys(o.StringData, o.Data)
	}
	return nil
}

// keys judges those of a ConfigMap or a Secret, never their values.
func keys(text map[string]string, data map[string][]byte) []Fault {
	var errs field.ErrorList
	size := 0
	for k, v := range text {
		size += len(v)
		for _, wrong := range validation.IsConfigMapKey(k) {
			errs = append(errs, field.Invalid(field.NewPath("data"), k, wrong))
		}
	}
	for k, v := range data {
		size += len(v)
		for _, wrong := range validation.IsConfigMapKey(k) {
			errs = append(errs, field.Invalid(field.NewPath("data"), k, wrong))
		}
	}
	if size > corev1.MaxSecretSize {
		errs = append(errs, field.TooLong(field.NewPath("data"), "", corev1.MaxSecretSize))
	}
	return faultsOf(errs)
}

// daemonSet follows ValidateDaemonSet (pkg/apis/apps/validation), on what is
// there before defaults are filled in.
func daemonSet(ds *appsv1.DaemonSet) []Fault {
	spec := field.NewPath("spec")
	var errs field.ErrorList
	errs = append(errs, selector(ds.Spec.Selector, ds.Spec.Template.Labels, spec.Child("selector"))...)
	errs = append(errs, strategy(ds.Spec.UpdateStrategy, spec.Child("updateStrategy"))...)
	if ds.Spec.MinReadySeconds < 0 {
		errs = append(errs, field.Invalid(spec.Child("minReadySeconds"), ds.Spec.MinReadySeconds, "must not be negative"))
	}
	if n := ds.Spec.RevisionHistoryLimit; n != nil && *n < 0 {
		errs = append(errs, field.Invalid(spec.Child("revisionHistoryLimit"), *n, "must not be negative"))
	}
	template := spec.Child("template")
	errs = append(errs, metavalidation.ValidateLabels(ds.Spec.Template.Labels, template.Child("metadata", "labels"))...)
	pod, at := &ds.Spec.Template.Spec, template.Child("spec")
	if pod.RestartPolicy != "" && pod.RestartPolicy != corev1.RestartPolicyAlways {
		errs = append(errs, field.NotSupported(at.Child("restartPolicy"), pod.RestartPolicy, []corev1.RestartPolicy{corev1.RestartPolicyAlways}))
	}
	if pod.ActiveDeadlineSeconds != nil {
		errs = append(errs, field.Forbidden(at.Child("activeDeadlineSeconds"), "a DaemonSet's pods have no end"))
	}
	if len(pod.EphemeralContainers) > 0 {
		errs = append(errs, field.Forbidden(at.Child("ephemeralContainers"), "not in a template"))
	}
	p := &podRules{at: at, pod: pod}
	p.judge()
	return append(faultsOf(append(errs, p.errs...)), p.warnings...)
}

func selector(s *metav1.LabelSelector, template map[string]string, at *field.Path) field.ErrorList {
	if s == nil {
		return field.ErrorList{field.Required(at, "it must select the labels of the template")}
	}
	errs := metavalidation.ValidateLabelSelector(s, metavalidation.LabelSelectorValidationOptions{}, at)
	if len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return append(errs, field.Required(at, "an empty selector would take every pod for its own"))
	}
	compiled, err := metav1.LabelSelectorAsSelector(s)
	if err != nil || len(errs) > 0 {
		return errs
	}
	if !compiled.Matches(labels.Set(template)) {
		errs = append(errs, field.Invalid(field.NewPath("spec", "template", "metadata", "labels"), field.OmitValueType{}, "spec.selector does not select them"))
	}
	return errs
}

func strategy(s appsv1.DaemonSetUpdateStrategy, at *field.Path) field.ErrorList {
	switch s.Type {
	case appsv1.OnDeleteDaemonSetStrategyType:
		return nil
	case "", appsv1.RollingUpdateDaemonSetStrategyType:
	default:
		return field.ErrorList{field.NotSupported(at.Child("type"), s.Type, []appsv1.DaemonSetUpdateStrategyType{appsv1.RollingUpdateDaemonSetStrategyType, appsv1.OnDeleteDaemonSetStrategyType})}
	}
	if s.RollingUpdate == nil {
		return nil
	}
	at = at.Child("rollingUpdate")
	unavailable, errs := budget(s.RollingUpdate.MaxUnavailable, 1, at.Child("maxUnavailable"))
	surge, more := budget(s.RollingUpdate.MaxSurge, 0, at.Child("maxSurge"))
	errs = append(errs, more...)
	switch {
	case len(errs) > 0:
	case unavailable && surge:
		errs = append(errs, field.Invalid(at.Child("maxSurge"), s.RollingUpdate.MaxSurge.String(), "maxUnavailable must then be 0, and its default is 1"))
	case !unavailable && !surge:
		errs = append(errs, field.Required(at.Child("maxUnavailable"), "it cannot be 0 while maxSurge is 0"))
	}
	return errs
}

// budget tells whether a number or a percentage is more than zero.
func budget(v *intstr.IntOrString, otherwise int, at *field.Path) (positive bool, errs field.ErrorList) {
	if v == nil {
		return otherwise > 0, nil
	}
	if v.Type == intstr.Int {
		if v.IntVal < 0 {
			errs = append(errs, field.Invalid(at, v.IntVal, "must not be negative"))
		}
		return v.IntVal > 0, errs
	}
	if wrong := validation.IsValidPercent(v.StrVal); len(wrong) > 0 {
		return false, field.ErrorList{field.Invalid(at, v.StrVal, "must be a whole number or a percentage such as 10%")}
	}
	var n int
	if _, err := fmt.Sscanf(v.StrVal, "%d%%", &n); err != nil || n > 100 {
		errs = append(errs, field.Invalid(at, v.StrVal, "must not be more than 100%"))
	}
	return n > 0, errs
}
