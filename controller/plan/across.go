package plan

import (
	"slices"
	"time"

	"rollcall.dev/rollcall/controller/coverage"
)

// Hold adds to a plan what holds all that changes in the cluster, and what holds
// single deletions.
func (c *Cluster) Hold(all []Hold, deletes []Held) {
	for i := range c.Actions {
		a := &c.Actions[i]
		if !a.Changes() {
			continue
		}
		a.Holds = append(a.Holds, all...)
		if at := slices.IndexFunc(deletes, func(h Held) bool { return h.Object.Identity() == a.Object.Identity() }); at >= 0 && a.Operation == Prune {
			a.Holds = append(a.Holds, deletes[at].Holds...)
		}
	}
}

// DeletesOf are the deletions of a cluster that nothing else holds. An approval
// lifts what was held because an overlay moved or the cluster was renamed.
func DeletesOf(in Input, c *Cluster, approved bool) Deletes {
	d := Deletes{Cluster: c.Name, Max: in.Cluster.Policy.MaxDeletes}
	if in.Live != nil && in.Live.Inventory != nil {
		d.Managed = len(in.Live.Inventory.Items)
	}
	for i := range c.Actions {
		a := &c.Actions[i]
		if a.Operation != Prune {
			continue
		}
		if approved {
			a.Holds = slices.DeleteFunc(a.Holds, func(h Hold) bool { return h.Code == overlayMoved || h.Code == clusterRenamed })
		}
		if !a.Held() {
			d.Objects = append(d.Objects, a.Object)
		}
	}
	return d
}

// ProgressOf is how far a cluster has come with the commit of its plan, by its
// inventory and by the nodes of Git's DaemonSets.
func ProgressOf(in Input, c Cluster, cover coverage.Cluster, now time.Time) Progress {
	p := Progress{Cluster: in.Cluster.Name, Labels: in.Cluster.Labels, Observed: in.Live != nil && c.Error == ""}
	if !p.Observed {
		return p
	}
	if i := in.Live.Inventory; i != nil {
		p.Commit, p.Pending, p.AppliedAt = i.Commit, i.Pending, i.AppliedAt
	}
	p.Changes = c.Pending()
	for i := range cover.DaemonSets {
		p.count(&cover.DaemonSets[i], c.restarts(&cover.DaemonSets[i]))
	}
	if p.came(in.Commit) {
		p.Regressed = regressed(in, cover, p, now)
	}
	return p
}

// Pending tells whether the commit has anything to do here that a wave waits
// for.
func (c *Cluster) Pending() bool { return slices.ContainsFunc(c.Actions, Action.pending) }

// pending tells whether the action is one that a wave waits for. A deletion that
// needs somebody's word, or is not allowed, is none: it may never come.
func (a Action) pending() bool {
	wordless := func(h Hold) bool { return h.Code != WindowClosed }
	return a.Changes() && (a.Operation != Prune || !slices.ContainsFunc(a.Holds, wordless))
}

// restarts tells whether Git's template is not the live one yet.
func (c *Cluster) restarts(d *coverage.DaemonSet) bool {
	at := slices.IndexFunc(c.Actions, func(a Action) bool {
		return isDaemonSet(a.Object) && a.Object.Namespace == d.Namespace && a.Object.Name == d.Name
	})
	return at >= 0 && c.Actions[at].restarts
}

// count adds the nodes of one DaemonSet. Until its controller has seen the
// template, and while that is another one than Git's, none is up to date.
func (p *Progress) count(d *coverage.DaemonSet, behind bool) {
	if d.Subject.Desired == nil {
		return
	}
	p.Nodes += d.Counts.Intended
	live := d.Subject.Live
	if live == nil {
		return
	}
	p.Covered += d.Counts.Covered
	if behind || live.Status.ObservedGeneration < live.Generation || !d.Counts.UpToDateKnown {
		return
	}
	p.UpToDate += d.Counts.UpToDate
	for _, row := range d.Rows(func(coverage.State) bool { return true }) {
		if !row.Intended || row.UpToDate == nil || !*row.UpToDate {
			continue
		}
		for _, pod := range row.Pods {
			if pod.ReadySince.After(p.MetSince) {
				p.MetSince = pod.ReadySince
			}
		}
	}
}

// regressed is why coverage fell since the commit came: its template left nodes
// out, or its rollout has stood still for longer than it may.
func regressed(in Input, cover coverage.Cluster, p Progress, now time.Time) string {
	for i := range cover.DaemonSets {
		d := &cover.DaemonSets[i]
		if d.Subject.Desired == nil {
			continue
		}
		for _, l := range d.Lost {
			if !l.Old && l.Reason.Cause.Kind == "template" {
				return l.Reason.Message
			}
		}
		came := p.AppliedAt
		if p.Commit != in.Commit {
			continue // it is being applied
		}
		if r := d.Rollout; r != nil && (r.Code == coverage.RolloutBlocked || r.Code == coverage.ProgressDeadlineExceeded) && in.Cluster.Policy.ProgressDeadline > 0 && now.Sub(came) > in.Cluster.Policy.ProgressDeadline {
			return r.Message
		}
	}
	return ""
}
