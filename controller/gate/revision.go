package gate

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/coverage"
	"rollcall.dev/rollcall/controller/drift"
)

// current is the revision with the highest number of a live DaemonSet, nil
// where none is known or it has no hash to tell its pods by.
func (j *judge) current(d *coverage.DaemonSet) *clusters.Revision {
	if d.Subject.Live == nil {
		return nil
	}
	var mine []*clusters.Revision
	for i := range j.Live.Revisions {
		if r := &j.Live.Revisions[i]; r.Owner.UID != "" && r.Owner.UID == string(d.Subject.Live.UID) {
			mine = append(mine, r)
		}
	}
	if len(mine) == 0 {
		return nil
	}
	r := slices.MaxFunc(mine, func(a, b *clusters.Revision) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), strings.Compare(a.Name, b.Name))
	})
	if r.Hash == "" {
		return nil
	}
	return r
}

// faults are what keeps a DaemonSet from being as it is waited for, whatever
// its nodes are.
func (j *judge) faults(d *coverage.DaemonSet) []string {
	live := d.Subject.Live
	switch {
	case live == nil:
		return []string{"the DaemonSet is not in the cluster"}
	case live.DeletionTimestamp != nil:
		return []string{"the DaemonSet is being deleted"}
	}
	var out []string
	if behind := live.Status.ObservedGeneration < live.Generation; behind && (j.want.UpToDate || j.want.Revision != "") {
		out = append(out, fmt.Sprintf("the DaemonSet controller has seen generation %d of %d", live.Status.ObservedGeneration, live.Generation))
	}
	if j.want.UpToDate && !d.Counts.UpToDateKnown {
		out = append(out, "which pods are up to date is not known"+j.lackOfRevisions())
	}
	if why := j.otherRevision(d); why != "" {
		out = append(out, why)
	}
	return out
}

func (j *judge) lackOfRevisions() string {
	if reason, blank := j.Live.Lacks("controllerrevisions"); blank {
		return ": controllerrevisions: " + reason
	}
	return ""
}

// otherRevision says why the current revision is not the one that is waited
// for.
func (j *judge) otherRevision(d *coverage.DaemonSet) string {
	switch j.want.Revision {
	case "":
		return ""
	case Git:
		return otherThanGit(d.Subject)
	}
	now := j.current(d)
	if now == nil {
		return "its current revision is not known" + j.lackOfRevisions()
	}
	if slices.Contains([]string{strconv.FormatInt(now.Number, 10), now.Hash, now.Name}, j.want.Revision) {
		return ""
	}
	return fmt.Sprintf("its current revision is %d (%s), not %s", now.Number, now.Name, j.want.Revision)
}

// otherThanGit says in what the live template is not Git's.
func otherThanGit(s coverage.Subject) string {
	if s.Desired == nil {
		return "it is not in Git"
	}
	for _, f := range drift.Template(s.Desired, s.Live) {
		return "it is not Git's yet: " + f.String()
	}
	return ""
}
