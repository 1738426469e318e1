package kube

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"rollcall.dev/rollcall/clusters"
)

// ended leaves pods out that claim nothing any more.
const ended = "status.phase!=Succeeded,status.phase!=Failed"

// forecast reads what tells whether another pod would fit. It is read after the
// nodes: a node that joins meanwhile is not taken for an empty one.
func (s *session) forecast(ctx context.Context, l *clusters.Live, b *blanks) error {
	var err error
	if l.Priorities, err = s.priorities(ctx); err != nil {
		if err := b.unless(err); err != nil {
			return err
		}
	}
	if l.Claims, err = s.claims(ctx); err == nil {
		return nil
	}
	if step, ok := errors.AsType[*stepError](err); ok && apierrors.IsForbidden(err) {
		b.forbid("claims", "forbidden", step)
		return nil
	}
	return err
}

// claims are those of all namespaces: a list of some would make nodes look
// emptier than they are, so it is whole or none.
func (s *session) claims(ctx context.Context) ([]clusters.Claim, error) {
	var shared clusters.Shared
	out, err := pages(ctx, s, listing("", "pods", ""), query{fields: ended}, func(out []clusters.Claim, list *corev1.PodList) ([]clusters.Claim, error) {
		for i := range list.Items {
			if p := &list.Items[i]; p.Spec.NodeName != "" && !clusters.Terminal(p) {
				out = append(out, shared.Claim(clusters.ClaimOf(p)))
			}
		}
		return out, nil
	})
	if err == nil && out == nil {
		out = []clusters.Claim{} // none, and not unknown
	}
	return out, err
}

func (s *session) priorities(ctx context.Context) (map[string]clusters.Priority, error) {
	all := map[string]clusters.Priority{}
	_, err := pages(ctx, s, listing("scheduling.k8s.io", "priorityclasses", ""), query{}, func(out []struct{}, list *schedulingv1.PriorityClassList) ([]struct{}, error) {
		for i := range list.Items {
			clusters.AddPriority(all, &list.Items[i])
		}
		return out, nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}
