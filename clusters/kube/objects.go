package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rollcall.dev/rollcall/clusters"
)

// one is what became of reading one object: it was found, or could not be read,
// or is not there.
type one struct {
	id     string
	found  *unstructured.Unstructured
	unread string
}

// objects reads objects one by one, for none of their kinds is worth a list.
// DaemonSets are listed by others; Secrets are never read. What is not there
// is in neither result. Of an object that is named in two versions the first
// counts.
func (s *session) objects(ctx context.Context, refs []clusters.Reference) (found []unstructured.Unstructured, unread map[string]string, err error) {
	refs = slices.Clone(refs)
	slices.SortStableFunc(refs, clusters.Reference.Compare)
	refs = slices.CompactFunc(refs, func(a, b clusters.Reference) bool { return a.Compare(b) == 0 })
	results, err := eachOf(ctx, refs, func(ctx context.Context, ref clusters.Reference) (one, error) {
		switch {
		case ref.Group() == "apps" && ref.Kind == "DaemonSet":
			return one{}, nil
		case isSecret(ref):
			return one{id: ref.Identity(), unread: "Secrets are not read"}, nil
		}
		return s.object(ctx, ref)
	})
	if err != nil {
		return nil, nil, err
	}
	for _, r := range results {
		if r.found != nil {
			found = append(found, *r.found)
		}
		if r.unread == "" {
			continue
		}
		if unread == nil {
			unread = map[string]string{}
		}
		unread[r.id] = r.unread
	}
	return found, unread, nil
}

// eachOf is each for what is not names; the results are in order.
func eachOf[K, T any](ctx context.Context, keys []K, f func(context.Context, K) (T, error)) ([]T, error) {
	at := make([]string, len(keys))
	for i := range keys {
		at[i] = strconv.Itoa(i)
	}
	return each(ctx, at, func(ctx context.Context, i string) ([]T, error) {
		n, err := strconv.Atoi(i)
		if err != nil {
			return nil, err
		}
		t, err := f(ctx, keys[n])
		return []T{t}, err
	})
}

// object reads one. A kind that the server does not have means that there is no
// such object, unless it may be there in another version.
func (s *session) object(ctx context.Context, ref clusters.Reference) (one, error) {
	out := one{id: ref.Identity()}
	q, err := s.about(ctx, ref, "get", http.MethodGet)
	if err == nil {
		out.found, err = s.fetch(ctx, q, ref)
	}
	unserved, ok := errors.AsType[*unservedError](err)
	switch {
	case err == nil:
		return out, nil
	case ok && unserved.group:
		if others, err := s.otherVersions(ctx, ref.Group()); err != nil || !others {
			return out, err
		}
		out.unread = unserved.Error()
		return out, nil
	case ok:
		return out, nil
	case isUnserved(err):
		out.unread = (&unservedError{ref: ref}).Error()
		return out, nil
	case apierrors.IsNotFound(err):
		return out, nil
	}
	if out.unread = blindness(err); out.unread != "" {
		return out, nil
	}
	return out, err
}

// blindness is why one object could not be read, where that says nothing of
// others: it is forbidden, it is of a kind that another server answers for,
// which is down, or none can have its name. It is empty for what ends the whole
// observation.
func blindness(err error) string {
	if _, asked := errors.AsType[*stepError](err); !asked {
		return err.Error()
	}
	var status apierrors.APIStatus
	switch {
	case apierrors.IsForbidden(err):
		return "forbidden: " + err.Error()
	case apierrors.IsUnauthorized(err) || !errors.As(err, &status):
		return ""
	}
	return err.Error()
}

// fetch reads an object whole where its kind is Kubernetes' own. Of others only
// the metadata is read: who knows what they hold.
func (s *session) fetch(ctx context.Context, q request, ref clusters.Reference) (*unstructured.Unstructured, error) {
	kind := ref.Kind
	if _, ok := builtIn[ref.Group()+"/"+ref.Kind]; !ok {
		kind, q.accept = "PartialObjectMetadata", metadataOnly
	}
	a, err := s.send(ctx, q)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	if err := decodeAs(q, a, kind, u); err != nil {
		return nil, err
	}
	u.SetAPIVersion(ref.APIVersion)
	u.SetKind(ref.Kind)
	if u.GetName() != ref.Name || u.GetUID() == "" {
		return nil, &stepError{access: q.access, stage: q.stage, err: &answerError{fmt.Errorf("the server answered with %q, which has no UID or is another object", u.GetName())}}
	}
	unstructured.RemoveNestedField(u.Object, "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
	return u, nil
}
