package drift

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// step is one step from an object down to a field.
type step struct {
	name string // of a field, or the key of a map
	item string // [name=c] of a keyed list's item, [2] of another's; empty for fields and keys
	// want and have are the item's places in the two lists, -1 where it is in
	// none.
	want, have int
	owner      string // the step as managedFields write it; empty: what is below is owned as one
	key        bool   // of a map
}

func fieldStep(name string) step { return step{name: name, owner: "f:" + name, want: -1, have: -1} }

func keyStep(key string) step {
	return step{name: key, owner: "f:" + key, want: -1, have: -1, key: true}
}

// Atomic tells of an item of a list that the API does not merge: who applies the
// list replaces it, whoever added the item.
func (f Field) Atomic() bool {
	return len(f.steps) > 0 && f.steps[len(f.steps)-1].item != "" && f.steps[len(f.steps)-1].owner == ""
}

// pathOf writes steps as a path: spec.containers[name=c].image.
func pathOf(steps []step) string {
	var b strings.Builder
	for _, s := range steps {
		switch {
		case s.item != "":
			b.WriteString(s.item)
		case s.key && strings.ContainsAny(s.name, "./"):
			b.WriteString("[" + s.name + "]")
		default:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s.name)
		}
	}
	return b.String()
}

// ownersPath is the path as managedFields write it, as far as fields are owned
// one by one.
func ownersPath(steps []step) []string {
	out := make([]string, 0, len(steps))
	for _, s := range steps {
		if s.owner == "" {
			break
		}
		out = append(out, s.owner)
	}
	return out
}

// listKind is how the API merges a list.
type listKind struct {
	keys     []string // of a list of objects
	set      bool     // of scalars
	sequence bool     // its order means something
	exact    bool     // no default adds a field to an item
}

// lists are the lists that the API does not replace as a whole, by type and
// field, and those whose order or whose items' every field matters. It follows
// the listType and listMapKey markers of k8s.io/api; a test holds it against the
// OpenAPI of a real API server.
func listOf(t reflect.Type, field string) listKind {
	return lists[t.Name()+"."+field]
}

var lists = map[string]listKind{
	"PodSpec.initContainers":            {keys: []string{"name"}, sequence: true},
	"PodSpec.containers":                {keys: []string{"name"}},
	"PodSpec.ephemeralContainers":       {keys: []string{"name"}},
	"PodSpec.volumes":                   {keys: []string{"name"}},
	"PodSpec.imagePullSecrets":          {keys: []string{"name"}},
	"PodSpec.hostAliases":               {keys: []string{"ip"}},
	"PodSpec.topologySpreadConstraints": {keys: []string{"topologyKey", "whenUnsatisfiable"}},
	"PodSpec.schedulingGates":           {keys: []string{"name"}},
	"PodSpec.resourceClaims":            {keys: []string{"name"}},
	"PodSpec.tolerations":               {exact: true},
	"Container.ports":                   {keys: []string{"containerPort", "protocol"}},
	"Container.env":                     {keys: []string{"name"}},
	"Container.volumeMounts":            {keys: []string{"mountPath"}},
	"Container.volumeDevices":           {keys: []string{"devicePath"}},
	"Container.command":                 {sequence: true},
	"Container.args":                    {sequence: true},
	"Container.envFrom":                 {sequence: true},
	"ExecAction.command":                {sequence: true},
	"ResourceRequirements.claims":       {keys: []string{"name"}},
	"NodeSelector.nodeSelectorTerms":    {exact: true},
	"ServiceSpec.ports":                 {keys: []string{"port", "protocol"}},
	"ServiceAccount.secrets":            {keys: []string{"name"}},
	"ObjectMeta.finalizers":             {set: true},
	"ObjectMeta.ownerReferences":        {keys: []string{"uid"}},

	"MutatingWebhookConfiguration.webhooks":   {keys: []string{"name"}},
	"ValidatingWebhookConfiguration.webhooks": {keys: []string{"name"}},
	"MutatingWebhook.matchConditions":         {keys: []string{"name"}},
	"ValidatingWebhook.matchConditions":       {keys: []string{"name"}},
	"ScopeSelector.matchExpressions":          {},
	"CSINodeSpec.drivers":                     {keys: []string{"name"}},

	"EphemeralContainer.ports":                               {keys: []string{"containerPort", "protocol"}},
	"EphemeralContainer.env":                                 {keys: []string{"name"}},
	"EphemeralContainer.volumeMounts":                        {keys: []string{"mountPath"}},
	"EphemeralContainer.volumeDevices":                       {keys: []string{"devicePath"}},
	"PodSpec.evictionResponders":                             {keys: []string{"name"}},
	"VolumeMount.bindMountOptions":                           {set: true},
	"ContainerRestartRuleOnExitCodes.values":                 {set: true},
	"PodVolumeHealth.healthConditions":                       {keys: []string{"status", "reason"}},
	"PodFailurePolicyOnExitCodesRequirement.values":          {set: true},
	"JobSchedulingConfiguration.resourceClaims":              {keys: []string{"name"}},
	"UncountedTerminatedPods.failed":                         {set: true},
	"UncountedTerminatedPods.succeeded":                      {set: true},
	"ValidatingAdmissionPolicySpec.matchConditions":          {keys: []string{"name"}},
	"ValidatingAdmissionPolicySpec.variables":                {keys: []string{"name"}},
	"ValidatingAdmissionPolicyBindingSpec.validationActions": {set: true},
	"MutatingAdmissionPolicySpec.matchConditions":            {keys: []string{"name"}},
	"CSIDriverSpec.volumeLifecycleModes":                     {set: true},
	"NodeSpec.podCIDRs":                                      {set: true},
	"NodePodPreemptionPolicy.disableResizePreemption":        {set: true},
}

// keyOf is an item's key among those of its list. A port's protocol is part of
// its key and TCP where it is not written.
func keyOf(item reflect.Value, keys []string) (path, owner string) {
	values := map[string]any{}
	var words []string
	for _, k := range keys {
		v := jsonField(item, k)
		if k == "protocol" && v.IsZero() {
			values[k] = "TCP"
		} else {
			values[k] = v.Interface()
		}
		words = append(words, fmt.Sprintf("%s=%v", k, values[k]))
	}
	encoded, err := json.Marshal(values) // by key, as managedFields have it
	if err != nil {
		return "[?]", ""
	}
	return "[" + strings.Join(words, ",") + "]", "k:" + string(encoded)
}

// jsonField is the field of a struct by its name in JSON.
func jsonField(v reflect.Value, name string) reflect.Value {
	t := v.Type()
	for i := range t.NumField() {
		if jsonName(t.Field(i)) == name {
			return v.Field(i)
		}
	}
	return reflect.Value{}
}

// jsonName is a field's name in JSON, empty for one that is inlined or left out.
func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "-" {
		return ""
	}
	return name
}
