// Package bench measures rollcall beside what others do with the same data, in
// the same run. It may import what the product may not.
package bench

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/daemon"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/coverage"
)

const (
	nodeCount      = 5000
	daemonSetCount = 30
)

// BenchmarkCoverage compares rollcall's coverage with upstream's exported
// NodeShouldRunDaemonPod, which gives two verdicts and reads no pods. The first
// line of a shape is the same question, answered by rollcall with states and
// counts besides; the second is rollcall's whole pass, every pod included,
// beside the same upstream figure. Indexes are built anew each time. Times are
// CPU time of the process, the least of several runs; both must agree on every
// pair before anything is timed.
func BenchmarkCoverage(b *testing.B) {
	for _, shape := range []struct {
		name   string
		shapes int
	}{{"28 shapes", 28}, {"all different", nodeCount}} {
		b.Run(shape.name, func(b *testing.B) {
			nodes, whole := world(shape.shapes)
			bare := *whole
			bare.Pods = nil
			agree(b, nodes, whole)
			theirs := least(3, func() { upstream(nodes, whole.DaemonSets) })
			verdicts, full := least(20, func() { judge(&bare) }), least(20, func() { judge(whole) })
			for b.Loop() {
				judge(&bare)
			}
			b.ReportMetric(ratio(theirs, verdicts), "ratio")
			b.ReportMetric(float64(verdicts)/(nodeCount*daemonSetCount), "ns/pair")
			fmt.Printf("ratio %.0f× (%s): verdicts, states and counts %s; upstream per pair %s; %d nodes × %d DaemonSets\n",
				ratio(theirs, verdicts), shape.name, verdicts.Round(10*time.Microsecond), theirs.Round(time.Millisecond), nodeCount, daemonSetCount)
			fmt.Printf("ratio %.0f× (%s, with %d pods): whole pass %s; upstream reads no pods\n",
				ratio(theirs, full), shape.name, len(whole.Pods), full.Round(10*time.Microsecond))
		})
	}
}

func ratio(theirs, ours time.Duration) float64 { return float64(theirs) / float64(ours) }

func judge(live *clusters.Live) []coverage.DaemonSet {
	subjects := make([]coverage.Subject, len(live.DaemonSets))
	for i := range live.DaemonSets {
		subjects[i] = coverage.Subject{Live: &live.DaemonSets[i]}
	}
	return coverage.Compute(live, subjects, coverage.Options{Grace: 5 * time.Minute}).DaemonSets
}

func upstream(nodes []corev1.Node, dss []appsv1.DaemonSet) (wanted int) {
	for i := range dss {
		for j := range nodes {
			if run, _ := daemon.NodeShouldRunDaemonPod(klog.Logger{}, &nodes[j], &dss[i]); run {
				wanted++
			}
		}
	}
	return wanted
}

// least is the smallest CPU time of n runs: what the machine does besides does
// not count.
func least(n int, f func()) time.Duration {
	best := time.Duration(1 << 62)
	for range n {
		start := cpu()
		f()
		best = min(best, cpu()-start)
	}
	return best
}

func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // cannot be: the arguments are constants
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func agree(b *testing.B, nodes []corev1.Node, live *clusters.Live) {
	b.Helper()
	for i, d := range judge(live) {
		ds := &live.DaemonSets[i]
		for j := range nodes {
			run, stay := daemon.NodeShouldRunDaemonPod(klog.Logger{}, &nodes[j], ds)
			row, _ := d.Row(nodes[j].Name)
			if row.ShouldRun != run || row.ShouldContinueRunning != stay {
				b.Fatalf("DaemonSet %s, node %s: rollcall (%t, %t), upstream (%t, %t)", ds.Name, nodes[j].Name, row.ShouldRun, row.ShouldContinueRunning, run, stay)
			}
		}
	}
}

// world makes nodes of so many shapes of labels and taints, DaemonSets with
// selectors, affinity and tolerations, and a ready pod wherever one is wanted.
func world(shapes int) ([]corev1.Node, *clusters.Live) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	live := &clusters.Live{ObservedAt: now}
	var shared clusters.Shared // as clusters/kube and clusters/recorded do
	nodes := make([]corev1.Node, nodeCount)
	for i := range nodes {
		nodes[i] = node(i, i%shapes, now)
		live.Nodes = append(live.Nodes, clusters.NodeOf(&nodes[i]))
	}
	for i := range daemonSetCount {
		ds := daemonSet(i)
		live.DaemonSets = append(live.DaemonSets, ds)
		live.Revisions = append(live.Revisions, clusters.Revision{Namespace: ds.Namespace, Name: ds.Name, Owner: owner(&ds), Number: 1, Hash: "h"})
		for j := range nodes {
			if run, _ := daemon.NodeShouldRunDaemonPod(klog.Logger{}, &nodes[j], &ds); run {
				live.Pods = append(live.Pods, shared.Pod(clusters.Pod{
					Namespace: ds.Namespace, Name: fmt.Sprintf("%s-%d", ds.Name, j), UID: fmt.Sprintf("%d-%d", i, j), Owner: owner(&ds), Node: nodes[j].Name, Bound: true,
					Labels: map[string]string{"app": ds.Name, "controller-revision-hash": "h"}, Phase: corev1.PodRunning, Ready: true, ReadySince: now.Add(-time.Hour),
				}))
			}
		}
	}
	return nodes, live
}

func owner(ds *appsv1.DaemonSet) clusters.Owner {
	return clusters.Owner{Kind: "DaemonSet", Name: ds.Name, UID: string(ds.UID)}
}

func node(i, shape int, now time.Time) corev1.Node {
	name := fmt.Sprintf("node-%04d", i)
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(now.Add(-time.Hour)), Labels: map[string]string{
		"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": []string{"amd64", "arm64"}[shape%2],
		"topology.kubernetes.io/zone": fmt.Sprintf("z%d", shape%3), "pool": fmt.Sprintf("pool-%d", shape), "size": fmt.Sprint(shape % 64),
	}}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(now)}}
	if shape%7 == 0 {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "dedicated", Value: fmt.Sprintf("team-%d", shape), Effect: corev1.TaintEffectNoSchedule})
	}
	if shape%11 == 0 {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoExecute})
	}
	return n
}

func daemonSet(i int) appsv1.DaemonSet {
	name := fmt.Sprintf("agent-%02d", i)
	ds := appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "agents", UID: types.UID("uid-" + name)}}
	ds.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	spec := &ds.Spec.Template.Spec
	expressions := []corev1.NodeSelectorRequirement{}
	switch i % 4 {
	case 0:
		spec.NodeSelector = map[string]string{"kubernetes.io/os": "linux"}
	case 1:
		expressions = append(expressions, corev1.NodeSelectorRequirement{Key: "kubernetes.io/arch", Operator: corev1.NodeSelectorOpIn, Values: []string{"amd64"}},
			corev1.NodeSelectorRequirement{Key: "pool", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"pool-3", "pool-4"}})
	case 2:
		expressions = append(expressions, corev1.NodeSelectorRequirement{Key: "size", Operator: corev1.NodeSelectorOpGt, Values: []string{"8"}})
	}
	if len(expressions) > 0 {
		spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: expressions}}}}}
	}
	if i%3 == 0 {
		spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
	if i%5 == 0 {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: "gpu", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute})
	}
	return ds
}
