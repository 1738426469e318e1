package validate

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// tolerations follows ValidateTolerations (pkg/apis/core/validation).
func (p *podRules) tolerations() {
	for i, t := range p.pod.Tolerations {
		at := p.at.Child("tolerations").Index(i)
		if t.Key != "" {
			p.name(at.Child("key"), t.Key, validation.IsQualifiedName)
		}
		if t.Key == "" && t.Operator != corev1.TolerationOpExists {
			p.add(field.Invalid(at.Child("operator"), t.Operator, "must be Exists where key is empty, which tolerates every taint"))
		}
		if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
			p.add(field.Invalid(at.Child("effect"), t.Effect, "must be NoExecute where tolerationSeconds is set"))
		}
		switch t.Operator {
		case "", corev1.TolerationOpEqual:
			p.name(at.Child("value"), t.Value, validation.IsValidLabelValue)
		case corev1.TolerationOpExists:
			if t.Value != "" {
				p.add(field.Invalid(at.Child("operator"), t.Value, "value must be empty where operator is Exists"))
			}
		case corev1.TolerationOpLt, corev1.TolerationOpGt: // whether they are enabled only the cluster knows
			if n, err := strconv.ParseInt(t.Value, 10, 64); err != nil || strconv.FormatInt(n, 10) != t.Value {
				p.add(field.Invalid(at.Child("value"), t.Value, "must be a whole number where operator is Lt or Gt"))
			}
		default:
			p.add(field.NotSupported(at.Child("operator"), t.Operator, []corev1.TolerationOperator{corev1.TolerationOpEqual, corev1.TolerationOpExists}))
		}
		if !slices.Contains([]corev1.TaintEffect{"", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}, t.Effect) {
			p.add(field.NotSupported(at.Child("effect"), t.Effect, []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}))
		}
	}
}

func (p *podRules) affinity() {
	if p.pod.Affinity == nil || p.pod.Affinity.NodeAffinity == nil || p.pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return
	}
	at := p.at.Child("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
	terms := p.pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	if len(terms) == 0 {
		p.add(field.Required(at, "at least one term"))
	}
	for i, term := range terms {
		for j, e := range term.MatchExpressions {
			p.requirement(at.Index(i).Child("matchExpressions").Index(j), e)
		}
		for j, f := range term.MatchFields {
			p.fieldRequirement(at.Index(i).Child("matchFields").Index(j), f)
		}
	}
}

// fieldRequirement follows ValidateNodeFieldSelectorRequirement: one name.
func (p *podRules) fieldRequirement(at *field.Path, r corev1.NodeSelectorRequirement) {
	if r.Operator != corev1.NodeSelectorOpIn && r.Operator != corev1.NodeSelectorOpNotIn {
		p.add(field.Invalid(at.Child("operator"), r.Operator, "must be In or NotIn for a field"))
	} else if len(r.Values) != 1 {
		p.add(field.Required(at.Child("values"), "exactly one for a field"))
	}
	if r.Key != metav1.ObjectNameField {
		p.add(field.Invalid(at.Child("key"), r.Key, "must be "+metav1.ObjectNameField))
		return
	}
	for i, v := range r.Values {
		p.name(at.Child("values").Index(i), v, validation.IsDNS1123Subdomain)
	}
}

// requirement follows ValidateNodeSelectorRequirement. A number that Gt and Lt
// cannot read is accepted, and matches no node.
func (p *podRules) requirement(at *field.Path, r corev1.NodeSelectorRequirement) {
	values := at.Child("values")
	switch r.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if len(r.Values) == 0 {
			p.add(field.Required(values, "at least one with In and NotIn"))
		}
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		if len(r.Values) > 0 {
			p.add(field.Forbidden(values, "none with Exists and DoesNotExist"))
		}
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		if len(r.Values) != 1 {
			p.add(field.Required(values, "exactly one with Gt and Lt"))
		} else if _, err := strconv.ParseInt(r.Values[0], 10, 64); err != nil {
			p.warn(values, "%q is no whole number: Gt and Lt then match no node", r.Values[0])
		}
	default:
		p.add(field.Invalid(at.Child("operator"), r.Operator, "must be In, NotIn, Exists, DoesNotExist, Gt or Lt"))
	}
	p.name(at.Child("key"), r.Key, validation.IsQualifiedName)
}
