package clusters

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// at is a moment of the tests, n minutes after noon.
func at(n int) time.Time { return time.Date(2026, 1, 2, 12, n, 0, 0, time.UTC) }

// decoded is an object written in YAML, as the API shows it.
func decoded[T any](t *testing.T, text string) *T {
	t.Helper()
	out := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestNodeOf(t *testing.T) {
	got := NodeOf(decoded[corev1.Node](t, `
metadata: {name: n1, labels: {a: b}, creationTimestamp: "2026-01-02T12:00:00Z", deletionTimestamp: "2026-01-02T12:05:00Z"}
spec: {taints: [{key: k, value: v, effect: NoExecute}]}
status: {conditions: [{type: Ready, status: "True", lastHeartbeatTime: "2026-01-02T12:01:00Z", lastTransitionTime: "2026-01-02T12:02:00Z"}, {type: DiskPressure, status: "False"}]}
`))
	got.Created = got.Created.UTC()
	for i := range got.Conditions {
		got.Conditions[i].LastHeartbeatTime.Time = got.Conditions[i].LastHeartbeatTime.UTC()
		got.Conditions[i].LastTransitionTime.Time = got.Conditions[i].LastTransitionTime.UTC()
	}
	want := Node{
		Name: "n1", Labels: map[string]string{"a": "b"}, Taints: []corev1.Taint{{Key: "k", Value: "v", Effect: corev1.TaintEffectNoExecute}},
		Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(at(1)), LastTransitionTime: metav1.NewTime(at(2))},
			{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse},
		},
		Created: at(0), Deleting: true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("NodeOf (-want +got):\n%s", diff)
	}
}

func TestPodOf(t *testing.T) {
	got := PodOf(decoded[corev1.Pod](t, `
metadata:
  namespace: ns
  name: agent-x
  uid: u1
  labels: {app: agent}
  creationTimestamp: "2026-01-02T12:00:00Z"
  deletionTimestamp: "2026-01-02T12:09:00Z"
  ownerReferences: [{apiVersion: v1, kind: Other, name: o, uid: o1}, {apiVersion: apps/v1, kind: DaemonSet, name: agent, uid: d1, controller: true}]
spec:
  nodeName: n1
  initContainers: [{name: i, image: init:1}]
  containers: [{name: c, image: "img:2"}, {name: silent, image: "img:3"}]
status:
  phase: Running
  reason: Evicted
  message: the node was low on memory
  conditions:
  - {type: PodScheduled, status: "True", message: ignored}
  - {type: Ready, status: "True", lastTransitionTime: "2026-01-02T12:03:00Z"}
  initContainerStatuses:
  - {name: i, image: init, imageID: "", ready: true, restartCount: 0, state: {terminated: {reason: Completed, exitCode: 0}}}
  containerStatuses:
  - name: c
    image: img
    imageID: ""
    ready: false
    restartCount: 7
    state: {waiting: {reason: CrashLoopBackOff, message: back-off 5m0s}}
    lastState: {terminated: {reason: OOMKilled, message: too much, exitCode: 137}}
`))
	got.Created, got.Deleting, got.ReadySince = got.Created.UTC(), got.Deleting.UTC(), got.ReadySince.UTC()
	want := Pod{
		Namespace: "ns", Name: "agent-x", UID: "u1", Labels: map[string]string{"app": "agent"},
		Owner: Owner{Kind: "DaemonSet", Name: "agent", UID: "d1"}, Node: "n1", Bound: true, Created: at(0), Deleting: at(9),
		Phase: corev1.PodRunning, Reason: "Evicted", Message: "the node was low on memory", Ready: true, ReadySince: at(3),
		Containers: []Container{
			{Name: "i", Image: "init:1", Init: true, Ready: true, Finished: State{Reason: "Completed"}},
			{Name: "c", Image: "img:2", Waiting: State{"CrashLoopBackOff", "back-off 5m0s"}, Finished: State{"OOMKilled", "too much"}, ExitCode: 137, Restarts: 7},
			{Name: "silent", Image: "img:3"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("PodOf (-want +got):\n%s", diff)
	}
}

func TestPodOfStates(t *testing.T) {
	cases := map[string]struct {
		reason string
		status string
		want   Pod
	}{
		"unschedulable": {
			"the scheduler's own words are kept",
			`{conditions: [{type: PodScheduled, status: "False", message: "0/3 nodes are available"}]}`,
			Pod{Unschedulable: "0/3 nodes are available"},
		},
		"not ready": {
			"the time of a Ready condition that is False is not since when a pod is ready",
			`{conditions: [{type: Ready, status: "False", lastTransitionTime: "2026-01-02T12:03:00Z"}]}`,
			Pod{},
		},
		"finished now": {
			"the current end goes before the last one",
			`{containerStatuses: [{name: c, image: i, imageID: "", ready: false, restartCount: 1, state: {terminated: {reason: Error, exitCode: 2}}, lastState: {terminated: {reason: OOMKilled, exitCode: 137}}}]}`,
			Pod{Containers: []Container{{Name: "c", Finished: State{Reason: "Error"}, ExitCode: 2, Restarts: 1}}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := decoded[corev1.Pod](t, "status: "+tc.status)
			for _, c := range p.Status.ContainerStatuses {
				p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: c.Name})
			}
			got := PodOf(p)
			if len(got.Containers) == 0 {
				got.Containers = nil
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestTargetNode(t *testing.T) {
	pinned := func(terms string) string {
		return "{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: " + terms + "}}}}"
	}
	cases := map[string]struct {
		reason string
		spec   string
		want   string
	}{
		"bound":       {"spec.nodeName goes first", `{nodeName: n1, ` + pinned(`[{matchFields: [{key: metadata.name, operator: In, values: [n2]}]}]`)[1:], "n1"},
		"pinned":      {"the controller's pin names the node", pinned(`[{matchFields: [{key: metadata.name, operator: In, values: [n2]}]}]`), "n2"},
		"second term": {"terms are scanned in order", pinned(`[{matchExpressions: [{key: a, operator: Exists}]}, {matchFields: [{key: metadata.name, operator: In, values: [n3]}]}]`), "n3"},
		"two values":  {"a pin to two nodes is an error, and a later one does not mend it", pinned(`[{matchFields: [{key: metadata.name, operator: In, values: [a, b]}]}, {matchFields: [{key: metadata.name, operator: In, values: [c]}]}]`), ""},
		"not in":      {"NotIn pins nothing", pinned(`[{matchFields: [{key: metadata.name, operator: NotIn, values: [n2]}]}]`), ""},
		"expression":  {"metadata.name in matchExpressions is a label", pinned(`[{matchExpressions: [{key: metadata.name, operator: In, values: [n2]}]}]`), ""},
		"free":        {"a pod without affinity has no target", `{}`, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := targetNode(decoded[corev1.PodSpec](t, tc.spec)); got != tc.want {
				t.Errorf("%s: target %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestRevisionOf(t *testing.T) {
	controller := true
	r := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "agent-1", Labels: map[string]string{"controller-revision-hash": "h1"}, CreationTimestamp: metav1.NewTime(at(1)),
			OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Name: "agent", UID: "d1", Controller: &controller}},
		},
		Revision: 3,
		Data: runtime.RawExtension{Raw: []byte(`{"spec":{"template":{"$patch":"replace","metadata":{"labels":{"app":"agent"}},"spec":{
			"hostNetwork":true,"nodeSelector":{"pool":"a"},"tolerations":[{"key":"k","operator":"Exists"}],
			"affinity":{"nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[]},"podAffinity":{}}}}}}`)},
	}
	want := Revision{
		Namespace: "ns", Name: "agent-1", Owner: Owner{"DaemonSet", "agent", "d1"}, Number: 3, Hash: "h1", Created: at(1),
		Placement: Placement{
			NodeSelector: map[string]string{"pool": "a"}, HostNetwork: true, Tolerations: []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}},
			Affinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{}},
		},
	}
	got, err := RevisionOf(r)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("RevisionOf (-want +got):\n%s", diff)
	}

	r.Data.Raw = []byte(`{"spec":"no template"}`)
	if _, err := RevisionOf(r); err == nil || !strings.Contains(err.Error(), `ControllerRevision "agent-1" in namespace "ns"`) {
		t.Errorf("data that is no template: error %v, want one that names the revision", err)
	}
}

func TestEventOf(t *testing.T) {
	about := `involvedObject: {namespace: ns, kind: Pod, name: p, uid: u}`
	event := Event{Namespace: "ns", Kind: "Pod", Name: "p", UID: "u", Count: 1}
	with := func(change func(*Event)) Event {
		e := event
		change(&e)
		return e
	}
	cases := map[string]struct {
		reason string
		event  string
		want   Event
	}{
		"counted": {
			"the old form has first, last and a count",
			`{type: Warning, reason: Failed, message: m, count: 5, firstTimestamp: "2026-01-02T12:01:00Z", lastTimestamp: "2026-01-02T12:04:00Z", ` + about + `}`,
			with(func(e *Event) {
				e.Type, e.Reason, e.Message, e.Count, e.First, e.Last = "Warning", "Failed", "m", 5, at(1), at(4)
			}),
		},
		"series": {
			"the new form has eventTime and a series; the newest time counts",
			`{eventTime: "2026-01-02T12:02:00.000000Z", series: {count: 3, lastObservedTime: "2026-01-02T12:06:00.000000Z"}, ` + about + `}`,
			with(func(e *Event) { e.Count, e.First, e.Last = 3, at(2), at(6) }),
		},
		"created only": {
			"an event without times of its own happened when it was created",
			`{metadata: {creationTimestamp: "2026-01-02T12:07:00Z"}, ` + about + `}`,
			with(func(e *Event) { e.First, e.Last = at(7), at(7) }),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := EventOf(decoded[corev1.Event](t, tc.event))
			got.First, got.Last = got.First.UTC(), got.Last.UTC()
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
