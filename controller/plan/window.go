package plan

import (
	"time"

	"rollcall.dev/rollcall/sync/schedule"
)

// Window holds a cluster back while no change may begin in it.
func Window(w schedule.Windows, now time.Time) []Hold {
	open, until, why := w.Open(now)
	switch {
	case open:
		return nil
	case until.IsZero():
		return []Hold{{WindowClosed, why + "; no time at which it opens is in sight: look at policy.windows"}}
	}
	return []Hold{{WindowClosed, why + "; it opens at " + clock(until, now)}}
}
