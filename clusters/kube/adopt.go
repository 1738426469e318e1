package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"rollcall.dev/rollcall/clusters"
)

// adopt makes the shares of other managers ours, so that a field that is not in
// Git goes with the next apply. It is nil if the object has gone.
func (a *applier) adopt(ctx context.Context, c clusters.Change, m *metav1.PartialObjectMetadata) (*metav1.PartialObjectMetadata, error) {
	for attempt := 1; ; attempt++ {
		entries, changed, err := adopted(m.ManagedFields, c.Adopt, c.Object.APIVersion)
		if err != nil || !changed {
			return m, err
		}
		q, err := a.about(ctx, c.Object, "patch", http.MethodPatch)
		if err != nil {
			return nil, err
		}
		// To replace the resourceVersion makes it a precondition.
		if q.body, err = json.Marshal([]map[string]any{
			{"op": "replace", "path": "/metadata/managedFields", "value": entries},
			{"op": "replace", "path": "/metadata/resourceVersion", "value": m.ResourceVersion},
		}); err != nil {
			return nil, fmt.Errorf("packing the managers of %s: %w", c.Object, err)
		}
		q.stage, q.send = "taking over "+c.Object.String(), string(types.JSONPatchType)
		q.params = map[string]string{"fieldManager": clusters.FieldManager}
		after, _, err := a.metadata(ctx, q)
		if err == nil || !apierrors.IsConflict(err) || attempt == attempts {
			return after, err
		}
		if m, err = a.look(ctx, c.Object); m == nil || err != nil {
			return nil, err
		}
	}
}

// adopted are the entries of managedFields when those of the managers have
// become ours. It follows UpgradeManagedFields of client-go's csaupgrade, also
// in that a share in another version of the API is dropped and not converted.
//
// Unlike there, the annotation that kubectl keeps for itself becomes ours, and so
// goes with the next apply: who applies by kubectl once more is warned by it that
// the object is not kubectl's any more.
func adopted(entries []metav1.ManagedFieldsEntry, managers []string, apiVersion string) (out []metav1.ManagedFieldsEntry, changed bool, err error) {
	ours := metav1.ManagedFieldsEntry{Manager: clusters.FieldManager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: apiVersion, FieldsType: "FieldsV1"}
	all := fieldpath.NewSet()
	for _, e := range entries {
		own := e.Manager == clusters.FieldManager && e.Operation == metav1.ManagedFieldsOperationApply
		theirs := e.Manager != clusters.FieldManager && slices.Contains(managers, e.Manager)
		if e.Subresource != "" || !own && !theirs {
			out = append(out, e)
			continue
		}
		changed = changed || theirs
		if own {
			ours.Time = e.Time
		}
		if e.FieldsV1 == nil || e.APIVersion != apiVersion {
			continue
		}
		var share fieldpath.Set
		if err := share.FromJSON(e.FieldsV1.GetRawReader()); err != nil {
			return nil, false, fmt.Errorf("reading what %q manages: %w", e.Manager, err)
		}
		all = all.Union(&share)
	}
	if !changed {
		return entries, false, nil
	}
	raw, err := all.ToJSON()
	if err != nil {
		return nil, false, fmt.Errorf("writing what is managed: %w", err)
	}
	ours.FieldsV1 = metav1.NewFieldsV1(string(raw))
	return append(out, ours), true, nil
}
