package clusters

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rollcall.dev/rollcall/sync/schedule"
)

const someCommit = "0123456789abcdef0123456789abcdef01234567"

func TestParseRolloutFaults(t *testing.T) {
	waves := func(text string) string { return sourceHead + "  rollout:\n    waves:\n    - " + text + "\n" }
	rollout := func(text string) string { return sourceHead + "  rollout: " + text + "\n" }
	approval := func(text string) string { return fleetHead + "  approvals:\n  - {" + text + "}\n" }
	policy := func(text string) string { return fleetHead + "  policy: {" + text + "}\n" }
	window := func(text string) string { return policy("windows: [{" + text + "}]") }
	const (
		part   = ": must be a percentage of the nodes, more than 0 and at most 100%, such as 95% or 99.5%"
		digits = ": must be 40 lower-case hexadecimal digits"
		number = ": must be a number or a percentage, such as 3 or 10%"
	)
	cases := map[string]struct{ reason, in, want string }{
		"NoSource":     {"there is no commit", fleetHead + "  rollout: {}\n", "f.yaml:5: spec.rollout: Forbidden: there is no spec.source to render from"},
		"NoClusters":   {"all is never meant by leaving it out", waves("{name: a}"), "f.yaml:9: spec.rollout.waves[0].clusters: Required value: write {} for all clusters"},
		"NoName":       {"a wave is spoken of", waves("{clusters: {}}"), "f.yaml:9: spec.rollout.waves[0].name: Required value: a name"},
		"NameTwice":    {"of which?", waves("{name: a, clusters: {names: [x]}}\n    - {name: a, clusters: {}}"), `f.yaml:10: spec.rollout.waves[1].name: Duplicate value: "a"`},
		"AllFirst":     {"nothing is left for the next", waves("{name: a, clusters: {}}\n    - {name: b, clusters: {}}"), "f.yaml:9: spec.rollout.waves[0].clusters: Forbidden: {} is all clusters: the waves after it would have none"},
		"Size0":        {"it would never go", waves("{name: a, clusters: {}, size: 0}"), `f.yaml:9: spec.rollout.waves[0].size: Invalid value: "0": must be more than 0: the wave would never go`},
		"Size0%":       {"likewise", waves("{name: a, clusters: {}, size: 0%}"), `f.yaml:9: spec.rollout.waves[0].size: Invalid value: "0%": must be more than 0: the wave would never go`},
		"SizeText":     {"no number", waves("{name: a, clusters: {}, size: half}"), `f.yaml:9: spec.rollout.waves[0].size: Invalid value: "half"` + number},
		"Soak":         {"no unit", waves("{name: a, clusters: {}, soak: '30'}"), `f.yaml:9: spec.rollout.waves[0].soak: Invalid value: "30": must be a duration such as 5m`},
		"GateNumber":   {"of how many?", waves("{name: a, clusters: {}, gate: {covered: 3}}"), `f.yaml:9: spec.rollout.waves[0].gate.covered: Invalid value: "3"` + part},
		"GateNothing":  {"a gate that is always open is none", waves("{name: a, clusters: {}, gate: {upToDate: 0%}}"), `f.yaml:9: spec.rollout.waves[0].gate.upToDate: Invalid value: "0%"` + part},
		"GateUnknown":  {"a slip is told", waves("{name: a, clusters: {}, gate: {uptodate: 90%}}"), `f.yaml:9: spec.rollout.waves[0].gate.uptodate: Forbidden: unknown field, did you mean "upToDate"?`},
		"Resume":       {"a whole commit", rollout("{resume: abc1234}"), `f.yaml:7: spec.rollout.resume: Invalid value: "abc1234"` + digits},
		"NoCommit":     {"of which?", approval("clusters: [a], allow: [prune]"), "f.yaml:6: spec.approvals[0].commit: Required value: the commit, 40 hexadecimal digits"},
		"Branch":       {"a branch moves", approval("commit: main, clusters: [a], allow: [prune]"), `f.yaml:6: spec.approvals[0].commit: Invalid value: "main"` + digits},
		"NoCluster":    {"each is named", approval("commit: " + someCommit + ", allow: [prune]"), "f.yaml:6: spec.approvals[0].clusters: Required value: the names of the clusters that it is for, each of them"},
		"ClusterStar":  {"likewise", approval("commit: " + someCommit + ", clusters: ['*'], allow: [prune]"), `f.yaml:6: spec.approvals[0].clusters[0]: Invalid value: "*": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`},
		"AllowNothing": {"what?", approval("commit: " + someCommit + ", clusters: [a]"), "f.yaml:6: spec.approvals[0].allow: Required value: what it allows: prune, resume"},
		"AllowAll":     {"no such power", approval("commit: " + someCommit + ", clusters: [a], allow: [all]"), `f.yaml:6: spec.approvals[0].allow[0]: Unsupported value: "all": supported values: "prune", "resume"`},
		"Force":        {"no such policy", policy("force: always"), `f.yaml:5: spec.policy.force: Unsupported value: "always": supported values: "never", "fields"`},
		"WindowEvery":  {"every hour from when on?", window("allow: '@every 1h', for: 1h"), `f.yaml:5: spec.policy.windows[0].allow: Invalid value: "@every 1h": has no times by the clock: write five fields, or such as @daily`},
		"WindowShort":  {"starts are whole minutes", window("allow: '@daily', for: 59s"), `f.yaml:5: spec.policy.windows[0].for: Invalid value: "59s": must be at least 1m`},
		"WindowLong":   {"it is no window", window("deny: '@yearly', for: 9000h"), `f.yaml:5: spec.policy.windows[0].for: Invalid value: "9000h": must be at most 8784h`},
		"WindowWhole":  {"it would never open", window("allow: '@daily', for: 1h, lastStart: 60m"), `f.yaml:5: spec.policy.windows[0].lastStart: Invalid value: "60m": must be shorter than the window itself`},
		"WindowDeny":   {"nothing begins in it", window("deny: '@daily', for: 1h, lastStart: 5m"), "f.yaml:5: spec.policy.windows[0].lastStart: Forbidden: it is for an allow window: in a deny window no change begins anyway"},
		"WindowNever":  {"there is no such day", window("deny: '0 0 30 2 *', for: 1h"), `f.yaml:5: spec.policy.windows[0].deny: Invalid value: "0 0 30 2 *": it is never due: no such day comes within five years; correct the day or the month`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := ParseFleet("f.yaml", []byte(tc.in))
			if err == nil {
				t.Fatalf("%s: ParseFleet accepted:\n%s", tc.reason, tc.in)
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// No windows that a fleet file may have are refused where they are used.
func TestParsedWindowsCompile(t *testing.T) {
	fors := []string{"1ns", "59s", "1m", "4h", "8784h", "8784h1ns"}
	lasts := []string{"", ", lastStart: 1ns", ", lastStart: 59999ms", ", lastStart: 1m", ", lastStart: 4h"}
	specs := []string{"0 22 * * *", "@daily", "@every 1h", "CRON_TZ=UTC @every 1h", "TZ=UTC 0 0 * * *", "0 0 30 2 *"}
	accepted := 0
	for _, key := range []string{"allow", "deny"} {
		for _, spec := range specs {
			for _, f := range fors {
				for _, last := range lasts {
					in := fleetHead + "  policy: {windows: [{" + key + ": '" + spec + "', for: " + f + last + "}]}\n"
					fleet, err := ParseFleet("f.yaml", []byte(in))
					if err != nil {
						continue
					}
					accepted++
					if _, err := schedule.Compile(fleet.Policy.Windows); err != nil {
						t.Errorf("%s: %v", in, err)
					}
				}
			}
		}
	}
	if accepted != 30 { // two schedules: 3+4+5 allow windows and 3 deny windows
		t.Errorf("%d were accepted, want 30", accepted)
	}
}

func TestApproved(t *testing.T) {
	all := []Approval{{Commit: "a", Clusters: []string{"x", "y"}, Allow: []string{AllowPrune}}, {Commit: "b", Clusters: []string{"x"}, Allow: []string{AllowResume}}, {Clusters: []string{"x"}, Allow: []string{AllowPrune}}}
	for _, tc := range []struct {
		allow, commit, cluster string
		want                   bool
	}{
		{AllowPrune, "a", "x", true}, {AllowPrune, "a", "y", true}, {AllowResume, "b", "x", true},
		{AllowPrune, "b", "x", false}, {AllowResume, "a", "x", false}, {AllowResume, "b", "y", false},
		{AllowPrune, "", "x", false}, {AllowPrune, "a", "", false},
	} {
		if got := Approved(all, tc.allow, tc.commit, tc.cluster); got != tc.want {
			t.Errorf("%s of commit %q in cluster %q: got %v", tc.allow, tc.commit, tc.cluster, got)
		}
	}
}

func TestOf(t *testing.T) {
	for _, tc := range []struct {
		text string
		all  int
		want int
	}{{"10%", 100, 10}, {"10%", 19, 1}, {"10%", 5, 1}, {"10%", 0, 1}, {"99.5%", 200, 199}, {"100%", 7, 7}, {"3", 100, 3}, {"3", 1, 3}, {"0", 100, 0}, {"0%", 100, 0}, {"", 100, 0}, {"many", 100, 0}, {"-1", 100, 0}} {
		if got := Of(tc.text, tc.all); got != tc.want {
			t.Errorf("%q of %d: got %d, want %d", tc.text, tc.all, got, tc.want)
		}
	}
}

// A cluster overrides the fleet's policy key by key, and its windows as a whole.
func TestParseClusterWindows(t *testing.T) {
	fleet, err := ParseFleet("f.yaml", []byte(fleetHead+"  policy: {force: fields, maxDeletes: 3, windows: [{allow: '@daily', for: 1h}, {deny: '@weekly', for: 1h}]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string][]Window{
		"{force: never}": {{Allow: "@daily", For: time.Hour, TimeZone: "UTC"}, {Deny: "@weekly", For: time.Hour, TimeZone: "UTC"}},
		"{force: never, windows: [{deny: '@monthly', for: 2h}]}": {{Deny: "@monthly", For: 2 * time.Hour, TimeZone: "UTC"}},
		"{force: never, windows: []}":                            {},
	} {
		cl, err := ParseCluster("c.yaml", []byte(clusterHead+"  recorded: d\n  policy: "+in+"\n"), fleet.Policy)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, cl.Policy.Windows); diff != "" || cl.Policy.Force != "never" || cl.Policy.MaxDeletes != "3" {
			t.Errorf("%s: %+v, -want +got:\n%s", in, cl.Policy, diff)
		}
	}
	if _, err := ParseCluster("c.yaml", []byte(clusterHead+"  recorded: d\n  policy: {windows: [{deny: x, for: 2h}]}\n"), fleet.Policy); err == nil || !strings.Contains(err.Error(), "c.yaml:6: spec.policy.windows[0].deny: ") {
		t.Errorf("a window that is none: %v", err)
	}
}
