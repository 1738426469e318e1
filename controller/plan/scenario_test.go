package plan_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/plan"
)

var update = flag.Bool("update", false, "rewrite the want sections; read the diff")

var noon = time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)

// commit is the commit of a letter, such as a.
func commit(letter string) string { return strings.Repeat(letter, 40)[:40*len(letter)] }

func fleet(t testing.TB, spec string) clusters.Fleet {
	t.Helper()
	head := "apiVersion: rollcall.dev/v1alpha1\nkind: Fleet\nmetadata: {name: p}\nspec:\n  source: {url: /srv/git}\n"
	f, err := clusters.ParseFleet("f.yaml", []byte(head+spec))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// progress reads a line such as
// "dev-a env=dev carries=b pending=c applied=40m nodes=18/20/20 met=35m regressed=n1,taint":
// covered, up to date and all nodes; ages before noon. gone: not observed;
// same: the commit changes nothing.
func progress(t *testing.T, line string) plan.Progress {
	t.Helper()
	words := strings.Fields(line)
	p := plan.Progress{Cluster: words[0], Labels: map[string]string{}, Observed: true, Changes: true}
	age := func(text string) time.Time {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		return noon.Add(-d)
	}
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "gone":
			p.Observed = false
		case "same":
			p.Changes = false
		case "resumed":
			p.Resumed = true
		case "carries":
			p.Commit = commit(value)
		case "pending":
			p.Pending = commit(value)
		case "applied":
			p.AppliedAt = age(value)
		case "met":
			p.MetSince = age(value)
		case "regressed":
			p.Regressed = value
		case "nodes":
			var numbers []int
			for text := range strings.SplitSeq(value, "/") {
				n, err := strconv.Atoi(text)
				if err != nil {
					t.Fatalf("%s: %v", line, err)
				}
				numbers = append(numbers, n)
			}
			p.Covered, p.UpToDate, p.Nodes = numbers[0], numbers[1], numbers[2]
		default:
			p.Labels[key] = value
		}
	}
	return p
}

// decided is each cluster with what holds it, and whether it may go.
func decided(all []plan.Progress, holds map[string][]plan.Hold) string {
	var b strings.Builder
	for _, p := range all {
		if len(holds[p.Cluster]) == 0 {
			fmt.Fprintf(&b, "%s free\n", p.Cluster)
		}
		for _, h := range holds[p.Cluster] {
			fmt.Fprintf(&b, "%s %s: %s\n", p.Cluster, h.Code, strings.NewReplacer(commit("b"), "b...", commit("c"), "c...").Replace(h.Message))
		}
	}
	return b.String()
}

// A scenario has a fleet's rollout, and per section "clusters COMMIT" the
// clusters at noon, followed by what is decided.
func TestWaveScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/waves/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var rollout *clusters.Rollout
			got := ""
			for i, f := range a.Files {
				switch name, letter, _ := strings.Cut(f.Name, " "); name {
				case "rollout.yaml":
					rollout = fleet(t, string(f.Data)).Rollout
				case "clusters":
					var all []plan.Progress
					for line := range strings.Lines(string(f.Data)) {
						all = append(all, progress(t, line))
					}
					got = decided(all, plan.Waves(rollout, commit(letter), all, noon))
				case "want":
					if *update {
						a.Files[i].Data = []byte(got)
					} else if diff := cmp.Diff(string(f.Data), got); diff != "" {
						t.Errorf("%s: -want +got:\n%s", a.Comment, diff)
					}
				default:
					t.Fatalf("unknown section %q", f.Name)
				}
			}
			if *update {
				if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestWavesNone(t *testing.T) {
	all := []plan.Progress{{Cluster: "a", Changes: true}}
	for name, r := range map[string]*clusters.Rollout{"Nil": nil, "NoWaves": {Resume: commit("b")}} {
		if got := plan.Waves(r, commit("b"), all, noon); len(got) != 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
	r := &clusters.Rollout{Waves: []clusters.Wave{{Name: "all", Size: "100%"}}}
	if got := plan.Waves(r, "", []plan.Progress{{Cluster: "a", Observed: true, Changes: true}}, noon); len(got) != 0 {
		t.Errorf("without a commit the only wave is held: %v", got)
	}
}

// Waves writes nothing into what it is given.
func TestWavesReadsOnly(t *testing.T) {
	r := fleet(t, "  rollout: {waves: [{name: w, clusters: {names: [z, b, a]}, size: 1, soak: 5m}]}\n").Rollout
	all := []plan.Progress{{Cluster: "b", Observed: true, Changes: true}, {Cluster: "a", Observed: true, Changes: true}}
	before, names := slices.Clone(all), slices.Clone(r.Waves[0].Clusters.Names)
	plan.Waves(r, commit("b"), all, noon)
	if diff := cmp.Diff(before, all); diff != "" || !slices.Equal(names, r.Waves[0].Clusters.Names) {
		t.Errorf("it sorted its input: %s %v", diff, r.Waves[0].Clusters.Names)
	}
}
