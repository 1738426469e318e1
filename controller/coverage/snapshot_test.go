package coverage

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/clusters/recorded"
)

// A snapshot judged is the cluster judged: whatever a verdict reads survives the
// writing, the redaction and the reading.
func TestSnapshotIsJudgedAlike(t *testing.T) {
	compared := 0
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 1))
		w := smallWorld(func(n int) int { return random.IntN(n) })
		// An observation has only what is in namespaces that hold a DaemonSet.
		outside := func(namespace string) bool {
			return !slices.ContainsFunc(w.live.DaemonSets, func(d appsv1.DaemonSet) bool { return d.Namespace == namespace })
		}
		w.live.Pods = slices.DeleteFunc(w.live.Pods, func(p clusters.Pod) bool { return outside(p.Namespace) })
		w.live.Events = slices.DeleteFunc(w.live.Events, func(e clusters.Event) bool { return outside(e.Namespace) })
		var b bytes.Buffer
		if err := recorded.Write(&b, "c", "test", w.live); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		got, err := recorded.Read(t.Context(), &b, clusters.Want{}, "-")
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		// The same world without what a snapshot leaves out, which no verdict reads.
		want := recorded.Redact(w.live)
		judge := func(l clusters.Live) [][]Row {
			var subjects []Subject
			for i := range l.DaemonSets {
				subjects = append(subjects, Subject{Live: &l.DaemonSets[i]})
			}
			c := Compute(&l, subjects, w.options)
			var rows [][]Row
			for i := range c.DaemonSets {
				rows = append(rows, c.DaemonSets[i].Rows(func(State) bool { return true }))
				compared += len(rows[i])
			}
			return rows
		}
		if diff := cmp.Diff(judge(want), judge(got), cmpopts.EquateEmpty(), cmpopts.EquateApproxTime(time.Second)); diff != "" {
			t.Fatalf("seed %d: -want +got:\n%s", seed, diff)
		}
		if diff := cmp.Diff(judge(w.live), judge(want), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("seed %d: redaction changes a verdict: -want +got:\n%s", seed, diff)
		}
	}
	if compared < 1000 {
		t.Errorf("only %d rows were compared", compared)
	}
}
