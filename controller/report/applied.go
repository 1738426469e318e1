package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/plan"
)

// Applied is what became of a plan.
type Applied struct {
	APIVersion  string           `json:"apiVersion"`
	Kind        string           `json:"kind"`
	Fleet       string           `json:"fleet,omitempty"`
	GeneratedAt time.Time        `json:"generatedAt"`
	Commit      string           `json:"commit"`
	Clusters    []ClusterResults `json:"clusters"`
	Summary     AppliedSummary   `json:"summary"`
}

// ClusterResults are the results of one cluster: of what was done, and of what
// was held.
type ClusterResults struct {
	Name    string            `json:"name"`
	Error   string            `json:"error,omitempty"` // why nothing, or not all of it, was done or recorded
	Results []clusters.Result `json:"results"`
}

// AppliedSummary counts results.
type AppliedSummary struct {
	Created    int `json:"created"`
	Configured int `json:"configured"`
	Unchanged  int `json:"unchanged"`
	Pruned     int `json:"pruned"`
	Held       int `json:"held"`
	Kept       int `json:"kept"` // objects that left Git and say themselves that they stay
	Failed     int `json:"failed"`
	Unknown    int `json:"unknown"` // clusters with an error
}

// NewApplied joins what was planned with what was done.
func NewApplied(p plan.Plan, done []ClusterResults) Applied {
	a := Applied{APIVersion: p.APIVersion, Kind: "Applied", Fleet: p.Fleet, GeneratedAt: p.GeneratedAt, Commit: p.To, Clusters: []ClusterResults{}}
	for _, c := range p.Clusters {
		out := ClusterResults{Name: c.Name, Results: []clusters.Result{}}
		if at := slices.IndexFunc(done, func(r ClusterResults) bool { return r.Name == c.Name }); at >= 0 {
			out.Error, out.Results = done[at].Error, append(out.Results, done[at].Results...)
		}
		for i := range c.Actions {
			act := &c.Actions[i]
			if act.Changes() && act.Held() {
				out.Results = append(out.Results, clusters.Result{Object: act.Object, Operation: clusters.OpHeld, Reason: act.Holds[0].Code, Message: act.Holds[0].Message})
			}
		}
		a.Summary.add(out)
		a.Clusters = append(a.Clusters, out)
	}
	return a
}

func (s *AppliedSummary) add(c ClusterResults) {
	if c.Error != "" {
		s.Unknown++
	}
	for _, r := range c.Results {
		switch r.Operation {
		case clusters.OpCreated:
			s.Created++
		case clusters.OpConfigured:
			s.Configured++
		case clusters.OpUnchanged:
			s.Unchanged++
		case clusters.OpPruned:
			s.Pruned++
		case clusters.OpHeld:
			if r.Reason == plan.Kept {
				s.Kept++
				continue
			}
			s.Held++
		case clusters.OpFailed:
			s.Failed++
		}
	}
}

// Text prints the results for a terminal, a line for each object as kubectl
// does.
func (a Applied) Text(style Style) string {
	p := &printer{s: style}
	p.line("")
	p.line("%s", p.paint(bold, "APPLIED "+clean(short(a.Commit))))
	for _, c := range a.Clusters {
		if c.Error != "" {
			p.line("%s  %s", clean(c.Name), p.paint(red, clean(c.Error)))
		}
		p.results(c)
	}
	s := a.Summary
	p.line("%s", p.paint(bold, fmt.Sprintf("%d created, %d configured, %d unchanged, %d pruned, %d kept, %d held, %d failed", s.Created, s.Configured, s.Unchanged, s.Pruned, s.Kept, s.Held, s.Failed)))
	return p.b.String()
}

func (p *printer) result(cluster string, r clusters.Result) {
	color := map[clusters.Operation]string{clusters.OpCreated: green, clusters.OpConfigured: green, clusters.OpPruned: yellow, clusters.OpHeld: yellow, clusters.OpFailed: red}[r.Operation]
	text := clean(cluster + "  " + r.Object.String() + " ")
	word := string(r.Operation)
	if color != "" {
		word = p.paint(color, word)
	}
	p.line("%s%s%s", text, word, clean(strings.TrimRight(": "+strings.TrimPrefix(r.Reason+": "+r.Message, ": "), ": ")))
}

// results prints what is held for one reason once.
func (p *printer) results(c ClusterResults) {
	type reason struct{ code, message string }
	held := map[reason]int{}
	for _, r := range c.Results {
		if r.Operation == clusters.OpHeld {
			held[reason{r.Reason, r.Message}]++
		}
	}
	for _, r := range c.Results {
		n := held[reason{r.Reason, r.Message}]
		switch {
		case r.Operation != clusters.OpHeld || n == 1:
			p.result(c.Name, r)
		case n > 1:
			p.line("%s  %s", clean(c.Name), p.paint(yellow, clean(fmt.Sprintf("%s held: %s: %s", plural(n, "object"), r.Reason, r.Message))))
			held[reason{r.Reason, r.Message}] = 0
		}
	}
}
