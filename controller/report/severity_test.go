package report_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/coverage"
	"rollcall.dev/rollcall/controller/report"
)

// crashing is a cluster of ten nodes where the pod of n0 crashes, n1 starts and
// n2 has a taint that its pod does not tolerate.
func crashing() clusters.Live {
	ds := daemonSet(variant{}, "sec", "sensor", "sensor:1")
	l := clusters.Live{ObservedAt: noon, DaemonSets: []appsv1.DaemonSet{ds}, Revisions: []clusters.Revision{revision(ds, 1, "new")}}
	for i := range 10 {
		n := node(fmt.Sprintf("n%d", i))
		n.Labels = map[string]string{"pool": map[bool]string{true: "db", false: "web"}[i == 2]}
		p := pod(variant{}, ds, n.Name)
		p.Labels[appsv1.ControllerRevisionHashLabelKey] = "new"
		switch i {
		case 0:
			p.Ready, p.Containers = false, []clusters.Container{{Name: "c", Waiting: clusters.State{Reason: "CrashLoopBackOff"}}}
		case 1:
			n.Created, p.Ready = noon.Add(-time.Minute), false
		case 2:
			n.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}
		}
		l.Nodes, l.Pods = append(l.Nodes, n), append(l.Pods, p)
	}
	return l
}

// What an agent makes of the severity of what is wrong with its DaemonSets.
func TestAgentSeverities(t *testing.T) {
	web := &metav1.LabelSelector{MatchLabels: map[string]string{"pool": "web"}}
	own := map[string]report.Severity{"CrashLoopBackOff": report.Error, "CoverageLost": report.Error}
	with := func(crash, lost report.Severity) map[string]report.Severity {
		return map[string]report.Severity{"CrashLoopBackOff": crash, "CoverageLost": lost}
	}
	cases := map[string]struct {
		reason string
		agents []clusters.Agent
		want   map[string]report.Severity
	}{
		"None":     {"without an agent the table decides", nil, own},
		"Error":    {"a gap is as severe as the agent says", []clusters.Agent{{Min: "100%", Severity: "error"}}, own},
		"Lower":    {"and no more", []clusters.Agent{{Min: "100%", Severity: "warning"}}, with(report.Warning, report.Warning)},
		"Reached":  {"where enough is covered a gap is information, a loss is not", []clusters.Agent{{Min: "80%", Severity: "error"}}, with(report.Info, report.Error)},
		"ByCode":   {"a code may have a severity of its own", []clusters.Agent{{Min: "100%", Severity: "error", Severities: map[string]string{"CrashLoopBackOff": "info"}}}, with(report.Info, report.Error)},
		"Highest":  {"of several agents the severest counts", []clusters.Agent{{Name: "a", Min: "80%", Severity: "info"}, {Name: "b", Min: "100%", Severity: "warning"}}, with(report.Warning, report.Warning)},
		"NotThere": {"what is lost where no agent asks for it is information", []clusters.Agent{{Min: "100%", Severity: "error", Nodes: web}}, with(report.Error, report.Info)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for i := range tc.agents {
				tc.agents[i].Names, tc.agents[i].StartupGrace = []string{"sec/sensor"}, 5*time.Minute
			}
			c := judge(variant{}, report.Judged{Cluster: clusters.Cluster{Name: "c"}, Live: crashing()}, coverage.State.Attention, coverage.Options{Agents: tc.agents})
			got := report.New(report.Scope{At: noon}, []report.Cluster{c}, nil).Findings
			for _, f := range got {
				if want, asked := tc.want[f.Code]; asked && f.Severity != want {
					t.Errorf("%s: %s is %s, want %s", tc.reason, f.Code, f.Severity, want)
				}
				if f.Nodes.Count > 0 && strings.Contains(strings.Join(f.Nodes.Sample, " "), "n1") {
					t.Errorf("a node that starts is a finding: %+v", f)
				}
			}
			if len(got) < len(tc.want) {
				t.Errorf("%d findings: %+v", len(got), got)
			}
		})
	}
}

// A node without a pod that it should have is an error whatever keeps it out.
func TestMissingIsAnError(t *testing.T) {
	l := crashing()
	l.Nodes[5].Taints = []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}
	l.Pods = append(l.Pods[:5:5], l.Pods[6:]...)
	c := judge(variant{}, report.Judged{Cluster: clusters.Cluster{Name: "c"}, Live: l}, coverage.State.Attention)
	f := findings(report.New(report.Scope{At: noon}, []report.Cluster{c}, nil))["c UntoleratedTaint taint"]
	if f.Severity != report.Error || strings.Join(f.Nodes.Sample, " ") != "n5" {
		t.Errorf("got %+v", f)
	}
}
