package controller_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/clusters/recorded"
	"rollcall.dev/rollcall/controller"
	"rollcall.dev/rollcall/controller/coverage"
	"rollcall.dev/rollcall/controller/drift"
	"rollcall.dev/rollcall/controller/report"
	"rollcall.dev/rollcall/render/build"
	"rollcall.dev/rollcall/sync/source"
)

var update = flag.Bool("update", false, "rewrite the want of scenarios")

// quiet is a Progress that nobody watches.
type quiet struct{}

func (quiet) Begin(string)                {}
func (quiet) Done(string, report.Cluster) {}

// A scenario is one pass of the whole line: a fleet file, the files of a
// commit, Cluster files and what kubectl printed; and what is reported.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == build.ChildCommand {
		os.Exit(build.Child(os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := digest(pass(t, a))
			last := &a.Files[len(a.Files)-1]
			if last.Name != "want" {
				t.Fatalf("the last file is %s, not want", last.Name)
			}
			if *update {
				last.Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(last.Data), got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", strings.TrimSpace(string(a.Comment)), diff)
			}
		})
	}
}

// pass runs the line over a scenario.
func pass(t *testing.T, a *txtar.Archive) report.Report {
	t.Helper()
	dir := t.TempDir()
	commit := fstest.MapFS{}
	var fleet clusters.Fleet
	var cs []clusters.Cluster
	for _, f := range a.Files {
		var err error
		switch top, rest, _ := strings.Cut(f.Name, "/"); top {
		case "rollcall.yaml":
			fleet, err = clusters.ParseFleet(f.Name, f.Data)
		case "repository":
			commit[rest] = &fstest.MapFile{Data: f.Data, Mode: 0o644}
		case "clusters":
			var c clusters.Cluster
			c, err = clusters.ParseCluster(f.Name, f.Data, fleet.Policy)
			c.Recorded = []string{filepath.Join(dir, c.Recorded[0])}
			cs = append(cs, c)
		case "dumps":
			if err = os.MkdirAll(filepath.Join(dir, top), 0o755); err == nil {
				err = os.WriteFile(filepath.Join(dir, f.Name), f.Data, 0o644)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	renderer := build.New(build.Options{})
	defer renderer.Close()
	l := controller.Line{Fleet: fleet, Renderer: renderer, Observer: &recorded.Observer{}, Types: drift.NewTypes(), Keep: func(coverage.State) bool { return true }, Deadline: time.Minute}
	artifact := source.Artifact{}
	if fleet.Source != nil {
		artifact = source.Artifact{Revision: source.Revision{URL: fleet.Source.URL, Commit: strings.Repeat("c", 40)}, Files: commit}
	}
	found := controller.Reconcile(t.Context(), l, artifact, cs, 0, quiet{})
	for i := range found {
		found[i].Observation.Error = strings.ReplaceAll(found[i].Observation.Error, dir, "DIR")
	}
	return report.New(report.Scope{Fleet: fleet, At: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), Revision: artifact.Revision, NodesListed: "all"}, found, controller.Declared(fleet, cs))
}

func maybe(b *bool) string {
	if b == nil {
		return "unknown"
	}
	return fmt.Sprint(*b)
}

// digest tells a report in a few lines.
func digest(r report.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "complete %t; %d clusters, %d unknown; %d of %d covered\n", r.Complete, r.Summary.Clusters, r.Summary.Unknown, r.Summary.Covered, r.Summary.Intended)
	for _, c := range r.Clusters {
		fmt.Fprintf(&b, "\n%s  %s %s  %s\n", c.Name, c.Sync.State, c.Sync.Overlay, c.Observation.State)
		for _, e := range []string{c.Sync.Error, c.Observation.Error} {
			if e != "" {
				fmt.Fprintf(&b, "  error: %s\n", e)
			}
		}
		for _, d := range c.DaemonSets {
			fmt.Fprintf(&b, "  %s  inGit %s live %t  %d of %d covered\n", d.Key(), maybe(d.InGit), d.Live, d.Counts.Covered, d.Counts.Intended)
			for _, n := range d.Nodes {
				line := "    " + n.Name + "  " + n.State
				if n.Excuse != nil {
					line += "  excused: " + n.Excuse.Reason
				}
				for _, reason := range n.Reasons {
					line += "  " + reason.Code
				}
				b.WriteString(line + "\n")
			}
		}
		for _, a := range c.Agents {
			fmt.Fprintf(&b, "  agent %s %v  %d of %d covered, %d waiting, %d excused, met %t, missing %v\n", a.Name, a.DaemonSets, a.Covered, a.Intended, a.Waiting, a.Excused, a.Met, a.Missing.Sample)
		}
		if c.Excluded != nil {
			fmt.Fprintf(&b, "  excluded %v\n", c.Excluded.Sample)
		}
		for _, o := range c.Drift {
			fmt.Fprintf(&b, "  drift %s/%s %s\n", o.Object.Namespace, o.Object.Name, o.State)
			for _, f := range o.Fields {
				fmt.Fprintf(&b, "    %s: %s is %s by %s not later than %s\n", f.Path, f.Desired, f.Live, f.Manager, f.NotAfter)
			}
		}
	}
	b.WriteString("\n")
	for _, a := range r.Agents {
		fmt.Fprintf(&b, "agent %s  %d of %d in %d clusters, %d unknown, unmet %v, missing %v\n", a.Name, a.Covered, a.Intended, a.Clusters, a.Unknown, a.Unmet, a.Missing.Sample)
	}
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%s %s %s  %s: %s  %v %v\n", f.Severity, f.Code, f.Cluster, f.Cause.Kind, f.Cause.Key, f.DaemonSets, f.Nodes.Sample)
	}
	return b.String()
}
