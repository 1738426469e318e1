package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"rollcall.dev/rollcall/clusters"
)

// Hold is why something is not done, and what would let it go on.
type Hold struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// The codes of a Hold.
const (
	WindowClosed   = "WindowClosed"   // no change may begin at this time
	WaveWaits      = "WaveWaits"      // clusters of an earlier wave, or of this one, come first
	WaveSoaks      = "WaveSoaks"      // they have come to it, not yet for long enough
	WaveHalted     = "WaveHalted"     // the commit cost a cluster coverage
	WaveUnmatched  = "WaveUnmatched"  // the cluster is in no wave
	NotObserved    = "NotObserved"    // what the cluster carries is not known
	TooManyDeletes = "TooManyDeletes" // more than maxDeletes in the cluster or the fleet
	NotApproved    = "NotApproved"    // it is deleted only after somebody's word
	NotAllowed     = "NotAllowed"     // the cluster's policy does not have the power
)

// Progress is how far a cluster has come with a commit. All clusters of the fleet
// must be given, those that could not be read too: the waves know of no others.
type Progress struct {
	Cluster   string
	Labels    map[string]string
	Observed  bool
	Commit    string    // that the inventory carries: applied whole
	Pending   string    // that the inventory says is being applied, or was not applied whole
	AppliedAt time.Time // when Commit first was
	// Nodes, Covered and UpToDate are of the revision that is being rolled, never
	// of a status from before it.
	Nodes, Covered, UpToDate int
	MetSince                 time.Time // since when the gate is met, by the times at which pods became ready; zero: not known
	Regressed                string    // why coverage fell since the commit came; empty: it did not
	Resumed                  bool      // somebody has looked at that (an approval that allows it)
	Changes                  bool      // the commit changes something here
}

// carries tells whether there is nothing of the commit to do in the cluster.
func (p *Progress) carries(commit string) bool {
	whole := commit != "" && p.Commit == commit && (p.Pending == "" || p.Pending == commit)
	return p.Observed && (whole || !p.Changes)
}

// came tells whether the commit is in the cluster, in part at least.
func (p *Progress) came(commit string) bool {
	return commit != "" && (p.Pending == commit || p.Commit == commit && p.Pending == "")
}

// since is from when on the soak counts. Where nothing is to run, from when the
// commit came; where it had nothing to change, the pods alone tell.
func (p *Progress) since(commit string) (t time.Time, known bool) {
	if p.Commit == commit {
		t = p.AppliedAt
	}
	if p.Nodes > 0 && t.Before(p.MetSince) {
		t = p.MetSince
	}
	return t, p.Nodes == 0 || !p.MetSince.IsZero()
}

// Waves says which clusters may not take a commit yet, and why. A wave is done
// when all of its clusters carry the commit and have met the gate for the soak
// since; only then does the next begin. Clusters that carry it are not held.
func Waves(r *clusters.Rollout, commit string, all []Progress, now time.Time) map[string][]Hold {
	if r == nil || len(r.Waves) == 0 {
		return nil
	}
	holds := map[string][]Hold{}
	hold := func(cluster, code, message string) {
		holds[cluster] = append(holds[cluster], Hold{code, message})
	}
	waves, homeless := assign(r, commit, all, now)
	for _, name := range homeless {
		hold(name, WaveUnmatched, "no wave of spec.rollout.waves selects the cluster: name it in one, or add a last wave with clusters: {}")
	}
	var halts []string
	var first *wave // that is not done
	for i := range waves {
		w := &waves[i]
		if commit == "" || r.Resume != commit {
			halts = append(halts, w.halts(commit)...)
		}
		goes := w.turn()
		for _, m := range w.members {
			switch {
			case m.at == done || m.at == soaking || m.at == short:
			case m.at == unseen:
				hold(m.Cluster, NotObserved, "the cluster is not observed: whether it carries the commit is not known")
			case len(halts) > 0:
				hold(m.Cluster, WaveHalted, strings.Join(halts, "; ")+"; look at it, then resume with spec.rollout.resume: "+commit+", or roll out another commit")
			case first != nil:
				code, text := first.last(now)
				hold(m.Cluster, code, fmt.Sprintf("wave %s waits %s of %s", w, text, first.short()))
			case m.at == waiting && !slices.Contains(goes, m.Cluster):
				code, text := w.next(goes, now)
				hold(m.Cluster, code, fmt.Sprintf("wave %s takes %d of its %d clusters at once: waits %s", w, w.size, len(w.members), text))
			}
		}
		if first == nil && !w.done() {
			first = w
		}
	}
	return holds
}

// stage is how far a cluster of a wave has come, in the order in which those that
// are waited for are told.
type stage int

const (
	absent  stage = iota // named by the wave and not registered
	unseen               // not observed
	short                // carries the commit, short of the gate
	begun                // the commit is being applied
	soaking              // meets the gate, not yet for long enough
	waiting              // without the commit
	done
)

// member is a cluster of a wave.
type member struct {
	Progress
	at    stage
	text  string    // what it lacks
	until time.Time // of one that soaks; zero: not known
}

// wave is a wave with its clusters, in order of their names.
type wave struct {
	name       string
	number, of int
	size       int
	members    []member
	absent     []member // block the waves after it, and no other
}

func (w *wave) String() string { return fmt.Sprintf("%d of %d (%s)", w.number, w.of, w.name) }

func (w *wave) short() string { return fmt.Sprintf("wave %d (%s)", w.number, w.name) }

// assign puts each cluster into the first wave that selects it.
func assign(r *clusters.Rollout, commit string, all []Progress, now time.Time) (waves []wave, homeless []string) {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b Progress) int { return cmp.Compare(a.Cluster, b.Cluster) })
	for i, w := range r.Waves {
		waves = append(waves, wave{name: w.Name, number: i + 1, of: len(r.Waves), absent: missing(w.Clusters.Names, all)})
	}
	for _, p := range all {
		i := slices.IndexFunc(r.Waves, func(w clusters.Wave) bool { return w.Clusters.Matches(p.Cluster, p.Labels) })
		switch {
		case i >= 0:
			waves[i].members = append(waves[i].members, judge(p, &r.Waves[i], commit, now))
		case !p.carries(commit):
			homeless = append(homeless, p.Cluster)
		}
	}
	for i := range waves {
		waves[i].size = max(1, clusters.Of(r.Waves[i].Size, len(waves[i].members)))
	}
	return waves, homeless
}

// missing are the clusters that a wave names and nobody has registered: a wave
// whose clusters got lost must not count as done.
func missing(names []string, all []Progress) []member {
	var out []member
	for _, name := range slices.Sorted(slices.Values(names)) {
		_, registered := slices.BinarySearchFunc(all, name, func(p Progress, name string) int { return cmp.Compare(p.Cluster, name) })
		if !registered {
			out = append(out, member{Progress: Progress{Cluster: name}, at: absent, text: "not registered"})
		}
	}
	return out
}

// judge says how far a cluster has come.
func judge(p Progress, w *clusters.Wave, commit string, now time.Time) member {
	covered, upToDate := w.Gate.Met(p.Covered, p.UpToDate, p.Nodes)
	switch {
	case !p.Observed:
		return member{Progress: p, at: unseen, text: "not observed"}
	case !p.carries(commit) && p.came(commit):
		return member{Progress: p, at: begun, text: "being applied"}
	case !p.carries(commit):
		return member{Progress: p, at: waiting, text: "without the commit"}
	case !covered:
		return member{Progress: p, at: short, text: fmt.Sprintf("%d/%d covered", p.Covered, p.Nodes)}
	case !upToDate:
		return member{Progress: p, at: short, text: fmt.Sprintf("%d/%d up to date", p.UpToDate, p.Nodes)}
	}
	since, known := p.since(commit)
	until := since.Add(w.Soak)
	switch {
	case w.Soak <= 0 || known && !now.Before(until):
		return member{Progress: p, at: done}
	case !known:
		return member{Progress: p, at: soaking, text: "gate met, not known since when"}
	}
	return member{Progress: p, at: soaking, text: "soaks until " + clock(until, now), until: until}
}

func (w *wave) done() bool {
	return len(w.absent) == 0 && !slices.ContainsFunc(w.members, func(m member) bool { return m.at != done })
}

// halts tells of the clusters that lost coverage since the commit came.
func (w *wave) halts(commit string) []string {
	var lost []string
	for _, m := range w.members {
		if m.Observed && m.came(commit) && m.Regressed != "" && !m.Resumed {
			lost = append(lost, fmt.Sprintf("%s lost coverage: %s", m.Cluster, m.Regressed))
		}
	}
	if len(lost) == 0 {
		return nil
	}
	return []string{w.short() + " is halted: " + few(lost)}
}

// turn is which clusters without the commit go next, by name, as far as those
// under way leave room. One that is not observed may be so because of the commit:
// it is under way.
func (w *wave) turn() []string {
	room := w.size
	var next []string
	for _, m := range w.members {
		switch m.at {
		case waiting:
			next = append(next, m.Cluster)
		case done:
		default:
			room--
		}
	}
	return next[:min(len(next), max(0, room))]
}

// last is what the whole wave waits for.
func (w *wave) last(now time.Time) (code, text string) {
	left := slices.Clone(w.absent)
	for _, m := range w.members {
		if m.at != done {
			left = append(left, m)
		}
	}
	var until time.Time
	for _, m := range left {
		if m.at != soaking || m.until.IsZero() {
			return WaveWaits, "for " + list(left)
		}
		if m.until.After(until) {
			until = m.until
		}
	}
	return WaveSoaks, "until " + clock(until, now) + " for the soak"
}

// next is what the wave's next cluster waits for: those under way, and those that
// go before it.
func (w *wave) next(goes []string, now time.Time) (code, text string) {
	var left []member
	for _, m := range w.members {
		switch {
		case m.at == done || m.at == waiting && !slices.Contains(goes, m.Cluster):
			continue
		case m.at == waiting:
			m.text = "goes first"
		}
		left = append(left, m)
	}
	if slices.ContainsFunc(left, func(m member) bool { return m.at != soaking || m.until.IsZero() }) {
		return WaveWaits, "for " + list(left)
	}
	// There is room when so many are done that fewer than the size are left.
	slices.SortStableFunc(left, func(a, b member) int { return a.until.Compare(b.until) })
	left = left[:len(left)-w.size+1]
	return WaveSoaks, "until " + clock(left[len(left)-1].until, now) + " for the soak of " + names(left)
}

func names(ms []member) string {
	var out []string
	for _, m := range ms {
		out = append(out, m.Cluster)
	}
	slices.Sort(out)
	return few(out)
}

// list names the clusters that are waited for, those that nothing is known of
// first.
func list(ms []member) string {
	slices.SortStableFunc(ms, func(a, b member) int { return cmp.Compare(a.at, b.at) })
	var out []string
	for _, m := range ms {
		out = append(out, fmt.Sprintf("%s (%s)", m.Cluster, m.text))
	}
	return few(out)
}

// few joins words, as many as one reads.
func few(words []string) string {
	const many = 5
	if len(words) <= many {
		return strings.Join(words, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(words[:many], ", "), len(words)-many)
}

// clock writes a time to the minute, not before it has come; the day where it is
// another.
func clock(t, now time.Time) string {
	t = t.Add(time.Minute - 1).Truncate(time.Minute).UTC()
	if t.Format(time.DateOnly) == now.UTC().Format(time.DateOnly) {
		return t.Format("15:04 UTC")
	}
	return t.Format("2006-01-02 15:04 UTC")
}
