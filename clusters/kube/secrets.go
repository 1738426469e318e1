package kube

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/clusters/hub"
)

// maxSecrets bounds what a hub may register; a page of 500 Secrets is at most
// 500 MiB, so they come in smaller ones.
const (
	maxSecrets     = 10000
	secretPageSize = 50
)

// Secrets reads what a hub's Secrets register, of the kinds and namespaces that
// are asked for and no other. Of a Secret nothing is kept but what it registers.
// Its error is always a *clusters.ObserveError.
func (o *Observer) Secrets(ctx context.Context, h clusters.Hub, defaults clusters.Policy) (hub.Set, error) {
	return within(ctx, o, hubCluster(h), func(ctx context.Context, s *session) (hub.Set, error) {
		s.pageSize = min(s.pageSize, secretPageSize)
		var set hub.Set
		for _, l := range lists(h) {
			found, err := pages(ctx, s, l.access, l.query, func(out []hub.Registration, list *corev1.SecretList) ([]hub.Registration, error) {
				for i := range list.Items {
					if r, ok := hub.Read(h, defaults, l.kind, &list.Items[i]); ok {
						out = append(out, r)
					}
				}
				return out, tooMany(len(out))
			})
			if err != nil {
				return hub.Set{}, err
			}
			set.Registrations = append(set.Registrations, found...)
		}
		set.Addresses = s.addresses()
		hub.Sort(set.Registrations)
		return set, nil
	})
}

func tooMany(n int) error {
	if n > maxSecrets {
		return fmt.Errorf("more than %d Secrets register clusters", maxSecrets)
	}
	return nil
}

// hubCluster is a hub as what every request needs: a cluster.
func hubCluster(h clusters.Hub) clusters.Cluster {
	return clusters.Cluster{Name: "hub", Kubeconfig: &h.Kubeconfig}
}

// secretList is one list of Secrets of a hub.
type secretList struct {
	kind   string
	access access
	query  query
}

func lists(h clusters.Hub) []secretList {
	namespaces := h.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	var all []secretList
	for _, sel := range hub.Selectors(h.Secrets) {
		for _, ns := range namespaces {
			all = append(all, secretList{sel.Kind, listing("", "secrets", ns), query{labels: sel.Labels, fields: sel.Fields}})
		}
	}
	return all
}

// addresses are those of the server: as it is named, and as it was reached.
func (s *session) addresses() []string {
	all := []string{hub.HostPort("https://" + s.host)}
	reached, ok := s.reached.Load().(string)
	if !ok {
		return all
	}
	if to, err := netip.ParseAddrPort(reached); err == nil {
		if text := netip.AddrPortFrom(to.Addr().Unmap(), to.Port()).String(); text != all[0] {
			all = append(all, text)
		}
	}
	return all
}

// FollowSecrets calls each with what a hub's Secrets register, and again with
// all of it when that changed, and now and then to say that it did not. Each
// runs on the caller's goroutine and may keep what it gets.
//
// FollowSecrets ends when ctx does or each fails, with that error, and with a
// *clusters.ObserveError when the Secrets could not be read for too long. What
// is not known to be current is never passed on.
func (o *Observer) FollowSecrets(ctx context.Context, h clusters.Hub, defaults clusters.Policy, each func(hub.Set) error) error {
	s := &session{limit: cmp.Or(o.Timeout, time.Minute), following: true}
	s.at("loading the kubeconfig")
	if err := o.connect(hubCluster(h), s); err != nil {
		return s.fault(ctx, err)
	}
	defer s.close()
	s.pageSize = min(s.pageSize, secretPageSize)
	ctx, stop := context.WithCancel(ctx)
	f := &follower{
		session: s, blanks: &blanks{}, rang: make(chan struct{}, 1), identity: "not asked for",
		quiet: cmp.Or(o.Quiet, 500*time.Millisecond), beat: cmp.Or(o.Beat, 15*time.Second), patience: cmp.Or(o.Patience, 30*time.Second),
	}
	defer f.running.Wait()
	defer stop()
	if err := f.greet(ctx); err != nil {
		return err
	}
	return f.runSecrets(ctx, f.followSecrets(ctx, h, defaults), each)
}

// followSecrets keeps up with each list by a feed of its own.
func (f *follower) followSecrets(ctx context.Context, h clusters.Hub, defaults clusters.Policy) []*feedOf[hub.Registration] {
	var feeds []*feedOf[hub.Registration]
	for _, l := range lists(h) {
		feed := &feedOf[hub.Registration]{}
		feeds = append(feeds, feed)
		f.others = append(f.others, &feed.health)
		f.running.Go(func() {
			keepUp[*corev1.SecretList](ctx, f, feed, recipe[*corev1.Secret, hub.Registration]{
				access: l.access, query: l.query, same: func(a, b hub.Registration) bool { return reflect.DeepEqual(a, b) },
				trim: func(s *corev1.Secret) (hub.Registration, bool, error) {
					r, keep := hub.Read(h, defaults, l.kind, s)
					return r, keep, nil
				},
			})
		})
	}
	return feeds
}

// runSecrets tells of the Secrets when they changed and all lists are current.
func (f *follower) runSecrets(ctx context.Context, feeds []*feedOf[hub.Registration], each func(hub.Set) error) error {
	var called time.Time
	for changed := true; ; {
		if err := f.next(ctx, called, &changed); err != nil {
			return err
		}
		if err := f.fault(ctx); err != nil {
			return err
		}
		if due := time.Since(called) >= f.beat; !changed && !due || !f.current(ctx, changed) {
			continue
		}
		set := hub.Set{Addresses: f.session.addresses()}
		for _, feed := range feeds {
			set.Registrations = append(set.Registrations, feed.all()...)
		}
		hub.Sort(set.Registrations)
		changed, called = false, time.Now()
		if err := each(set); err != nil {
			return err
		}
	}
}
