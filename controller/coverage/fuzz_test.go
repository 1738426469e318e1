package coverage

import (
	"bytes"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"rollcall.dev/rollcall/clusters"
)

// FuzzCompute holds for any world: one verdict per node, in order, and no
// panic. Bytes that are a scenario are read as one, all others are thrown as
// dice for a small world.
func FuzzCompute(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds: %d files, %v", len(files), err)
	}
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(txtar.Format(a))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if bytes.Contains(data, []byte("-- --")) {
			return // the parser of scenarios panics there, which is not ours to find
		}
		if a := txtar.Parse(data); len(a.Files) > 0 {
			if s, err := parseScenario(a); err == nil {
				checkWorld(t, s)
			}
		}
		checkWorld(t, smallWorld(diceOf(data)))
	})
}

// diceOf throws the bytes one after the other, and zeros after the last.
func diceOf(data []byte) dice {
	return func(n int) int {
		if len(data) == 0 {
			return 0
		}
		b := int(data[0])
		data = data[1:]
		return b % n
	}
}

func checkWorld(t *testing.T, s *scenario) {
	t.Helper()
	// The API has one object of a name.
	unique := map[string]bool{}
	s.live.Nodes = slices.DeleteFunc(s.live.Nodes, func(n clusters.Node) bool {
		seen := unique[n.Name]
		unique[n.Name] = true
		return seen
	})
	c := s.compute()
	all := c.DaemonSets
	if len(all) != len(s.subjects()) {
		t.Fatalf("%d subjects, %d results", len(s.subjects()), len(all))
	}
	checkInvariants(t, &s.live, c)
	for i := range all {
		for _, n := range s.live.Nodes {
			if len(all[i].Checks(n.Name)) == 0 {
				t.Errorf("no check tells of node %q", n.Name)
			}
		}
	}
}
