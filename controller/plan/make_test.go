package plan_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/drift"
	"rollcall.dev/rollcall/controller/plan"
)

// types are made once: they are read-only.
var types = drift.NewTypes()

// A scenario spells out a fleet, what Git wants of a cluster and what lives
// there; it shows the plan and what an apply would be given.
func TestMakeScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/make/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := readScene(t, a)
			before := s.snapshot(t)
			got := s.play()
			if diff := gocmp.Diff(before, s.snapshot(t)); diff != "" {
				t.Errorf("the inputs, which clusters share, were written to:\n%s", diff)
			}
			at := slices.IndexFunc(a.Files, func(f txtar.File) bool { return f.Name == "want" })
			if at < 0 {
				t.Fatal("there is no section want")
			}
			if diff := gocmp.Diff(string(a.Files[at].Data), got); diff != "" && !*update {
				t.Errorf("%s-want +got:\n%s", a.Comment, diff)
			}
			if *update {
				a.Files[at].Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// play plans, holds what limits hold, and prints it with the batch.
func (s *scene) play() string {
	c := plan.Make(s.input)
	var b strings.Builder
	if s.input.From == nil {
		s.across(&c)
	}
	printActions(&b, &c)
	if s.input.From == nil {
		s.printBatch(&b, c)
	}
	return b.String()
}

// across is what controller.Across does, of one cluster.
func (s *scene) across(c *plan.Cluster) {
	in := s.input
	approvals := in.Fleet.Approvals
	approved := clusters.Approved(approvals, clusters.AllowPrune, in.Commit, c.Name)
	limits := plan.Limit(in.Commit, in.Fleet.Policy.MaxDeletes, []plan.Deletes{plan.DeletesOf(in, c, approved)}, approvals)
	c.Hold(nil, limits[c.Name])
}

func printActions(b *strings.Builder, c *plan.Cluster) {
	for i := range c.Actions {
		a := &c.Actions[i]
		fmt.Fprintf(b, "%s %s", a.Operation, a.Object)
		if len(a.Adopts) > 0 {
			fmt.Fprintf(b, " from %s", strings.Join(a.Adopts, ","))
		}
		b.WriteByte('\n')
		for _, f := range a.Fields {
			fmt.Fprintf(b, "  %s\n", f)
		}
		if a.Note != "" {
			fmt.Fprintf(b, "  note: %s\n", a.Note)
		}
		for _, h := range a.Holds {
			fmt.Fprintf(b, "  held %s: %s\n", h.Code, h.Message)
		}
	}
	for _, e := range c.Nodes {
		fmt.Fprintf(b, "%s %s %s", e.DaemonSet, e.Effect, e.Node)
		for _, r := range e.Reasons {
			fmt.Fprintf(b, ": %s: %s", r.Code, r.Message)
		}
		b.WriteByte('\n')
	}
	for _, r := range c.Rollouts {
		fmt.Fprintf(b, "rollout %s %s nodes=%d atOnce=%d steps=%d atLeast=%ds: %s\n", r.DaemonSet, r.Strategy, r.Nodes, r.AtOnce, r.Steps, r.AtLeast, r.Message)
	}
	for _, n := range c.Notes {
		fmt.Fprintf(b, "note: %s\n", n)
	}
	sum := plan.New(plan.Scope{}, []plan.Cluster{*c}).Summary
	fmt.Fprintf(b, "sum: %d created, %d configured, %d pruned, %d held\n", sum.Created, sum.Configured, sum.Pruned, sum.Held)
}

func (s *scene) printBatch(b *strings.Builder, c plan.Cluster) {
	batch, some := plan.BatchOf(s.input, c)
	if !some {
		b.WriteString("nothing to do\n")
		return
	}
	for i, stage := range batch.Stages {
		fmt.Fprintf(b, "stage %d\n", i)
		for _, ch := range stage {
			fmt.Fprintf(b, "  %s %s%s\n", ch.Do, ch.Object, words("uid", ch.UID, "force", yes(ch.Force), "adopt", strings.Join(ch.Adopt, ","), "keep", labelText(ch.Keep)))
		}
	}
	for _, r := range batch.Held {
		fmt.Fprintf(b, "waits %s %s\n", r.Object, r.Reason)
	}
	i := batch.Inventory
	fmt.Fprintf(b, "inventory%s\n", words("fleet", i.Fleet, "cluster", i.Cluster, "overlay", i.Overlay, "commit", i.Commit, "pending", i.Pending))
	for _, item := range i.Items {
		fmt.Fprintf(b, "  %s%s\n", item.Reference, words("uid", item.UID, "selector", labelText(item.Selector)))
	}
}

// words are pairs of a name and a value, without those that have none.
func words(pairs ...string) string {
	out := ""
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			out += " " + pairs[i] + "=" + pairs[i+1]
		}
	}
	return out
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return ""
}

func labelText(m map[string]string) string {
	var all []string
	for k, v := range m {
		all = append(all, cmp.Or(k, "?")+"="+v)
	}
	slices.Sort(all)
	return strings.Join(all, ",")
}

// A render is shared between clusters: to label it leaves it as it is.
func TestLabelled(t *testing.T) {
	for name, text := range map[string]string{
		"None":    "kind: A\nmetadata: {name: a}\n",
		"Labels":  "kind: A\nmetadata: {name: a, labels: {x: z}}\nspec: {template: {metadata: {labels: {x: z}}}}\n",
		"Another": "kind: A\nmetadata: {name: a, labels: {rollcall.dev/fleet: q}}\n",
		"Null":    "kind: A\nmetadata: {name: a, labels: null}\n",
	} {
		t.Run(name, func(t *testing.T) {
			all := documents(t, txtar.File{Name: name, Data: []byte("apiVersion: v1\n" + text)})
			before := all[0].DeepCopy()
			got := plan.Labelled(all, "p")
			if diff := gocmp.Diff(before.Object, all[0].Object); diff != "" {
				t.Errorf("it was written to:\n%s", diff)
			}
			if got[0].GetLabels()[clusters.FleetLabel] != "p" || len(got[0].GetLabels()) < len(before.GetLabels()) {
				t.Errorf("labels are %v", got[0].GetLabels())
			}
			got[0].SetLabels(map[string]string{"later": "change"})
			if diff := gocmp.Diff(before.Object, all[0].Object); diff != "" {
				t.Errorf("what is labelled shares what is changed later:\n%s", diff)
			}
		})
	}
}

// What the API server refuses is held with what it says; that a selector cannot
// be changed is no refusal of a replacement.
func TestRefused(t *testing.T) {
	for file, want := range map[string]string{"operations": "Refused", "replace": ""} {
		a, err := txtar.ParseFile("testdata/make/" + file + ".txtar")
		if err != nil {
			t.Fatal(err)
		}
		s := readScene(t, a)
		for i := range s.input.Drift.Objects {
			if d := &s.input.Drift.Objects[i]; d.State == drift.Modified && isDaemonSet(d.Object) {
				d.State, d.Message = drift.Invalid, "no"
			}
		}
		for _, act := range plan.Make(s.input).Actions {
			if isDaemonSet(act.Object) && (len(act.Holds) > 0) != (want != "") {
				t.Errorf("%s: %s is held by %v, want %q", file, act.Object, act.Holds, want)
			}
		}
	}
}
