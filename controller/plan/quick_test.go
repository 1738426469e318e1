package plan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/plan"
)

// made is a random world and what was planned in it.
type made struct {
	*world
	in    plan.Input
	plan  plan.Cluster
	batch clusters.Batch
	some  bool
}

// In thousands of random worlds, the same ones each time, all of the rules hold.
func TestQuick(t *testing.T) {
	rules := []struct {
		name string
		hold func(t testing.TB, r *rand.Rand, m *made) error
	}{{"deletes", deletesOnlyOurs}, {"held", nothingHeld}, {"effects", effectsArePlain}, {"order", anyOrder}, {"done", doneThen}}
	seen := map[string]int{}
	for seed := range uint64(worlds) {
		r := rand.New(rand.NewPCG(seed, 5))
		m := &made{world: randomWorld(r)}
		m.in = m.input(t)
		m.plan = planned(m.in)
		m.batch, m.some = plan.BatchOf(m.in, m.plan)
		for _, rule := range rules {
			if err := rule.hold(t, r, m); err != nil {
				t.Fatalf("world %d: %s: %v", seed, rule.name, err)
			}
		}
		for _, c := range slices.Concat(m.batch.Stages...) {
			seen[string(c.Do)]++
		}
		for _, e := range m.plan.Nodes {
			seen[string(e.Effect)]++
		}
	}
	for _, what := range []string{"apply", "delete", "replace", "gains", "loses", "restarts"} {
		if seen[what] < worlds/50 {
			t.Errorf("only %d of %q in all worlds: they show little", seen[what], what)
		}
	}
}

// mayDelete is, in plain words, whether an object is one that may be deleted, but
// for the number of them.
func (w *world) mayDelete(x *thing) bool {
	allowed := slices.Contains(w.fleet.Policy.May, "prune") && w.identity != "" && !w.stale
	readable := x.live != nil && !x.unread && x.ref.Kind != "Secret" || isDaemonSet(x.ref) && x.live != nil
	same := w.inventory && x.item && (x.itemUID == "" || x.itemUID == x.uid || x.ref.Kind == "Secret")
	ours := x.label == "p" && x.manager == clusters.FieldManager && !x.update
	excluded := len(w.fleet.Exclude) > 0 && x.ref.Name == "two"
	moved := w.wasOverlay != "" && w.wasOverlay != w.overlay || w.wasCluster != "" && w.wasCluster != w.cluster
	// Of a Secret the last look decides, which reads its metadata alone.
	trusted := readable && ours && !x.kept || x.ref.Kind == "Secret" && x.itemUID != ""
	return allowed && trusted && same && x.git == nil && !excluded && (!moved || w.approved)
}

func grave(r clusters.Reference) bool {
	return slices.Contains([]string{"DaemonSet", "Namespace", "CustomResourceDefinition"}, r.Kind)
}

// A batch deletes exactly what may be deleted: nothing that Git wants, that is
// not ours or not known, and nothing above a limit without an approval.
func deletesOnlyOurs(_ testing.TB, _ *rand.Rand, w *made) error {
	var want, got []string
	candidates := 0
	for _, x := range w.things {
		if w.mayDelete(x) {
			candidates++
		}
	}
	most := map[string]int{"0": 0, "1": 1, "3": 3, "20": 20}[w.fleet.Policy.MaxDeletes]
	for _, x := range w.things {
		if w.mayDelete(x) && (w.approved || candidates <= most && !grave(x.ref)) {
			uid := x.uid
			if x.ref.Kind == "Secret" {
				uid = x.itemUID
			}
			want = append(want, x.ref.Identity()+" "+uid)
		}
	}
	for _, c := range slices.Concat(w.batch.Stages...) {
		if c.Do == clusters.Delete {
			got = append(got, c.Object.Identity()+" "+c.UID)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := gocmp.Diff(want, got); diff != "" {
		return fmt.Errorf("deletions -may +do:\n%s", diff)
	}
	return nil
}

// Nothing that is held is in a batch, and nothing that the plan does not name.
func nothingHeld(_ testing.TB, _ *rand.Rand, w *made) error {
	c := w.plan
	free := map[string]bool{}
	for i := range c.Actions {
		a := &c.Actions[i]
		free[a.Object.Identity()] = a.Changes() && !a.Held()
		blocked := w.stale || w.identity == "" || a.Operation != plan.Prune && !slices.Contains(w.fleet.Policy.May, "apply")
		if a.Changes() && blocked && !a.Held() {
			return fmt.Errorf("%s %s is not held", a.Operation, a.Object)
		}
	}
	for _, change := range slices.Concat(w.batch.Stages...) {
		if !free[change.Object.Identity()] {
			return fmt.Errorf("%s %s is held and in the batch", change.Do, change.Object)
		}
		delete(free, change.Object.Identity())
		if change.Do != clusters.Delete && change.Desired.GetLabels()[clusters.FleetLabel] != "p" {
			return fmt.Errorf("%s would be applied without the fleet's label", change.Object)
		}
	}
	for id, is := range free {
		if is {
			return fmt.Errorf("%s is free and not in the batch", id)
		}
	}
	return nil
}

// After an apply there is nothing to do, but for what is applied once at each
// commit while something holds that commit.
func doneThen(t testing.TB, _ *rand.Rand, w *made) error {
	if !w.some {
		return nil
	}
	first := w.batch
	w.apply(first)
	in := w.input(t)
	c := planned(in)
	again, some := plan.BatchOf(in, c)
	for _, change := range slices.Concat(again.Stages...) {
		if len(first.Held) == 0 || !looked(change.Object) {
			return fmt.Errorf("once more: %s %s of %+v", change.Do, change.Object, c.Actions)
		}
	}
	if some && len(again.Stages) == 0 {
		return fmt.Errorf("the inventory is to be written once more: %+v", again.Inventory)
	}
	if whole := w.pending == ""; whole != (len(first.Held) == 0) || whole && w.carries != wanted {
		return fmt.Errorf("commit %q, pending %q after %d held", w.carries, w.pending, len(first.Held))
	}
	return nil
}

// A plan does not depend on the order in which a cluster tells what it has.
func anyOrder(_ testing.TB, r *rand.Rand, w *made) error {
	in := w.in
	live := *in.Live
	live.Nodes, live.DaemonSets, live.Objects = shuffled(r, live.Nodes), shuffled(r, live.DaemonSets), shuffled(r, live.Objects)
	if live.Inventory != nil {
		i := *live.Inventory
		i.Items = shuffled(r, i.Items)
		live.Inventory = &i
	}
	in.Live, in.Cluster.Policy.May = &live, shuffled(r, in.Cluster.Policy.May)
	in.Drift = compared(in)
	other := planned(in)
	otherBatch, _ := plan.BatchOf(in, other)
	if text, otherText := printed(w.plan, w.batch), printed(other, otherBatch); text != otherText {
		return fmt.Errorf("-in order +shuffled:\n%s", gocmp.Diff(text, otherText))
	}
	return nil
}

func shuffled[T any](r *rand.Rand, all []T) []T {
	out := slices.Clone(all)
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

func printed(c plan.Cluster, b clusters.Batch) string {
	var out strings.Builder
	printActions(&out, &c)
	fmt.Fprintf(&out, "%+v", b.Inventory)
	for _, stage := range b.Stages {
		for _, change := range stage {
			fmt.Fprintf(&out, "%s %s %s %v %v\n", change.Do, change.Object, change.UID, change.Adopt, change.Keep)
		}
		out.WriteString("then\n")
	}
	return out.String()
}

// What becomes of nodes is what the templates before and after say of each, by a
// plain predicate.
func effectsArePlain(_ testing.TB, _ *rand.Rand, w *made) error {
	c := w.plan
	want := map[string]plan.Impact{}
	for _, x := range w.things {
		at := slices.IndexFunc(c.Actions, func(a plan.Action) bool { return a.Object.Identity() == x.ref.Identity() })
		if !isDaemonSet(x.ref) || at < 0 || !c.Actions[at].Changes() || c.Actions[at].Kept() {
			continue
		}
		for i := range w.nodes {
			if impact := x.impact(&w.nodes[i], c.Actions[at].Operation, w.inventory && x.item && x.replaced); impact != "" {
				want[x.ref.Name+" "+w.nodes[i].Name] = impact
			}
		}
	}
	got := map[string]plan.Impact{}
	for _, e := range c.Nodes {
		got[strings.TrimPrefix(e.DaemonSet, "obs/")+" "+e.Node] = e.Effect
		if (e.Effect == plan.Loses) != (len(e.Reasons) > 0) {
			return fmt.Errorf("%s %s %s has reasons %v", e.DaemonSet, e.Effect, e.Node, e.Reasons)
		}
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		return fmt.Errorf("effects -plain +plan:\n%s", diff)
	}
	return nil
}

// impact is what becomes of a node when Git's form takes the place of the live
// one; orphaned: the pods are there though their DaemonSet is not.
func (x *thing) impact(n *clusters.Node, op plan.Operation, orphaned bool) plan.Impact {
	if x.live == nil {
		switch {
		case !x.git.place.runs(n):
			return ""
		case orphaned:
			return plan.Restarts
		}
		return plan.Gains
	}
	before, after := x.live.place.runs(n), false
	if x.git != nil {
		became := *x.git
		if op == plan.Configure {
			became.place = x.becomes()
		}
		if after = became.place.runs(n); before && after && became != *x.live {
			return plan.Restarts
		}
	}
	switch {
	case before && !after:
		return plan.Loses
	case after && !before:
		return plan.Gains
	}
	return ""
}

// becomes is Git's place, with what an apply leaves of the live one: what is not
// of rollcall's own share, nor of one that is taken over.
func (x *thing) becomes() place {
	own := x.manager == clusters.FieldManager && !x.update || x.manager == "helm" && x.adopt
	out := x.git.place
	if own {
		return out
	}
	out.pool = out.pool || x.live.place.pool
	if out.tolerate == "" {
		out.tolerate = x.live.place.tolerate
	}
	return out
}
