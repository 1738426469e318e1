package gate

import (
	"fmt"
	"strings"
)

// named is how many blockers a line names.
const named = 3

// String is a line on how far it has come: what is counted, who blocks, and
// what is left out. It says the same as long as these are the same.
func (p Progress) String() string {
	parts := []string{fmt.Sprintf("%d/%d covered, %d/%d up to date", p.Covered, p.Counted, p.UpToDate, p.Counted)}
	if len(p.Blockers) > 0 {
		parts = append(parts, "waiting for "+p.blockers())
	}
	if out := p.leftOut(); out != "" {
		parts = append(parts, "left out: "+out)
	}
	if p.Note != "" {
		parts = append(parts, p.Note)
	}
	return strings.Join(parts, "; ")
}

func (p Progress) blockers() string {
	var names []string
	for _, b := range p.Blockers[:min(named, len(p.Blockers))] {
		why := b.State
		if b.Code != "" && string(b.Code) != b.State {
			why += " " + string(b.Code)
		}
		names = append(names, b.Node+" ("+why+")")
	}
	text := strings.Join(names, ", ")
	if more := len(p.Blockers) - named; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func (p Progress) leftOut() string {
	var all []string
	for _, g := range Grounds() {
		if n := p.LeftOut[g]; n > 0 {
			all = append(all, fmt.Sprintf("%d %s", n, g))
		}
	}
	return strings.Join(all, ", ")
}
