package coverage

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// lostNodes are nodes that no longer exist and whose pods do: upstream counts
// them for the budget like any other (rules U7 and U11).
func (s *set) lostNodes() []string {
	undeleted, steady := map[string]int{}, map[string]bool{}
	for _, i := range s.gone {
		if p := &s.w.live.Pods[i]; p.Node != "" && p.Deleting.IsZero() {
			undeleted[p.Node]++
			steady[p.Node] = available(p, s.minReady, s.w.now)
		} else if p.Node != "" {
			undeleted[p.Node] += 0
		}
	}
	var lost []string
	for node, n := range undeleted {
		if n != 1 || !steady[node] {
			lost = append(lost, node)
		}
	}
	slices.Sort(lost)
	return lost
}

// maxSurge and maxUnavailable scale with the nodes that want the pod, rounded
// up (pkg/controller/daemon/util/daemonset_util.go).
func maxSurge(ds *appsv1.DaemonSet, wanted int) int {
	ru := ds.Spec.UpdateStrategy.RollingUpdate
	if onDelete(ds) || ru == nil {
		return 0
	}
	return scaled(ru.MaxSurge, max(wanted, 1), 0)
}

func maxUnavailable(ds *appsv1.DaemonSet, wanted int) int {
	ru := ds.Spec.UpdateStrategy.RollingUpdate
	if ru == nil {
		return 1
	}
	n := scaled(ru.MaxUnavailable, wanted, 1)
	if n == 0 && wanted > 0 && scaled(ru.MaxSurge, wanted, 0) == 0 {
		return 1
	}
	return n
}

func scaled(v *intstr.IntOrString, of, otherwise int) int {
	if v == nil {
		return otherwise
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(v, of, true)
	if err != nil { // the API refuses such values
		return otherwise
	}
	return n
}

func onDelete(ds *appsv1.DaemonSet) bool {
	return ds.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType
}
