package clusters

import (
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

// NodeSelector is of the labels of the nodes that the agent must cover: without
// one all are.
func (a Agent) NodeSelector() labels.Selector {
	if s := selectorOf(a.nodes, a.Nodes); s != nil {
		return s
	}
	return labels.Everything()
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
