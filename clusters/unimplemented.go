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
	say(len(f.AppliedBy), "spec.appliedBy", "accepted, but this version compares images only, whoever wrote them")
	say(len(f.Policy.Windows), "spec.policy.windows", "accepted, but this version changes nothing, inside a window or outside")
	say(len(f.Policy.May), "spec.policy.may", fmt.Sprintf("accepted, but this version only reports: it will not %s", strings.Join(f.Policy.May, ", ")))
	if f.Rollout != nil {
		say(1, "spec.rollout", "accepted, but this version changes nothing, in a wave or at once")
	}
	say(len(f.Approvals), "spec.approvals", "accepted, but this version changes nothing, approved or not")
	return all
}
