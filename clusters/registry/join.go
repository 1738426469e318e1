package registry

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/clusters/hub"
)

// claims are all that say they are the cluster of one name.
type claims struct {
	files   []clusters.Cluster
	broken  []Broken
	secrets []hub.Registration
}

// join makes one list of what files and a hub's Secrets declare. What concerns
// one name is told of that cluster only.
func join(h clusters.Hub, policy clusters.Policy, files []clusters.Cluster, brokenFiles []Broken, set hub.Set) (ok []clusters.Cluster, broken []Broken) {
	byName := map[string]*claims{}
	at := func(name string) *claims {
		if byName[name] == nil {
			byName[name] = &claims{}
		}
		return byName[name]
	}
	for _, cl := range files {
		at(cl.Name).files = append(at(cl.Name).files, cl)
	}
	for _, b := range brokenFiles {
		at(b.Name).broken = append(at(b.Name).broken, b)
	}
	for _, r := range set.Registrations {
		at(r.Name).secrets = append(at(r.Name).secrets, r)
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		c := byName[name]
		cl, err := c.cluster(h, policy, set.Addresses)
		if err != nil {
			broken = append(broken, Broken{Name: name, File: c.origin(), Err: err})
			continue
		}
		ok = append(ok, cl)
	}
	return ok, broken
}

// cluster is what the claims of one name come to. A file and a Secret go
// together where only one of them says how the cluster is reached; else nothing
// tells which is meant.
func (c *claims) cluster(h clusters.Hub, policy clusters.Policy, addresses []string) (clusters.Cluster, error) {
	if len(c.broken) > 0 || len(c.secrets) > 1 {
		return clusters.Cluster{}, c.conflict()
	}
	if len(c.secrets) == 0 {
		return alone(c.files[0])
	}
	r := c.secrets[0]
	if len(c.files) == 0 {
		own := clusters.Cluster{Policy: policy}
		if r.Own != nil {
			own = *r.Own
		}
		return r.Cluster(h, addresses, own)
	}
	file := c.files[0]
	switch reached := file.Kubeconfig != nil || len(file.Recorded) > 0; {
	case r.Own != nil, reached && (r.Taken() || r.Err != nil):
		return clusters.Cluster{}, c.conflict()
	case reached:
		file.Labels = clusters.MergeLabels(r.Labels, file.Labels)
		return file, nil
	}
	return r.Cluster(h, addresses, file)
}

// alone is a cluster that no Secret knows.
func alone(file clusters.Cluster) (clusters.Cluster, error) {
	if file.Kubeconfig == nil && len(file.Recorded) == 0 {
		return file, fmt.Errorf("%s: spec: it names neither kubeconfig nor recorded, and no Secret of the hub registers cluster %q", file.File, file.Name)
	}
	return file, nil
}

// conflict names all that claim the name, and what is wrong with them beside.
func (c *claims) conflict() error {
	var names []string
	var errs []error
	for _, f := range c.files {
		names = append(names, fmt.Sprintf("%q", f.File))
	}
	for _, b := range c.broken {
		names, errs = append(names, fmt.Sprintf("%q", b.File)), append(errs, b.Err)
	}
	for _, r := range c.secrets {
		names, errs = append(names, r.Origin()), append(errs, r.Err)
	}
	if len(names) > 1 {
		errs = append([]error{fmt.Errorf("cluster %q is declared in %s: rename or remove all but one; a file adds to a Secret if only one of them says how the cluster is reached and what its settings are", c.name(), strings.Join(names, " and "))}, errs...)
	}
	return errors.Join(errs...)
}

func (c *claims) name() string {
	switch {
	case len(c.files) > 0:
		return c.files[0].Name
	case len(c.broken) > 0:
		return c.broken[0].Name
	}
	return c.secrets[0].Name
}

// origin is where a cluster is declared, the file first.
func (c *claims) origin() string {
	switch {
	case len(c.files) > 0:
		return c.files[0].File
	case len(c.broken) > 0:
		return c.broken[0].File
	}
	return c.secrets[0].Origin()
}
