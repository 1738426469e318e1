package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"rollcall.dev/rollcall/clusters"
)

// reserve is what is kept of the time for the inventory after the changes.
const reserve = 5 * time.Second

// Apply changes a cluster: it records in the inventory what it is about to
// apply, makes the changes stage by stage, and records what became of them. A
// change that fails is a Result, and the others go on. Where all is as it should
// be already, nothing is written.
//
// An error beside Results means that they could not be recorded, so that the
// inventory still has what was about to be applied; one without Results that
// nothing was changed, or that the time ended before anybody knew. Whatever it
// was, the same batch can be applied again. The error is always a
// *clusters.ObserveError.
func (o *Observer) Apply(ctx context.Context, c clusters.Cluster, b clusters.Batch, now func() time.Time) ([]clusters.Result, error) {
	return within(ctx, o, c, func(ctx context.Context, s *session) ([]clusters.Result, error) {
		return s.batch(ctx, b, now)
	})
}

func (s *session) batch(ctx context.Context, b clusters.Batch, now func() time.Time) ([]clusters.Result, error) {
	inventory, err := s.open(ctx, b.Inventory)
	if err != nil {
		return nil, err
	}
	if !inventory.settled(b) {
		if err := inventory.write(ctx, b.Inventory); err != nil {
			return nil, err
		}
	}
	work, cancel := s.reserve(ctx)
	defer cancel()
	a := &applier{session: s, fleet: b.Inventory.Fleet, unready: map[string]string{}}
	var results []clusters.Result
	for _, changes := range b.Stages {
		done, err := eachOf(work, changes, func(ctx context.Context, c clusters.Change) (clusters.Result, error) {
			return a.change(ctx, c), nil
		})
		if err != nil {
			return results, err
		}
		results = append(results, done...)
		a.await(work, changes, done)
	}
	return results, inventory.write(ctx, b.Inventory.After(slices.Concat(results, b.Held), now()))
}

// reserve leaves time to record what was done.
func (s *session) reserve(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, has := ctx.Deadline()
	if !has {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, deadline.Add(-min(reserve, time.Until(deadline)/5)))
}

// applier makes the changes of one batch.
type applier struct {
	*session
	fleet   string
	unready map[string]string // what the stages before have made and is not ready, by needsOf: why; not written while a stage runs
	lacking sync.Map          // kinds that were waited for in vain, by kindNeed
}

func (a *applier) change(ctx context.Context, c clusters.Change) clusters.Result {
	for _, need := range needsOf(c.Object) {
		if why, ok := a.unready[need]; ok {
			return clusters.Result{Object: c.Object, Operation: clusters.OpFailed, Reason: "NotReady", Message: why}
		}
	}
	var r clusters.Result
	var err error
	switch c.Do {
	case clusters.Apply:
		r, err = a.applyServed(ctx, c)
	case clusters.Delete:
		r, err = a.remove(ctx, c)
	case clusters.Replace:
		r, err = a.replace(ctx, c)
	default:
		err = fmt.Errorf("there is no change %q", c.Do)
	}
	r.Object = c.Object
	if err != nil {
		r.Operation = clusters.OpFailed
		r.Reason, r.Message = a.refusedBy(ctx, c.Object, err)
	}
	return r
}

// applyServed waits a little for a kind that is not served: its definition may
// just have been applied, by a run that was broken off.
func (a *applier) applyServed(ctx context.Context, c clusters.Change) (clusters.Result, error) {
	kind, wait := kindNeed(c.Object.Group(), c.Object.Kind), firstWait
	for attempt := 1; ; attempt++ {
		r, err := a.apply(ctx, c)
		if !notServed(err) {
			return r, err
		}
		if _, known := a.lacking.Load(kind); known || attempt == attempts {
			a.lacking.Store(kind, true)
			return r, err
		}
		select {
		case <-ctx.Done():
			return r, err
		case <-time.After(wait):
		}
		wait *= 4
		a.forget(c.Object.Group())
	}
}

// apply is a server-side apply, and tells by what is there before and after
// whether it changed anything.
func (a *applier) apply(ctx context.Context, c clusters.Change) (clusters.Result, error) {
	before, err := a.look(ctx, c.Object)
	known := err == nil
	if err != nil && (!isSecret(c.Object) || !apierrors.IsBadRequest(err) || len(c.Adopt) > 0) {
		return clusters.Result{}, err
	}
	if before != nil && len(c.Adopt) > 0 {
		if before, err = a.adopt(ctx, c, before); err != nil {
			return clusters.Result{}, err
		}
	}
	q, err := a.applyRequest(ctx, c.Object, c.Desired, c.Force)
	if err != nil {
		return clusters.Result{}, err
	}
	q.raced = true
	after, code, err := a.metadata(ctx, q)
	if err != nil {
		return clusters.Result{}, err
	}
	r := clusters.Result{Operation: clusters.OpConfigured, UID: string(after.UID)}
	switch {
	case code == http.StatusCreated || known && before == nil:
		r.Operation = clusters.OpCreated
	case known && unchanged(before, after):
		r.Operation = clusters.OpUnchanged
	}
	return r, nil
}

// unchanged tells whether an apply did nothing. An object with a status has
// another resourceVersion every now and then, without our doing, and a
// generation that counts what we may have done.
func unchanged(before, after *metav1.PartialObjectMetadata) bool {
	if before.UID != after.UID || before.ResourceVersion == after.ResourceVersion {
		return before.UID == after.UID
	}
	return before.Generation > 0 && before.Generation == after.Generation &&
		maps.Equal(before.Labels, after.Labels) && maps.Equal(before.Annotations, after.Annotations) &&
		equality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences) && slices.Equal(before.Finalizers, after.Finalizers) &&
		equality.Semantic.DeepEqual(share(before), share(after))
}

// share is what of an object is ours.
func share(m *metav1.PartialObjectMetadata) *metav1.ManagedFieldsEntry {
	at := slices.IndexFunc(m.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == clusters.FieldManager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == ""
	})
	if at < 0 {
		return nil
	}
	return &m.ManagedFields[at]
}

// applyRequest is the server-side apply of an object.
func (s *session) applyRequest(ctx context.Context, ref clusters.Reference, desired interface{ MarshalJSON() ([]byte, error) }, force bool) (request, error) {
	q, err := s.about(ctx, ref, "patch", http.MethodPatch)
	if err != nil {
		return request{}, err
	}
	if q.body, err = json.Marshal(desired); err != nil || string(q.body) == "null" {
		return request{}, errors.Join(fmt.Errorf("packing %s", ref), err)
	}
	q.send = string(types.ApplyPatchType)
	q.params = map[string]string{"fieldManager": clusters.FieldManager, "fieldValidation": metav1.FieldValidationWarn}
	if force {
		q.params["force"] = "true"
	}
	return q, nil
}

// look reads an object's metadata, nil if it is not there. Of a Secret it sends
// a change of nothing that is not kept, the answer to which has no values: to
// read one is to read them, and needs to be allowed.
func (s *session) look(ctx context.Context, ref clusters.Reference) (*metav1.PartialObjectMetadata, error) {
	verb, method := "get", http.MethodGet
	if isSecret(ref) {
		verb, method = "patch", http.MethodPatch
	}
	q, err := s.about(ctx, ref, verb, method)
	if err != nil {
		return nil, err
	}
	if isSecret(ref) {
		q.send, q.body, q.params = string(types.MergePatchType), []byte("{}"), map[string]string{"dryRun": metav1.DryRunAll}
	}
	m, _, err := s.metadata(ctx, q)
	if apierrors.IsNotFound(err) && !isUnserved(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if m.Name != ref.Name || m.UID == "" {
		return nil, &stepError{access: q.access, stage: q.stage, err: &answerError{fmt.Errorf("the server answered with %q, which has no UID or is another object", m.Name)}}
	}
	return m, nil
}
