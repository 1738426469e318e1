package report

import (
	"fmt"
	"html"
	"strings"

	"k8s.io/apimachinery/pkg/util/duration"

	"rollcall.dev/rollcall/clusters"
)

// markdown prints a report for a comment on a pull request: a sentence, a table
// of clusters, the findings, and the details folded.
func markdown(r Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "### rollcall %s\n\n%s.\n\n", md(r.Fleet), md(totals(r)))
	if s := r.Source; s != nil {
		fmt.Fprintf(&b, "Source `%s` at `%s` (%s)", code(s.URL), short(s.Commit), md(s.Ref))
		if s.Error != "" {
			fmt.Fprintf(&b, ", **stale: last fetched %s, %s ago**", s.FetchedAt.Format("2006-01-02 15:04Z"), duration.HumanDuration(r.GeneratedAt.Sub(s.FetchedAt)))
		}
		b.WriteString(".\n\n")
	}
	b.WriteString("| Cluster | Sync | Observed | DaemonSets | Covered | Up to date |\n|---|---|---|--:|--:|--:|\n")
	for _, c := range r.Clusters {
		b.WriteString(clusterRow(c))
	}
	markdownAgents(&b, r.Agents)
	markdownFindings(&b, r)
	for _, c := range r.Clusters {
		markdownDetails(&b, c)
	}
	return b.String()
}

func clusterRow(c Cluster) string {
	if c.Observation.State != clusters.Fresh {
		return fmt.Sprintf("| %s | %s | **%s** | ? | ? | ? |\n", md(c.Name), c.Sync.State, c.Observation.State)
	}
	at := "?"
	if c.Observation.At != nil {
		at = c.Observation.At.Format("2006-01-02 15:04Z")
	}
	var s Summary
	for _, d := range c.DaemonSets {
		if d.counts {
			s.addCounts(d.Counts)
		}
	}
	up := "?"
	if s.UpToDate != nil {
		up = fmt.Sprint(*s.UpToDate)
	}
	return fmt.Sprintf("| %s | %s | %s | %d | %d/%d | %s |\n", md(c.Name), c.Sync.State, at, s.DaemonSets, s.Covered, s.Intended, up)
}

func markdownAgents(b *strings.Builder, as []AgentTotal) {
	if len(as) == 0 {
		return
	}
	b.WriteString("\n| Agent | Covered | Min | Clusters | Not reached in | Missing |\n|---|--:|--:|--:|---|---|\n")
	for _, a := range as {
		where := fmt.Sprint(a.Clusters)
		if a.Unknown > 0 {
			where += fmt.Sprintf(", **%d unknown**", a.Unknown)
		}
		fmt.Fprintf(b, "| %s | %d/%d | %s | %s | %s | %s |\n", md(a.Name), a.Covered, a.Intended, md(a.Min), where, md(listed(sampleOf(a.Unmet))), md(listed(a.Missing)))
	}
}

func markdownFindings(b *strings.Builder, r Report) {
	if len(r.Findings) == 0 {
		b.WriteString("\nNo findings.\n")
		return
	}
	b.WriteString("\n| | Finding | Cluster | Cause | Message | Affected |\n|---|---|---|---|---|---|\n")
	hidden := 0
	for _, f := range r.Findings {
		if f.Severity == Info {
			hidden++
			continue
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s |\n", f.Severity, md(f.Code), md(f.Cluster), md(causeText(f.Cause)), md(f.Message), md(affected(f)))
	}
	if hidden > 0 {
		fmt.Fprintf(b, "\n%s of information not shown.\n", plural(hidden, "finding"))
	}
}

func markdownDetails(b *strings.Builder, c Cluster) {
	var rows strings.Builder
	for _, d := range c.DaemonSets {
		for _, g := range groups(unexcused(d.Nodes)) {
			if d.counts {
				fmt.Fprintf(&rows, "| %s | %s | %s | %s | %s |\n", md(d.Key()), g.state, md(g.code), md(listed(sampleOf(g.nodes))), md(g.message))
			}
		}
	}
	if rows.Len() == 0 {
		return
	}
	fmt.Fprintf(b, "\n<details><summary>%s</summary>\n\n| DaemonSet | State | Reason | Nodes | Message |\n|---|---|---|---|---|\n%s\n</details>\n", plainHTML(c.Name), rows.String())
}

var mdEscapes = strings.NewReplacer(`\`, `\\`, "|", `\|`, "&", "&amp;", "<", "&lt;", ">", "&gt;", "`", "\\`", "*", `\*`, "_", `\_`, "~", `\~`, "$", `\$`, "[", `\[`, "]", `\]`)

// gap is a space of no width. Forges look for mentions, issues and links in the
// text that is left when escapes are resolved, so that only a gap stops them.
const gap = "\u200b"

// md makes text from a cluster inert in Markdown: no table cell, link, mention
// or HTML of its own.
func md(s string) string { return mdEscapes.Replace(gaps.Replace(clean(s))) }

var gaps = strings.NewReplacer("@", "@"+gap, "#", "#"+gap, "://", ":"+gap+"//", "www.", "www"+gap+".")

// plainHTML is for where Markdown is not read, inside an element.
func plainHTML(s string) string {
	return html.EscapeString(gaps.Replace(clean(s)))
}

func code(s string) string { return strings.ReplaceAll(clean(s), "`", "'") }
