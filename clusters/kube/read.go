package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"rollcall.dev/rollcall/clusters"
)

// What is read of a cluster. Revisions, events, the namespace and leases are
// optional.
func listing(group, resource, namespace string) access {
	return access{verb: "list", group: group, resource: resource, namespace: namespace}
}

func kubeSystem() access {
	return access{verb: "get", resource: "namespaces", name: metav1.NamespaceSystem}
}

// read reads in an order in which what is missing from a later list is really
// gone: a node that joins meanwhile is young, not without its pods.
func (s *session) read(ctx context.Context, w clusters.Want) (clusters.Live, error) {
	var l clusters.Live
	blanks := &blanks{}
	for _, step := range []func() error{
		func() (err error) { l.Version, err = s.version(ctx); return err },
		func() (err error) { l.Identity, err = s.identity(ctx, blanks); return err },
		func() (err error) { l.DaemonSets, err = s.daemonSets(ctx, w); return err },
		func() (err error) {
			l.Revisions, err = s.revisions(ctx, namespacesOf(l.DaemonSets), blanks)
			return err
		},
		func() (err error) { l.Pods, err = s.pods(ctx, namespacesOf(l.DaemonSets)); return err },
		func() (err error) { l.Nodes, err = s.nodes(ctx); return err },
		func() error { return s.leases(ctx, l.Nodes, blanks) },
		func() (err error) { l.Events, err = s.events(ctx, namespacesOf(l.DaemonSets), blanks); return err },
		func() (err error) { l.Inventory, err = s.inventory(ctx, w.Inventory, blanks); return err },
		func() (err error) {
			l.Objects, l.Unread, err = s.objects(ctx, slices.Concat(w.Objects, applied(l.Inventory)))
			return err
		},
		func() error {
			if !w.Powers {
				return nil
			}
			return s.held(ctx, blanks)
		},
		func() error {
			if !w.Forecast {
				return nil
			}
			return s.forecast(ctx, &l, blanks)
		},
	} {
		if err := step(); err != nil {
			return clusters.Live{}, err
		}
	}
	l.ObservedAt = time.Now().UTC()
	l.Blanks, l.Credential = blanks.list(), s.login()
	return l, nil
}

// identity is the UID of kube-system, which stays for a cluster's life.
func (s *session) identity(ctx context.Context, b *blanks) (string, error) {
	ns, err := get[*corev1.Namespace](ctx, s, kubeSystem())
	if err != nil {
		return "", b.unless(err)
	}
	return string(ns.UID), nil
}

func daemonSetQuery(w clusters.Want) (q query) {
	if w.Selector != nil {
		q.labels = w.Selector.String()
	}
	if w.Name != "" {
		q.fields = fields.OneTermEqualSelector(metav1.ObjectNameField, w.Name).String()
	}
	return q
}

func (s *session) daemonSets(ctx context.Context, w clusters.Want) ([]appsv1.DaemonSet, error) {
	return pages(ctx, s, listing("apps", "daemonsets", w.Namespace), daemonSetQuery(w), func(out []appsv1.DaemonSet, list *appsv1.DaemonSetList) ([]appsv1.DaemonSet, error) {
		for _, ds := range list.Items {
			if w.Matches(&ds) {
				delete(ds.Annotations, corev1.LastAppliedConfigAnnotation)
				out = append(out, ds)
			}
		}
		return out, nil
	})
}

func (s *session) revisions(ctx context.Context, namespaces []string, b *blanks) ([]clusters.Revision, error) {
	return each(ctx, namespaces, func(ctx context.Context, ns string) ([]clusters.Revision, error) {
		out, err := pages(ctx, s, listing("apps", "controllerrevisions", ns), query{}, keepRevisions)
		return out, b.unless(err)
	})
}

func keepRevisions(out []clusters.Revision, list *appsv1.ControllerRevisionList) ([]clusters.Revision, error) {
	for i := range list.Items {
		r, keep, err := keepRevision(&list.Items[i])
		if err != nil {
			return nil, err
		}
		if keep {
			out = append(out, r)
		}
	}
	return out, nil
}

// keepRevision passes over those of StatefulSets.
func keepRevision(r *appsv1.ControllerRevision) (out clusters.Revision, keep bool, err error) {
	if c := metav1.GetControllerOfNoCopy(r); c == nil || c.Kind != "DaemonSet" {
		return out, false, nil
	}
	out, err = clusters.RevisionOf(r)
	return out, true, err
}

func (s *session) pods(ctx context.Context, namespaces []string) ([]clusters.Pod, error) {
	return each(ctx, namespaces, func(ctx context.Context, ns string) ([]clusters.Pod, error) {
		var shared clusters.Shared
		return pages(ctx, s, listing("", "pods", ns), query{}, func(out []clusters.Pod, list *corev1.PodList) ([]clusters.Pod, error) {
			for i := range list.Items {
				out = append(out, shared.Pod(clusters.PodOf(&list.Items[i])))
			}
			return out, nil
		})
	})
}

func (s *session) nodes(ctx context.Context) ([]clusters.Node, error) {
	return pages(ctx, s, listing("", "nodes", ""), query{}, func(out []clusters.Node, list *corev1.NodeList) ([]clusters.Node, error) {
		for i := range list.Items {
			out = append(out, clusters.NodeOf(&list.Items[i]))
		}
		return out, nil
	})
}

// eventQueries select the events that explain a DaemonSet and its pods: all
// about DaemonSets, warnings about pods, and which pods were given a node.
var eventQueries = [3]query{
	{fields: "involvedObject.kind=DaemonSet"},
	{fields: "involvedObject.kind=Pod,type=Warning"},
	{fields: "involvedObject.kind=Pod,reason=Scheduled"},
}

func (s *session) events(ctx context.Context, namespaces []string, b *blanks) ([]clusters.Event, error) {
	return each(ctx, namespaces, func(ctx context.Context, ns string) ([]clusters.Event, error) {
		var all []clusters.Event
		for _, q := range eventQueries {
			events, err := pages(ctx, s, listing("", "events", ns), q, func(out []clusters.Event, list *corev1.EventList) ([]clusters.Event, error) {
				for i := range list.Items {
					out = append(out, clusters.EventOf(&list.Items[i]))
				}
				return out, nil
			})
			if err != nil {
				return nil, b.unless(err)
			}
			all = append(all, events...)
		}
		return all, nil
	})
}

func namespacesOf(dss []appsv1.DaemonSet) []string {
	set := map[string]bool{}
	for i := range dss {
		set[dss[i].Namespace] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// each calls f for a few names at a time, of namespaces or nodes. What is
// returned is in their order, and so is the error where several have one: after
// a failure only those that were not begun are passed over, so one fault is
// always told alike.
func each[T any](ctx context.Context, names []string, f func(context.Context, string) ([]T, error)) ([]T, error) {
	parts, errs := make([][]T, len(names)), make([]error, len(names))
	slots := make(chan struct{}, 4)
	var failed atomic.Bool
	var wg sync.WaitGroup
	for i, name := range names {
		slots <- struct{}{}
		if failed.Load() {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			if parts[i], errs[i] = f(ctx, name); errs[i] != nil {
				failed.Store(true)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return slices.Concat(parts...), nil
}

// blanks are the optional resources that could not be read, one reason each.
type blanks struct {
	mu      sync.Mutex
	reasons map[string][]string
}

// unless notes an optional resource that is forbidden or not there, and passes
// every other error on.
func (b *blanks) unless(err error) error {
	step, ok := errors.AsType[*stepError](err)
	if !ok || !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
		return err
	}
	word := "forbidden"
	if apierrors.IsNotFound(err) {
		word = "not there"
	}
	b.forbid(step.access.resource, word, step)
	return nil
}

// forbid keeps the reason why a resource is blank: without what the resource's
// own name repeats.
func (b *blanks) forbid(resource, word string, step *stepError) {
	a := step.access
	text := strings.TrimPrefix(step.err.Error(), a.resource+" is forbidden: ")
	text = strings.TrimPrefix(text, fmt.Sprintf("%s %q is forbidden: ", a.resource, a.name))
	text = strings.TrimPrefix(text, fmt.Sprintf("%s.%s is forbidden: ", a.resource, a.group))
	text = strings.TrimPrefix(text, fmt.Sprintf("%s.%s %q is forbidden: ", a.resource, a.group, a.name))
	b.note(resource, word+": "+text)
}

// note notes why something is blank.
func (b *blanks) note(resource, reason string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.reasons == nil {
		b.reasons = map[string][]string{}
	}
	b.reasons[resource] = append(b.reasons[resource], reason)
}

func (b *blanks) has(resource string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.reasons[resource]) > 0
}

func (b *blanks) list() []clusters.Blank {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []clusters.Blank
	for _, resource := range slices.Sorted(maps.Keys(b.reasons)) {
		reasons := b.reasons[resource]
		slices.Sort(reasons)
		reason := reasons[0]
		if more := len(reasons) - 1; more > 0 {
			reason += fmt.Sprintf(" (and in %d more namespaces)", more)
		}
		out = append(out, clusters.Blank{Resource: resource, Reason: reason})
	}
	return out
}

// applied are the objects of an inventory: whether what is no longer wanted is
// still there must be known, too.
func applied(i *clusters.Inventory) []clusters.Reference {
	if i == nil {
		return nil
	}
	out := make([]clusters.Reference, 0, len(i.Items))
	for _, item := range i.Items {
		out = append(out, item.Reference)
	}
	return out
}
