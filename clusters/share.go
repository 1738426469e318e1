package clusters

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Shared keeps one copy of what many pods have in common: those of a DaemonSet
// have the same few sets of labels and one owner, and a cluster has very many
// pods. The zero Shared is empty; it is for one goroutine.
type Shared struct {
	labels map[string]map[string]string
	lists  map[string]corev1.ResourceList
	words  map[string]string
	owners map[Owner]Owner
	keys   []string
	text   []byte
}

// Pod returns the pod with its labels and owner replaced by equal ones that
// earlier pods have. What is shared must not be changed.
func (s *Shared) Pod(p Pod) Pod {
	if s.labels == nil {
		s.labels, s.owners = map[string]map[string]string{}, map[Owner]Owner{}
	}
	owner, ok := s.owners[p.Owner]
	if !ok {
		owner = p.Owner
		s.owners[owner] = owner
	}
	p.Owner = owner
	key := s.key(p.Labels)
	labels, ok := s.labels[string(key)]
	if !ok {
		labels = p.Labels
		s.labels[string(key)] = labels
	}
	p.Labels = labels
	return p
}

// Claim returns the claim with its requests and its words replaced by equal ones
// that earlier claims have: the pods of a workload request alike. What is shared
// must not be changed.
func (s *Shared) Claim(c Claim) Claim {
	if s.lists == nil {
		s.lists, s.words = map[string]corev1.ResourceList{}, map[string]string{}
	}
	for _, word := range []*string{&c.Namespace, &c.Owner, &c.Node} {
		shared, ok := s.words[*word]
		if !ok {
			shared = *word
			s.words[shared] = shared
		}
		*word = shared
	}
	key := s.listKey(c.Requests)
	list, ok := s.lists[string(key)]
	if !ok {
		list = c.Requests
		s.lists[string(key)] = list
	}
	c.Requests = list
	return c
}

// listKey writes a list of resources down, in order of their names.
func (s *Shared) listKey(list corev1.ResourceList) []byte {
	s.keys, s.text = s.keys[:0], s.text[:0]
	for name := range list {
		s.keys = append(s.keys, string(name))
	}
	slices.Sort(s.keys)
	for _, name := range s.keys {
		q := list[corev1.ResourceName(name)]
		s.text = append(append(append(append(s.text, name...), 0), q.String()...), 0)
	}
	return s.text
}

// key writes a set of labels down, in order of the keys. Labels hold no zero
// byte.
func (s *Shared) key(labels map[string]string) []byte {
	s.keys, s.text = s.keys[:0], s.text[:0]
	for k := range labels {
		s.keys = append(s.keys, k)
	}
	slices.Sort(s.keys)
	for _, k := range s.keys {
		s.text = append(append(append(append(s.text, k...), 0), labels[k]...), 0)
	}
	return s.text
}
