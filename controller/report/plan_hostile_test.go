package report_test

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/drift"
	"rollcall.dev/rollcall/controller/plan"
	"rollcall.dev/rollcall/controller/report"
)

// attack is a text that would colour a terminal, forge lines and cells, and call
// people.
const attack = "\x1b[31mx\r\nFORGED \u202e| `c` **b** <img src=x> [l](https://evil.example) @everyone #1 \x9b2J"

// poison makes every text of a value an attack but those that only rollcall
// writes.
func poison(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if v.Type() == reflect.TypeFor[string]() {
			v.SetString(attack)
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			poison(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			poison(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				poison(v.Field(i))
			}
		}
	}
}

// evilPlan has of everything one.
func evilPlan() plan.Plan {
	field := func(c drift.Kind) drift.Field { return drift.Field{Change: c, Manager: "m"} }
	c := plan.Cluster{Name: "c", Overlay: "o", Notes: []string{"n"}, Rollouts: []plan.Rollout{{}}, Nodes: []plan.Effect{}}
	for _, o := range []plan.Operation{plan.Create, plan.Configure, plan.Replace, plan.Prune, plan.Unchanged} {
		c.Actions = append(c.Actions, plan.Action{
			Operation: o, Holds: []plan.Hold{{}}, Note: "n", Adopts: []string{"a"},
			Fields: []drift.Field{field(drift.Changed), field(drift.Missing), field(drift.Added), field(drift.Order)},
		})
	}
	for _, i := range []plan.Impact{plan.Gains, plan.Loses, plan.Restarts, plan.WontFit} {
		c.Nodes = append(c.Nodes, plan.Effect{Effect: i, Reasons: []plan.Reason{{}}})
	}
	p := plan.New(plan.Scope{Fleet: "f", From: "x", To: "y"}, []plan.Cluster{c, {Name: "d", Error: "e"}})
	poison(reflect.ValueOf(&p))
	return p
}

// harmless tells what a text would do to a terminal or to the reader.
func harmless(t *testing.T, what, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "FORGED") {
			t.Errorf("%s has a forged line", what)
		}
		if i := strings.IndexFunc(line, steers); i >= 0 {
			t.Errorf("%s steers a terminal: %q", what, line[i:])
		}
	}
	if !strings.Contains(text, `\u001b`) {
		t.Errorf("%s does not show the escape that was there", what)
	}
}

// Nothing that a cluster or a repository says moves the cursor, forges a line or
// a cell, or calls anybody.
func TestPlanHostile(t *testing.T) {
	p := evilPlan()
	harmless(t, "the plan", report.PlanText(p, report.Style{}))
	markdown := report.PlanMarkdown(p)
	harmless(t, "the Markdown", markdown)
	for _, bad := range []string{"<img", "@everyone", "`c`", "**b**", "://evil"} {
		if strings.Contains(markdown, bad) {
			t.Errorf("the Markdown has %q", bad)
		}
	}
	if m := regexp.MustCompile(`[^\\]\]\(`).FindString(markdown); m != "" {
		t.Errorf("the Markdown has a link: %q", m)
	}
	for line := range strings.Lines(markdown) {
		if cells := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|"); strings.HasPrefix(line, "|") && cells != 6 && cells != 5 {
			t.Errorf("a row of %d bars: %s", cells, line)
		}
	}
}

func TestAppliedHostile(t *testing.T) {
	done := []report.ClusterResults{{Name: "c"}}
	for _, o := range []clusters.Operation{clusters.OpCreated, clusters.OpConfigured, clusters.OpUnchanged, clusters.OpPruned, clusters.OpHeld, clusters.OpFailed} {
		done[0].Results = append(done[0].Results, clusters.Result{Operation: o})
	}
	a := report.NewApplied(evilPlan(), done)
	poison(reflect.ValueOf(&a))
	harmless(t, "what was applied", a.Text(report.Style{}))
}

func TestDiffHostile(t *testing.T) {
	d := report.Diff{Source: &report.Source{}, Clusters: []report.DiffCluster{{Observation: report.Observation{State: clusters.Fresh}}, {Observation: report.Observation{State: clusters.Denied}}}}
	for _, s := range []drift.State{drift.Modified, drift.Absent, drift.Extra, drift.Invalid, drift.Same} {
		fields := []drift.Field{{Change: drift.Changed, Manager: "m"}, {Change: drift.Added}, {Change: drift.Missing}}
		d.Clusters[0].Objects = append(d.Clusters[0].Objects, drift.Object{State: s, Fields: fields, Foreign: fields, Ignored: fields, Unknown: []string{"u"}, Message: "m", Immutable: true, Confirmation: drift.Unconfirmed})
	}
	d.Clusters[0].Unread = []drift.Unread{{}}
	poison(reflect.ValueOf(&d))
	harmless(t, "the differences", d.Text(report.Style{}))
}
