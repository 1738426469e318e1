// Package coverage decides, for every DaemonSet and node, what the DaemonSet's
// presence there amounts to, and why. It knows nodes, pods and templates as
// values; it knows no client, no clock and no Git.
//
//	Live ─▶ world: nodes by name, labels in columns, taint sets, pods by owner
//	          │
//	 Subject ─┴▶ verdicts  shouldRun, shouldContinueRunning, intended  (one bit each, per node)
//	          ─▶ states    exactly one per node
//	          ─▶ losses    nodes that an earlier template or a pod that is there tells were intended
//	          ─▶ excuses   gaps that somebody has accepted
//	          ─▶ agents    what must be covered, by whichever of its DaemonSets
//	          ─▶ rows      reasons, made only for the nodes that are asked for
//
// # Why columns
//
// A verdict reads few labels of many nodes. Labels are kept by key, each value
// as a small number, so that a requirement is decided once per distinct value
// and a node costs an array look-up, however different the nodes are.
//
// The two verdicts equal upstream's NodeShouldRunDaemonPod of Kubernetes v1.37
// (pkg/controller/daemon/daemon_controller.go) on the live template. intended
// is ours: the same question to the desired template, with taints that come
// and go by themselves left out, so that a node that dies stays intended.
package coverage
