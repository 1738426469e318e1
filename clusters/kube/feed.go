package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"rollcall.dev/rollcall/clusters"
)

const (
	watchFor  = 4 * time.Minute // a watch that the server ends is opened again where it ended
	pollEvery = 3 * time.Second // where watching is not allowed
)

// health is whether a list is known as it is now.
type health struct {
	mu    sync.Mutex
	now   bool
	ever  bool
	err   error
	since time.Time
}

func (h *health) good() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now, h.ever, h.err = true, true, nil
}

// lost notes that a watch ended: what is known may already be old.
func (h *health) lost() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = false
}

// fail notes an error of what began at a time. The first one in a row counts.
func (h *health) fail(err error, began time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err == nil {
		h.since = began
	}
	h.now, h.err = false, err
}

// failing is the error of the last try, since when it fails, and whether it was
// ever read.
func (h *health) failing() (since time.Time, ever bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.since, h.ever, h.err
}

func (h *health) current() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

// feedOf is one list that is kept up to date, trimmed.
type feedOf[T any] struct {
	health
	items map[types.UID]T
}

// all returns copies of the items, in no order.
func (f *feedOf[T]) all() []T {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]T, 0, len(f.items))
	for _, v := range f.items {
		out = append(out, v)
	}
	return out
}

// swap replaces an item, or removes it where there is no new one, and returns
// what it was.
func (f *feedOf[T]) swap(uid types.UID, item *T) (was T, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	was, known = f.items[uid]
	if item == nil {
		delete(f.items, uid)
	} else {
		f.items[uid] = *item
	}
	return was, known
}

func (f *feedOf[T]) replace(items map[types.UID]T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.items = items
}

// object is what the API server lists.
type object interface {
	runtime.Object
	metav1.Object
}

// recipe says how one kind is followed: where it is listed, what is kept of an
// object, and whether a change matters.
type recipe[O object, T any] struct {
	access   access
	query    query
	optional bool
	trim     func(O) (item T, keep bool, err error)
	same     func(a, b T) bool // nil: every change matters
}

// keepUp lists and watches until ctx ends. L is the list of the objects.
func keepUp[L runtime.Object, O object, T any](ctx context.Context, f *follower, feed *feedOf[T], r recipe[O, T]) {
	wait := time.Second
	for ctx.Err() == nil {
		began := time.Now()
		version, err := relist[L](ctx, f.session, feed, r)
		if err != nil && r.optional && f.blanks.unless(err) == nil {
			feed.good() // for good: it stays blank
			f.ring()
			return
		}
		if err == nil {
			f.ring()
			if err = watchOn(ctx, f, feed, r, version); err == nil {
				wait = time.Second
				continue // its version is too old: list again
			}
		}
		pause := wait
		if step, ok := errors.AsType[*stepError](err); ok && step.access.verb == "watch" && apierrors.IsForbidden(step.err) {
			pause = pollEvery
			feed.good() // as of now
		} else {
			feed.fail(err, began)
			wait = min(2*wait, 8*time.Second)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// relist replaces all items and returns the version that they are of.
func relist[L runtime.Object, O object, T any](ctx context.Context, s *session, feed *feedOf[T], r recipe[O, T]) (version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	items := map[types.UID]T{}
	_, err = pages(ctx, s, r.access, r.query, func(_ []struct{}, list L) ([]struct{}, error) {
		if m, err := meta.ListAccessor(list); err == nil {
			version = m.GetResourceVersion()
		}
		return nil, meta.EachListItem(list, func(item runtime.Object) error {
			o, ok := item.(O)
			if !ok {
				return fmt.Errorf("the list holds a %T", item)
			}
			kept, keep, err := r.trim(o)
			if keep && err == nil {
				items[o.GetUID()] = kept
			}
			return err
		})
	})
	if err == nil {
		feed.replace(items)
	}
	return version, err
}

// watchOn follows from a version on, one watch after the other. It returns nil
// when that version is too old to go on from, and an error when the watch
// broke.
func watchOn[O object, T any](ctx context.Context, f *follower, feed *feedOf[T], r recipe[O, T], version string) error {
	for {
		began := time.Now()
		err := watchOnce(ctx, f, feed, r, &version)
		feed.lost()
		if err == nil && ctx.Err() == nil && time.Since(began) < time.Second {
			err = errors.New("the server ended the watch at once")
		}
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			return nil
		}
		if err != nil {
			a := r.access
			a.verb = "watch"
			return &stepError{access: a, err: err}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// watchOnce opens one watch and takes what it tells until the server ends it.
func watchOnce[O object, T any](ctx context.Context, f *follower, feed *feedOf[T], r recipe[O, T], version *string) error {
	within, cancel := context.WithTimeout(ctx, watchFor+f.session.limit)
	defer cancel()
	opening := time.AfterFunc(f.session.limit, cancel)
	w, err := f.session.watch(within, r.access, r.query, *version)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		err = context.DeadlineExceeded // not answered
	}
	if err != nil {
		return err
	}
	defer w.Stop()
	opening.Stop()
	feed.good()
	f.ring()
	for event := range w.ResultChan() {
		if err := take(f, feed, r, event, version); err != nil {
			return err
		}
	}
	return nil
}

// take notes one event of a watch.
func take[O object, T any](f *follower, feed *feedOf[T], r recipe[O, T], event watch.Event, version *string) error {
	if event.Type == watch.Error {
		return apierrors.FromObject(event.Object)
	}
	o, ok := event.Object.(O)
	if !ok {
		return &answerError{fmt.Errorf("the watch tells of a %T", event.Object)}
	}
	*version = o.GetResourceVersion()
	if event.Type == watch.Bookmark {
		return nil
	}
	item, keep, err := r.trim(o)
	if err != nil {
		return &answerError{err}
	}
	stays := &item
	if event.Type == watch.Deleted || !keep {
		stays = nil
	}
	was, known := feed.swap(o.GetUID(), stays)
	if known != (stays != nil) || known && (r.same == nil || !r.same(was, item)) {
		f.ring()
	}
	return nil
}

// watch opens a watch from a version on.
func (s *session) watch(ctx context.Context, a access, q query, version string) (watch.Interface, error) {
	r := s.groups[a.group].Get().NamespaceIfScoped(a.namespace, a.namespace != "").Resource(a.resource).
		Param("watch", "true").Param("allowWatchBookmarks", "true").Param("resourceVersion", version).
		Param("timeoutSeconds", strconv.Itoa(int(watchFor/time.Second)))
	for _, p := range []struct{ name, value string }{{"labelSelector", q.labels}, {"fieldSelector", q.fields}} {
		if p.value != "" {
			r = r.Param(p.name, p.value)
		}
	}
	return r.Watch(quiet(ctx))
}

// daemonSet is one that is kept whole.
type daemonSet struct{ appsv1.DaemonSet }

// followCluster follows what is not of a namespace that is not known yet.
func (f *follower) followCluster(ctx context.Context) {
	f.running.Go(func() {
		keepUp[*appsv1.DaemonSetList](ctx, f, &f.daemonSets, recipe[*appsv1.DaemonSet, daemonSet]{
			access: listing("apps", "daemonsets", f.want.Namespace), query: daemonSetQuery(f.want),
			trim: func(ds *appsv1.DaemonSet) (daemonSet, bool, error) {
				delete(ds.Annotations, corev1.LastAppliedConfigAnnotation)
				return daemonSet{*ds}, f.want.Matches(ds), nil
			},
		})
	})
	f.running.Go(func() {
		keepUp[*corev1.NodeList](ctx, f, &f.nodes, recipe[*corev1.Node, clusters.Node]{
			access: listing("", "nodes", ""), same: sameNode,
			trim: func(n *corev1.Node) (clusters.Node, bool, error) { return clusters.NodeOf(n), true, nil },
		})
	})
}

// sameNode leaves out heartbeats, which every node tells every few minutes.
func sameNode(a, b clusters.Node) bool {
	return a.Deleting == b.Deleting && a.Excuse == b.Excuse && maps.Equal(a.Labels, b.Labels) && equality.Semantic.DeepEqual(a.Taints, b.Taints) &&
		slices.EqualFunc(a.Conditions, b.Conditions, func(x, y corev1.NodeCondition) bool {
			x.LastHeartbeatTime, y.LastHeartbeatTime = metav1.Time{}, metav1.Time{}
			return equality.Semantic.DeepEqual(x, y)
		})
}

func (f *follower) followNamespace(ctx context.Context, name string) *space {
	ctx, stop := context.WithCancel(ctx)
	p := &space{stop: stop}
	f.running.Go(func() {
		keepUp[*appsv1.ControllerRevisionList](ctx, f, &p.revisions, recipe[*appsv1.ControllerRevision, clusters.Revision]{
			access: listing("apps", "controllerrevisions", name), optional: true, trim: keepRevision,
		})
	})
	f.running.Go(func() {
		var shared clusters.Shared
		keepUp[*corev1.PodList](ctx, f, &p.pods, recipe[*corev1.Pod, clusters.Pod]{
			access: listing("", "pods", name),
			trim:   func(pod *corev1.Pod) (clusters.Pod, bool, error) { return shared.Pod(clusters.PodOf(pod)), true, nil },
		})
	})
	for i, q := range eventQueries {
		f.running.Go(func() {
			keepUp[*corev1.EventList](ctx, f, &p.events[i], recipe[*corev1.Event, clusters.Event]{
				access: listing("", "events", name), query: q, optional: true,
				trim: func(e *corev1.Event) (clusters.Event, bool, error) { return clusters.EventOf(e), true, nil },
			})
		})
	}
	return p
}
