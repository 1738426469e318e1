package controller_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller"
	"rollcall.dev/rollcall/controller/coverage"
	"rollcall.dev/rollcall/controller/drift"
	"rollcall.dev/rollcall/controller/report"
	"rollcall.dev/rollcall/render"
	"rollcall.dev/rollcall/sync/source"
)

// observer answers at once, but for clusters that it has a delay for: those
// answer late, or never where their context ends first.
type observer struct {
	delay map[string]time.Duration
	live  clusters.Live

	running, most atomic.Int32
}

func (o *observer) Observe(ctx context.Context, c clusters.Cluster, _ clusters.Want) (clusters.Live, error) {
	defer o.running.Add(-1)
	for n, most := o.running.Add(1), o.most.Load(); n > most && !o.most.CompareAndSwap(most, n); {
		most = o.most.Load()
	}
	select {
	case <-time.After(o.delay[c.Name]):
		return o.live, nil
	case <-ctx.Done():
		return clusters.Live{}, &clusters.ObserveError{State: clusters.Unreachable, Stage: "listing nodes", Err: ctx.Err()}
	}
}

// renderer takes its time and gives one DaemonSet, or an error.
type renderer struct {
	delay    time.Duration
	warnings []render.Error
	err      error
}

func (r renderer) Render(context.Context, source.Artifact, clusters.Fleet, clusters.Cluster) (render.Desired, error) {
	time.Sleep(r.delay)
	ds := appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "obs", Name: "agent"}}
	return render.Desired{Overlay: "o", DaemonSets: []appsv1.DaemonSet{ds}, Warnings: r.warnings}, r.err
}

// watcher notes how long after its making each cluster was begun and done.
type watcher struct {
	mu          sync.Mutex
	start       time.Time
	begun, done map[string]time.Duration
}

func newWatcher() *watcher {
	return &watcher{start: time.Now(), begun: map[string]time.Duration{}, done: map[string]time.Duration{}}
}

func (w *watcher) Begin(cluster string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun[cluster] = time.Since(w.start)
}

func (w *watcher) Done(cluster string, _ report.Cluster) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done[cluster] = time.Since(w.start)
}

func named(names ...string) []clusters.Cluster {
	var cs []clusters.Cluster
	for _, n := range names {
		cs = append(cs, clusters.Cluster{Name: n})
	}
	return cs
}

var commit = source.Artifact{Revision: source.Revision{Commit: "c"}, Files: fstest.MapFS{}}

func line(o controller.Observer, r controller.Renderer) controller.Line {
	return controller.Line{Observer: o, Renderer: r, Types: drift.NewTypes(), Keep: coverage.State.Attention, Deadline: time.Minute}
}

var private = cmpopts.IgnoreUnexported(report.Cluster{}, report.DaemonSet{})

func TestSlowClusterDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := clusters.Live{ObservedAt: time.Now(), Nodes: []clusters.Node{{Name: "n1"}}}
		alone := controller.Reconcile(t.Context(), line(&observer{live: live}, renderer{}), commit, named("a", "c"), 0, quiet{})
		w := newWatcher()
		o := &observer{live: live, delay: map[string]time.Duration{"b": time.Hour}}
		got := controller.Reconcile(t.Context(), line(o, renderer{}), commit, named("a", "b", "c"), 0, w)

		if diff := cmp.Diff(alone, []report.Cluster{got[0], got[2]}, private); diff != "" {
			t.Errorf("a slow cluster changes what is said of the others:\n%s", diff)
		}
		want := map[string]time.Duration{"a": 0, "b": time.Minute, "c": 0}
		if diff := cmp.Diff(want, w.done); diff != "" {
			t.Errorf("when each was done\n-want +got:\n%s", diff)
		}
		observation := report.Observation{State: clusters.Unreachable, Stage: "listing nodes", Error: context.DeadlineExceeded.Error()}
		if diff := cmp.Diff(observation, got[1].Observation); diff != "" || got[1].Nodes != nil || got[1].Sync.State != report.SyncUnknown {
			t.Errorf("the slow cluster is not unknown:\n%s", diff)
		}
	})
}

// The deadline is of an observation: the time that a render took is not
// taken from it.
func TestDeadlineIsOfTheObservation(t *testing.T) {
	cases := map[string]struct {
		reason string
		delay  time.Duration
		want   clusters.ObserveState
		done   time.Duration
	}{
		"InTime": {"an answer just before the deadline counts, however long the render took", time.Minute - 1, clusters.Fresh, 11*time.Minute - 1},
		"Late":   {"the deadline ends an observation", time.Minute + 1, clusters.Unreachable, 11 * time.Minute},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWatcher()
				o := &observer{delay: map[string]time.Duration{"a": tc.delay}}
				got := controller.Reconcile(t.Context(), line(o, renderer{delay: 10 * time.Minute}), commit, named("a"), 0, w)
				if got[0].Observation.State != tc.want || w.done["a"] != tc.done {
					t.Errorf("%s: %s after %s", tc.reason, got[0].Observation.State, w.done["a"])
				}
			})
		})
	}
}

func TestParallel(t *testing.T) {
	cases := map[string]struct {
		reason   string
		parallel int
		most     int32
		took     time.Duration
	}{
		"Unbounded": {"zero is all at once", 0, 5, time.Second},
		"Two":       {"no more than were allowed", 2, 2, 3 * time.Second},
		"Many":      {"more slots than clusters do no harm", 99, 5, time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				names := []string{"e", "d", "c", "b", "a"}
				o := &observer{delay: map[string]time.Duration{}}
				for _, n := range names {
					o.delay[n] = time.Second
				}
				w := newWatcher()
				got := controller.Reconcile(t.Context(), line(o, renderer{}), source.Artifact{}, named(names...), tc.parallel, w)
				if took := time.Since(w.start); o.most.Load() != tc.most || took != tc.took {
					t.Errorf("%s: %d at once, took %s", tc.reason, o.most.Load(), took)
				}
				if len(w.begun) != 5 || len(w.done) != 5 {
					t.Errorf("%d were begun and %d done", len(w.begun), len(w.done))
				}
				for i, c := range got {
					if c.Name != names[i] {
						t.Errorf("cluster %d is %s, asked was %s", i, c.Name, names[i])
					}
				}
			})
		})
	}
	if got := controller.Reconcile(t.Context(), line(&observer{}, renderer{}), commit, nil, 0, quiet{}); len(got) != 0 {
		t.Errorf("no clusters, %d reports", len(got))
	}
}

// An interrupt ends all observations at once.
func TestInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		o := &observer{delay: map[string]time.Duration{"a": time.Hour, "b": time.Hour}}
		got := controller.Reconcile(ctx, line(o, renderer{}), commit, named("a", "b"), 1, quiet{})
		if took := time.Since(start); took != time.Second {
			t.Errorf("it took %s", took)
		}
		for _, c := range got {
			if c.Observation.State != clusters.Unreachable {
				t.Errorf("%s is %s", c.Name, c.Observation.State)
			}
		}
	})
}

// A failed render leaves the observation alone; the finding has the code and
// the file of the fault.
func TestRenderFindings(t *testing.T) {
	cases := map[string]struct {
		reason    string
		err       error
		code, key string
	}{
		"Plain": {"an error of no kind", errors.New("boom"), "RenderFailed", "o  RenderFailed"},
		"Fault": {"a fault of the repository", &render.Error{Code: render.RemoteReference, File: "o/k.yaml", Message: "m"}, "RemoteReference", "o o/k.yaml RemoteReference"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			found := controller.Reconcile(t.Context(), line(&observer{}, renderer{err: tc.err}), commit, named("a"), 0, quiet{})
			r := report.New(report.Scope{Revision: commit.Revision, NodesListed: "attention"}, found, nil)
			at := slices.IndexFunc(r.Findings, func(f report.Finding) bool { return f.Code == tc.code })
			if at < 0 || r.Findings[at].Cause != (coverage.Cause{Kind: "render", Key: tc.key}) || r.Findings[at].Cluster != "a" {
				t.Errorf("%s: %+v", tc.reason, r.Findings)
			}
			if c := found[0]; c.Observation.State != clusters.Fresh || c.Sync.State != report.SyncUnknown || c.Sync.Error != tc.err.Error() {
				t.Errorf("%s: observation %s, sync %+v", tc.reason, c.Observation.State, c.Sync)
			}
		})
	}
}

// That no target selects a cluster is a finding and no failure: what lives
// there is judged, and Git wants nothing of it.
func TestUnmatchedIsNoFailure(t *testing.T) {
	err := &render.Error{Code: render.ClusterUnmatched, Err: render.ErrUnmatched}
	found := controller.Reconcile(t.Context(), line(&observer{}, renderer{err: err}), commit, named("a"), 0, quiet{})
	r := report.New(report.Scope{Revision: commit.Revision, NodesListed: "attention"}, found, nil)
	told := slices.ContainsFunc(r.Findings, func(f report.Finding) bool { return f.Code == "ClusterUnmatched" && f.Severity == report.Warning })
	if !r.Complete || !told || found[0].Sync.Error != "" {
		t.Errorf("complete %t, findings %+v", r.Complete, r.Findings)
	}
}

// What one file has twice is one finding that tells of both.
func TestRenderWarningsByCause(t *testing.T) {
	warnings := []render.Error{
		{Code: render.PatchEmpty, File: "o/k.yaml", Field: "patches[0]", Message: "empty"}, {Code: render.PatchMatchesNothing, File: "o/k.yaml", Message: "none"},
		{Code: render.PatchEmpty, File: "o/k.yaml", Field: "patches[2]", Message: "empty too"}, {Code: render.PatchEmpty, File: "other.yaml", Message: "elsewhere"},
	}
	found := controller.Reconcile(t.Context(), line(&observer{}, renderer{warnings: warnings}), commit, named("a"), 0, quiet{})
	got := map[string]string{}
	for _, f := range report.New(report.Scope{Revision: commit.Revision, NodesListed: "attention"}, found, nil).Findings {
		if f.Cause.Kind == "render" {
			got[f.Cause.Key] += f.Message
		}
	}
	want := map[string]string{
		"o o/k.yaml PatchEmpty":          `"o/k.yaml": patches[0]: empty; "o/k.yaml": patches[2]: empty too`,
		"o o/k.yaml PatchMatchesNothing": `"o/k.yaml": none`,
		"o other.yaml PatchEmpty":        `"other.yaml": elsewhere`,
	}
	if diff := cmp.Diff(want, got); diff != "" || found[0].Failed() {
		t.Errorf("warnings make no cluster fail\n-want +got:\n%s", diff)
	}
}

// Want holds for what Git wants as for what lives: one that was not asked for
// is not absent.
func TestWantHoldsForGit(t *testing.T) {
	cases := map[string]struct {
		reason string
		want   clusters.Want
		absent int
	}{
		"All":       {"all is wanted", clusters.Want{}, 1},
		"Name":      {"its name is", clusters.Want{Name: "agent"}, 1},
		"OtherName": {"another name is", clusters.Want{Name: "other"}, 0},
		"Namespace": {"another namespace is", clusters.Want{Namespace: "ops"}, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := line(&observer{}, renderer{})
			l.Want = tc.want
			c := l.Reconcile(t.Context(), commit, clusters.Cluster{Name: "a"})
			if len(c.Drift) != tc.absent || len(c.DaemonSets) != tc.absent {
				t.Errorf("%s: drift %v, DaemonSets %v", tc.reason, c.Drift, c.DaemonSets)
			}
		})
	}
}
