// Package plan says what would be done in each cluster to make it what a commit
// says, and what that means for nodes: which gain a pod, lose it, restart it or
// could not take it. It compares values, asks no cluster and changes nothing.
//
//	render of a commit, live objects ─▶ Make ─▶ Cluster: actions with holds, effects on nodes, rollouts
//	Clusters, waves, delete limits   ─▶ New  ─▶ Plan, with the holds that look across clusters
//	Cluster                          ─▶ BatchOf ─▶ clusters.Batch, without what is held
//
// # What fits
//
// Fit follows the scheduler's plug-ins NodeResourcesFit and NodePorts and the
// search for victims of DefaultPreemption. All pods count that have a node and
// have not ended, those included that are being deleted.
//
// # What it does not see
//
// Volumes, affinity to other pods, resources of dynamic allocation, budgets
// that say which pods are pushed out first, and what admission adds to pods:
// requests by a LimitRange, overhead by a RuntimeClass. Nor pods that wait for
// the same room; those of one plan are put in by Loads.Place, one after the
// other.
package plan
