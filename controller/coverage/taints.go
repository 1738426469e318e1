package coverage

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"rollcall.dev/rollcall/clusters"
)

// Taints that come and go with a node's life: an untolerated one keeps a pod
// away for a while and does not make the node another kind of node. A key that
// ends in * stands for all that start so.
var (
	lifecycleTaints = []string{
		"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable",
		"node.kubernetes.io/memory-pressure", "node.kubernetes.io/disk-pressure", "node.kubernetes.io/pid-pressure",
		"node.kubernetes.io/network-unavailable", "node.kubernetes.io/unschedulable", "node.kubernetes.io/out-of-service",
		"node.cloudprovider.kubernetes.io/uninitialized", "node.cloudprovider.kubernetes.io/shutdown",
	}
	startupTaints = []string{
		"node.cloudprovider.kubernetes.io/uninitialized", "node.cilium.io/agent-not-ready", "ebs.csi.aws.com/agent-not-ready",
		"karpenter.sh/unregistered", "readiness.k8s.io/*",
	}
	leavingTaints = []string{
		"ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "cloud.google.com/impending-node-termination", "aws-node-termination-handler/*",
	}
	virtualTaints = []string{"virtual-kubelet.io/provider"}
	virtualLabels = map[string]string{"type": "virtual-kubelet", "eks.amazonaws.com/compute-type": "fargate"}
)

// automaticTolerations are what the controller adds to every daemon pod, the
// last one only with host networking. It follows AddOrUpdateDaemonPodTolerations
// (pkg/controller/daemon/util/daemonset_util.go).
var automaticTolerations = []corev1.Toleration{
	{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
	{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
	{Key: corev1.TaintNodeDiskPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeMemoryPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodePIDPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeNetworkUnavailable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
}

// Tolerations returns a template's tolerations with the automatic ones merged
// in: one that is equal but for its seconds is replaced where it stands.
func Tolerations(p clusters.Placement) []corev1.Toleration {
	merged := slices.Clone(p.Tolerations)
	automatic := automaticTolerations
	if !p.HostNetwork {
		automatic = automatic[:len(automatic)-1]
	}
	for _, a := range automatic {
		found := false
		for i, t := range merged {
			if t.Key == a.Key && t.Operator == a.Operator && t.Value == a.Value && t.Effect == a.Effect {
				merged[i], found = a, true
			}
		}
		if !found {
			merged = append(merged, a)
		}
	}
	return merged
}

// tolerates follows Toleration.ToleratesTaint (k8s.io/api/core/v1/toleration.go).
// tolerationSeconds is not read there either.
func tolerates(t corev1.Toleration, taint corev1.Taint, comparison bool) bool {
	if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
		return false
	}
	switch t.Operator {
	case "", corev1.TolerationOpEqual:
		return t.Value == taint.Value
	case corev1.TolerationOpExists:
		return true
	case corev1.TolerationOpGt, corev1.TolerationOpLt:
		return comparison && compares(t, taint)
	}
	return false
}

func compares(t corev1.Toleration, taint corev1.Taint) bool {
	want, ok := canonicalInt(t.Value)
	have, ok2 := canonicalInt(taint.Value)
	if !ok || !ok2 {
		return false
	}
	if t.Operator == corev1.TolerationOpGt {
		return have > want
	}
	return have < want
}

// canonicalInt parses a decimal int64 that is written the one canonical way.
func canonicalInt(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == s
}

// considered tells whether a taint's effect takes part in the verdict.
func considered(t corev1.Taint) bool {
	return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
}

// taintKeys are lists of keys, the built-in ones extended by a fleet's.
type taintKeys struct {
	passing []string // lifecycle and startup
	startup []string
	leaving []string
}

func taintKeysOf(extra clusters.Taints) taintKeys {
	startup := slices.Concat(startupTaints, extra.Startup)
	return taintKeys{
		passing: slices.Concat(lifecycleTaints, extra.Lifecycle, startup),
		startup: startup,
		leaving: slices.Concat(leavingTaints, extra.Leaving),
	}
}

func listed(keys []string, key string) bool {
	for _, k := range keys {
		if prefix, all := strings.CutSuffix(k, "*"); k == key || all && strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

func taintIn(keys []string, taints []corev1.Taint) (corev1.Taint, bool) {
	for _, t := range taints {
		if listed(keys, t.Key) {
			return t, true
		}
	}
	return corev1.Taint{}, false
}

// IsVirtual tells whether a node stands for capacity without a machine, on
// which no node agent can run: a virtual kubelet or Fargate.
func IsVirtual(n *clusters.Node) bool {
	for k, v := range virtualLabels {
		if n.Labels[k] == v {
			return true
		}
	}
	_, tainted := taintIn(virtualTaints, n.Taints)
	return tainted
}

func taintText(t corev1.Taint) string {
	if t.Value == "" {
		return t.Key + ":" + string(t.Effect)
	}
	return t.Key + "=" + t.Value + ":" + string(t.Effect)
}
