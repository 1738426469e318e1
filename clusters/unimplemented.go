package clusters

import (
	"fmt"
	"strings"
)

// Unimplemented names what a fleet declares and this version does not act on,
// one sentence each, so that nobody relies on it unknowingly.
func Unimplemented(f Fleet) []string {
	var all []string
	say := func(n int, field, what string) {
		if n > 0 {
			all = append(all, fmt.Sprintf("%s: %s", field, what))
		}
	}
	var not []string
	for _, power := range f.Policy.May {
		if power == "roll" || power == "manage" {
			not = append(not, power)
		}
	}
	say(len(not), "spec.policy.may", fmt.Sprintf("accepted, but this version will not %s", strings.Join(not, ", ")))
	return all
}
