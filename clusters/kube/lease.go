package kube

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"rollcall.dev/rollcall/clusters"
)

const (
	beatWithin = 15 * time.Minute // a kubelet that is well tells its conditions every 5 minutes
	maxLeases  = 200              // read of one cluster, whatever happened to it
)

// lease is a node's own, or of no name any node's.
func lease(node string) access {
	return access{verb: "get", group: coordinationv1.GroupName, resource: "leases", namespace: corev1.NamespaceNodeLease, name: node}
}

// leases reads the Lease of each node whose heartbeat has stopped although it
// is said to be Ready: kubelets renew them far more often. They are never
// listed, for there are as many as nodes, and none is of interest where all is
// well.
func (s *session) leases(ctx context.Context, nodes []clusters.Node, b *blanks) error {
	var names []string
	byName := map[string]*clusters.Node{}
	for i := range nodes {
		if n := &nodes[i]; len(names) < maxLeases && silent(n, time.Now()) {
			names, byName[n.Name] = append(names, n.Name), n
		}
	}
	leases, err := each(ctx, names, s.lease)
	if err != nil {
		return b.unless(err)
	}
	for _, l := range leases {
		if n := byName[l.Name]; n != nil && l.Spec.RenewTime != nil {
			n.Lease = l.Spec.RenewTime.UTC()
		}
	}
	return nil
}

// silent tells whether a node counts as Ready though nothing was heard of it.
func silent(n *clusters.Node, now time.Time) bool {
	for _, c := range n.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue && !c.LastHeartbeatTime.IsZero() && now.Sub(c.LastHeartbeatTime.Time) > beatWithin
		}
	}
	return false
}

// lease reads the Lease of a node, which it need not have.
func (s *session) lease(ctx context.Context, node string) ([]*coordinationv1.Lease, error) {
	l, err := get[*coordinationv1.Lease](ctx, s, lease(node))
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return []*coordinationv1.Lease{l}, err
}
