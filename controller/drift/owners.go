package drift

import (
	"encoding/json"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollcall.dev/rollcall/clusters"
)

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// knownDeliverers are the field managers of programs that deliver from Git, and
// of the commands of kubectl that apply a whole manifest.
var knownDeliverers = []string{
	clusters.FieldManager,
	"argocd-controller", "argocd-application-controller", "gitops-engine", "kustomize-controller", "helm-controller", "flux", "helm", "Helm",
	"fleetagent", "fleet-agent", "configsync.gke.io", "kapp", "kapp-controller", "kluctl", "addon-manager", "kube-addon-manager", "eks", "work-agent", "sveltos",
	"kubectl", "kubectl-client-side-apply", "kubectl-last-applied", "kubectl-create", "kubectl-replace", "before-first-apply",
}

func deliverers(more []string) map[string]bool {
	out := map[string]bool{}
	for _, m := range knownDeliverers {
		out[m] = true
	}
	for _, m := range more {
		out[m] = true
	}
	return out
}

// owners answers who wrote a field of one object.
type owners struct {
	managed    []metav1.ManagedFieldsEntry
	deliverers map[string]bool
	creator    string         // by whom the object was made, as far as that can be told
	applied    map[string]any // what kubectl applied last
	desired    map[string]any // what Git says, as it is written
	others     bool           // some manager is no deliverer
	appliers   bool           // some deliverer wrote by an apply
}

func (c *comparison) walker(desired map[string]any, managed []metav1.ManagedFieldsEntry, annotations map[string]string) *walker {
	o := owners{managed: managed, deliverers: c.deliverers, creator: creatorOf(managed), desired: desired}
	if text, ok := annotations[lastApplied]; ok {
		_ = json.Unmarshal([]byte(text), &o.applied) // what is no JSON says nothing
	}
	for _, m := range managed {
		if m.Subresource != "" {
			continue
		}
		if o.delivers(m.Manager) {
			o.appliers = o.appliers || m.Operation == metav1.ManagedFieldsOperationApply
		} else {
			o.others = true
		}
	}
	return &walker{owners: o}
}

// creatorOf is who made a workload by a plain create or update: only he wrote
// its selector, which nobody can change. He owns what defaults set, too.
func creatorOf(managed []metav1.ManagedFieldsEntry) string {
	for _, w := range clusters.Owners(managed, "f:spec", "f:selector") {
		if w.Operation == string(metav1.ManagedFieldsOperationUpdate) {
			return w.Manager
		}
	}
	return ""
}

func (o *owners) delivers(manager string) bool {
	return o.deliverers[manager] || manager == o.creator
}

// last is who wrote a field last.
func (o *owners) last(at []step) *clusters.Writer {
	if all := clusters.Owners(o.managed, ownersPath(at)...); len(all) > 0 {
		return &all[0]
	}
	return nil
}

// foreign is who wrote a field, or a part of it, and delivers nothing from Git.
func (o *owners) foreign(at []step) *clusters.Writer {
	if !o.others {
		return nil
	}
	for _, w := range clusters.Owners(o.managed, ownersPath(at)...) {
		if !o.delivers(w.Manager) && (w.Itself || len(ownersPath(at)) < len(at) || at[len(at)-1].key) {
			return &w
		}
	}
	return nil
}

// delivered is the deliverer that set a field itself: by an apply, which owns
// nothing that a default set, or by what kubectl says that it applied. A zero
// that Git writes out and a default replaces was set by nobody.
func (o *owners) delivered(at []step) *clusters.Writer {
	if holdsPath(o.desired, at) {
		return nil
	}
	if o.appliers {
		for _, w := range clusters.Owners(o.managed, ownersPath(at)...) {
			if o.delivers(w.Manager) && w.Itself && w.Operation == string(metav1.ManagedFieldsOperationApply) {
				return &w
			}
		}
	}
	if o.applied != nil && holdsPath(o.applied, at) {
		return o.last(at)
	}
	return nil
}

// holdsPath tells whether a decoded object has a field.
func holdsPath(object map[string]any, at []step) bool {
	if object == nil {
		return false
	}
	var v any = object
	for _, s := range at {
		switch t := v.(type) {
		case map[string]any:
			next, ok := t[s.name]
			if !ok {
				return false
			}
			v = next
		case []any:
			next, ok := byKey(t, s)
			if !ok {
				return false
			}
			v = next
		default:
			return false
		}
	}
	return true
}

// byKey finds a list's item by the key that a step names.
func byKey(list []any, s step) (any, bool) {
	if len(s.owner) < 2 || s.owner[:2] != "k:" {
		return nil, false
	}
	var keys map[string]any
	if json.Unmarshal([]byte(s.owner[2:]), &keys) != nil {
		return nil, false
	}
	for _, entry := range list {
		m, ok := entry.(map[string]any)
		for k, want := range keys {
			have, there := m[k]
			ok = ok && (reflect.DeepEqual(have, want) || !there && k == "protocol" && want == "TCP")
		}
		if ok {
			return m, true
		}
	}
	return nil, false
}

// owned notes who wrote a field.
func (f *Field) owned(w *clusters.Writer) {
	if w == nil {
		return
	}
	f.Manager, f.Operation = w.Manager, w.Operation
	if !w.NotAfter.IsZero() {
		f.NotAfter = &w.NotAfter
	}
}

// added judges a single value that only lives.
func (w *walker) added(at []step, have reflect.Value) {
	by := w.owners.foreign(at)
	switch {
	case w.inMetadata(at):
		w.note(at, have, by)
	case by != nil && w.daemonSet, w.daemonSet && places(at):
		w.report(Added, at, reflect.Value{}, have)
	case by != nil:
		w.note(at, have, by)
	case w.owners.delivered(at) != nil:
		w.report(Added, at, reflect.Value{}, have)
	}
}

// addedWhole tells of a whole struct that only lives as of one value, if another
// program wrote it.
func (w *walker) addedWhole(at []step, have reflect.Value) bool {
	by := w.owners.foreign(at)
	if by == nil {
		return false
	}
	if w.daemonSet {
		w.report(Added, at, reflect.Value{}, have)
	} else {
		w.note(at, have, by)
	}
	return true
}

// addedItem judges an item of a list or a key of a map that only lives. No
// default adds one to a pod template.
func (w *walker) addedItem(at []step, have reflect.Value) {
	by := w.owners.foreign(at)
	switch {
	case w.inMetadata(at):
		w.note(at, have, by)
	case w.inTemplate(at):
		w.report(Added, at, reflect.Value{}, have)
	case by != nil:
		w.note(at, have, by)
	case w.owners.delivered(at) != nil, at[len(at)-1].key && w.owners.last(at) != nil:
		w.report(Added, at, reflect.Value{}, have)
	}
}

// addedList judges a list that the API replaces as one and that only lives.
func (w *walker) addedList(at []step, have reflect.Value) {
	by := w.owners.foreign(at)
	switch {
	case w.inTemplate(at):
		w.report(Added, at, reflect.Value{}, have)
	case by != nil:
		w.note(at, have, by)
	case w.owners.delivered(at) != nil:
		w.report(Added, at, reflect.Value{}, have)
	}
}

// note lists what another program added. What a default set is not told.
func (w *walker) note(at []step, have reflect.Value, by *clusters.Writer) {
	if by == nil {
		return
	}
	f := w.difference(Added, at, reflect.Value{}, have)
	f.owned(by)
	w.foreign = append(w.foreign, f)
}

func (w *walker) inTemplate(at []step) bool {
	return w.daemonSet && len(at) > 1 && at[0].name == "spec" && at[1].name == "template"
}

// inMetadata: labels and annotations are everybody's, and so are annotations of
// a pod template.
func (w *walker) inMetadata(at []step) bool {
	return at[0].name == "metadata" || w.inTemplate(at) && len(at) > 3 && at[2].name == "metadata" && at[3].name == "annotations"
}

// Delivers tells whether a field manager delivers manifests: rollcall, a known
// deployer or command of kubectl, or one of the fleet's appliedBy.
func Delivers(manager string, appliedBy []string) bool {
	return slices.Contains(knownDeliverers, manager) || slices.Contains(appliedBy, manager)
}
