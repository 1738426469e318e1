package kube

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/clusters/rbac"
)

// writerKey of an inventory's head tells one writing from another of the same
// content.
const writerKey = "writer"

// errAnother is that somebody else has written the inventory meanwhile.
var errAnother = errors.New("another apply of this fleet runs in the cluster, or ran since it was observed: observe it again")

func inventoryMap(name string) access {
	return access{verb: "get", resource: "configmaps", namespace: rbac.Namespace, name: name}
}

// inventory reads what was applied for a fleet: nil if nothing was, or if it
// cannot be read, which is then a blank.
func (s *session) inventory(ctx context.Context, fleet string, b *blanks) (*clusters.Inventory, error) {
	if fleet == "" {
		return nil, nil
	}
	for attempt := 1; ; attempt++ {
		head, err := get[*corev1.ConfigMap](ctx, s, inventoryMap(clusters.InventoryName(fleet)))
		switch {
		case apierrors.IsNotFound(err):
			return nil, nil
		case apierrors.IsForbidden(err):
			b.note("inventory", "forbidden: "+err.Error())
			return nil, nil
		case err != nil:
			return nil, err
		}
		packed, err := s.shards(ctx, fleet, head)
		if err != nil {
			return nil, err
		}
		i, err := clusters.Unpack(fleet, packed)
		if err == nil {
			i.Version = head.ResourceVersion
			return &i, nil
		}
		// Its shards go when another head takes its place: then that one counts.
		if attempt < attempts {
			if now, err := get[*corev1.ConfigMap](ctx, s, inventoryMap(head.Name)); err == nil && now.ResourceVersion != head.ResourceVersion {
				continue
			}
		}
		b.note("inventory", err.Error())
		return nil, nil
	}
}

// shards reads those that a head counts on, up to the first that is not there.
func (s *session) shards(ctx context.Context, fleet string, head *corev1.ConfigMap) (clusters.Packed, error) {
	p := clusters.Packed{Head: head.Data}
	names, err := clusters.ShardsOf(fleet, head.Data)
	if err != nil {
		return p, nil // which Unpack will say
	}
	for _, name := range names {
		shard, err := get[*corev1.ConfigMap](ctx, s, inventoryMap(name))
		if apierrors.IsNotFound(err) {
			return p, nil
		}
		if err != nil {
			return p, err
		}
		p.Shards = append(p.Shards, shard.Data)
	}
	return p, nil
}

// ledger writes a fleet's inventory, and knows what it wrote last.
type ledger struct {
	*session
	fleet   string
	writer  string
	version string            // resourceVersion of the head, empty while there is none
	head    map[string]string // its data
}

// open finds the inventory as it was when the cluster was observed, or says
// that it has changed since.
func (s *session) open(ctx context.Context, i clusters.Inventory) (*ledger, error) {
	l := &ledger{session: s, fleet: i.Fleet, writer: rand.Text()}
	head, err := get[*corev1.ConfigMap](ctx, s, inventoryMap(clusters.InventoryName(i.Fleet)))
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	if err == nil {
		l.version, l.head = head.ResourceVersion, head.Data
	}
	if l.version == i.Version {
		return l, nil
	}
	broken := &blanks{}
	if _, err := s.inventory(ctx, i.Fleet, broken); err != nil {
		return nil, err
	}
	err = errAnother
	if reasons := broken.list(); len(reasons) > 0 {
		err = errors.New(reasons[0].Reason)
	}
	return nil, &stepError{stage: "reading the inventory", err: &answerError{err}}
}

// settled tells whether the inventory that is there has all that a batch may
// apply and stays as it is if the cluster has it already, or that it applies
// nothing. Nothing need be recorded then before something has changed.
func (l *ledger) settled(b clusters.Batch) bool {
	changes, results := slices.Concat(b.Stages...), slices.Clone(b.Held)
	if len(changes) == 0 {
		return true
	}
	for _, c := range changes {
		if c.Do != clusters.Apply {
			return false
		}
		results = append(results, clusters.Result{Object: c.Object, Operation: clusters.OpUnchanged})
	}
	p, err := b.Inventory.After(results, time.Time{}).Pack(l.version)
	return err == nil && p.Same(l.head)
}

// write has an inventory take the place of the one that is there: first its
// shards, then the head, by which they count, and then the old shards go.
func (l *ledger) write(ctx context.Context, i clusters.Inventory) error {
	p, err := i.Pack(l.version)
	if err != nil {
		return err
	}
	if p.Same(l.head) {
		return nil
	}
	names, err := clusters.ShardsOf(l.fleet, p.Head)
	if err != nil {
		return err
	}
	for at, name := range names {
		if _, err := l.put(ctx, name, "", p.Shards[at]); err != nil {
			return err
		}
	}
	old := l.head
	p.Head[writerKey] = l.writer
	version, err := l.put(ctx, clusters.InventoryName(l.fleet), l.version, p.Head)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		version, err = l.mine(ctx, p.Head)
	}
	if err != nil {
		return err
	}
	l.version, l.head = version, p.Head
	l.sweep(ctx, old, names)
	return nil
}

// mine tells whether the head is what we wanted to write: an answer that was
// lost on its way makes a second attempt find the first.
func (l *ledger) mine(ctx context.Context, head map[string]string) (version string, err error) {
	now, err := get[*corev1.ConfigMap](ctx, l.session, inventoryMap(clusters.InventoryName(l.fleet)))
	if err != nil && !apierrors.IsNotFound(err) {
		return "", err
	}
	if err != nil || !maps.Equal(now.Data, head) {
		return "", &stepError{stage: "writing the inventory", err: &answerError{errAnother}}
	}
	return now.ResourceVersion, nil
}

// put writes one ConfigMap: a head only where version is the one that is there,
// a shard whatever is there, for its name tells its content.
func (l *ledger) put(ctx context.Context, name, version string, data map[string]string) (string, error) {
	head := name == clusters.InventoryName(l.fleet)
	cm := corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, Data: data}
	cm.Name, cm.Namespace, cm.ResourceVersion = name, rbac.Namespace, version
	cm.Labels = map[string]string{clusters.FleetLabel: clusters.FleetLabelValue(l.fleet), "app.kubernetes.io/managed-by": "rollcall"}
	if version != "" {
		return l.putMap(ctx, http.MethodPut, &cm)
	}
	written, err := l.putMap(ctx, http.MethodPost, &cm)
	if namespaceIsMissing(err) {
		if err := l.createNamespace(ctx); err != nil {
			return "", err
		}
		written, err = l.putMap(ctx, http.MethodPost, &cm)
	}
	if !head && apierrors.IsAlreadyExists(err) {
		return l.putMap(ctx, http.MethodPut, &cm)
	}
	return written, err
}

func (l *ledger) putMap(ctx context.Context, method string, cm *corev1.ConfigMap) (version string, err error) {
	body, err := json.Marshal(cm)
	if err != nil {
		return "", fmt.Errorf("packing ConfigMap %q: %w", cm.Name, err)
	}
	a := inventoryMap(cm.Name)
	a.verb = map[string]string{http.MethodPut: "update", http.MethodPost: "create"}[method]
	path := "/api/v1/namespaces/" + rbac.Namespace + "/configmaps"
	if method == http.MethodPut {
		path += "/" + cm.Name
	}
	m, _, err := l.metadata(ctx, request{
		access: a, stage: fmt.Sprintf("writing the inventory to ConfigMap %q", cm.Name), method: method, path: path,
		send: runtime.ContentTypeJSON, body: body, params: map[string]string{"fieldManager": fieldManager},
	})
	if err != nil {
		return "", err
	}
	return m.ResourceVersion, nil
}

func namespaceIsMissing(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	d := status.Status().Details
	return d != nil && d.Kind == "namespaces"
}

func (l *ledger) createNamespace(ctx context.Context) error {
	body := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q,"labels":{"app.kubernetes.io/managed-by":"rollcall"}}}`, rbac.Namespace)
	q := request{
		access: access{verb: "create", resource: "namespaces"}, stage: fmt.Sprintf("creating namespace %q for the inventory", rbac.Namespace), method: http.MethodPost, path: "/api/v1/namespaces",
		send: runtime.ContentTypeJSON, body: body, params: map[string]string{"fieldManager": fieldManager},
	}
	_, _, err := l.metadata(ctx, q)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if apierrors.IsForbidden(err) {
		return &stepError{stage: q.stage, err: fmt.Errorf("it is not there and may not be created, so an administrator must (kubectl create namespace %s): %w", rbac.Namespace, err)}
	}
	return err
}

// leftoverAfter is the age of a shard that no head counts on and that nobody is
// about to write a head for.
const leftoverAfter = time.Hour

// sweep deletes the shards of the head before, and those that a writer left who
// did not come to write its head. What cannot be deleted does no harm, and is
// tried again the next time.
func (l *ledger) sweep(ctx context.Context, old map[string]string, keep []string) {
	gone, err := clusters.ShardsOf(l.fleet, old)
	if len(gone) == 0 && len(keep) == 0 && err == nil {
		return
	}
	gone = append(gone, l.leftovers(ctx)...)
	slices.Sort(gone)
	for _, name := range slices.Compact(gone) {
		if slices.Contains(keep, name) {
			continue
		}
		a := inventoryMap(name)
		a.verb = "delete"
		_, _ = l.send(ctx, request{access: a, stage: fmt.Sprintf("deleting ConfigMap %q of an older inventory", name), method: http.MethodDelete, path: "/api/v1/namespaces/" + rbac.Namespace + "/configmaps/" + name})
	}
}

func (l *ledger) leftovers(ctx context.Context) (names []string) {
	q := request{
		access: access{verb: "list", resource: "configmaps", namespace: rbac.Namespace}, stage: "listing the shards of inventories", method: http.MethodGet,
		path:   "/api/v1/namespaces/" + rbac.Namespace + "/configmaps",
		accept: "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
		params: map[string]string{"labelSelector": clusters.FleetLabel + "=" + clusters.FleetLabelValue(l.fleet) + ",app.kubernetes.io/managed-by=rollcall"},
	}
	a, err := l.send(ctx, q)
	var list metav1.PartialObjectMetadataList
	if err != nil || decodeAs(q, a, "PartialObjectMetadataList", &list) != nil {
		return nil
	}
	for _, m := range list.Items {
		if m.Name != clusters.InventoryName(l.fleet) && isShard(l.fleet, m.Name) && time.Since(m.CreationTimestamp.Time) > leftoverAfter {
			names = append(names, m.Name)
		}
	}
	return names
}

// isShard tells a shard from what else carries the fleet's label: what is
// applied to the namespace does, too.
func isShard(fleet, name string) bool {
	rest, ok := strings.CutPrefix(name, clusters.InventoryName(fleet)+"-")
	generation, shard, found := strings.Cut(rest, "-")
	return ok && found && len(generation) == 16 && shard != ""
}
