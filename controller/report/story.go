package report

import (
	"fmt"
	"strings"

	"rollcall.dev/rollcall/controller/coverage"
)

// Story is everything about one node: what was asked of it for each
// DaemonSet, and what came out.
type Story struct {
	Cluster    string        `json:"cluster"`
	Node       string        `json:"node"`
	DaemonSets []StoryOfASet `json:"daemonSets"`
}

// StoryOfASet is a node's story with one DaemonSet.
type StoryOfASet struct {
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	Agents    []string `json:"agents,omitempty"` // that it belongs to
	Node      Node     `json:"node"`
	Checks    []Check  `json:"checks"`
}

// Check is one question with its answer. By is which program set what was
// compared, and fixes would turn the answer, or show what is wrong.
type Check struct {
	Name    string `json:"name"`
	OK      bool   `json:"ok"`
	Skipped bool   `json:"skipped,omitempty"` // not reached, since one before it failed
	Message string `json:"message"`
	By      string `json:"by,omitempty"`
	Fixes   []Fix  `json:"fixes,omitempty"`
}

// Fix is a sentence, and the command that does it where there is one.
type Fix struct {
	Text    string `json:"text"`
	Command string `json:"command,omitempty"`
}

// NewStory tells of one node of an observed cluster.
func NewStory(c Cluster, node string) (Story, error) {
	s := Story{Cluster: c.Name, Node: node, DaemonSets: []StoryOfASet{}}
	if c.judged == nil || len(c.judged.Coverage.DaemonSets) == 0 {
		return s, fmt.Errorf("cluster %q has no such DaemonSet: see \"rollcall scan\" for those it has", c.Name)
	}
	for i := range c.judged.Coverage.DaemonSets {
		d := &c.judged.Coverage.DaemonSets[i]
		row, ok := d.Row(node)
		if !ok {
			return s, fmt.Errorf("cluster %q has no node %q", c.Name, node)
		}
		one := StoryOfASet{Namespace: d.Namespace, Name: d.Name, Node: nodeOf(row), Checks: []Check{}}
		for _, a := range d.Agents {
			if a < len(c.Agents) {
				one.Agents = append(one.Agents, c.Agents[a].Name)
			}
		}
		for _, ch := range d.Checks(node) {
			check := Check{Name: ch.Name, OK: ch.OK, Skipped: ch.Skipped, Message: ch.Message, By: ch.By}
			for _, f := range ch.Fixes {
				check.Fixes = append(check.Fixes, Fix{f.Text, command(c.judged.Cluster.Kubeconfig, f.Kubectl)})
			}
			one.Checks = append(one.Checks, check)
		}
		s.DaemonSets = append(s.DaemonSets, one)
	}
	return s, nil
}

// Text prints the story for a terminal.
func (s Story) Text(style Style) string {
	p := &printer{s: style}
	p.line("%s", p.paint(bold, fmt.Sprintf("node %s of cluster %s", clean(s.Node), clean(s.Cluster))))
	for _, d := range s.DaemonSets {
		p.line("")
		p.chapter(d)
	}
	return p.b.String()
}

func (p *printer) chapter(d StoryOfASet) {
	title := p.paint(bold, clean(d.Namespace+"/"+d.Name)) + "  " + p.paint(stateColor(d.Node.State), d.Node.State)
	if len(d.Agents) > 0 {
		title += "  " + clean("of agent "+strings.Join(d.Agents, ", "))
	}
	p.line("%s", title)
	for i, c := range d.Checks {
		p.check(i+1, c)
	}
	p.line("      should run: %s, a pod there may stay: %s, intended: %s", yes(d.Node.ShouldRun), yes(d.Node.ShouldContinueRunning), yes(d.Node.Intended))
	if len(d.Node.Pods) == 0 {
		p.line("      no pod")
	}
	for _, pod := range d.Node.Pods {
		p.line("      pod %s", clean(podText(pod)))
	}
	p.line("      covered: %s, up to date: %s", yes(d.Node.Covered), maybe(d.Node.UpToDate))
	for _, r := range d.Node.Reasons {
		p.line("      %s: %s", p.paint(bold, clean(r.Code)), clean(r.Message))
		if c := codeOf(r.Code); attention(d.Node.State) {
			p.line("        %s", p.paint(faint, "remedy: "+c.Remedy))
		}
	}
	if e := d.Node.Excuse; e != nil {
		p.line("      %s", clean("excused: "+excuseText(e)))
	}
}

// check prints a question, who set what it compared, and what to do.
func (p *printer) check(number int, c Check) {
	mark, color := "✓", green
	switch {
	case c.Skipped:
		mark, color = "·", faint
	case !c.OK:
		mark, color = "✗", red
	}
	p.line("  %2d. %s %-13s %s", number, p.paint(color, mark), c.Name, clean(c.Message))
	if c.By != "" {
		p.line("        %s", p.paint(faint, clean(c.By)))
	}
	for _, f := range c.Fixes {
		p.line("        → %s", clean(f.Text))
		if f.Command != "" {
			p.line("          %s", clean(f.Command))
		}
	}
}

func stateColor(state string) string {
	switch state {
	case coverage.Covered.String():
		return green
	case coverage.Excluded.String(), coverage.Leaving.String():
		return faint
	case coverage.Starting.String(), coverage.Updating.String():
		return yellow
	}
	return red
}

func podText(p Pod) string {
	words := []string{p.Name, p.Phase}
	if p.Ready {
		words = append(words, "ready")
	} else {
		words = append(words, "not ready")
	}
	if p.Deleting {
		words = append(words, "being deleted")
	}
	if p.Revision != "" {
		words = append(words, "revision "+p.Revision)
	}
	return strings.Join(words, ", ")
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func maybe(b *bool) string {
	if b == nil {
		return "not known"
	}
	return yes(*b)
}
