package plan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/quick"
	"time"

	"github.com/google/go-cmp/cmp"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/plan"
)

// anything makes waves and clusters in any state, most of them likely ones.
func anything(seed uint64) (*clusters.Rollout, []plan.Progress) {
	r := rand.New(rand.NewPCG(seed, 1))
	one := func(of ...string) string { return of[r.IntN(len(of))] }
	out := &clusters.Rollout{}
	for i := range 1 + r.IntN(3) {
		w := clusters.Wave{Name: fmt.Sprintf("w%d", i), Size: one("1", "2", "50%", "100%"), Soak: time.Duration(r.IntN(3)) * 20 * time.Minute, Gate: clusters.Gate{Covered: one("100%", "90%"), UpToDate: one("100%", "50%")}}
		for c := range 12 {
			if r.IntN(3) == 0 {
				w.Clusters.Names = append(w.Clusters.Names, fmt.Sprintf("c%02d", c))
			}
		}
		out.Waves = append(out.Waves, w)
	}
	if r.IntN(2) == 0 {
		out.Waves[len(out.Waves)-1].Clusters.Names = nil
	}
	if r.IntN(8) == 0 {
		out.Resume = commit("b")
	}
	var all []plan.Progress
	for c := range 1 + r.IntN(12) {
		p := plan.Progress{
			Cluster: fmt.Sprintf("c%02d", c), Observed: r.IntN(12) > 0, Changes: r.IntN(5) > 0,
			Commit: commit(one("a", "b", "b")), AppliedAt: noon.Add(-time.Duration(r.IntN(90)) * time.Minute), Nodes: r.IntN(11),
		}
		if r.IntN(5) == 0 {
			p.Pending = commit(one("b", "c"))
		}
		p.Covered, p.UpToDate = p.Nodes, p.Nodes
		if r.IntN(4) == 0 && p.Nodes > 0 {
			p.Covered, p.UpToDate = r.IntN(p.Nodes+1), r.IntN(p.Nodes+1)
		}
		if r.IntN(5) > 0 {
			p.MetSince = noon.Add(-time.Duration(r.IntN(90)) * time.Minute)
		}
		if r.IntN(15) == 0 {
			p.Regressed, p.Resumed = "n1", r.IntN(3) == 0
		}
		all = append(all, p)
	}
	return out, all
}

// plain is what is said of a cluster in the contract, written down once more.
type plain struct {
	plan.Progress
	wave                          int // -1: none
	carries, came, done, underWay bool
}

func plainly(r *clusters.Rollout, all []plan.Progress) []plain {
	var out []plain
	b := commit("b")
	for _, p := range all {
		x := plain{Progress: p, wave: -1}
		for i := len(r.Waves) - 1; i >= 0; i-- {
			if n := r.Waves[i].Clusters.Names; len(n) == 0 || slices.Contains(n, p.Cluster) {
				x.wave = i
			}
		}
		whole := p.Commit == b && p.Pending != commit("c")
		x.came = p.Pending == b || p.Commit == b && p.Pending == ""
		x.carries = p.Observed && (whole || !p.Changes)
		if x.wave >= 0 && x.carries {
			w := r.Waves[x.wave]
			percent := func(n int, text string) bool {
				return n*100 >= p.Nodes*map[string]int{"100%": 100, "90%": 90, "50%": 50}[text]
			}
			met := percent(p.Covered, w.Gate.Covered) && percent(p.UpToDate, w.Gate.UpToDate)
			soaked := w.Soak == 0
			if p.Nodes == 0 {
				soaked = soaked || p.Commit != b || noon.Sub(p.AppliedAt) >= w.Soak
			} else if !p.MetSince.IsZero() {
				soaked = soaked || noon.Sub(p.MetSince) >= w.Soak && (p.Commit != b || noon.Sub(p.AppliedAt) >= w.Soak)
			}
			x.done = met && soaked
		}
		x.underWay = !p.Observed || x.carries && !x.done || x.came && !x.carries
		out = append(out, x)
	}
	return out
}

// violated says which rule the holds break, empty for none.
func violated(r *clusters.Rollout, all []plan.Progress, holds map[string][]plan.Hold) string {
	xs := plainly(r, all)
	for i, w := range r.Waves {
		members, underWay, starting := 0, 0, 0
		for _, x := range xs {
			if x.wave != i {
				continue
			}
			members++
			free := len(holds[x.Cluster]) == 0
			if x.underWay {
				underWay++
			}
			if x.carries {
				if !free {
					return x.Cluster + " carries the commit and is held"
				}
				continue
			}
			if free && !x.Observed {
				return x.Cluster + " is not observed and free"
			}
			if free && !x.came {
				starting++
			}
			for _, y := range xs {
				if free && y.wave >= 0 && y.wave < i && !y.done {
					return fmt.Sprintf("%s of wave %d is free, and %s of wave %d is not done", x.Cluster, i, y.Cluster, y.wave)
				}
				if free && y.wave >= 0 && y.wave <= i && y.Observed && y.came && y.Regressed != "" && !y.Resumed && r.Resume != commit("b") {
					return fmt.Sprintf("%s of wave %d is free, and %s of wave %d lost coverage", x.Cluster, i, y.Cluster, y.wave)
				}
			}
		}
		size := map[string]int{"1": 1, "2": 2, "50%": max(1, members/2), "100%": max(1, members)}[w.Size]
		if starting > max(0, size-underWay) {
			return fmt.Sprintf("wave %d: %d start beside %d under way, its size is %d", i, starting, underWay, size)
		}
	}
	for _, x := range xs {
		if x.wave < 0 && x.carries != (len(holds[x.Cluster]) == 0) {
			return x.Cluster + " is in no wave"
		}
	}
	return ""
}

// Whatever the clusters are like, no rule is broken, and their order says
// nothing.
func TestWavesQuick(t *testing.T) {
	free := 0
	property := func(seed uint64) bool {
		r, all := anything(seed)
		holds := plan.Waves(r, commit("b"), all, noon)
		if broken := violated(r, all, holds); broken != "" {
			t.Errorf("seed %d: %s\n%+v\n%+v\n%+v", seed, broken, r, all, holds)
			return false
		}
		for _, p := range plainly(r, all) {
			if !p.carries && len(holds[p.Cluster]) == 0 {
				free++
			}
		}
		rand.New(rand.NewPCG(seed, 2)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		if diff := cmp.Diff(holds, plan.Waves(r, commit("b"), all, noon)); diff != "" {
			t.Errorf("seed %d: in another order: -want +got:\n%s", seed, diff)
			return false
		}
		return true
	}
	if err := quick.Check(property, &quick.Config{MaxCount: 20_000}); err != nil {
		t.Error(err)
	}
	if free < 1000 {
		t.Errorf("only %d clusters were free: this shows little", free)
	}
}

// A rollout whose clusters do come to it ends, wave after wave: no state of theirs
// holds everything for ever.
func TestWavesComeToAnEnd(t *testing.T) {
	for seed := range uint64(300) {
		r, all := anything(seed)
		r.Waves[len(r.Waves)-1].Clusters = clusters.Selection{}
		for i := range r.Waves[:len(r.Waves)-1] { // only those that are registered
			r.Waves[i].Clusters.Names = slices.DeleteFunc(r.Waves[i].Clusters.Names, func(n string) bool {
				return !slices.ContainsFunc(all, func(p plan.Progress) bool { return p.Cluster == n })
			})
		}
		for i := range all {
			all[i].Observed, all[i].Regressed, all[i].Changes = true, "", true
			all[i].Commit, all[i].Pending, all[i].MetSince = commit("a"), "", time.Time{}
		}
		now, random := noon, rand.New(rand.NewPCG(seed, 3))
		for minute := 0; !rolled(all); minute++ {
			if minute > 24*60 {
				t.Fatalf("seed %d: after a day the rollout is not over: %+v", seed, plan.Waves(r, commit("b"), all, now))
			}
			holds := plan.Waves(r, commit("b"), all, now)
			for i := range all {
				p := &all[i]
				switch {
				case p.Commit != commit("b") && p.Pending == "" && len(holds[p.Cluster]) == 0:
					p.Pending, p.Covered, p.UpToDate = commit("b"), p.Nodes, 0
				case p.Pending == commit("b") && len(holds[p.Cluster]) == 0:
					p.Commit, p.Pending, p.AppliedAt = commit("b"), "", now
				case p.Commit == commit("b") && p.MetSince.IsZero() && random.IntN(3) == 0:
					p.UpToDate, p.Covered, p.MetSince = p.Nodes, p.Nodes, now
				}
			}
			now = now.Add(time.Minute)
		}
	}
}

func rolled(all []plan.Progress) bool {
	return !slices.ContainsFunc(all, func(p plan.Progress) bool { return p.Commit != commit("b") })
}
