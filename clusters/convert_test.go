package clusters_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"rollcall.dev/rollcall/clusters"
)

func object[T any](t *testing.T, manifest string) *T {
	t.Helper()
	o := new(T)
	if err := yaml.UnmarshalStrict([]byte(manifest), o); err != nil {
		t.Fatal(err)
	}
	return o
}

func at(minute int) time.Time { return time.Date(2026, 1, 2, 3, minute, 0, 0, time.UTC) }

func TestNodeOf(t *testing.T) {
	got := clusters.NodeOf(object[corev1.Node](t, `
metadata: {name: node, labels: {a: b}, annotations: {rollcall.dev/excuse: "RMA; owner=sre"}, creationTimestamp: "2026-01-02T03:01:00Z", deletionTimestamp: "2026-01-02T03:02:00Z"}
spec: {taints: [{key: k, effect: NoSchedule}]}
status: {conditions: [{type: Ready, status: "True", lastHeartbeatTime: "2026-01-02T03:03:00Z"}, {type: DiskPressure, status: "False"}]}`))
	want := clusters.Node{
		Name: "node", Labels: map[string]string{"a": "b"}, Created: at(1), Deleting: true, Excuse: "RMA; owner=sre",
		Taints: []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}},
		Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Time{Time: at(3)}},
			{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if clusters.NodeOf(&corev1.Node{}).Deleting {
		t.Error("a node without deletionTimestamp is deleting")
	}
}

func TestPodOf(t *testing.T) {
	cases := map[string]struct {
		reason string
		pod    string
		want   clusters.Pod
	}{
		"Ready": {"a pod that runs", `
metadata: {namespace: x, name: p, uid: u, labels: {app: a}, creationTimestamp: "2026-01-02T03:01:00Z", ownerReferences: [
  {apiVersion: v1, kind: Other, name: o, uid: ou}, {apiVersion: apps/v1, kind: DaemonSet, name: d, uid: du, controller: true}]}
spec: {nodeName: node, containers: [{name: c, image: i}]}
status: {phase: Running, conditions: [{type: Ready, status: "True", lastTransitionTime: "2026-01-02T03:02:00Z"}],
  containerStatuses: [{name: c, image: "other", imageID: "", ready: true, restartCount: 2, lastState: {terminated: {exitCode: 137, reason: OOMKilled, message: m}}}]}`,
			clusters.Pod{
				Namespace: "x", Name: "p", UID: "u", Labels: map[string]string{"app": "a"}, Owner: clusters.Owner{Kind: "DaemonSet", Name: "d", UID: "du"},
				Node: "node", Bound: true, Created: at(1), Phase: corev1.PodRunning, Ready: true, ReadySince: at(2),
				Containers: []clusters.Container{{Name: "c", Image: "i", Ready: true, Finished: clusters.State{Reason: "OOMKilled", Message: "m"}, ExitCode: 137, Restarts: 2}},
			}},
		"Waiting": {"init containers come first; the current state goes before the last one", `
metadata: {deletionTimestamp: "2026-01-02T03:05:00Z"}
spec: {initContainers: [{name: i}], containers: [{name: c}, {name: unknown}]}
status: {phase: Pending, reason: Evicted, message: full, conditions: [{type: Ready, status: "False", lastTransitionTime: "2026-01-02T03:02:00Z"}],
  initContainerStatuses: [{name: i, image: "", imageID: "", ready: false, restartCount: 0, state: {terminated: {exitCode: 1, reason: Error}}, lastState: {terminated: {exitCode: 2, reason: Old}}}],
  containerStatuses: [{name: c, image: "", imageID: "", ready: false, restartCount: 0, state: {waiting: {reason: PodInitializing, message: w}}}]}`,
			clusters.Pod{
				Phase: corev1.PodPending, Reason: "Evicted", Message: "full", Deleting: at(5), Placement: &clusters.Placement{},
				Containers: []clusters.Container{
					{Name: "i", Init: true, Finished: clusters.State{Reason: "Error"}, ExitCode: 1},
					{Name: "c", Waiting: clusters.State{Reason: "PodInitializing", Message: "w"}},
					{Name: "unknown"},
				},
			}},
		"Pinned": {"P1: the node that the affinity pins an unscheduled pod to", `
spec: {containers: [], affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [
  {matchExpressions: [{key: metadata.name, operator: In, values: [wrong]}], matchFields: [{key: metadata.name, operator: NotIn, values: [wrong]}]},
  {matchFields: [{key: metadata.name, operator: In, values: [node]}]}]}}}}
status: {conditions: [{type: PodScheduled, status: "False", message: too full}]}`,
			clusters.Pod{Node: "node", Unschedulable: "too full", Containers: []clusters.Container{}, Placement: &clusters.Placement{Affinity: required(
				corev1.NodeSelectorTerm{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"wrong"}}},
					MatchFields:      []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"wrong"}}},
				}, pinTo("node"))}}},
		"PinnedToTwo": {"P1: a pin names exactly one node", `
spec: {containers: [], affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [
  {matchFields: [{key: metadata.name, operator: In, values: [a, b]}]}, {matchFields: [{key: metadata.name, operator: In, values: [node]}]}]}}}}`,
			clusters.Pod{Containers: []clusters.Container{}, Placement: &clusters.Placement{Affinity: required(pinTo("a", "b"), pinTo("node"))}}},
		"BoundAndPinned": {"P1: the bound node goes first", `
spec: {nodeName: bound, containers: [], affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [node]}]}]}}}}`,
			clusters.Pod{Node: "bound", Bound: true, Containers: []clusters.Container{}}},
		"Preferred": {"no pin at all", `spec: {containers: [], affinity: {nodeAffinity: {}}}`, clusters.Pod{Containers: []clusters.Container{}, Placement: &clusters.Placement{Affinity: &corev1.NodeAffinity{}}}},
		"Failed": {"what kept a failed pod off its node is kept, whatever else is in its spec", `
spec: {nodeName: node, nodeSelector: {a: b}, tolerations: [{key: k}], hostNetwork: true, containers: []}
status: {phase: Failed}`,
			clusters.Pod{Node: "node", Bound: true, Phase: corev1.PodFailed, Containers: []clusters.Container{}, Placement: &clusters.Placement{
				NodeName: "node", NodeSelector: map[string]string{"a": "b"}, Tolerations: []corev1.Toleration{{Key: "k"}}, HostNetwork: true,
			}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, clusters.PodOf(object[corev1.Pod](t, tc.pod))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// required is an affinity of these terms.
func required(terms ...corev1.NodeSelectorTerm) *corev1.NodeAffinity {
	return &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}
}

func pinTo(nodes ...string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: nodes}}}
}

func TestRevisionOf(t *testing.T) {
	revision := func(data string) *appsv1.ControllerRevision {
		r := object[appsv1.ControllerRevision](t, `
metadata: {namespace: x, name: d-1, labels: {controller-revision-hash: "1"}, creationTimestamp: "2026-01-02T03:01:00Z",
  ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: d, uid: du, controller: true}]}
revision: 7`)
		r.Data.Raw = []byte(data)
		return r
	}
	template, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"$patch": "replace", "spec": corev1.PodSpec{
		NodeSelector: map[string]string{"a": "b"}, HostNetwork: true, Tolerations: []corev1.Toleration{{Key: "k"}},
		Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{}}},
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	want := clusters.Revision{
		Namespace: "x", Name: "d-1", Number: 7, Hash: "1", Created: at(1), Owner: clusters.Owner{Kind: "DaemonSet", Name: "d", UID: "du"},
		Placement: clusters.Placement{
			NodeSelector: map[string]string{"a": "b"}, HostNetwork: true, Tolerations: []corev1.Toleration{{Key: "k"}},
			Affinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{}},
		},
	}
	got, err := clusters.RevisionOf(revision(string(template)))
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
	want.Placement = clusters.Placement{}
	got, err = clusters.RevisionOf(revision(""))
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("without data: error %v (-want +got):\n%s", err, diff)
	}
	if _, err := clusters.RevisionOf(revision(`{"spec":3}`)); err == nil {
		t.Error("got no error from data that is no patch")
	}
}

func TestEventOf(t *testing.T) {
	cases := map[string]struct {
		reason string
		event  string
		want   clusters.Event
	}{
		"Old": {"as client-go's recorder writes it", `
metadata: {name: e, creationTimestamp: "2026-01-02T03:01:00Z"}
involvedObject: {namespace: x, kind: DaemonSet, name: d, uid: du}
type: Warning
reason: FailedCreate
message: quota
count: 4
firstTimestamp: "2026-01-02T03:02:00Z"
lastTimestamp: "2026-01-02T03:06:00Z"`,
			clusters.Event{Namespace: "x", Kind: "DaemonSet", Name: "d", UID: "du", Type: "Warning", Reason: "FailedCreate", Message: "quota", Count: 4, First: at(2), Last: at(6)}},
		"New": {"as events.k8s.io has it: one that happened once has only an eventTime", `
metadata: {name: e, creationTimestamp: "2026-01-02T03:01:00Z"}
involvedObject: {kind: Pod, name: p}
eventTime: "2026-01-02T03:03:00.000000Z"`,
			clusters.Event{Kind: "Pod", Name: "p", Count: 1, First: at(3), Last: at(3)}},
		"Series": {"and one that came again a series", `
metadata: {name: e, creationTimestamp: "2026-01-02T03:01:00Z"}
involvedObject: {kind: Pod, name: p}
eventTime: "2026-01-02T03:03:00.000000Z"
series: {count: 9, lastObservedTime: "2026-01-02T03:08:00.000000Z"}`,
			clusters.Event{Kind: "Pod", Name: "p", Count: 9, First: at(3), Last: at(8)}},
		"NoTimes": {"then its own creation must do", `
metadata: {name: e, creationTimestamp: "2026-01-02T03:01:00Z"}
involvedObject: {kind: Pod}`,
			clusters.Event{Kind: "Pod", Count: 1, First: at(1), Last: at(1)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, clusters.EventOf(object[corev1.Event](t, tc.event))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
