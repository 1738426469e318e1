package clusters

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestException(t *testing.T) {
	end := time.Date(2026, 12, 31, 0, 0, 0, 0, time.UTC)
	e := Exception{Clusters: Selection{Selector: labelled("env", "prod")}, Nodes: []string{"n1", "n2"}, Until: end}
	cases := map[string]struct {
		reason    string
		got, want bool
	}{
		"Applies":     {"by label", e.Applies("a", map[string]string{"env": "prod"}), true},
		"Elsewhere":   {"another label", e.Applies("a", map[string]string{"env": "dev"}), false},
		"Everywhere":  {"{} is all", Exception{}.Applies("a", nil), true},
		"OnNode":      {"one of its nodes", e.OnNode("n2"), true},
		"OffNode":     {"another node", e.OnNode("n12"), false},
		"OnEveryNode": {"it names none", Exception{}.OnNode("n12"), true},
		"Before":      {"its last moment", e.Expired(end.Add(-time.Nanosecond)), false},
		"At":          {"it ends as the day begins", e.Expired(end), true},
		"Zone":        {"a moment has no zone", e.Expired(end.In(time.FixedZone("x", -36000))), true},
		"NoTime":      {"no time to judge by", e.Expired(time.Time{}), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.got != tc.want {
				t.Errorf("%s: got %v", tc.reason, tc.got)
			}
		})
	}
}

func TestParseExcuse(t *testing.T) {
	end := time.Date(2026, 12, 31, 0, 0, 0, 0, time.UTC)
	rma := Exception{Reason: "RMA 4711", Owner: "sre", Until: end}
	falco := Exception{Reason: "RMA 4711", Owner: "sre", Until: end, Agent: "falco", Code: "ImagePullBackOff"}
	const write = `: write it like "RMA 4711; owner=sre; until=2026-12-31"`
	cases := map[string]struct {
		reason string
		in     string
		want   Exception
		fault  string
	}{
		"Short":     {"the form to write", "RMA 4711; owner=sre; until=2026-12-31", rma, ""},
		"AnyOrder":  {"and any spaces", " until = 2026-12-31;owner=sre ;; RMA 4711; ", rma, ""},
		"All":       {"what it is for", "RMA 4711; owner=sre; until=2026-12-31; agent=falco; code=ImagePullBackOff", falco, ""},
		"Reason":    {"named like the rest", "owner=sre; reason=RMA 4711; until=2026-12-31", rma, ""},
		"Parts":     {"a reason in parts, with signs of its own", "disk; RMA=4711; https://x/?a=b; owner=sre; until=2026-12-31", Exception{Reason: "disk; RMA=4711; https://x/?a=b", Owner: "sre", Until: end}, ""},
		"Time":      {"to the minute", "RMA 4711; owner=sre; until=2026-12-31T02:00:00+02:00", rma, ""},
		"YAML":      {"a flow mapping", " {reason: RMA 4711, owner: sre, until: 2026-12-31}\n", rma, ""},
		"YAMLTime":  {"a time is one without quotes, too", "{reason: RMA 4711, owner: sre, until: 2026-12-31T00:00:00Z}", rma, ""},
		"JSON":      {"a JSON mapping", `{"reason":"RMA 4711","owner":"sre","until":"2026-12-31","agent":"falco","code":"ImagePullBackOff"}`, falco, ""},
		"SlashName": {"an agent by annotation", "x; owner=a b; until=2026-12-31; agent=sec/falco", Exception{Reason: "x", Owner: "a b", Until: end, Agent: "sec/falco"}, ""},

		"Empty":       {"nothing", "", Exception{}, "it lacks a reason, an owner, the day on which it ends (until)" + write},
		"NoReason":    {"why?", "owner=sre; until=2026-12-31", Exception{}, "it lacks a reason" + write},
		"NoOwner":     {"who answers for it?", "RMA 4711; owner= ; until=2026-12-31", Exception{}, "it lacks an owner" + write},
		"NoEnd":       {"for ever", "RMA 4711; owner=sre", Exception{}, "it lacks the day on which it ends (until)" + write},
		"NoDay":       {"no such day", "RMA 4711; owner=sre; until=2026-02-30", Exception{}, `until "2026-02-30" is neither a day nor a time such as 2026-12-31T18:00:00Z` + write},
		"NoCode":      {"no code, no day: both are told", "RMA 4711; owner=sre; until=soon; code=no code", Exception{}, `until "soon" is neither a day nor a time such as 2026-12-31T18:00:00Z; code "no code" is none such as NodeNotReady` + write},
		"Slip":        {"a key that is nearly one", "RMA 4711; Owner=sre; untill=2026-12-31", Exception{}, `unknown "Owner=", did you mean owner=?; unknown "untill=", did you mean until=?` + write},
		"Twice":       {"which one would count?", "RMA 4711; owner=sre; owner=net; until=2026-12-31", Exception{}, "there are two owner=" + write},
		"YAMLNoOwner": {"who answers for it?", "{reason: RMA 4711, until: 2026-12-31}", Exception{}, "it lacks an owner" + write},
		"YAMLSlip":    {"a key that is nearly one", "{reason: x, ownr: sre, until: 2026-12-31}", Exception{}, `ownr: Forbidden: unknown field, did you mean "owner"?` + write},
		"YAMLNodes":   {"it is of this node", "{reason: x, owner: sre, until: 2026-12-31, nodes: {names: [a]}}", Exception{}, "nodes: Forbidden: unknown field, did you mean \"code\"?" + write},
		"YAMLNumber":  {"text is text", "{reason: 4711, owner: sre, until: 2026-12-31}", Exception{}, "reason: Invalid value: must be text, is a number: put it in quotes" + write},
		"YAMLOpen":    {"no end", "{reason: x", Exception{}, "did not find expected ',' or '}'" + write},
		"YAMLAlias":   {"bombs are made of them", "{reason: &a x, owner: *a, until: 2026-12-31}", Exception{}, "reason: Invalid value: anchors and aliases are not accepted here: write the value out; owner: Invalid value: anchors and aliases are not accepted here: write the value out" + write},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ParseExcuse(tc.in)
			fault := ""
			if err != nil {
				fault = err.Error()
			}
			if diff := cmp.Diff(tc.fault, fault); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want, got, ignoreCompiled); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if got.Until.Location() != time.UTC {
				t.Errorf("%s: the end is in zone %s", tc.reason, got.Until.Location())
			}
		})
	}
}

// Any annotation is refused in one line that shows how to write it, or is whole.
func FuzzParseExcuse(f *testing.F) {
	for _, seed := range []string{exampleExcuse, "", ";;=", "{", "{reason: x, owner: y, until: 2026-12-31}", "{a: &a [*a]}", "owner=\x00;until=0000-01-01;x", "{}---\n{}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		e, err := ParseExcuse(in)
		if err != nil {
			if !strings.HasSuffix(err.Error(), `"`+exampleExcuse+`"`) {
				t.Errorf("no example in %q", err)
			}
			return
		}
		if strings.TrimSpace(e.Reason) == "" || strings.TrimSpace(e.Owner) == "" || e.Nodes != nil {
			t.Errorf("an exception that is not whole: %+v", e)
		}
	})
}
