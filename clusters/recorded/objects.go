package recorded

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"rollcall.dev/rollcall/clusters"
)

// other takes an object that is no resource of coverage's, if it is wanted.
func (c *collector) other(t typeOf, data []byte) error {
	kind := clusters.Reference{APIVersion: t.APIVersion, Kind: t.Kind}
	if !c.wantedKinds[kind.Group()+"/"+kind.Kind] {
		return nil
	}
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(data, &u.Object); err != nil {
		return fmt.Errorf("decoding %s %s: %w", t.Kind, nameOf(data), err)
	}
	u.SetAPIVersion(t.APIVersion)
	u.SetKind(t.Kind)
	if id := clusters.ReferenceOf(u).Identity(); c.wanted[id] {
		c.others.put(id, *u)
	}
	return nil
}

// wantObjects notes which objects beside the DaemonSets are looked for. One with
// a namespace may be the whole cluster's.
func (c *collector) wantObjects() {
	c.wanted, c.wantedKinds = map[string]bool{}, map[string]bool{}
	for _, r := range c.want.Objects {
		c.wanted[r.Identity()], c.wanted[r.OfCluster().Identity()], c.wantedKinds[r.Group()+"/"+r.Kind] = true, true, true
	}
}

// objects are those that are wanted, and why the others are not known: a dump
// need not hold all of a kind.
func (c *collector) objects() ([]unstructured.Unstructured, map[string]string) {
	unread := map[string]string{}
	for _, r := range c.want.Objects {
		_, found := c.others.index[r.Identity()]
		if _, foundWhole := c.others.index[r.OfCluster().Identity()]; !found && !foundWhole {
			unread[r.Identity()] = "not in the dump"
		}
	}
	return c.others.list, unread
}
