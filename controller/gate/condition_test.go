package gate

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	cases := map[string]struct {
		reason string
		texts  []string
		want   Condition
		words  string // of the condition
		err    string
	}{
		"None":     {"nothing is asked for", nil, Condition{}, "", ""},
		"Coverage": {"a percentage", []string{"coverage=98%"}, Condition{Coverage: 98}, "coverage=98%", ""},
		"Fraction": {"with a fraction", []string{"coverage=99.5%"}, Condition{Coverage: 99.5}, "coverage=99.5%", ""},
		"Both":     {"all must hold", []string{"upToDate", "coverage=98%"}, Condition{Coverage: 98, UpToDate: true}, "coverage=98%, upToDate", ""},
		"Highest":  {"of two shares the higher one decides", []string{"coverage=98%", "coverage=90%"}, Condition{Coverage: 98}, "coverage=98%", ""},
		"Case":     {"kubectl is not strict about case either", []string{"UpToDate", "Coverage=1%"}, Condition{Coverage: 1, UpToDate: true}, "coverage=1%, upToDate", ""},
		"Number":   {"a number of nodes is no share", []string{"coverage=98"}, Condition{}, "", `"98" is no percentage above 0% and up to 100%`},
		"Zero":     {"nothing is no share", []string{"coverage=0%"}, Condition{}, "", `"0%" is no percentage`},
		"TooMuch":  {"nor is more than all", []string{"coverage=101%"}, Condition{}, "", `"101%" is no percentage`},
		"NaN":      {"nor what is no number", []string{"coverage=NaN%"}, Condition{}, "", `"NaN%" is no percentage`},
		"Empty":    {"coverage needs a share", []string{"coverage"}, Condition{}, "", `"coverage": use coverage=98% or upToDate`},
		"Value":    {"upToDate has none", []string{"upToDate=true"}, Condition{}, "", `"upToDate=true": use coverage=98% or upToDate`},
		"Unknown":  {"other conditions are told", []string{"condition=Ready"}, Condition{}, "", `"condition=Ready": use coverage=98% or upToDate`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(tc.texts)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s: error %v, want %q", tc.reason, err, tc.err)
				}
				return
			}
			if err != nil || got != tc.want || got.String() != tc.words {
				t.Errorf("%s: got %+v (%s), %v, want %+v (%s)", tc.reason, got, got, err, tc.want, tc.words)
			}
		})
	}
	if got := (Condition{Agent: "a", Revision: Git}).String(); got != "coverage=min, revision=git" {
		t.Errorf("got %q", got)
	}
}

func TestReached(t *testing.T) {
	cases := map[string]struct {
		reason     string
		n, counted int
		percent    float64
		want       bool
	}{
		"All":      {"all is all", 3, 3, 100, true},
		"OneLess":  {"one less is not", 2, 3, 100, false},
		"Exactly":  {"98% of 50 is 49", 49, 50, 98, true},
		"Fraction": {"99.9% of 1000 is 999, whatever binary makes of it", 999, 1000, 99.9, true},
		"Below":    {"one less is not", 998, 1000, 99.9, false},
		"Third":    {"a share that is no whole node is rounded up", 1, 3, 34, false},
		"Large":    {"one node of a hundred thousand is one", 99_999, 100_000, 100, false},
		"None":     {"of none any share is reached", 0, 0, 100, true},
		"NoShare":  {"no share is asked for", 0, 3, 0, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := reached(tc.n, tc.counted, tc.percent); got != tc.want {
				t.Errorf("%s: got %v", tc.reason, got)
			}
		})
	}
}

func TestWorseThan(t *testing.T) {
	cases := map[string]struct {
		reason     string
		now, then  Progress
		want, back bool // back: the other way round
	}{
		"Same":   {"the same is no worse", Progress{Met: true, Counted: 4, Covered: 4}, Progress{Met: true, Counted: 4, Covered: 4}, false, false},
		"Unmet":  {"not to be met any more is", Progress{Counted: 4, Covered: 4}, Progress{Met: true, Counted: 4, Covered: 4}, true, false},
		"Fewer":  {"so is a further gap, though it is still met", Progress{Met: true, Counted: 100, Covered: 98}, Progress{Met: true, Counted: 100, Covered: 99}, true, false},
		"Joined": {"a covered node more is not", Progress{Met: true, Counted: 5, Covered: 5}, Progress{Met: true, Counted: 4, Covered: 4}, false, false},
		"Left":   {"nor is a node less", Progress{Met: true, Counted: 3, Covered: 3}, Progress{Met: true, Counted: 4, Covered: 4}, false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got, back := tc.now.WorseThan(tc.then), tc.then.WorseThan(tc.now); got != tc.want || back != tc.back {
				t.Errorf("%s: got %v and back %v, want %v and %v", tc.reason, got, back, tc.want, tc.back)
			}
		})
	}
}

func TestProgressText(t *testing.T) {
	cases := map[string]struct {
		reason string
		p      Progress
		want   string
	}{
		"Met": {"nothing but numbers", Progress{Met: true, Counted: 4, Covered: 4, UpToDate: 3}, "4/4 covered, 3/4 up to date"},
		"Few": {"who blocks, and why", Progress{Counted: 4, Covered: 2, UpToDate: 2, Blockers: []Blocker{{Node: "n1", State: "Missing", Code: "FailedCreate"}, {Node: "n2", State: "NodeNotReady", Code: "NodeNotReady"}}},
			"2/4 covered, 2/4 up to date; waiting for n1 (Missing FailedCreate), n2 (NodeNotReady)"},
		"Many": {"a few names a line, then how many more", Progress{Counted: 5, Blockers: []Blocker{{Node: "n1", State: "Missing"}, {Node: "n2", State: "Missing"}, {Node: "n3", State: "Missing"}, {Node: "n4", State: "Missing"}, {Node: "n5", State: "Missing"}}},
			"0/5 covered, 0/5 up to date; waiting for n1 (Missing), n2 (Missing), n3 (Missing) and 2 more"},
		"LeftOut": {"what is left out, in order of the grounds", Progress{Met: true, Counted: 1, Covered: 1, UpToDate: 1, LeftOut: map[Ground]int{Starting: 3, NodeNotReady: 2, Excused: 1, Leaving: 0}, Note: "a note"},
			"1/1 covered, 1/1 up to date; left out: 1 excused, 2 NodeNotReady, 3 starting; a note"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.p.String(); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
