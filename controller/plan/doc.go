// Package plan says what would be done in each cluster to make it what a commit
// says, and what that means for nodes: which gain a pod, lose it, restart it or
// could not take it. It compares values, asks no cluster and changes nothing.
//
//	render of a commit, live objects ─▶ Make ─▶ Cluster: actions with holds, effects on nodes, rollouts
//	Clusters, waves, delete limits   ─▶ New  ─▶ Plan, with the holds that look across clusters
//	Cluster                          ─▶ BatchOf ─▶ clusters.Batch, without what is held
package plan
