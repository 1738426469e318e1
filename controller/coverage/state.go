package coverage

// facts are everything that a node's state for a DaemonSet depends on.
type facts struct {
	flags flags
	node  nodeFacts
	pods  podSummary
	set   setFacts
}

// setFacts are what the states of all nodes of a DaemonSet depend on.
type setFacts struct {
	updating bool // RollingUpdate, some node not up to date, unavailable nodes within the budget
	starting bool // less than the grace on the clock, here
	absent   bool // not in the cluster: nothing that waiting would bring
}

// concerns tells whether the node has anything to do with the DaemonSet.
func (f facts) concerns() bool {
	if f.node&virtual != 0 && !f.flags.has(intended) && f.pods.onlyWait {
		return false
	}
	return f.flags.has(intended|shouldRun) || f.pods.present
}

// stateOf is the table of node states: the first row that fits decides.
func stateOf(f facts) State {
	switch {
	case f.node&leaving != 0:
		return Leaving
	case !f.concerns():
		return Excluded
	case f.node&young != 0 && f.node&(down|startupTainted) != 0:
		return Starting
	case f.node&down != 0:
		return NodeNotReady
	case f.pods.present && !f.flags.has(shouldRun):
		return Misscheduled
	case f.pods.surplus:
		return Duplicate
	case f.pods.available:
		return Covered
	case f.set.updating && !f.pods.failing:
		return Updating
	case f.set.starting && !f.pods.failing && !f.set.absent:
		return Starting
	case f.pods.present:
		return NotReady
	}
	return Missing
}
