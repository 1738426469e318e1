package report_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/coverage"
	"rollcall.dev/rollcall/controller/drift"
	"rollcall.dev/rollcall/controller/plan"
	"rollcall.dev/rollcall/controller/report"
	"rollcall.dev/rollcall/sync/source"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// variant is what may change from one look to the next while causes hold.
type variant struct {
	pods    string        // suffix of every pod's name
	words   string        // suffix of every message of the cluster
	later   time.Duration // added to every time
	shuffle *rand.Rand
}

func (v variant) at(d time.Duration) time.Time { return noon.Add(d + v.later) }

func (v variant) metaTime(d time.Duration) metav1.Time { return metav1.Time{Time: v.at(d)} }

// world is a small fleet in which everything that a report tells of happens.
func world(v variant) report.Report {
	cs := []report.Cluster{prod(v), broken(v), gone(), guarded(v), twin("twin-a", v), twin("twin-b", v)}
	mix(v, cs)
	rev := source.Revision{URL: "https://git.example/daemons", Ref: "main", Commit: "0123456789abcdef0123456789abcdef01234567", CommittedAt: noon.Add(-time.Hour), FetchedAt: v.at(time.Minute)}
	more := []report.Finding{report.NewFinding("", "TargetUnmatched", `target "lab" matches none of 5 clusters`, coverage.Cause{Kind: "fleet", Key: "target lab"})}
	return report.New(report.Scope{Fleet: platform(), At: v.at(2 * time.Minute), Revision: rev, NodesListed: "attention"}, cs, more)
}

// platform declares an agent, and exceptions: for a finding, for a gap, one
// that is over and one of no use.
func platform() clusters.Fleet {
	later, over := noon.Add(30*24*time.Hour), noon.Add(-24*time.Hour)
	here := clusters.Selection{Names: []string{"guarded"}}
	return clusters.Fleet{
		Name:   "platform",
		Agents: []clusters.Agent{{Name: "security", Match: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "sensor"}}, Clusters: clusters.Selection{Names: []string{"guarded", "gone"}}, Min: "90%", Severity: "warning", StartupGrace: 5 * time.Minute}},
		Exceptions: []clusters.Exception{
			{Code: "WaitingForDelete", Clusters: here, Reason: "rolled by hand", Owner: "storage", Until: later},
			{Agent: "security", Clusters: here, Nodes: []string{"g3"}, Reason: "RMA 4711", Owner: "sre", Until: later},
			{Code: "NodeNotReady", Clusters: here, Reason: "move", Owner: "net", Until: over},
			{Code: "HeartbeatStale", Clusters: here, Reason: "clock", Owner: "net", Until: later},
		},
	}
}

// guarded has an agent that lacks two nodes, one of them excused, a DaemonSet
// that is left out, and an OnDelete rollout that a node joined.
func guarded(v variant) report.Cluster {
	ds := daemonSet(v, "sec", "sensor", "sensor:2")
	ds.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
	current := revision(ds, 2, "new")
	current.Created = v.at(-12 * time.Hour)
	joined, tainted := node("g2"), node("g4")
	joined.Created = v.at(-6 * time.Hour)
	tainted.Taints = []corev1.Taint{{Key: "dedicated", Value: "db", Effect: corev1.TaintEffectNoExecute}}
	crashing := pod(v, ds, "g3")
	crashing.Ready, crashing.Containers = false, []clusters.Container{{Name: "c", Image: "sensor:2", Waiting: clusters.State{Reason: "CrashLoopBackOff"}}}
	fleet := platform()
	return judge(v, report.Judged{
		Cluster: clusters.Cluster{Name: "guarded"}, HasSource: true, Overlay: "overlays/prod", Desired: []appsv1.DaemonSet{ds},
		Excluded: []string{"kube-system/skipped"}, Exceptions: []int{0, 1, 2, 3},
		Live: clusters.Live{
			ObservedAt: v.at(0), Identity: "uid-guarded", Nodes: []clusters.Node{joined, node("g3"), tainted, node("n5")},
			Pods:       []clusters.Pod{pod(v, ds, "g2"), crashing, pod(v, ds, "n5")},
			DaemonSets: []appsv1.DaemonSet{ds}, Revisions: []clusters.Revision{revision(ds, 1, "old"), current},
		},
	}, coverage.State.Attention, coverage.Options{Agents: fleet.Agents, Exceptions: fleet.Exceptions})
}

func mix[T any](v variant, list []T) {
	if v.shuffle != nil {
		v.shuffle.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
}

// judge runs the pure stages over a live state, as controller does.
func judge(v variant, j report.Judged, keep func(coverage.State) bool, more ...coverage.Options) report.Cluster {
	l := &j.Live
	mix(v, l.Nodes)
	mix(v, l.Pods)
	mix(v, l.DaemonSets)
	mix(v, l.Revisions)
	mix(v, l.Events)
	mix(v, l.Blanks)
	mix(v, j.Desired)
	var subjects []coverage.Subject
	for i := range l.DaemonSets {
		s := coverage.Subject{Live: &l.DaemonSets[i]}
		for k := range j.Desired {
			if j.Desired[k].Namespace == s.Live.Namespace && j.Desired[k].Name == s.Live.Name {
				s.Desired = &j.Desired[k]
			}
		}
		subjects = append(subjects, s)
	}
	for k := range j.Desired {
		lives := false
		for _, s := range subjects {
			lives = lives || s.Desired == &j.Desired[k]
		}
		if !lives {
			subjects = append(subjects, coverage.Subject{Desired: &j.Desired[k]})
		}
	}
	mix(v, subjects)
	var options coverage.Options
	if len(more) > 0 {
		options = more[0]
	}
	options.Grace = 5 * time.Minute
	j.Coverage = coverage.Compute(l, subjects, options)
	j.Drift = drift.NewTypes().Compare(drift.Input{DaemonSets: j.Desired, Live: l})
	if j.Cluster.Name == "prod" {
		travel(v, &j.Drift)
		j.Cluster.Policy.May = []string{"apply"}
		j.Live.Inventory = &clusters.Inventory{Commit: "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c", AppliedAt: v.metaTime(-3 * time.Hour).Time, Pending: "1234567890123456789012345678901234567890"}
		j.Ahead = &report.Ahead{Progress: plan.Progress{Changes: true}, Plan: plan.Cluster{Actions: []plan.Action{
			{Object: clusters.Reference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "obs", Name: "agent"}, Operation: plan.Create, Holds: []plan.Hold{{Code: plan.WindowClosed, Message: "no allow window is open"}}},
			{Object: clusters.Reference{APIVersion: "v1", Kind: "Service", Namespace: "obs", Name: "agent"}, Operation: plan.Configure, Holds: []plan.Hold{{Code: plan.WindowClosed, Message: "no allow window is open"}, {Code: "OtherDeployer", Message: "it is deployed by Argo CD"}}},
		}}}
	}
	j.Retain = true
	return report.NewCluster(j, keep)
}

// prod has an agent with every kind of trouble, a DaemonSet that is in Git and
// not live, and one that is not in Git and has trouble of its own.
func prod(v variant) report.Cluster {
	return judge(v, prodJudged(v), coverage.State.Attention)
}

func prodJudged(v variant) report.Judged {
	return report.Judged{
		Cluster: clusters.Cluster{Name: "prod", Labels: map[string]string{"env": "prod"}},
		Overlay: "overlays/prod", Components: []string{"components/aws"}, HasSource: true,
		Desired: []appsv1.DaemonSet{daemonSet(v, "obs", "agent", "agent:1"), daemonSet(v, "obs", "lacking", "lacking:1")},
		Live:    prodLive(v),
	}
}

func prodLive(v variant) clusters.Live {
	agent, proxy := daemonSet(v, "obs", "agent", "agent:2"), daemonSet(v, "kube-system", "proxy", "proxy:1")
	agent.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: "kubectl-edit", Time: new(v.metaTime(-time.Hour)),
		FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{"f:image":{}}}}}}}`),
	}}
	proxy.Annotations = map[string]string{"meta.helm.sh/release-name": "proxy"}
	gpu, away := node("n3"), node("n4")
	gpu.Taints = []corev1.Taint{{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}}
	away.Conditions[0] = corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Reason: "NodeStatusUnknown", Message: "Kubelet stopped posting node status." + v.words, LastTransitionTime: v.metaTime(-30 * time.Minute)}
	pulling := pod(v, agent, "n2")
	pulling.Ready, pulling.Phase = false, corev1.PodPending
	pulling.Containers = []clusters.Container{{Name: "c", Image: "agent:2", Waiting: clusters.State{Reason: "ImagePullBackOff", Message: "Back-off pulling image" + v.words}}}
	sleepy := pod(v, proxy, "n1")
	sleepy.Ready, sleepy.Containers = false, []clusters.Container{{Name: "c", Image: "proxy:1"}}
	return clusters.Live{
		ObservedAt: v.at(0), Identity: "uid-prod", Version: "v1.34.2",
		Nodes:      []clusters.Node{node("n1"), node("n2"), gpu, away, node("n5"), node("n6")},
		Pods:       []clusters.Pod{pod(v, agent, "n1"), pulling, pod(v, agent, "n3"), pod(v, agent, "n4"), pod(v, agent, "n5"), orphan(v), sleepy},
		DaemonSets: []appsv1.DaemonSet{agent, proxy},
		Revisions:  []clusters.Revision{revision(agent, 1, "old"), revision(agent, 2, "new"), revision(proxy, 1, "new")},
		Events: []clusters.Event{{
			Namespace: "obs", Kind: "DaemonSet", Name: "agent", UID: string(agent.UID), Type: corev1.EventTypeWarning, Reason: "FailedCreate",
			Message: "pods \"agent" + v.pods + "\" is forbidden: exceeded quota: daemons, used: 5" + v.words, First: v.at(-20 * time.Minute), Last: v.at(-time.Minute),
		}},
	}
}

// broken was observed and could not be rendered.
func broken(v variant) report.Cluster {
	ds := daemonSet(v, "obs", "agent", "agent:1")
	return judge(v, report.Judged{
		Cluster: clusters.Cluster{Name: "broken"}, Overlay: "overlays/broken", HasSource: true,
		RenderErr: errText("\"overlays/broken/kustomization.yaml\": line 3: no such file"),
		Findings:  []report.Finding{report.NewFinding("broken", "PathNotFound", "no such file", coverage.Cause{Kind: "render", Key: "overlays/broken kustomization.yaml PathNotFound"})},
		Live: clusters.Live{
			ObservedAt: v.at(0), Identity: "uid-broken", Nodes: []clusters.Node{node("b1"), node("b2")},
			Pods: []clusters.Pod{pod(v, ds, "b1")}, DaemonSets: []appsv1.DaemonSet{ds}, Revisions: []clusters.Revision{revision(ds, 1, "new")},
		},
	}, coverage.State.Attention)
}

type errText string

func (e errText) Error() string { return string(e) }

func gone() report.Cluster {
	return report.NewCluster(report.Judged{
		Cluster: clusters.Cluster{Name: "gone"}, Overlay: "overlays/prod", HasSource: true,
		ObserveErr: &clusters.ObserveError{State: clusters.Unreachable, Stage: "listing pods", Err: errText("dial tcp 192.0.2.1:443: i/o timeout")},
	}, coverage.State.Attention)
}

// twin is recorded, with all of its nodes listed, and lacks what is optional.
func twin(name string, v variant) report.Cluster {
	ds := daemonSet(v, "obs", "agent", "agent:1")
	return judge(v, report.Judged{
		Cluster: clusters.Cluster{Name: name, Recorded: []string{"dump.yaml"}}, Overlay: "overlays/twin", HasSource: true,
		Desired: []appsv1.DaemonSet{daemonSet(v, "obs", "agent", "agent:1")},
		Live: clusters.Live{
			ObservedAt: v.at(-26 * time.Hour), Identity: "uid-twin", Nodes: []clusters.Node{node("t1"), node("t2")},
			Pods: []clusters.Pod{pod(v, ds, "t1"), pod(v, ds, "t2")}, DaemonSets: []appsv1.DaemonSet{ds},
			Blanks: []clusters.Blank{{Resource: "controllerrevisions", Reason: "not in the dump"}, {Resource: "events", Reason: "not in the dump"}},
		},
	}, func(coverage.State) bool { return true })
}

func node(name string) clusters.Node {
	return clusters.Node{Name: name, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}
}

func daemonSet(v variant, namespace, name, image string) appsv1.DaemonSet {
	match := map[string]string{"app": name}
	return appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-ds-" + namespace + "-" + name), Labels: match, CreationTimestamp: v.metaTime(-48 * time.Hour), Generation: 1},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: match},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: match}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: image}}}},
		},
		Status: appsv1.DaemonSetStatus{ObservedGeneration: 1},
	}
}

func revision(ds appsv1.DaemonSet, number int64, hash string) clusters.Revision {
	return clusters.Revision{Namespace: ds.Namespace, Name: ds.Name + "-" + hash, Owner: clusters.Owner{Kind: "DaemonSet", Name: ds.Name, UID: string(ds.UID)}, Number: number, Hash: hash}
}

// pod is a daemon pod that runs and is ready, of the older revision on n5.
func pod(v variant, ds appsv1.DaemonSet, on string) clusters.Pod {
	hash := "new"
	if on == "n5" {
		hash = "old"
	}
	name := ds.Name + "-" + on + v.pods
	return clusters.Pod{
		Namespace: ds.Namespace, Name: name, UID: "uid-" + name, Labels: map[string]string{"app": ds.Name, appsv1.ControllerRevisionHashLabelKey: hash},
		Owner: clusters.Owner{Kind: "DaemonSet", Name: ds.Name, UID: string(ds.UID)}, Node: on, Bound: true, Created: v.at(-24 * time.Hour),
		Phase: corev1.PodRunning, Ready: true, ReadySince: v.at(-23 * time.Hour), Containers: []clusters.Container{{Name: "c", Image: "agent:2", Ready: true}},
	}
}

func orphan(v variant) clusters.Pod {
	return clusters.Pod{Namespace: "obs", Name: "lonely" + v.pods, UID: "uid-lonely", Labels: map[string]string{"app": "agent"}, Node: "n1", Bound: true, Phase: corev1.PodRunning, Ready: true}
}

func encode(t *testing.T, format string, r report.Report) string {
	t.Helper()
	var b strings.Builder
	if err := report.Encode(&b, format, r, report.Style{}); err != nil {
		t.Fatalf("encoding as %s: %v", format, err)
	}
	return b.String()
}

// travel adds what became of the objects that travel with prod's DaemonSets.
func travel(v variant, o *drift.Outcome) {
	object := func(kind, name string) clusters.Reference {
		return clusters.Reference{APIVersion: "v1", Kind: kind, Namespace: "obs", Name: name}
	}
	since := v.metaTime(-2 * time.Hour).Time
	o.Objects = append(o.Objects,
		drift.Object{Object: object("ConfigMap", "agent"), State: drift.Absent},
		drift.Object{Object: object("ConfigMap", "left"), State: drift.Extra},
		drift.Object{Object: object("Service", "agent"), State: drift.Invalid, Confirmation: drift.Confirmed, Message: "Invalid: spec.ports: Required value"},
		drift.Object{
			Object: object("ServiceAccount", "agent"), State: drift.Modified, Immutable: true, Confirmation: drift.Unconfirmed, Message: "forbidden",
			Unknown: []string{`unknown field "automount"`},
			Fields: []drift.Field{
				{Path: "automountServiceAccountToken", Change: drift.Changed, Desired: "true", Live: "false", Manager: "kubectl-patch", Operation: "Update", NotAfter: &since, Placement: true},
				{Path: "metadata.labels.team", Change: drift.Missing, Desired: "obs"},
				{Path: "imagePullSecrets", Change: drift.Added, Live: "[]", Manager: "kubectl-patch", Operation: "Update"},
			},
			Foreign: []drift.Field{{Path: "secrets", Change: drift.Added, Live: "[]", Manager: "robot", Operation: "Apply", NotAfter: &since}},
			Ignored: []drift.Field{{Path: "metadata.labels.x", Change: drift.Added, Live: "1", Manager: "robot", Operation: "Apply", NotAfter: &since, Rule: "spec.drift.ignore[0]"}},
		})
	o.Unread = append(o.Unread, drift.Unread{Object: object("ConfigMap", "other"), Reason: "forbidden: no"}, drift.Unread{Object: object("Secret", "s"), Reason: "Secrets are not read"})
	o.Unused = append(o.Unused, drift.Unused{Object: object("ServiceAccount", "agent"), Rule: "/data"}, drift.Unused{Object: object("ServiceAccount", "agent"), Rule: "data", Fault: "must be a JSON pointer"})
	o.Compared += 4
}
