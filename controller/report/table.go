package report

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/duration"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/coverage"
)

// printer writes the terminal form. Colour only repeats what a word says.
type printer struct {
	b strings.Builder
	s Style
}

func (p *printer) line(format string, args ...any) { fmt.Fprintf(&p.b, format+"\n", args...) }

const (
	red    = "31"
	yellow = "33"
	green  = "32"
	cyan   = "36"
	bold   = "1"
	faint  = "2"
)

func (p *printer) paint(code, text string) string {
	if !p.s.Color || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (p *printer) severity(s Severity) string {
	return p.paint(map[Severity]string{Error: red, Warning: yellow, Info: cyan}[s], fmt.Sprintf("%-7s", s))
}

// table prints findings by cause first, then the tree of clusters, DaemonSets
// and the nodes that need attention, grouped by reason.
func table(r Report, s Style) string {
	p := &printer{s: s}
	p.head(r)
	p.findings(r)
	p.agents(r)
	for _, c := range r.Clusters {
		p.line("")
		p.cluster(r, c)
	}
	p.line("")
	p.line("%s", p.paint(bold, totals(r)))
	return p.b.String()
}

func (p *printer) head(r Report) {
	title := "rollcall"
	if r.Fleet != "" {
		title = "Fleet " + clean(r.Fleet)
	}
	p.line("%s  %s", p.paint(bold, title), r.GeneratedAt.Format("2006-01-02 15:04:05Z"))
	if s := r.Source; s != nil {
		p.line("Source %s  %s @ %s  committed %s%s", clean(s.URL), clean(s.Ref), short(s.Commit), s.CommittedAt.Format("2006-01-02 15:04:05Z"), p.sourceState(s, r.GeneratedAt))
	}
}

func (p *printer) sourceState(s *Source, now time.Time) string {
	text := ""
	if s.SignedBy != "" {
		text = "  signed by " + clean(s.SignedBy)
	}
	if s.Error != "" {
		text += "  " + p.paint(red, fmt.Sprintf("STALE: last fetched %s, %s ago", s.FetchedAt.Format("2006-01-02 15:04:05Z"), duration.HumanDuration(now.Sub(s.FetchedAt))))
	}
	return text
}

func short(commit string) string { return commit[:min(10, len(commit))] }

// findings lists causes; what is only information is counted unless wide.
func (p *printer) findings(r Report) {
	p.line("")
	if len(r.Findings) == 0 {
		p.line("%s", p.paint(green, "No findings."))
		return
	}
	p.line("%s", p.paint(bold, "FINDINGS"))
	hidden := 0
	for _, f := range r.Findings {
		if f.Severity == Info && !p.s.Wide {
			hidden++
			continue
		}
		p.finding(f)
	}
	if hidden > 0 {
		p.line("  %s", p.paint(faint, fmt.Sprintf("and %s of information (-o wide shows them)", plural(hidden, "finding"))))
	}
}

func (p *printer) finding(f Finding) {
	where := clean(f.Cluster)
	if where == "" {
		where = "fleet"
	}
	p.line("  %s %s  %s  %s", p.severity(f.Severity), p.paint(bold, clean(f.Code)), where, clean(causeText(f.Cause)))
	p.line("          %s", clean(f.Message))
	if below := affected(f); below != "" {
		p.line("          %s", p.paint(faint, below))
	}
	if f.Excuse != nil {
		p.line("          %s", p.paint(faint, clean("accepted: "+excuseText(f.Excuse))))
	}
	if p.s.Wide && f.Remedy != "" {
		p.line("          %s", p.paint(faint, "remedy: "+f.Remedy))
	}
}

func causeText(c coverage.Cause) string { return c.Kind + " " + c.Key }

// affected names what hangs below a cause.
func affected(f Finding) string {
	var parts []string
	if f.Nodes.Count > 0 {
		parts = append(parts, plural(f.Nodes.Count, "node")+": "+listed(f.Nodes))
	}
	if n := len(f.DaemonSets); n > 0 {
		parts = append(parts, plural(n, "DaemonSet")+": "+listed(sampleOf(f.DaemonSets)))
	}
	if f.Since != nil {
		parts = append(parts, "since "+f.Since.Format("2006-01-02 15:04Z"))
	}
	return clean(strings.Join(parts, "; "))
}

func listed(s Sample) string {
	text := strings.Join(s.Sample, ", ")
	if more := s.Count - len(s.Sample); more > 0 {
		text += fmt.Sprintf(" … +%d more", more)
	}
	return text
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (p *printer) cluster(r Report, c Cluster) {
	head := p.paint(bold, "CLUSTER "+clean(c.Name))
	if c.Version != "" {
		head += "  " + clean(c.Version)
	}
	switch {
	case c.Observation.State == clusters.Fresh:
		head += fmt.Sprintf("  %s  %s", plural(*c.Nodes, "node"), seen(r, c.Observation))
	case c.Observation.State == clusters.Stale && c.Nodes != nil:
		head += "  " + p.paint(red, fmt.Sprintf("STALE  %s  %s", plural(*c.Nodes, "node"), seen(r, c.Observation)))
	default:
		head += "  " + p.paint(red, string(c.Observation.State)+": "+clean(c.Observation.Error))
	}
	if c.Sync.State != SyncNone {
		head += "  " + p.sync(c.Sync)
	}
	if d := c.Sync.Delivery; d != nil && d.Behind && r.Source != nil {
		head += "  " + p.paint(yellow, behind(d, r))
	}
	p.line("%s", head)
	switch {
	case c.Nodes == nil:
		p.line("  nothing is known of its nodes; it counts nowhere below")
		return
	case c.Observation.State != clusters.Fresh:
		p.line("  this is how it was; it counts nowhere below")
	}
	p.daemonSets(r, c)
	p.held(c)
}

// seen says when a cluster was seen; a dump also how long ago that was.
func seen(r Report, o Observation) string {
	if o.At == nil {
		return "recorded at an unknown time"
	}
	at := o.At.Format("2006-01-02 15:04:05Z")
	if !o.Recorded {
		return "observed " + at
	}
	return fmt.Sprintf("recorded %s, %s ago", at, duration.HumanDuration(r.GeneratedAt.Sub(*o.At)))
}

func (p *printer) sync(s Sync) string {
	text := string(s.State)
	if s.Overlay != "" {
		text += " with " + clean(s.Overlay)
	}
	if s.Error != "" {
		text += ": " + clean(s.Error)
	}
	return p.paint(map[SyncState]string{InSync: green, OutOfSync: yellow, SyncUnknown: red}[s.State], text)
}

func (p *printer) daemonSets(r Report, c Cluster) {
	width := 0
	var foreign []DaemonSet
	for _, d := range c.DaemonSets {
		if !d.counts {
			foreign = append(foreign, d)
			continue
		}
		width = max(width, utf8.RuneCountInString(d.Key()))
	}
	for _, d := range c.DaemonSets {
		if d.counts {
			p.daemonSet(r, d, width)
		}
	}
	if len(c.DaemonSets) == 0 {
		p.line("  no DaemonSets")
	}
	p.foreign(r, foreign)
	if e := c.Excluded; e != nil {
		p.line("  %s", p.paint(faint, fmt.Sprintf("%s excluded: %s", plural(e.Count, "DaemonSet"), clean(listed(*e)))))
	}
}

// foreign folds DaemonSets that are not in Git into one line.
func (p *printer) foreign(r Report, ds []DaemonSet) {
	if len(ds) == 0 {
		return
	}
	if p.s.Wide || r.NodesListed == "all" {
		for _, d := range ds {
			p.daemonSet(r, d, 0)
		}
		return
	}
	var parts []string
	for _, d := range ds {
		text := d.Key()
		if d.Owner != "" {
			text += " (" + d.Owner + ")"
		}
		parts = append(parts, text)
	}
	p.line("  %s", p.paint(faint, fmt.Sprintf("%s not in Git: %s", plural(len(ds), "DaemonSet"), clean(listed(sampleOf(parts))))))
}

func (p *printer) daemonSet(r Report, d DaemonSet, width int) {
	mark, color := "✓", green
	switch {
	case !d.Live:
		mark, color = "✗", red
	case d.Counts.Covered < d.Counts.Intended:
		mark, color = "✗", red
	case d.needsAttention() || d.Outdated != nil || len(d.Lost) > 0 || len(d.wrong()) > 0:
		mark, color = "!", yellow
	}
	p.line("  %s %-*s  %s", p.paint(color, mark), width, clean(d.Key()), d.numbers())
	if d.Outdated != nil {
		p.line("      %s: %s%s", outdatedText(d), clean(listed(*d.Outdated)), clean(joinedText(d)))
	}
	for _, l := range d.Lost {
		p.line("      CoverageLost: %s: %s", clean(listed(l.Nodes)), clean(l.Message))
	}
	for _, n := range d.wrong() {
		p.line("      %s: %s", clean(n.Code), clean(n.Message))
	}
	for _, n := range d.Nodes {
		if n.Excuse != nil {
			p.line("      %s", p.paint(faint, clean(fmt.Sprintf("excused: %s %s, %s", n.Name, n.State, excuseText(n.Excuse)))))
		}
	}
	for _, g := range groups(unexcused(d.Nodes)) {
		p.line("      %-12s %-24s %s", g.state, clean(g.code), clean(listed(sampleOf(g.nodes))))
		if g.message != "" {
			p.line("        %s", p.paint(faint, clean(g.message)))
		}
	}
	if p.s.Wide {
		for _, s := range d.StrayPods {
			p.line("      stray pod    %-24s %s on %s: %s", s.Reasons[0].Code, clean(s.Name), clean(s.Node), clean(s.Reasons[0].Message))
		}
	}
}

func outdatedText(d DaemonSet) string {
	text := plural(d.Outdated.Count, "node") + " run an older revision"
	if d.Outdated.Count == 1 {
		text = "1 node runs an older revision"
	}
	for _, n := range d.Notes {
		if rolloutCodes[n.Code] {
			text += " (" + n.Code + ")"
		}
	}
	return text
}

func joinedText(d DaemonSet) string {
	if d.Joined == nil {
		return ""
	}
	return "; with the current one only because they joined later: " + listed(*d.Joined)
}

// wrong are the notes that are more than information and are not told by the
// nodes: those of a rollout stand beside the outdated ones.
func (d DaemonSet) wrong() []Reason {
	var out []Reason
	for _, n := range d.Notes {
		if d.Live && codeOf(n.Code).Severity != Info && (d.Outdated == nil || !rolloutCodes[n.Code]) {
			out = append(out, n)
		}
	}
	return out
}

var rolloutCodes = map[string]bool{"RolloutBlocked": true, "WaitingForDelete": true, "SurgeSlotHeld": true, "ProgressDeadlineExceeded": true}

func (d DaemonSet) needsAttention() bool {
	n := -d.Counts.Excused // which were gaps
	for st, count := range d.Counts.States {
		if attention(st) {
			n += count
		}
	}
	return n > 0
}

func unexcused(all []Node) []Node {
	return slices.DeleteFunc(slices.Clone(all), func(n Node) bool { return n.Excused })
}

func attention(state string) bool {
	return state != "Covered" && state != "Excluded" && state != "Leaving"
}

// numbers are the two questions, then the total of every state.
func (d DaemonSet) numbers() string {
	text := fmt.Sprintf("%d/%d covered", d.Counts.Covered, d.Counts.Intended)
	if d.Counts.UpToDate == nil {
		text += ", up to date unknown"
	} else {
		text += fmt.Sprintf(", %d up to date", *d.Counts.UpToDate)
	}
	if d.Counts.Excused > 0 {
		text += fmt.Sprintf(", %d excused", d.Counts.Excused)
	}
	var states []string
	for _, st := range coverage.States() {
		if n := d.Counts.States[st.String()]; n > 0 {
			states = append(states, fmt.Sprintf("%s %d", st, n))
		}
	}
	return text + "  [" + strings.Join(states, ", ") + "]"
}

// group is the nodes of one state and reason, with the message of the first;
// where the others have another it says whose it is.
type group struct {
	state, code, message string
	nodes                []string
	named                bool
}

func groups(nodes []Node) []group {
	var gs []group
	for _, n := range nodes {
		code, message := "", ""
		if len(n.Reasons) > 0 {
			code, message = n.Reasons[0].Code, n.Reasons[0].Message
		}
		at := slices.IndexFunc(gs, func(g group) bool { return g.state == n.State && g.code == code })
		if at < 0 {
			gs = append(gs, group{state: n.State, code: code, message: message})
			at = len(gs) - 1
		}
		g := &gs[at]
		if message != g.message && !g.named {
			g.message, g.named = g.nodes[0]+": "+g.message, true
		}
		g.nodes = append(g.nodes, n.Name)
	}
	return gs
}
