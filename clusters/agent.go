package clusters

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// Has tells whether a DaemonSet belongs to the agent: by its name, or by its
// labels.
func (a Agent) Has(namespace, name string, set map[string]string) bool {
	is := func(full string) bool { ns, ds, _ := strings.Cut(full, "/"); return ns == namespace && ds == name }
	if slices.ContainsFunc(a.Names, is) {
		return true
	}
	s := selectorOf(a.daemonSets, a.Match)
	return s != nil && s.Matches(labels.Set(set))
}

// Selects tells whether a node is one that the agent must cover, and whether it
// is named by a selector of nodes: without one all are selected and none is
// named.
func (a Agent) Selects(n *Node) (selected, named bool) {
	s := selectorOf(a.nodes, a.Nodes)
	if s == nil || s.Empty() {
		return true, false
	}
	named = s.Matches(labels.Set(n.Labels))
	return named, named
}

// Reached tells whether enough of the nodes are covered: at least a part of
// those that are intended, or a number whatever is intended.
func (a Agent) Reached(covered, intended int) bool {
	least, percent, ok := parseMin(a.Min)
	if !ok { // of one that was not parsed
		least, percent = 100*millionths, true
	}
	if percent {
		return int64(covered)*100*millionths >= least*int64(intended)
	}
	return int64(covered) >= least
}

const millionths = 1_000_000

var minimum = regexp.MustCompile(`^(0|[1-9][0-9]{0,8})(?:\.([0-9]{1,6}))?(%?)$`)

// parseMin reads a number of nodes, or a percentage of them in millionths: in
// whole numbers 98% of 50 is 49, and not a little more.
func parseMin(text string) (least int64, percent, ok bool) {
	m := minimum.FindStringSubmatch(text)
	if m == nil {
		return 0, false, false
	}
	if percent = m[3] == "%"; !percent {
		least, err := strconv.ParseInt(m[1], 10, 64)
		return least, false, err == nil && least > 0 && m[2] == ""
	}
	least, err := strconv.ParseInt(m[1]+(m[2] + "000000")[:6], 10, 64)
	return least, true, err == nil && least > 0 && least <= 100*millionths
}

// ParseExpect reads the annotation ExpectAnnotation of a DaemonSet: a selector
// of the nodes where it must be, as kubectl takes selectors.
func ParseExpect(text string) (labels.Selector, error) {
	const write = "write the selector of the nodes, such as kubernetes.io/os=linux"
	s, err := labels.Parse(text)
	if err == nil && s.Empty() {
		err = errors.New("it is empty")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, write)
	}
	return s, nil
}
