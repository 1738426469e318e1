package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"rollcall.dev/rollcall/controller/coverage"
)

// change is one DaemonSet of which an action would change the nodes.
type change struct {
	key           string
	before, after *appsv1.DaemonSet
	restarts      bool
	pruned        bool
	orphaned      bool // its pods are there, and it is not
}

// effects says what becomes of nodes, and how long that takes. What only a
// prune's own annotation keeps has none.
func (m *maker) effects(actions []Action) ([]Effect, []Rollout) {
	var changes []change
	var pairs []coverage.Pair
	for i := range actions {
		a := &actions[i]
		if !isDaemonSet(a.Object) || !a.Changes() || a.Kept() {
			continue
		}
		c := change{key: a.Object.Namespace + "/" + a.Object.Name, restarts: a.restarts, pruned: a.Operation == Prune}
		from := m.Live.DaemonSets
		if m.From != nil {
			from = m.From.DaemonSets
		}
		c.before = find(from, a.Object)
		if !c.pruned {
			c.after = a.outcome(find(m.To.DaemonSets, a.Object), c.before)
		}
		if a.Operation == Replace && c.before == nil {
			c.before, c.restarts, c.orphaned = c.after, true, true
		}
		if c.before == nil && c.after == nil {
			continue
		}
		changes, pairs = append(changes, c), append(pairs, coverage.Pair{Before: c.before, After: c.after})
	}
	effects, rollouts := []Effect{}, []Rollout(nil)
	m.loads = NewLoads(m.Live.Claims)
	for i, placings := range coverage.Place(m.Live, pairs, m.Options) {
		found, after := m.effectsOf(&changes[i], placings)
		effects = append(effects, found...)
		if r, ok := rolloutOf(&changes[i], found, after); ok {
			rollouts = append(rollouts, r)
		}
	}
	for i := range changes {
		m.forecast(&changes[i], effects)
	}
	slices.SortFunc(effects, func(a, b Effect) int {
		return cmp.Or(strings.Compare(a.DaemonSet, b.DaemonSet), strings.Compare(a.Node, b.Node))
	})
	return effects, rollouts
}

// effectsOf are those of one DaemonSet; after is on how many nodes it is
// intended then.
func (m *maker) effectsOf(c *change, placings []coverage.Placing) (out []Effect, after int) {
	for _, p := range placings {
		if p.After {
			after++
		}
		e := Effect{DaemonSet: c.key, Node: p.Node, Reasons: []Reason{}}
		switch {
		case p.Before && !p.After:
			e.Effect = Loses
			e.Reasons = append(e.Reasons, lostBy(c, p))
		case p.After && !p.Before:
			e.Effect = Gains
		case c.restarts:
			e.Effect = Restarts
		default:
			continue
		}
		out = append(out, e)
	}
	return out, after
}

func lostBy(c *change, p coverage.Placing) Reason {
	if c.pruned {
		return Reason{"DaemonSetPruned", "the DaemonSet is no longer in Git"}
	}
	return Reason{string(p.Refusal.Code), p.Refusal.Message}
}

// rolloutOf says in how many steps nodes get the new template.
func rolloutOf(c *change, effects []Effect, wanted int) (Rollout, bool) {
	restarted := 0
	for _, e := range effects {
		if e.Effect == Restarts {
			restarted++
		}
	}
	if c.after == nil || !c.restarts || restarted == 0 {
		return Rollout{}, false
	}
	r := Rollout{DaemonSet: c.key, Strategy: "RollingUpdate", Nodes: restarted}
	if c.after.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
		r.Strategy = "OnDelete"
		r.Message = "updateStrategy is OnDelete: nothing restarts until somebody deletes the pods"
		return r, true
	}
	surge, unavailable := budgets(c.after, wanted)
	how := fmt.Sprintf("maxUnavailable %d", unavailable)
	if r.AtOnce = unavailable; surge > 0 {
		r.AtOnce, how = surge, fmt.Sprintf("maxSurge %d", surge)
	}
	r.AtOnce = max(min(r.AtOnce, restarted), 1)
	r.Steps = (restarted + r.AtOnce - 1) / r.AtOnce
	r.AtLeast = r.Steps * int(c.after.Spec.MinReadySeconds)
	r.Message = fmt.Sprintf("%s in %s of %d (%s), each as long as a pod takes to start", count(restarted, "node"), count(r.Steps, "step"), r.AtOnce, how)
	if ready := c.after.Spec.MinReadySeconds; ready > 0 {
		r.Message += fmt.Sprintf(" and %ds to be ready", ready)
	}
	return r, true
}

// budgets are maxSurge and maxUnavailable as the controller scales them, rounded
// up (pkg/controller/daemon/util/daemonset_util.go).
func budgets(ds *appsv1.DaemonSet, wanted int) (surge, unavailable int) {
	ru := ds.Spec.UpdateStrategy.RollingUpdate
	if ru == nil {
		return 0, 1
	}
	surge, unavailable = scaled(ru.MaxSurge, wanted, 0), scaled(ru.MaxUnavailable, wanted, 1)
	if surge == 0 {
		unavailable = max(unavailable, 1)
	}
	return surge, unavailable
}

func scaled(v *intstr.IntOrString, of, otherwise int) int {
	if v == nil {
		return otherwise
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(v, of, true)
	if err != nil { // the API refuses such values
		return otherwise
	}
	return n
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
