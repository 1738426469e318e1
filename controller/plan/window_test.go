package plan_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rollcall.dev/rollcall/controller/plan"
	"rollcall.dev/rollcall/sync/schedule"
)

func TestWindow(t *testing.T) {
	cases := map[string]struct {
		reason string
		policy string
		want   []plan.Hold
	}{
		"None":    {"no windows hold nothing", "[]", nil},
		"Open":    {"it is noon", "[{allow: '0 11 * * *', for: 2h}]", nil},
		"Closed":  {"it was", "[{allow: '0 9 * * *', for: 2h}]", []plan.Hold{{Code: "WindowClosed", Message: "no allow window is open; it opens at 2026-01-06 09:00 UTC"}}},
		"Denied":  {"deny wins", "[{allow: '0 11 * * *', for: 4h}, {deny: '0 12 * * *', for: 90m}]", []plan.Hold{{Code: "WindowClosed", Message: `deny window "0 12 * * *" (UTC, for 1h30m) is in force; it opens at 13:30 UTC`}}},
		"Last":    {"too late to begin", "[{allow: '0 11 * * *', for: 70m, lastStart: 30m}]", []plan.Hold{{Code: "WindowClosed", Message: `allow window "0 11 * * *" (UTC, for 1h10m) ends at 12:10: no change begins in its last 30m; it opens at 2026-01-06 11:00 UTC`}}},
		"Forever": {"somebody should know", "[{deny: '@daily', for: 24h}]", []plan.Hold{{Code: "WindowClosed", Message: `deny window "@daily" (UTC, for 24h) is in force; no time at which it opens is in sight: look at policy.windows`}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ws, err := schedule.Compile(fleet(t, "  policy: {windows: "+tc.policy+"}\n").Policy.Windows)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, plan.Window(ws, noon.Add(time.Second))); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
