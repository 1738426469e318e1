package gate

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/coverage"
)

var (
	now     = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	longAgo = now.Add(-30 * 24 * time.Hour)
)

const grace = 5 * time.Minute

// small is a cluster of a few nodes, on which one DaemonSet is well; cases
// break it.
type small struct {
	live    clusters.Live
	desired []appsv1.DaemonSet
	options coverage.Options
}

func newSmall(nodes ...string) *small {
	s := &small{options: coverage.Options{Grace: grace}}
	s.live.ObservedAt = now
	s.live.DaemonSets = []appsv1.DaemonSet{daemonSet("agent")}
	s.revision("agent", 1, longAgo)
	for _, n := range nodes {
		s.node(n, longAgo)
		s.pod("agent", n, 1)
	}
	return s
}

func daemonSet(name string) appsv1.DaemonSet {
	ds := appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "obs", Name: name, UID: types.UID(name), Generation: 1, CreationTimestamp: metav1.NewTime(longAgo), Labels: map[string]string{"app": name}}}
	ds.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	ds.Spec.Template.Labels = map[string]string{"app": name}
	ds.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "i:1"}}
	ds.Spec.UpdateStrategy.Type = appsv1.RollingUpdateDaemonSetStrategyType
	ds.Status.ObservedGeneration = 1
	return ds
}

func (s *small) node(name string, created time.Time) *clusters.Node {
	s.live.Nodes = append(s.live.Nodes, clusters.Node{
		Name: name, Created: created, Labels: map[string]string{"name": name},
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	})
	return &s.live.Nodes[len(s.live.Nodes)-1]
}

func (s *small) at(node string) *clusters.Node {
	return &s.live.Nodes[slices.IndexFunc(s.live.Nodes, func(n clusters.Node) bool { return n.Name == node })]
}

func (s *small) down(node string) { s.at(node).Conditions[0].Status = corev1.ConditionUnknown }

func (s *small) taint(node, key string) {
	s.at(node).Taints = append(s.at(node).Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
}

func (s *small) pod(ds, node string, revision int) *clusters.Pod {
	s.live.Pods = append(s.live.Pods, clusters.Pod{
		Namespace: "obs", Name: fmt.Sprintf("%s-%s-%d", ds, node, revision), Node: node, Bound: true, Phase: corev1.PodRunning, Ready: true, ReadySince: longAgo, Created: longAgo,
		Owner: clusters.Owner{Kind: "DaemonSet", Name: ds, UID: ds}, Labels: map[string]string{"app": ds, "controller-revision-hash": fmt.Sprintf("h%d", revision)},
	})
	return &s.live.Pods[len(s.live.Pods)-1]
}

func (s *small) on(node string) *clusters.Pod {
	return &s.live.Pods[slices.IndexFunc(s.live.Pods, func(p clusters.Pod) bool { return p.Node == node })]
}

func (s *small) without(node string) {
	s.live.Pods = slices.DeleteFunc(s.live.Pods, func(p clusters.Pod) bool { return p.Node == node })
}

// revision adds a revision of the live template as it is.
func (s *small) revision(ds string, number int64, created time.Time) {
	s.live.Revisions = append(s.live.Revisions, clusters.Revision{
		Namespace: "obs", Name: fmt.Sprintf("%s-h%d", ds, number), Number: number, Hash: fmt.Sprintf("h%d", number), Created: created,
		Owner: clusters.Owner{Kind: "DaemonSet", Name: ds, UID: ds}, Placement: clusters.PlacementOf(&s.ds().Spec.Template.Spec),
	})
}

func (s *small) ds() *appsv1.DaemonSet { return &s.live.DaemonSets[0] }

func (s *small) judge(c Condition) []Progress {
	var subjects []coverage.Subject
	for i := range s.live.DaemonSets {
		subjects = append(subjects, coverage.Subject{Live: &s.live.DaemonSets[i]})
	}
	for i := range s.desired {
		d := &s.desired[i]
		at := slices.IndexFunc(subjects, func(x coverage.Subject) bool { return x.Live != nil && x.Live.Name == d.Name })
		if at < 0 {
			subjects = append(subjects, coverage.Subject{Desired: d})
		} else {
			subjects[at].Desired = d
		}
	}
	return Judge(Look{Live: &s.live, Coverage: coverage.Compute(&s.live, subjects, s.options), Options: s.options}, c)
}

// upToDate is what rollcall wait waits for by default.
var upToDate = Condition{Coverage: 100, UpToDate: true}

// shown is a Progress with its blockers as texts and the words of its note that
// a case looks for.
type shown struct {
	Met                        bool
	Counted, Covered, UpToDate int
	LeftOut                    map[Ground]int
	Blockers                   []string
}

func show(p Progress) shown {
	s := shown{p.Met, p.Counted, p.Covered, p.UpToDate, p.LeftOut, nil}
	for _, b := range p.Blockers {
		s.Blockers = append(s.Blockers, fmt.Sprintf("%s %s %s", b.Node, b.State, b.Code))
	}
	return s
}

type gateCase struct {
	reason string
	change func(s *small) // of a DaemonSet that is well on n1 to n4
	ask    Condition      // zero: upToDate
	want   shown
	note   string // part of it; empty: there is none
}

func runCases(t *testing.T, cases map[string]gateCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSmall("n1", "n2", "n3", "n4")
			tc.change(s)
			if tc.ask == (Condition{}) {
				tc.ask = upToDate
			}
			all := s.judge(tc.ask)
			if len(all) != 1 {
				t.Fatalf("%s: got %d targets, want 1", tc.reason, len(all))
			}
			if diff := cmp.Diff(tc.want, show(all[0]), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if got := all[0].Note; !strings.Contains(got, tc.note) || tc.note == "" && got != "" {
				t.Errorf("%s: note %q, want %q", tc.reason, got, tc.note)
			}
			for _, b := range all[0].Blockers {
				if b.Message == "" {
					t.Errorf("%s: blocker %s does not say why", tc.reason, b.Node)
				}
			}
		})
	}
}

func TestCounting(t *testing.T) {
	runCases(t, map[string]gateCase{
		"Well": {"all is well", func(s *small) {}, Condition{}, shown{true, 4, 4, 4, nil, nil}, ""},
		"Missing": {"a node without its pod blocks", func(s *small) { s.without("n2") }, Condition{},
			shown{false, 4, 3, 3, nil, []string{"n2 Missing NotAttempted"}}, ""},
		"NodeNotReady": {"a node that is not heard from is left out", func(s *small) { s.down("n2") }, Condition{},
			shown{true, 3, 3, 3, map[Ground]int{NodeNotReady: 1}, nil}, ""},
		"Leaving": {"a node on its way out is left out", func(s *small) { s.at("n2").Deleting = true; s.without("n2") }, Condition{},
			shown{true, 3, 3, 3, map[Ground]int{Leaving: 1}, nil}, ""},
		"LeavingForeign": {"not so one that has nothing to do with it", func(s *small) {
			s.taint("n2", "other")
			s.at("n2").Deleting = true
			s.without("n2")
		}, Condition{}, shown{true, 3, 3, 3, nil, nil}, ""},
		"Excused": {"an excused gap is left out", func(s *small) {
			s.at("n2").Excuse = "RMA 4711; owner=sre; until=2026-02-01"
			s.without("n2")
		}, Condition{}, shown{true, 3, 3, 3, map[Ground]int{Excused: 1}, nil}, ""},
		"ExcuseOver": {"an excuse that is over excuses nothing", func(s *small) {
			s.at("n2").Excuse = "RMA 4711; owner=sre; until=2025-02-01"
			s.without("n2")
		}, Condition{}, shown{false, 4, 3, 3, nil, []string{"n2 Missing NotAttempted"}}, ""},
		"ExcusedAndDown": {"an excuse comes before the heartbeat", func(s *small) {
			s.at("n2").Excuse = "RMA 4711; owner=sre; until=2026-02-01"
			s.down("n2")
		}, Condition{}, shown{true, 3, 3, 3, map[Ground]int{Excused: 1}, nil}, ""},
		"Joined": {"a node that joined since the last change and starts is left out", func(s *small) { s.node("n5", now.Add(-time.Minute)) }, Condition{},
			shown{true, 4, 4, 4, map[Ground]int{Starting: 1}, nil}, ""},
		"JoinedAndCovered": {"once its pod runs it counts", func(s *small) { s.node("n5", now.Add(-time.Minute)); s.pod("agent", "n5", 1) }, Condition{},
			shown{true, 5, 5, 5, nil, nil}, ""},
		"JoinedLongAgo": {"past the grace it counts", func(s *small) { s.node("n5", now.Add(-grace)) }, Condition{},
			shown{false, 5, 4, 4, nil, []string{"n5 Missing NotAttempted"}}, ""},
		"JustChanged": {"old nodes that start because the DaemonSet has just changed count", func(s *small) {
			s.ds().CreationTimestamp = metav1.NewTime(now.Add(-time.Minute))
			s.without("n2")
		}, Condition{}, shown{false, 4, 3, 3, nil, []string{"n2 Starting NotAttempted"}}, ""},
		"JustChangedYoung": {"so do young ones that are older than the change", func(s *small) {
			s.at("n2").Created = now.Add(-2 * time.Minute)
			s.revision("agent", 1, now.Add(-time.Minute))
			s.live.Revisions = s.live.Revisions[1:]
			s.without("n2")
		}, Condition{}, shown{false, 4, 3, 3, nil, []string{"n2 Starting NotAttempted"}}, ""},
		"JustChangedNotReady": {"a young node that itself is awaited is left out all the same", func(s *small) {
			s.ds().CreationTimestamp = metav1.NewTime(now.Add(-time.Minute))
			s.at("n2").Created = now.Add(-2 * time.Minute)
			s.down("n2")
		}, Condition{}, shown{true, 3, 3, 3, map[Ground]int{Starting: 1}, nil}, ""},
		"AgentGrace": {"an agent's own grace is what counts", func(s *small) {
			s.options.Agents = []clusters.Agent{{Name: "a", Names: []string{"obs/agent"}, Min: "100%", StartupGrace: time.Hour}}
			s.node("n5", now.Add(-30*time.Minute))
		}, Condition{}, shown{true, 4, 4, 4, map[Ground]int{Starting: 1}, nil}, ""},
		"Refused": {"a node that is not meant to run it does not count", func(s *small) { s.taint("n2", "other"); s.without("n2") }, Condition{},
			shown{true, 3, 3, 3, nil, nil}, ""},
		"GitIntends": {"what Git intends counts, whatever the live template says", func(s *small) {
			s.ds().Spec.Template.Spec.NodeSelector = map[string]string{"name": "n1"}
			s.live.Revisions[0].Placement = clusters.PlacementOf(&s.ds().Spec.Template.Spec)
			s.desired = []appsv1.DaemonSet{daemonSet("agent")}
			s.without("n2")
		}, Condition{}, shown{false, 4, 3, 3, nil, []string{"n2 Missing NodeSelectorMismatch"}}, ""},
	})
}

func TestShares(t *testing.T) {
	half := func(s *small) { s.without("n2"); s.on("n3").Ready = false }
	runCases(t, map[string]gateCase{
		"Reached":    {"half of them is half of them", half, Condition{Coverage: 50}, shown{true, 4, 2, 2, nil, nil}, ""},
		"NotReached": {"a little more is not", half, Condition{Coverage: 50.1}, shown{false, 4, 2, 2, nil, []string{"n2 Missing NotAttempted", "n3 NotReady ReadinessProbe"}}, ""},
		"OfCounted": {"the share is of those that count", func(s *small) { half(s); s.down("n4") }, Condition{Coverage: 50},
			shown{false, 3, 1, 1, map[Ground]int{NodeNotReady: 1}, []string{"n2 Missing NotAttempted", "n3 NotReady ReadinessProbe"}}, ""},
		"UpToDateIsAll": {"up to date is all of them, whatever the share", half, Condition{Coverage: 50, UpToDate: true},
			shown{false, 4, 2, 2, nil, []string{"n2 Missing NotAttempted", "n3 NotReady ReadinessProbe"}}, ""},
		"OutdatedCovers": {"coverage is of any revision", func(s *small) { s.revision("agent", 2, longAgo) }, Condition{Coverage: 100}, shown{true, 4, 4, 0, nil, nil}, ""},
	})
}

func TestUpToDate(t *testing.T) {
	second := func(s *small, on ...string) {
		s.revision("agent", 2, longAgo)
		for _, n := range on {
			s.on(n).Labels["controller-revision-hash"] = "h2"
		}
	}
	runCases(t, map[string]gateCase{
		"Outdated": {"a node with an older pod blocks", func(s *small) { second(s, "n1", "n2", "n3") }, Condition{},
			shown{false, 4, 4, 3, nil, []string{"n4 Covered RollingUpdate"}}, ""},
		"OutdatedButDown": {"unless it is not heard from", func(s *small) { second(s, "n1", "n2", "n3"); s.down("n4") }, Condition{},
			shown{true, 3, 3, 3, map[Ground]int{NodeNotReady: 1}, nil}, ""},
		"Blocked": {"the reason of a rollout that stands still is that of its nodes", func(s *small) {
			second(s, "n1", "n2")
			s.on("n2").Ready = false
			s.on("n2").Containers = []clusters.Container{{Name: "c", Waiting: clusters.State{Reason: "CrashLoopBackOff"}}}
		}, Condition{}, shown{false, 4, 3, 1, nil, []string{"n2 NotReady CrashLoopBackOff", "n3 Covered RolloutBlocked", "n4 Covered RolloutBlocked"}}, "maxUnavailable 1: n2 (NotReady)"},
		"OnDelete": {"nodes that wait for somebody to delete are named", func(s *small) {
			s.ds().Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
			second(s, "n1", "n2")
		}, Condition{}, shown{false, 4, 4, 2, nil, []string{"n3 Covered WaitingForDelete", "n4 Covered WaitingForDelete"}}, "OnDelete"},
		"SurgeNotReady": {"an old pod that is still ready beside the new one is not up to date", func(s *small) {
			second(s, "n1", "n2", "n3")
			s.on("n4").Deleting = now
			s.pod("agent", "n4", 2).Ready = false
		}, Condition{}, shown{false, 4, 4, 3, nil, []string{"n4 Covered RollingUpdate"}}, ""},
		"NotSeenYet": {"a template that the controller has not seen is not rolled out", func(s *small) { s.ds().Generation = 2 }, Condition{},
			shown{false, 4, 4, 4, nil, nil}, "has seen generation 1 of 2"},
		"NotSeenCoverage": {"coverage does not ask for that", func(s *small) { s.ds().Generation = 2 }, Condition{Coverage: 100}, shown{true, 4, 4, 4, nil, nil}, ""},
		"Unknown": {"without revisions nobody knows", func(s *small) {
			s.live.Revisions = nil
			s.live.Blanks = []clusters.Blank{{Resource: "controllerrevisions", Reason: "forbidden: jane"}}
		}, Condition{}, shown{false, 4, 4, 0, nil, []string{"n1 Covered RollingUpdate", "n2 Covered RollingUpdate", "n3 Covered RollingUpdate", "n4 Covered RollingUpdate"}}, "not known: controllerrevisions: forbidden: jane"},
		"Deleted": {"what is being deleted will not be", func(s *small) { s.ds().DeletionTimestamp = new(metav1.NewTime(now)) }, Condition{},
			shown{false, 4, 4, 4, nil, nil}, "being deleted"},
	})
}

func TestRevision(t *testing.T) {
	ask := func(r string) Condition { return Condition{Coverage: 100, UpToDate: true, Revision: r} }
	well := shown{true, 4, 4, 4, nil, nil}
	not := shown{false, 4, 4, 4, nil, nil}
	git := func(change func(*corev1.PodSpec)) func(*small) {
		return func(s *small) {
			s.desired = []appsv1.DaemonSet{daemonSet("agent")}
			change(&s.desired[0].Spec.Template.Spec)
		}
	}
	runCases(t, map[string]gateCase{
		"Number":  {"by its number", func(s *small) {}, ask("1"), well, ""},
		"Hash":    {"by its hash", func(s *small) {}, ask("h1"), well, ""},
		"Name":    {"by its name", func(s *small) {}, ask("agent-h1"), well, ""},
		"NotYet":  {"a change that has not arrived does not pass at once", func(s *small) {}, ask("2"), not, "its current revision is 1 (agent-h1), not 2"},
		"Older":   {"nor does one that was replaced", func(s *small) { s.revision("agent", 0, longAgo) }, ask("0"), not, "its current revision is 1 (agent-h1), not 0"},
		"Unknown": {"without revisions nobody knows", func(s *small) { s.live.Revisions = nil }, Condition{Coverage: 100, Revision: "1"}, shown{false, 4, 4, 0, nil, nil}, "its current revision is not known"},
		"NotSeen": {"the number is of a template that the controller has seen", func(s *small) { s.ds().Generation = 2 }, Condition{Coverage: 100, Revision: "1"}, not, "has seen generation 1 of 2"},
		"Git":     {"Git's template is the live one", git(func(*corev1.PodSpec) {}), ask(Git), well, ""},
		"GitImage": {"another image is not", git(func(p *corev1.PodSpec) { p.Containers[0].Image = "i:2" }), ask(Git), not,
			`spec.template.spec.containers[name=c].image is "i:1", Git says "i:2"`},
		"GitTolerates": {"nor are other tolerations", git(func(p *corev1.PodSpec) { p.Tolerations = []corev1.Toleration{{Key: "x"}} }), ask(Git), not, "spec.template.spec.tolerations is not there, Git says"},
		"GitSelects":   {"nor is another selector", git(func(p *corev1.PodSpec) { p.HostNetwork = true }), ask(Git), not, "spec.template.spec.hostNetwork is not there, Git says"},
		"NotInGit":     {"what is not in Git is not Git's", func(s *small) {}, ask(Git), not, "it is not in Git"},
	})
}

func TestNothingToCount(t *testing.T) {
	runCases(t, map[string]gateCase{
		"NobodyMeant": {"no node is meant to run it and none was: there is nothing to wait for", func(s *small) {
			s.ds().Spec.Template.Spec.NodeSelector = map[string]string{"non-existing": "true"}
			s.live.Revisions[0].Placement = clusters.PlacementOf(&s.ds().Spec.Template.Spec)
			s.live.Pods = nil
		}, Condition{}, shown{true, 0, 0, 0, nil, nil}, "no node is meant to run it"},
		"Patched": {"a selector that takes all nodes away blocks", func(s *small) {
			s.ds().Spec.Template.Spec.NodeSelector = map[string]string{"non-existing": "true"}
			s.revision("agent", 2, now.Add(-time.Minute))
			s.live.Pods = nil
		}, Condition{}, shown{false, 0, 0, 0, nil, []string{"n1 Excluded CoverageLost", "n2 Excluded CoverageLost", "n3 Excluded CoverageLost", "n4 Excluded CoverageLost"}}, "4 nodes are no longer meant to run it: "},
		"PatchedLongAgo": {"also where it was long ago", func(s *small) {
			s.ds().Spec.Template.Spec.NodeSelector = map[string]string{"non-existing": "true"}
			s.revision("agent", 2, longAgo)
			s.live.Pods = nil
		}, Condition{}, shown{false, 0, 0, 0, nil, nil}, "no node is meant to run it any more: "},
		"SomePatchedLongAgo": {"but as long as others count it is how things are", func(s *small) {
			s.ds().Spec.Template.Spec.NodeSelector = map[string]string{"name": "n1"}
			s.revision("agent", 2, longAgo)
			s.live.Pods = s.live.Pods[:1]
			s.on("n1").Labels["controller-revision-hash"] = "h2"
		}, Condition{}, shown{true, 1, 1, 1, nil, nil}, ""},
		"Tainted": {"tainted nodes whose pod may stay block too", func(s *small) { s.taint("n3", "dedicated"); s.taint("n4", "dedicated") }, Condition{},
			shown{false, 2, 2, 2, nil, []string{"n3 Misscheduled CoverageLost", "n4 Misscheduled CoverageLost"}}, "2 nodes are no longer meant to run it: "},
		"TaintedCoverage": {"coverage as well", func(s *small) { s.taint("n4", "dedicated") }, Condition{Coverage: 50},
			shown{false, 3, 3, 3, nil, []string{"n4 Misscheduled CoverageLost"}}, "1 node is no longer meant to run it: "},
		"TaintedExcused": {"unless they are excused", func(s *small) {
			s.taint("n4", "dedicated")
			s.at("n4").Excuse = "now a database; owner=sre; until=2026-02-01"
		}, Condition{}, shown{true, 3, 3, 3, map[Ground]int{Excused: 1}, nil}, ""},
		"PatchedExcused": {"also where no pod is left on them", func(s *small) {
			s.ds().Spec.Template.Spec.NodeSelector = map[string]string{"name": "n1"}
			s.revision("agent", 2, now.Add(-time.Minute))
			s.live.Pods = s.live.Pods[:1]
			s.on("n1").Labels["controller-revision-hash"] = "h2"
			for _, n := range []string{"n2", "n3", "n4"} {
				s.at(n).Excuse = "moved; owner=sre; until=2026-02-01"
			}
		}, Condition{}, shown{true, 1, 1, 1, map[Ground]int{Excused: 3}, nil}, ""},
		"PatchedAndDown": {"or not heard from", func(s *small) {
			s.ds().Spec.Template.Spec.NodeSelector = map[string]string{"name": "n1"}
			s.revision("agent", 2, now.Add(-time.Minute))
			s.live.Pods = s.live.Pods[:1]
			s.on("n1").Labels["controller-revision-hash"] = "h2"
			s.down("n2")
		}, Condition{}, shown{false, 1, 1, 1, map[Ground]int{NodeNotReady: 1}, []string{"n3 Excluded CoverageLost", "n4 Excluded CoverageLost"}}, "2 nodes are no longer meant to run it: "},
		"AllDown": {"of nodes that are all not heard from nothing can be said", func(s *small) {
			for _, n := range []string{"n1", "n2", "n3", "n4"} {
				s.down(n)
			}
		}, Condition{}, shown{false, 0, 0, 0, map[Ground]int{NodeNotReady: 4}, nil}, "nothing can be said of it"},
		"AllStart": {"nor of nodes that all have just joined", func(s *small) {
			s.live.Nodes, s.live.Pods = nil, nil
			s.node("n9", now.Add(-time.Minute))
		}, Condition{}, shown{false, 0, 0, 0, map[Ground]int{Starting: 1}, nil}, "nothing can be said of it"},
		"AllLeave": {"a cluster that is emptied needs none", func(s *small) {
			for i := range s.live.Nodes {
				s.live.Nodes[i].Deleting = true
			}
		}, Condition{}, shown{true, 0, 0, 0, map[Ground]int{Leaving: 4}, nil}, "all of its nodes are left out"},
		"Absent": {"what Git wants and is not there blocks", func(s *small) {
			s.live.DaemonSets, s.live.Pods, s.live.Revisions = nil, nil, nil
			s.desired = []appsv1.DaemonSet{daemonSet("agent")}
		}, Condition{Coverage: 100, InGit: true}, shown{false, 4, 0, 0, nil, []string{"n1 Missing DaemonSetAbsent", "n2 Missing DaemonSetAbsent", "n3 Missing DaemonSetAbsent", "n4 Missing DaemonSetAbsent"}}, "the DaemonSet is not in the cluster"},
		"NoSuch": {"so does a name that nothing has", func(s *small) {
			s.live.DaemonSets, s.live.Pods, s.live.Revisions = nil, nil, nil
		}, Condition{Coverage: 100, Name: "agent"}, shown{}, "there is no such DaemonSet in the cluster"},
	})
}

// What Git does not want counts only where it is named.
func TestInGit(t *testing.T) {
	cases := map[string]struct {
		reason string
		ask    Condition
		git    []string
		want   []string
	}{
		"All":          {"without Git all count", Condition{}, nil, []string{"obs/agent", "obs/extra"}},
		"OfGit":        {"with Git those of Git", Condition{InGit: true}, []string{"agent"}, []string{"obs/agent"}},
		"Named":        {"one that is named counts all the same", Condition{InGit: true, Name: "agent"}, nil, []string{"obs/agent", "obs/extra"}},
		"NothingOfGit": {"where Git wants none there is nothing to wait for", Condition{InGit: true}, nil, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSmall("n1")
			s.live.DaemonSets = append(s.live.DaemonSets, daemonSet("extra"))
			for _, n := range tc.git {
				s.desired = append(s.desired, daemonSet(n))
			}
			var got []string
			for _, p := range s.judge(tc.ask) {
				got = append(got, p.Target)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
