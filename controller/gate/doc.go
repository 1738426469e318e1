// Package gate decides whether a cluster has come to where somebody waits for
// it to be: how many nodes count, which are left out on what ground, and who
// blocks. It knows nodes and verdicts as values; it knows no client, no clock
// and not how often it is asked.
//
// # What counts
//
// A node counts for a DaemonSet if it is intended, and for an agent if the agent
// selects it. Left out, counted by ground and told are nodes that say nothing of
// the DaemonSet:
//
//	Leaving       on its way out
//	excused       its gap is accepted
//	NodeNotReady  not heard from: what its pod does is not known
//	starting      joined less than the startup grace ago and does not run it yet
//
// A node that starts only because the DaemonSet has just changed counts: else
// waiting for a change would end before the change began.
//
// # What cannot shrink
//
// Nodes that were intended and no longer are block a DaemonSet, excused ones
// aside: a taint or a patched selector that takes nodes out of the count brings
// nobody nearer to what is waited for. So does having nothing left to count
// while nodes start or are not heard from.
package gate
