package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"rollcall.dev/rollcall/clusters"
)

const (
	another = "another object of that name is there now"
	wasGone = "it was not there any more"
)

// remove deletes an object, if a last look shows that it is the one that was
// meant and still ours to delete.
func (a *applier) remove(ctx context.Context, c clusters.Change) (clusters.Result, error) {
	m, err := a.look(ctx, c.Object)
	if unserved, ok := errors.AsType[*unservedError](err); ok && unserved.group {
		// With a CustomResourceDefinition go its objects.
		if others, err := a.otherVersions(ctx, c.Object.Group()); err == nil && !others {
			return clusters.Result{Operation: clusters.OpPruned, Message: wasGone}, nil
		}
	}
	if err != nil {
		return clusters.Result{}, err
	}
	if m == nil {
		return clusters.Result{Operation: clusters.OpPruned, Message: wasGone}, nil
	}
	if why := a.spare(c, m); why != "" {
		return clusters.Result{Operation: clusters.OpHeld, Reason: "NotOurs", Message: why, UID: string(m.UID)}, nil
	}
	if m.Annotations[clusters.PruneAnnotation] == "disabled" {
		return clusters.Result{Operation: clusters.OpHeld, Reason: clusters.ReasonKept, Message: fmt.Sprintf("its annotation %s is disabled", clusters.PruneAnnotation), UID: string(m.UID)}, nil
	}
	err = a.erase(ctx, c.Object, m.UID, metav1.DeletePropagationBackground)
	switch {
	case apierrors.IsNotFound(err) && !isUnserved(err):
		return clusters.Result{Operation: clusters.OpPruned, Message: wasGone}, nil
	case apierrors.IsConflict(err):
		return clusters.Result{Operation: clusters.OpHeld, Reason: "NotOurs", Message: another}, nil
	case err != nil:
		return clusters.Result{}, err
	}
	r := clusters.Result{Operation: clusters.OpPruned}
	if len(m.Finalizers) > 0 {
		r.Message = "it goes when its finalizers let it: " + strings.Join(m.Finalizers, ", ")
	}
	return r, nil
}

// spare says why an object is not deleted; empty if it is.
func (a *applier) spare(c clusters.Change, m *metav1.PartialObjectMetadata) string {
	want := clusters.FleetLabelValue(a.fleet)
	switch {
	case c.UID == "":
		return "it is not known which object of that name was applied"
	case string(m.UID) != c.UID:
		return another
	case m.Labels[clusters.FleetLabel] == "":
		return fmt.Sprintf("its label %s is gone, so it is not of fleet %q any more", clusters.FleetLabel, a.fleet)
	case m.Labels[clusters.FleetLabel] != want:
		return fmt.Sprintf("its label %s is %q, so it is of another fleet", clusters.FleetLabel, m.Labels[clusters.FleetLabel])
	case share(m) == nil:
		return fmt.Sprintf("%s has not applied it: its managedFields have no such manager", clusters.FieldManager)
	}
	return ""
}

// erase deletes an object by its UID.
func (s *session) erase(ctx context.Context, ref clusters.Reference, uid types.UID, dependents metav1.DeletionPropagation) error {
	q, err := s.about(ctx, ref, "delete", http.MethodDelete)
	if err != nil {
		return err
	}
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &dependents}
	options.APIVersion, options.Kind = "v1", "DeleteOptions"
	if q.body, err = json.Marshal(options); err != nil {
		return fmt.Errorf("packing the deletion of %s: %w", ref, err)
	}
	q.send, q.accept = runtime.ContentTypeJSON, metadataOnly // of what finalizers keep; else the answer is a Status
	_, err = s.send(ctx, q)
	return err
}
