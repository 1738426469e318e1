package report

import (
	"fmt"
	"slices"
	"strings"

	"rollcall.dev/rollcall/controller/plan"
)

// PlanText prints a plan for a terminal: what nodes lose first.
func PlanText(p plan.Plan, s Style) string {
	out := &printer{s: s}
	out.line("%s  %s → %s", out.paint(bold, planTitle(p)), clean(revision(p.From)), clean(revision(p.To)))
	for _, c := range p.Clusters {
		out.line("")
		out.planned(c)
	}
	out.line("")
	out.line("%s", out.paint(bold, planTotals(p.Summary)))
	return out.b.String()
}

func planTitle(p plan.Plan) string {
	if p.Fleet == "" {
		return "Plan"
	}
	return "Plan of fleet " + clean(p.Fleet)
}

// revision shortens a commit, and no other word.
func revision(s string) string {
	if len(s) == 40 && strings.Trim(s, "0123456789abcdef") == "" {
		return short(s)
	}
	return s
}

func planTotals(s plan.Summary) string {
	held := ""
	if s.Held > 0 {
		held = fmt.Sprintf(", %d of them held", s.Held)
	}
	text := fmt.Sprintf("%d to create, %d to configure, %d to prune%s; places: %d gained, %d LOST, %d restarted, %d would not fit; %s",
		s.Created, s.Configured, s.Pruned, held, s.Gains, s.Loses, s.Restarts, s.WontFit, plural(s.Clusters, "cluster"))
	if s.Unknown > 0 {
		text += fmt.Sprintf(", %d UNKNOWN", s.Unknown)
	}
	return text
}

func (p *printer) planned(c plan.Cluster) {
	head := p.paint(bold, "CLUSTER "+clean(c.Name))
	if c.Overlay != "" && c.Overlay != "." {
		head += "  " + clean(c.Overlay)
	}
	if c.ObservedAt != nil {
		word := "observed"
		if c.Recorded {
			word = "recorded"
		}
		head += "  " + word + " " + c.ObservedAt.Format("2006-01-02 15:04:05Z")
	}
	if c.Error != "" {
		p.line("%s  %s", head, p.paint(red, "UNKNOWN: "+clean(c.Error)))
		return
	}
	changes := slices.ContainsFunc(c.Actions, func(a plan.Action) bool { return a.Changes() || a.Held() })
	if !changes && len(c.Nodes) == 0 {
		p.line("%s  %s", head, p.paint(green, "nothing to do"))
	} else {
		p.line("%s", head)
	}
	for _, g := range groupEffects(c.Nodes) {
		mark, color := effectMark(g.effect)
		p.line("  %s", p.paint(color, clean(fmt.Sprintf("%s %s %s %s: %s", mark, g.daemonSet, effectWord(g.effect), plural(len(g.nodes), "node"), listed(sampleOf(g.nodes))))))
		if g.reason != "" {
			p.line("      %s", clean(g.reason))
		}
	}
	for _, r := range c.Rollouts {
		p.line("  %s", clean(fmt.Sprintf("  %s: %s", r.DaemonSet, r.Message)))
	}
	common := commonHolds(c.Actions)
	for _, h := range common {
		p.line("  %s", p.paint(yellow, clean("all of it held, "+h.Code+": "+h.Message)))
	}
	for i := range c.Actions {
		p.action(&c.Actions[i], common)
	}
	for _, n := range c.Notes {
		p.line("  %s", p.paint(faint, "note: "+clean(n)))
	}
}

// commonHolds are what hold every change of several, to be told once.
func commonHolds(all []plan.Action) []plan.Hold {
	var common []plan.Hold
	changes := 0
	for i := range all {
		if !all[i].Changes() {
			continue
		}
		if changes++; changes == 1 {
			common = slices.Clone(all[i].Holds)
			continue
		}
		common = slices.DeleteFunc(common, func(h plan.Hold) bool { return !slices.Contains(all[i].Holds, h) })
	}
	if changes < 2 {
		return nil
	}
	return common
}

func (p *printer) action(a *plan.Action, common []plan.Hold) {
	if !a.Changes() && !a.Held() {
		return
	}
	mark, color := actionMark(a.Operation)
	p.line("  %s %s", p.paint(color, mark+" "+clean(a.Object.String())), a.Operation)
	const most = 8
	for i, f := range a.Fields {
		if i == most {
			p.line("      %s", p.paint(faint, fmt.Sprintf("and %d fields more (rollcall diff shows them)", len(a.Fields)-most)))
			break
		}
		p.line("      %s", clean(f.String()+byWhom(f)))
	}
	if len(a.Adopts) > 0 {
		p.line("      %s", clean("taken over from "+strings.Join(a.Adopts, ", ")+": what they set and Git does not have goes"))
	}
	if a.Note != "" {
		p.line("      %s", p.paint(faint, clean(a.Note)))
	}
	for _, h := range a.Holds {
		if a.Changes() && slices.Contains(common, h) {
			continue
		}
		p.line("      %s", p.paint(yellow, clean("held, "+h.Code+": "+h.Message)))
	}
}

func actionMark(o plan.Operation) (mark, color string) {
	switch o {
	case plan.Create:
		return "+", green
	case plan.Configure:
		return "~", yellow
	case plan.Replace:
		return "±", yellow
	case plan.Prune:
		return "-", red
	}
	return " ", faint
}

func effectMark(i plan.Impact) (mark, color string) {
	switch i {
	case plan.Loses:
		return "✗", red
	case plan.WontFit:
		return "!", red
	case plan.Gains:
		return "✓", green
	}
	return "↻", yellow
}

func effectWord(i plan.Impact) string {
	switch i {
	case plan.Loses:
		return "LOSES"
	case plan.WontFit:
		return "would not fit on"
	case plan.Gains:
		return "gains"
	}
	return "restarts on"
}

// effects are nodes of a DaemonSet that are affected alike.
type effects struct {
	daemonSet string
	effect    plan.Impact
	reason    string
	nodes     []string
}

// groupEffects groups nodes by what becomes of them and why, the worst first.
func groupEffects(all []plan.Effect) []effects {
	var out []effects
	for _, e := range all {
		var why []string
		for _, r := range e.Reasons {
			why = append(why, r.Message)
		}
		reason := strings.Join(why, "; ")
		at := slices.IndexFunc(out, func(g effects) bool {
			return g.daemonSet == e.DaemonSet && g.effect == e.Effect && g.reason == reason
		})
		if at < 0 {
			out = append(out, effects{daemonSet: e.DaemonSet, effect: e.Effect, reason: reason})
			at = len(out) - 1
		}
		out[at].nodes = append(out[at].nodes, e.Node)
	}
	order := []plan.Impact{plan.Loses, plan.WontFit, plan.Gains, plan.Restarts}
	slices.SortStableFunc(out, func(a, b effects) int {
		return slices.Index(order, a.effect) - slices.Index(order, b.effect)
	})
	return out
}

// mostRows of a table go into a comment: GitHub takes 65,536 characters.
const mostRows = 150

// PlanMarkdown prints a plan for a comment on a pull request. What is worst comes
// first, so that a cut cuts the rest.
func PlanMarkdown(p plan.Plan) string {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s: %s → %s\n\n", md(planTitle(p)), md(revision(p.From)), md(revision(p.To)))
	if p.Harms() {
		fmt.Fprintf(&b, "> [!CAUTION]\n> **%s**\n\n", md(planTotals(p.Summary)))
	} else {
		fmt.Fprintf(&b, "**%s**\n\n", md(planTotals(p.Summary)))
	}
	b.WriteString("| Cluster | DaemonSet | Nodes | | Why |\n|---|---|---|---|---|\n")
	var harm, rest, objects []string
	for _, c := range p.Clusters {
		if c.Error != "" {
			harm = append(harm, fmt.Sprintf("| %s | | | UNKNOWN | %s |\n", md(c.Name), md(c.Error)))
		}
		for _, g := range groupEffects(c.Nodes) {
			mark, _ := effectMark(g.effect)
			row := fmt.Sprintf("| %s | %s | %s %s | %s | %s |\n", md(c.Name), md(g.daemonSet), mark, md(effectWord(g.effect)+" "+plural(len(g.nodes), "node")), md(listed(sampleOf(g.nodes))), md(g.reason))
			if g.effect == plan.Loses || g.effect == plan.WontFit {
				harm = append(harm, row)
			} else {
				rest = append(rest, row)
			}
		}
		for _, r := range c.Rollouts {
			rest = append(rest, fmt.Sprintf("| %s | %s | | | %s |\n", md(c.Name), md(r.DaemonSet), md(r.Message)))
		}
		objects = append(objects, objectRows(c)...)
		for _, n := range c.Notes {
			rest = append(rest, fmt.Sprintf("| %s | | | note | %s |\n", md(c.Name), md(n)))
		}
	}
	tableRows(&b, append(harm, rest...))
	b.WriteString("\n<details><summary>Objects</summary>\n\n| Cluster | Object | | Held |\n|---|---|---|---|\n")
	tableRows(&b, objects)
	b.WriteString("\n</details>\n")
	return b.String()
}

func tableRows(b *strings.Builder, rows []string) {
	for _, row := range rows[:min(mostRows, len(rows))] {
		b.WriteString(row)
	}
	if more := len(rows) - mostRows; more > 0 {
		fmt.Fprintf(b, "\nand %s more: `-o json` has them all\n", plural(more, "row"))
	}
}

// objectRows are the objects of a cluster that change. A hold of all of them is
// told once.
func objectRows(c plan.Cluster) []string {
	var rows []string
	common := commonHolds(c.Actions)
	for _, h := range common {
		rows = append(rows, fmt.Sprintf("| %s | all of it | | %s |\n", md(c.Name), md(h.Code+": "+h.Message)))
	}
	for i := range c.Actions {
		a := &c.Actions[i]
		if !a.Changes() {
			continue
		}
		var holds []string
		for _, h := range a.Holds {
			if !slices.Contains(common, h) {
				holds = append(holds, h.Code+": "+h.Message)
			}
		}
		rows = append(rows, fmt.Sprintf("| %s | %s | %s | %s |\n", md(c.Name), md(a.Object.String()), a.Operation, md(strings.Join(holds, "; "))))
	}
	return rows
}
