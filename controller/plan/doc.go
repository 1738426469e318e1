// Package plan says beforehand what a commit would do to the nodes of a cluster:
// whether the pods it adds or restarts would fit. It knows nodes and what pods
// claim of them as values; it knows no client, no clock and no scheduler but
// Kubernetes' own rules, so that what it says is an estimate.
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
