package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"rollcall.dev/rollcall/clusters/kubetest"
	"rollcall.dev/rollcall/controller/report"
)

const (
	churnGrace  = 12 * time.Second // more than a control plane on two busy cores takes to make a pod
	churnStands = 26 * time.Second // how long a fault stands: the grace, and time for some looks
	churnSettle = 20 * time.Second // after it was mended, what it left behind may still be seen
)

// TestRealChurn adds, taints, breaks and removes nodes of a real cluster for a
// while, and looks at it all the time: every planted fault must be found while
// it stands, and nothing must be found that was not planted. ROLLCALL_CHURN
// says for how long, such as 10m (make prove); ROLLCALL_SEED repeats a run.
func TestRealChurn(t *testing.T) {
	lasts := time.Minute
	if text := os.Getenv("ROLLCALL_CHURN"); text != "" {
		var err error
		if lasts, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("ROLLCALL_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("ROLLCALL_SEED=%d ROLLCALL_CHURN=%s", seed, lasts)
	c := newChurn(t, seed)
	c.brief = os.Getenv("ROLLCALL_CHURN") == ""
	ctx, stop := context.WithTimeout(t.Context(), lasts)
	defer stop()
	var running sync.WaitGroup
	running.Go(func() { c.comeAndGo(ctx) })
	running.Go(func() { c.roll(ctx) })
	running.Go(func() { c.plant(ctx) })
	looking, looked := context.WithCancel(t.Context())
	var eye sync.WaitGroup
	eye.Go(func() { c.look(looking) })
	running.Wait()
	time.Sleep(churnSettle + 2*time.Second) // then all is well again
	looked()
	eye.Wait()
	c.conclude(t)
}

// churn is a cluster that does not come to rest.
type churn struct {
	*hands
	dir    string
	seed   uint64
	random *rand.Rand // of what is planted

	mu       sync.Mutex
	faults   []*fault
	looks    []look
	joined   int
	left     int
	rollouts int
	calm     []string // nodes that only faults touch
	busy     map[string]bool
	between  int  // findings that caught a node between two pods
	brief    bool // the minute of make test
}

// fault is something that was broken, and how it is told.
type fault struct {
	kind    string
	what    string
	matches func(report.Finding) bool
	silent  bool // it must not be found: it is excused
	planted time.Time
	mended  time.Time
	found   bool
}

// look is what one report said.
type look struct {
	from, to time.Time
	findings []report.Finding
	last     bool
}

func newChurn(t *testing.T, seed uint64) *churn {
	t.Helper()
	const calm = 14
	cp := kubetest.Start(t, kubetest.Options{Controllers: true, Scheduler: true, Nodes: 1})
	c := &churn{hands: newHands(t, cp), seed: seed, random: rand.New(rand.NewPCG(seed, 1)), busy: map[string]bool{}}
	cp.AddNodes(t, []string{"role=gpu"}, "gpu-0", "gpu-1")
	c.taint(t.Context(), "gpu-0", "gpu:NoSchedule")
	c.taint(t.Context(), "gpu-1", "gpu:NoSchedule")
	for i := range calm {
		c.calm = append(c.calm, fmt.Sprintf("calm-%d", i))
	}
	cp.AddNodes(t, []string{"role=worker"}, c.calm...)
	cp.Apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: limited}\n---\n"+
		churnSet("default", "rolling", "RollingUpdate", "")+churnSet("default", "ondelete", "OnDelete", "")+
		churnSet("default", "tolerant", "RollingUpdate", "tolerations: [{key: gpu, operator: Exists}], ")+
		churnSet("default", "moved", "RollingUpdate", "")+churnSet("default", "guard", "RollingUpdate", "")+churnSet("limited", "quota", "RollingUpdate", ""))
	for _, name := range []string{"rolling", "ondelete", "moved", "guard"} {
		cp.WaitDaemonSetReady(t, "default", name, calm+1)
	}
	cp.WaitDaemonSetReady(t, "default", "tolerant", calm+3)
	cp.WaitDaemonSetReady(t, "limited", "quota", calm+1)

	c.dir = t.TempDir()
	write(t, c.dir, "rollcall.yaml", fmt.Sprintf(`apiVersion: rollcall.dev/v1alpha1
kind: Fleet
metadata: {name: churn}
spec:
  clusters: {directory: clusters}
  policy: {startupGrace: %[1]s, progressDeadline: 40s}
  agents: [{name: guard, names: [default/guard], clusters: {}, nodes: {matchLabels: {role: worker}}, startupGrace: %[1]s}]
`, churnGrace))
	write(t, c.dir, "clusters/one.yaml", fmt.Sprintf("apiVersion: rollcall.dev/v1alpha1\nkind: Cluster\nmetadata: {name: one}\nspec: {kubeconfig: {path: %q}}\n", cp.Kubeconfig()))
	time.Sleep(churnGrace)
	return c
}

func churnSet(namespace, name, strategy, spec string) string {
	update := "{type: OnDelete}"
	if strategy == "RollingUpdate" {
		update = "{type: RollingUpdate, rollingUpdate: {maxUnavailable: 3}}"
	}
	return fmt.Sprintf(`apiVersion: apps/v1
kind: DaemonSet
metadata: {name: %[2]s, namespace: %[1]s, labels: {app: %[2]s}}
spec:
  selector: {matchLabels: {app: %[2]s}}
  updateStrategy: %[3]s
  template:
    metadata: {labels: {app: %[2]s}}
    spec: {%[4]spriorityClassName: system-node-critical, containers: [{name: c, image: "registry.example/%[2]s:1"}]}
---
`, namespace, name, update, spec)
}

// look reports again and again.
func (c *churn) look(ctx context.Context) {
	for {
		last := ctx.Err() != nil
		l := look{from: time.Now(), last: last}
		var out, errs bytes.Buffer
		status := run([]string{"report", "-f", filepath.Join(c.dir, "rollcall.yaml"), "-o", "json", "--timeout", "30s"}, streams{strings.NewReader(""), &out, &errs})
		l.to = time.Now()
		var r report.Report
		if err := json.Unmarshal(out.Bytes(), &r); err != nil || !r.Complete {
			c.t.Errorf("a report failed with %d: %s", status, errs.String())
			return
		}
		for _, f := range r.Findings {
			if f.Severity != report.Info {
				l.findings = append(l.findings, f)
			}
		}
		c.mu.Lock()
		c.looks = append(c.looks, l)
		c.mu.Unlock()
		if last {
			return
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}

// conclude compares what was found with what was planted.
func (c *churn) conclude(t *testing.T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	type count struct{ planted, found int }
	kinds := map[string]*count{}
	noise, seen := 0, 0
	before := map[string]bool{} // noise of the look before
	for _, l := range c.looks {
		now := map[string]bool{}
		for _, f := range l.findings {
			seen++
			switch {
			case c.explains(l, f):
			case c.caught(l, f):
				c.between++
			default:
				noise++
				now[f.ID] = true
				say := t.Errorf
				if c.brief && !before[f.ID] { // beside other tests a moment may take long: it must be seen twice
					say = t.Logf
				}
				say("noise at %s: %s %s [%s %s] %v %v: %s", l.from.Format("15:04:05.0"), f.Severity, f.Code, f.Cause.Kind, f.Cause.Key, f.DaemonSets, f.Nodes.Sample, f.Message)
			}
		}
		if l.last && len(l.findings) > 0 {
			t.Errorf("at the end, when all was mended, there were %d findings", len(l.findings))
		}
		before = now
	}
	for _, f := range c.faults {
		if kinds[f.kind] == nil {
			kinds[f.kind] = &count{}
		}
		kinds[f.kind].planted++
		if f.found != f.silent {
			kinds[f.kind].found++
			continue
		}
		t.Errorf("%s %s from %s to %s: found %t, excused %t", f.kind, f.what, f.planted.Format("15:04:05"), f.mended.Format("15:04:05"), f.found, f.silent)
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "fault\tplanted\tas it should be\n")
	for _, k := range faultKinds {
		if n := kinds[k.name]; n != nil {
			fmt.Fprintf(w, "%s\t%d\t%d\n", k.name, n.planted, n.found)
		}
	}
	w.Flush()
	t.Logf("%d looks; %d nodes joined, %d left; %d rollouts; %d faults; %d findings of warning or error seen, %d noise, %d between two pods\n%s",
		len(c.looks), c.joined, c.left, c.rollouts, len(c.faults), seen, noise, c.between, b.String())
}

// caught tells whether a look fell into the moment between a pod that somebody
// deleted by force and the one that the controller makes in its place. Which
// moment that is, no single look can know.
func (c *churn) caught(l look, f report.Finding) bool {
	if f.Code != "ControllerStalled" && f.Code != "NotAttempted" && f.Code != "DeletedAtOnce" {
		return false
	}
	for _, d := range c.deletions() {
		if d.at.After(l.from.Add(-8*time.Second)) && d.at.Before(l.to) && slices.Contains(f.DaemonSets, d.daemonSet) {
			return true
		}
	}
	return false
}

// explains tells whether a finding is of a fault that stood, or of what it left
// behind, and notes that the fault was found.
func (c *churn) explains(l look, f report.Finding) bool {
	explained := false
	for _, p := range c.faults {
		if l.to.Before(p.planted) || !p.mended.IsZero() && l.from.After(p.mended.Add(churnSettle)) || !p.matches(f) {
			continue
		}
		explained = explained || !p.silent
		if l.from.Before(p.mended) || p.mended.IsZero() {
			p.found = true
		}
	}
	return explained
}
