package drift

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

func (w *walker) list(at []step, kind listKind, want, have reflect.Value) {
	switch {
	case want.Len() == 0 && have.Len() == 0:
	case len(kind.keys) > 0:
		w.keyed(at, kind, want, have)
	case kind.set:
		w.members(at, want, have)
	default:
		w.whole(at, kind, want, have)
	}
}

// item is an item of a keyed list. One key may come several times, as it may
// in env: the first is then compared with the first, and so on.
type item struct {
	key   string
	step  step
	value reflect.Value
}

func items(list reflect.Value, keys []string) []item {
	out := make([]item, 0, list.Len())
	seen := map[string]int{}
	for i := range list.Len() {
		path, owner := keyOf(list.Index(i), keys)
		it := item{key: path, step: step{item: path, owner: owner, want: -1, have: -1}, value: list.Index(i)}
		if n := seen[path]; n > 0 {
			it.key = fmt.Sprintf("%s#%d", path, n)
		}
		seen[path]++
		out = append(out, it)
	}
	return out
}

func (w *walker) keyed(at []step, kind listKind, want, have reflect.Value) {
	wanted, live := items(want, kind.keys), items(have, kind.keys)
	place := make(map[string]int, len(live))
	for i, it := range live {
		place[it.key] = i
	}
	known := map[string]bool{}
	var order []int
	for i, it := range wanted {
		j, there := place[it.key]
		known[it.key] = true
		it.step.want, it.step.have = i, -1
		if !there {
			w.report(Missing, append(slices.Clip(at), it.step), it.value, reflect.Value{})
			continue
		}
		it.step.have = j
		order = append(order, j)
		w.value(append(slices.Clip(at), it.step), it.value, live[j].value)
	}
	for j, it := range live {
		if it.step.have = j; !known[it.key] {
			w.addedItem(append(slices.Clip(at), it.step), it.value)
		}
	}
	if !slices.IsSorted(order) {
		w.reordered(at, kind, want, have, keysText(wanted), keysText(live))
	}
}

func keysText(all []item) string {
	var words []string
	for _, it := range all {
		words = append(words, it.key)
	}
	return strings.Join(words, " ")
}

// reordered tells that a list is in another order.
func (w *walker) reordered(at []step, kind listKind, want, have reflect.Value, wanted, live string) {
	f := w.difference(Order, at, want, have)
	f.Desired, f.Live = wanted, live
	f.owned(w.owners.last(at))
	if kind.sequence {
		w.drift = append(w.drift, f)
		return
	}
	w.foreign = append(w.foreign, f)
}

// members compares a set of scalars.
func (w *walker) members(at []step, want, have reflect.Value) {
	for j := range have.Len() {
		if !holds(want, have.Index(j)) {
			w.addedItem(append(slices.Clip(at), member(have.Index(j), -1, j)), have.Index(j))
		}
	}
	for i := range want.Len() {
		if !holds(have, want.Index(i)) {
			w.report(Missing, append(slices.Clip(at), member(want.Index(i), i, -1)), want.Index(i), reflect.Value{})
		}
	}
}

// member is the step to a member of a set.
func member(v reflect.Value, want, have int) step {
	owner, err := json.Marshal(v.Interface())
	s := step{item: fmt.Sprintf("[%v]", v), want: want, have: have}
	if err == nil {
		s.owner = "v:" + string(owner)
	}
	return s
}

func holds(list, v reflect.Value) bool {
	for i := range list.Len() {
		if equal(list.Index(i), v) {
			return true
		}
	}
	return false
}

// whole compares a list that the API replaces as one. Items are paired in any
// order; what then has no partner differs.
func (w *walker) whole(at []step, kind listKind, want, have reflect.Value) {
	if want.Len() == 0 {
		w.addedList(at, have)
		return
	}
	if have.Len() == 0 {
		w.report(Missing, at, want, reflect.Value{})
		return
	}
	exact := kind.exact || w.daemonSet && w.owners.foreign(at) != nil
	same := func(i, j int) bool {
		if exact {
			return exactly(want.Index(i), have.Index(j))
		}
		return w.within(want.Index(i), have.Index(j))
	}
	if want.Len() == have.Len() && pairwise(want.Len(), same) {
		return
	}
	left, right := pair(want.Len(), have.Len(), same)
	switch {
	case len(left)+len(right) == 0:
		w.reordered(at, kind, want, have, text(want, hides(at)), text(have, hides(at)))
	case isScalar(want.Type().Elem()):
		w.report(Changed, at, want, have)
	default:
		w.unpaired(at, want, have, left, right)
	}
}

func isScalar(t reflect.Type) bool {
	return isLeaf(t) || t.Kind() != reflect.Struct && t.Kind() != reflect.Pointer
}

func pairwise(n int, same func(i, j int) bool) bool {
	for i := range n {
		if !same(i, i) {
			return false
		}
	}
	return true
}

// pair leaves the items of both lists that have no partner in the other.
func pair(n, m int, same func(i, j int) bool) (left, right []int) {
	taken := make([]bool, m)
	for i := range n {
		found := false
		for j := 0; j < m && !found; j++ {
			if !taken[j] && same(i, j) {
				taken[j], found = true, true
			}
		}
		if !found {
			left = append(left, i)
		}
	}
	for j, t := range taken {
		if !t {
			right = append(right, j)
		}
	}
	return left, right
}

// unpaired reports items without a partner one by one.
func (w *walker) unpaired(at []step, want, have reflect.Value, left, right []int) {
	for _, i := range left {
		s := step{item: fmt.Sprintf("[%d]", i), want: i, have: -1}
		w.report(Missing, append(slices.Clip(at), s), want.Index(i), reflect.Value{})
	}
	for _, j := range right {
		s := step{item: fmt.Sprintf("[%d]", j), want: -1, have: j}
		w.report(Added, append(slices.Clip(at), s), reflect.Value{}, have.Index(j))
	}
}

// exactly compares two items with nothing left out.
func exactly(a, b reflect.Value) bool {
	probe := walker{}
	probe.value(nil, a, b)
	if len(probe.drift) > 0 {
		return false
	}
	probe.value(nil, b, a)
	return len(probe.drift) == 0
}

// within tells whether an item of Git's is part of a live one.
func (w *walker) within(want, have reflect.Value) bool {
	if isScalar(want.Type()) {
		return equal(want, have)
	}
	probe := walker{}
	probe.value(nil, want, have)
	return len(probe.drift) == 0
}
