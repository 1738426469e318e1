package gate

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollcall.dev/rollcall/clusters"
)

// two makes agent and other share the nodes: agent runs on n1 and n2, other on
// n3 and n4, and together they are the agent of the fleet.
func two(s *small, min string) {
	other := daemonSet("other")
	s.ds().Spec.Template.Spec.NodeSelector = map[string]string{"half": "a"}
	other.Spec.Template.Spec.NodeSelector = map[string]string{"half": "b"}
	s.live.DaemonSets = append(s.live.DaemonSets, other)
	s.revision("other", 1, longAgo)
	s.live.Pods = nil
	for n, half := range map[string]string{"n1": "a", "n2": "a", "n3": "b", "n4": "b"} {
		s.at(n).Labels["half"] = half
		s.pod(map[string]string{"a": "agent", "b": "other"}[half], n, 1)
	}
	for i := range s.live.Revisions {
		s.live.Revisions[i].Placement.NodeSelector = s.live.DaemonSets[i].Spec.Template.Spec.NodeSelector
	}
	s.options.Agents = []clusters.Agent{{Name: "sec", Names: []string{"obs/agent", "obs/other"}, Min: min, StartupGrace: grace}}
}

func TestAgents(t *testing.T) {
	sec := Condition{Agent: "sec"}
	all := func(s *small) { two(s, "100%") }
	most := func(s *small) { two(s, "75%") }
	runCases(t, map[string]gateCase{
		"Well":    {"any of its DaemonSets will do", all, sec, shown{true, 4, 4, 4, nil, nil}, ""},
		"Missing": {"a node that none covers blocks", func(s *small) { all(s); s.without("n3") }, sec, shown{false, 4, 3, 3, nil, []string{"n3 Missing NotAttempted"}}, ""},
		"Min":     {"its own min is enough", func(s *small) { most(s); s.without("n3") }, sec, shown{true, 4, 3, 3, nil, nil}, ""},
		"BelowMin": {"and less is not", func(s *small) { most(s); s.without("n3"); s.without("n1") }, sec,
			shown{false, 4, 2, 2, nil, []string{"n1 Missing NotAttempted", "n3 Missing NotAttempted"}}, ""},
		"MinNumber":   {"a number of nodes is one", func(s *small) { two(s, "5") }, sec, shown{false, 4, 4, 4, nil, nil}, ""},
		"AskedFor":    {"what is asked for comes before its min", func(s *small) { most(s); s.without("n3") }, Condition{Agent: "sec", Coverage: 80}, shown{false, 4, 3, 3, nil, []string{"n3 Missing NotAttempted"}}, ""},
		"MinUpToDate": {"up to date is all", func(s *small) { most(s); s.without("n3") }, Condition{Agent: "sec", UpToDate: true}, shown{false, 4, 3, 3, nil, []string{"n3 Missing NotAttempted"}}, ""},
		"Outdated": {"each by its own DaemonSet", func(s *small) {
			all(s)
			s.revision("other", 2, longAgo)
			s.live.Revisions[2].Placement = s.live.Revisions[1].Placement
			s.on("n3").Labels["controller-revision-hash"] = "h2"
		}, Condition{Agent: "sec", UpToDate: true}, shown{false, 4, 4, 3, nil, []string{"n4 Covered RollingUpdate"}}, ""},
		"NotSeenYet": {"each by its own generation", func(s *small) { all(s); s.live.DaemonSets[1].Generation = 2 }, Condition{Agent: "sec", UpToDate: true},
			shown{false, 4, 4, 4, nil, nil}, "obs/other: the DaemonSet controller has seen generation 1 of 2"},
		"Down":    {"a node that is not heard from is left out", func(s *small) { all(s); s.down("n3") }, sec, shown{true, 3, 3, 3, map[Ground]int{NodeNotReady: 1}, nil}, ""},
		"Leaving": {"so is one on its way out", func(s *small) { all(s); s.at("n3").Deleting = true }, sec, shown{true, 3, 3, 3, map[Ground]int{Leaving: 1}, nil}, ""},
		"Joined":  {"and one that has just joined, also before it has its labels", func(s *small) { all(s); s.node("n5", now.Add(-time.Minute)) }, sec, shown{true, 4, 4, 4, map[Ground]int{Starting: 1}, nil}, ""},
		"JoinedLabelled": {"and after", func(s *small) {
			all(s)
			s.node("n5", now.Add(-time.Minute)).Labels["half"] = "a"
		}, sec, shown{true, 4, 4, 4, map[Ground]int{Starting: 1}, nil}, ""},
		"JustChanged": {"not so one that is older than its DaemonSet's last change", func(s *small) {
			all(s)
			s.live.DaemonSets[1].CreationTimestamp = metav1.NewTime(now.Add(-time.Minute))
			s.without("n3")
		}, sec, shown{false, 4, 3, 3, nil, []string{"n3 Starting NotAttempted"}}, ""},
		"Uncovered": {"a node that all leave out blocks: the agent says what must be", func(s *small) { all(s); s.node("n5", longAgo) }, sec,
			shown{false, 5, 4, 4, nil, []string{"n5 Excluded AgentUncovered"}}, ""},
		"UncoveredDown": {"unless it is not heard from", func(s *small) { all(s); s.node("n5", longAgo); s.down("n5") }, sec,
			shown{true, 4, 4, 4, map[Ground]int{NodeNotReady: 1}, nil}, ""},
		"UncoveredExcused": {"or excused", func(s *small) {
			all(s)
			s.node("n5", longAgo).Excuse = "bare metal; owner=sre; until=2026-02-01"
		}, sec, shown{true, 4, 4, 4, map[Ground]int{Excused: 1}, nil}, ""},
		"Excused": {"so is a gap where one is meant to run", func(s *small) {
			all(s)
			s.without("n3")
			s.at("n3").Excuse = "RMA 4711; owner=sre; until=2026-02-01"
		}, sec, shown{true, 3, 3, 3, map[Ground]int{Excused: 1}, nil}, ""},
		"Misscheduled": {"a pod that should not run there serves until it is deleted", func(s *small) { all(s); s.taint("n3", "dedicated") }, sec, shown{true, 4, 4, 4, nil, nil}, ""},
		"Nodes": {"only nodes that it selects count", func(s *small) {
			all(s)
			s.without("n3")
			s.options.Agents[0].Nodes = &metav1.LabelSelector{MatchLabels: map[string]string{"half": "a"}}
		}, sec, shown{true, 2, 2, 2, nil, nil}, ""},
		"Virtual": {"virtual ones only by name", func(s *small) { all(s); s.node("v", longAgo).Labels["type"] = "virtual-kubelet" }, sec, shown{true, 4, 4, 4, nil, nil}, ""},
		"Absent": {"an agent without a DaemonSet is not met", func(s *small) {
			two(s, "1%")
			s.options.Agents[0].Names = []string{"obs/nothing"}
		}, sec, shown{false, 4, 0, 0, nil, []string{"n1 Excluded AgentAbsent", "n2 Excluded AgentAbsent", "n3 Excluded AgentAbsent", "n4 Excluded AgentAbsent"}}, "no DaemonSet of the agent is in the cluster"},
		"AllDown": {"nothing can be said where no node is heard from", func(s *small) {
			all(s)
			for i := range s.live.Nodes {
				s.down(s.live.Nodes[i].Name)
			}
		}, sec, shown{false, 0, 0, 0, map[Ground]int{NodeNotReady: 4}, nil}, "nothing can be said of it"},
		"NoNode": {"an agent that selects no node here expects none", func(s *small) {
			all(s)
			s.options.Agents[0].Nodes = &metav1.LabelSelector{MatchLabels: map[string]string{"gpu": "yes"}}
		}, sec, shown{true, 0, 0, 0, nil, nil}, "no node is meant to run it"},
		"NoNodeButExpected": {"unless it expects a number of them", func(s *small) {
			two(s, "2")
			s.options.Agents[0].Nodes = &metav1.LabelSelector{MatchLabels: map[string]string{"gpu": "yes"}}
		}, sec, shown{false, 0, 0, 0, nil, nil}, "no node is meant to run it"},
	})
}

// An agent that is not for this cluster is not waited for here.
func TestAgentElsewhere(t *testing.T) {
	s := newSmall("n1")
	if got := s.judge(Condition{Agent: "sec"}); len(got) != 0 {
		t.Errorf("got %+v", got)
	}
}

// A DaemonSet's annotation makes it an agent of its own name.
func TestAgentOfAnnotation(t *testing.T) {
	s := newSmall("n1", "n2")
	s.ds().Annotations = map[string]string{clusters.ExpectAnnotation: "name=n1"}
	s.without("n2")
	got := s.judge(Condition{Agent: "obs/agent"})
	if len(got) != 1 || !got[0].Met || got[0].Target != "agent/obs/agent" || got[0].Counted != 1 {
		t.Errorf("got %+v", got)
	}
}
