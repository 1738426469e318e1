package coverage

import "testing"

// The table of node states, node facts × pod facts: the first row that fits
// decides, so each case sets what its row needs and what later rows would take.
func TestStateOf(t *testing.T) {
	const want = shouldRun | shouldContinueRunning | accepted | intended
	pod := podSummary{present: true}
	ok := podSummary{present: true, available: true, settled: true}
	waiting := podSummary{present: true, onlyWait: true}
	broken := podSummary{present: true, failing: true}
	cases := map[string]struct {
		reason string
		in     facts
		want   State
	}{
		"Deleting":              {"a node on its way out is that and nothing else", facts{flags: want, node: leaving | down, pods: pod}, Leaving},
		"LeavingAndCovered":     {"also while its pod still runs", facts{flags: want, node: leaving, pods: ok}, Leaving},
		"LeavingUnconcerned":    {"the first row decides, also for a node that does not concern the DaemonSet", facts{node: leaving}, Leaving},
		"Unconcerned":           {"not intended, not wanted, no pod", facts{pods: podSummary{onlyWait: true}}, Excluded},
		"UnconcernedAndDown":    {"a dead node that is none of the DaemonSet's stays excluded", facts{node: down, pods: podSummary{onlyWait: true}}, Excluded},
		"VirtualWaiting":        {"a pod that only waits on a virtual node is by design", facts{flags: shouldRun | shouldContinueRunning | accepted, node: virtual, pods: waiting}, Excluded},
		"VirtualWithoutPod":     {"no pod on a virtual node is by design too", facts{flags: shouldRun | shouldContinueRunning | accepted, node: virtual, pods: podSummary{onlyWait: true}}, Excluded},
		"VirtualRunning":        {"a pod that runs there is seen", facts{flags: shouldRun | shouldContinueRunning | accepted, node: virtual, pods: ok}, Covered},
		"YoungNotReady":         {"a node that joins is not ready at first", facts{flags: want, node: young | down}, Starting},
		"YoungStartupTaint":     {"a startup taint on a young node", facts{flags: intended | accepted, node: young | startupTainted}, Starting},
		"YoungStartupTaintPod":  {"before Misscheduled", facts{flags: intended | accepted, node: young | startupTainted, pods: ok}, Starting},
		"Down":                  {"what its pod does is not known", facts{flags: want, node: down, pods: ok}, NodeNotReady},
		"DownMisscheduled":      {"before Misscheduled: the not-ready taint is not somebody's mistake", facts{flags: intended | accepted | shouldContinueRunning, node: down, pods: pod}, NodeNotReady},
		"DownWithoutPod":        {"also without a pod", facts{flags: want, node: down, pods: podSummary{onlyWait: true}}, NodeNotReady},
		"DownVirtual":           {"a virtual node can be down as well", facts{flags: want, node: virtual | down, pods: pod}, NodeNotReady},
		"Misscheduled":          {"a pod where none should run", facts{flags: shouldContinueRunning, pods: ok}, Misscheduled},
		"MisscheduledIntended":  {"a passing taint: intended and yet misscheduled", facts{flags: accepted | intended | shouldContinueRunning, pods: ok}, Misscheduled},
		"MisscheduledDuplicate": {"before Duplicate", facts{flags: shouldContinueRunning, pods: podSummary{present: true, surplus: true}}, Misscheduled},
		"Duplicate":             {"more pods than a surge explains", facts{flags: want, pods: podSummary{present: true, surplus: true, available: true}}, Duplicate},
		"Covered":               {"a pod is available", facts{flags: want, pods: ok}, Covered},
		"CoveredWhileUpdating":  {"before Updating: the old pod still runs", facts{flags: want, pods: ok, set: setFacts{updating: true}}, Covered},
		"CoveredNotIntended":    {"Git no longer wants it, the live template does", facts{flags: shouldRun | shouldContinueRunning, pods: ok}, Covered},
		"Updating":              {"within the budget of a rolling update", facts{flags: want, pods: pod, set: setFacts{updating: true}}, Updating},
		"UpdatingWithoutPod":    {"the old pod is gone, the new one not there", facts{flags: want, pods: podSummary{onlyWait: true}, set: setFacts{updating: true}}, Updating},
		"UpdatingButFailing":    {"a container that waits on an error is no progress", facts{flags: want, pods: broken, set: setFacts{updating: true}}, NotReady},
		"Starting":              {"a pod within the grace", facts{flags: want, pods: pod, set: setFacts{starting: true}}, Starting},
		"StartingWithoutPod":    {"no pod within the grace", facts{flags: want, pods: podSummary{onlyWait: true}, set: setFacts{starting: true}}, Starting},
		"StartingButFailing":    {"the grace excuses no error", facts{flags: want, pods: broken, set: setFacts{starting: true}}, NotReady},
		"AbsentDoesNotStart":    {"nothing that waiting would bring", facts{flags: want, pods: podSummary{onlyWait: true}, set: setFacts{starting: true, absent: true}}, Missing},
		"NotReady":              {"a pod is there", facts{flags: want, pods: pod}, NotReady},
		"Missing":               {"no pod", facts{flags: want, pods: podSummary{onlyWait: true}}, Missing},
		"KeptOut":               {"intended, kept out by a passing taint", facts{flags: accepted | intended | shouldContinueRunning, pods: podSummary{onlyWait: true}}, Missing},
		"WantedNotIntended":     {"wanted by the live template alone, and no pod", facts{flags: shouldRun | shouldContinueRunning, pods: podSummary{onlyWait: true}}, Missing},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := stateOf(c.in); got != c.want {
				t.Errorf("%s: got %s, want %s", c.reason, got, c.want)
			}
		})
	}
}

// The order of the rows, over all combinations: a reference that tries the
// rows of the design as a list must agree.
func TestStateOfExhaustive(t *testing.T) {
	rows := []struct {
		state State
		when  func(facts) bool
	}{
		{Leaving, func(f facts) bool { return f.node&leaving != 0 }},
		{Excluded, func(f facts) bool { return !f.concerns() }},
		{Starting, func(f facts) bool {
			return f.node&young != 0 && (f.node&down != 0 || f.node&startupTainted != 0)
		}},
		{NodeNotReady, func(f facts) bool { return f.node&down != 0 }},
		{Misscheduled, func(f facts) bool { return f.pods.present && f.flags&shouldRun == 0 }},
		{Duplicate, func(f facts) bool { return f.pods.surplus }},
		{Covered, func(f facts) bool { return f.pods.available }},
		{Updating, func(f facts) bool { return f.set.updating && !f.pods.failing }},
		{Starting, func(f facts) bool { return f.set.starting && !f.set.absent && !f.pods.failing }},
		{NotReady, func(f facts) bool { return f.pods.present }},
		{Missing, func(facts) bool { return true }},
	}
	seen := map[State]int{}
	for bits := range 1 << 15 {
		on := func(i int) bool { return bits>>i&1 == 1 }
		f := facts{
			node: nodeFacts(bits & 31),
			pods: podSummary{present: on(5), surplus: on(6) && on(5), available: on(7) && on(5), failing: on(8) && on(5), onlyWait: on(9) || !on(5)},
			set:  setFacts{updating: on(10), starting: on(11), absent: on(12)},
		}
		if on(13) {
			f.flags |= intended
		}
		if on(14) {
			f.flags |= shouldRun
		}
		want := Missing
		for _, r := range rows {
			if r.when(f) {
				want = r.state
				break
			}
		}
		if got := stateOf(f); got != want {
			t.Fatalf("%+v: got %s, want %s", f, got, want)
		}
		seen[want]++
	}
	for _, st := range States() {
		if seen[st] == 0 {
			t.Errorf("no combination is %s", st)
		}
	}
}
