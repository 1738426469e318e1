package gate

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Git is the revision that Git's template makes.
const Git = "git"

// Condition is what is waited for, and of what. All of it must hold.
type Condition struct {
	Coverage float64 // percent of the counted nodes; zero: not asked for, or an agent's own min
	UpToDate bool    // every counted node is covered by a pod of the current revision
	Revision string  // that must be current: its number, hash or name, or Git; empty: any

	Agent string // an agent is judged, or
	Name  string // DaemonSets of this name; both empty: all
	InGit bool   // where none is named, only DaemonSets that Git wants
}

// Parse reads conditions such as "coverage=98%" and "upToDate". Of several
// coverages the highest holds.
func Parse(texts []string) (Condition, error) {
	var c Condition
	for _, text := range texts {
		kind, share, valued := strings.Cut(text, "=")
		switch {
		case strings.EqualFold(kind, "upToDate") && !valued:
			c.UpToDate = true
		case strings.EqualFold(kind, "coverage") && valued:
			percent, err := parsePercent(share)
			if err != nil {
				return c, fmt.Errorf("%q: %w", text, err)
			}
			c.Coverage = max(c.Coverage, percent)
		default:
			return c, fmt.Errorf("%q: use coverage=98%% or upToDate", text)
		}
	}
	return c, nil
}

func parsePercent(text string) (float64, error) {
	number, ok := strings.CutSuffix(text, "%")
	percent, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || !(percent > 0 && percent <= 100) { // not a number is neither
		return 0, fmt.Errorf("%q is no percentage above 0%% and up to 100%%", text)
	}
	return percent, nil
}

// String words the condition as its flags do.
func (c Condition) String() string {
	var all []string
	if c.Coverage > 0 {
		all = append(all, "coverage="+strconv.FormatFloat(c.Coverage, 'f', -1, 64)+"%")
	} else if c.Agent != "" {
		all = append(all, "coverage=min")
	}
	if c.UpToDate {
		all = append(all, "upToDate")
	}
	if c.Revision != "" {
		all = append(all, "revision="+c.Revision)
	}
	return strings.Join(all, ", ")
}

// reached tells whether a number of nodes is a share of all that count. What a
// fraction of a percent loses in binary is no node.
func reached(n, counted int, percent float64) bool {
	return float64(n)*100 >= percent*float64(counted)-1e-6
}

// WorseThan tells whether it is further from what is waited for than an earlier
// look at the same target was.
func (p Progress) WorseThan(earlier Progress) bool {
	return earlier.Met && !p.Met || p.Counted-p.Covered > earlier.Counted-earlier.Covered
}

func sortBlockers(all []Blocker) {
	slices.SortFunc(all, func(a, b Blocker) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), strings.Compare(string(a.Code), string(b.Code)))
	})
}
