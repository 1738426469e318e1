package report

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/duration"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/coverage"
	"rollcall.dev/rollcall/controller/plan"
)

// Ahead is what a commit would change in a cluster, as far as the cluster alone
// decides it.
type Ahead struct {
	Plan     plan.Cluster
	Progress plan.Progress
	Deletes  plan.Deletes
}

// Held is why changes of a cluster are not made.
type Held struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Objects Sample `json:"objects"`
}

// patient are the codes of holds that end by themselves, or that somebody has
// asked for.
var patient = []string{plan.WindowClosed, plan.WaveWaits, plan.WaveSoaks, plan.Kept, plan.NotAllowed}

// hold says of every cluster that rollcall may change what is not changed and
// why, with all clusters in view.
func (r *Report) hold(s Scope) {
	if s.Revision.IsZero() || !slices.ContainsFunc(r.Clusters, func(c Cluster) bool { return c.ahead != nil }) {
		return
	}
	commit := s.Revision.Commit
	progress, deletes := make([]plan.Progress, len(r.Clusters)), make([]plan.Deletes, 0, len(r.Clusters))
	for _, c := range r.Clusters {
		if c.ahead != nil {
			deletes = append(deletes, c.ahead.Deletes)
		}
	}
	limits := plan.Limit(commit, s.Fleet.Policy.MaxDeletes, deletes, s.Fleet.Approvals)
	for i, c := range r.Clusters {
		progress[i] = plan.Progress{Cluster: c.Name, Labels: c.Labels}
		if c.ahead != nil {
			c.ahead.Plan.Hold(nil, limits[c.Name])
			progress[i] = c.ahead.Progress
			progress[i].Changes = c.ahead.Plan.Pending()
		}
		progress[i].Resumed = clusters.Approved(s.Fleet.Approvals, clusters.AllowResume, commit, c.Name)
	}
	waves := plan.Waves(s.Fleet.Rollout, commit, progress, s.At)
	if s.Narrowed {
		waves = nil // the waves are those of all clusters
	}
	for i := range r.Clusters {
		if c := &r.Clusters[i]; c.ahead != nil && c.managed {
			c.ahead.Plan.Hold(waves[c.Name], nil)
			c.Held = heldOf(c.ahead.Plan)
			c.findings = append(c.findings, heldFindings(c.Name, c.Held)...)
		}
	}
}

// heldOf groups what is held by its reason.
func heldOf(c plan.Cluster) []Held {
	var out []Held
	objects := map[plan.Hold][]string{}
	for i := range c.Actions {
		a := &c.Actions[i]
		if !a.Changes() {
			continue
		}
		for _, h := range a.Holds {
			if objects[h] == nil {
				out = append(out, Held{Code: h.Code, Message: h.Message})
			}
			objects[h] = append(objects[h], a.Object.String())
		}
	}
	for i := range out {
		out[i].Objects = sampleOf(objects[plan.Hold{Code: out[i].Code, Message: out[i].Message}])
	}
	return out
}

// heldFindings are one for each code.
func heldFindings(cluster string, all []Held) []Finding {
	var out []Finding
	words := map[string][]string{}
	var codes []string
	for _, h := range all {
		if words[h.Code] == nil {
			codes = append(codes, h.Code)
		}
		words[h.Code] = append(words[h.Code], fmt.Sprintf("%s (%s)", h.Message, listed(h.Objects)))
	}
	for _, code := range codes {
		f := NewFinding(cluster, "Held", code+": "+some(words[code]), coverage.Cause{Kind: "hold", Key: code})
		if slices.Contains(patient, code) {
			f.Severity = Info
		}
		out = append(out, f)
	}
	return out
}

// held prints what is held in a cluster, a line for each reason.
func (p *printer) held(c Cluster) {
	for _, h := range c.Held {
		color := yellow
		if slices.Contains(patient, h.Code) {
			color = faint
		}
		text := fmt.Sprintf("held, %s: %s: %s", h.Code, plural(h.Objects.Count, "change"), h.Message)
		p.line("  %s", p.paint(color, clean(text)))
	}
}

// behind says which commit a cluster has, and since when there is a newer one.
func behind(d *Delivery, r Report) string {
	text := "behind: nothing is applied whole yet"
	if d.Commit != "" {
		text = "behind: " + short(d.Commit) + " is applied"
	}
	return fmt.Sprintf("%s, %s was committed %s ago", text, short(r.Source.Commit), duration.HumanDuration(r.GeneratedAt.Sub(r.Source.CommittedAt)))
}
