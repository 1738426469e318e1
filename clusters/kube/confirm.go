package kube

import (
	"context"
	"errors"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rollcall.dev/rollcall/clusters"
)

// Confirm asks a cluster what it would make of objects if they were applied
// now, field by field and whoever owns them: its defaults, its webhooks, its
// refusals. Nothing is kept. Secrets are not sent. Its error is always a
// *clusters.ObserveError.
func (o *Observer) Confirm(ctx context.Context, c clusters.Cluster, objects []*unstructured.Unstructured) ([]clusters.Confirmed, error) {
	return within(ctx, o, c, func(ctx context.Context, s *session) ([]clusters.Confirmed, error) {
		return eachOf(ctx, objects, s.confirm)
	})
}

func (s *session) confirm(ctx context.Context, desired *unstructured.Unstructured) (clusters.Confirmed, error) {
	out := clusters.Confirmed{Object: clusters.ReferenceOf(desired)}
	if isSecret(out.Object) {
		out.Unconfirmed = "Secrets are not sent to be confirmed"
		return out, nil
	}
	err := s.rehearse(ctx, &out, desired)
	if err == nil {
		return out, nil
	}
	why, final := unconfirmed(err)
	if final {
		return out, err
	}
	reason, message := s.refusedBy(ctx, out.Object, err)
	if why {
		out.Unconfirmed = reason + ": " + message
		return out, nil
	}
	out.Refused = reason + ": " + message
	return out, nil
}

func (s *session) rehearse(ctx context.Context, out *clusters.Confirmed, desired *unstructured.Unstructured) error {
	q, err := s.applyRequest(ctx, out.Object, desired, true)
	if err != nil {
		return err
	}
	q.stage, q.params["dryRun"] = "asking what would become of "+out.Object.String(), metav1.DryRunAll
	a, err := s.send(ctx, q)
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{}
	if err := decodeAs(q, a, out.Object.Kind, u); err != nil {
		return err
	}
	out.After = u
	return nil
}

// unconfirmed tells whether an error says nothing of the object: that we may
// not ask, that it cannot be asked yet, because the kind or namespace is not
// there, or that the server is not well. final says that nothing at all can be
// asked.
func unconfirmed(err error) (yes, final bool) {
	step, ok := errors.AsType[*stepError](err)
	if !ok {
		return true, false
	}
	var status apierrors.APIStatus
	if !errors.As(step.err, &status) {
		return false, true
	}
	st := status.Status()
	switch {
	case st.Code == http.StatusUnauthorized:
		return false, true
	case st.Code == http.StatusForbidden:
		return notAllowed(st.Message), false
	case st.Code == http.StatusBadRequest:
		return strings.Contains(st.Message, "does not support dry run"), false
	}
	return st.Code == http.StatusNotFound || st.Code == http.StatusTooManyRequests || st.Code >= 500, false
}

// notAllowed tells what the server's authorizers say, which is of the user, from
// what its admission says with the same status, which is of the object.
func notAllowed(message string) bool {
	_, rest, found := strings.Cut(message, ` is forbidden: User "`)
	return found && strings.Contains(rest, `" cannot `)
}
