package plan_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/clusters/kube"
	"rollcall.dev/rollcall/clusters/kubetest"
	"rollcall.dev/rollcall/controller/plan"
)

// classes are PriorityClasses: one for the DaemonSets that push nobody out,
// others for those that do, and one for each pod of a node, so that it is known
// who goes first.
func classes() string {
	class := func(name string, value int, extra string) string {
		return fmt.Sprintf("---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: %s}\nvalue: %d\n%s", name, value, extra)
	}
	out := class("least", -100, "") + class("usual", 100, "globalDefault: true\n") + class("high", 1000, "") + class("polite", 1000, "preemptionPolicy: Never\n")
	for p := range crowded {
		out += class(fmt.Sprintf("low-%d", p), p-10, "") + class(fmt.Sprintf("mid-%d", p), 100+p, "")
	}
	return out + "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: work}\n"
}

const crowded = 6 // pods of a node at most

// forms are what the pods of the crowd want.
var forms = []string{
	"  containers: [{name: c, image: i}]\n",
	"  containers: [{name: c, image: i, resources: {requests: {cpu: 100m, memory: 300Mi}}}]\n",
	"  containers: [{name: c, image: i, resources: {limits: {cpu: 200m, memory: 500Mi, ephemeral-storage: 1Gi}}}]\n",
	"  containers: [{name: c, image: i, resources: {limits: {nvidia.com/gpu: 1}}}]\n",
	"  containers: [{name: c, image: i, ports: [{containerPort: 80, hostPort: 8080}]}]\n",
	"  hostNetwork: true\n  containers: [{name: c, image: i, ports: [{containerPort: 9100}, {containerPort: 53, protocol: UDP}]}]\n",
	"  containers: [{name: c, image: i, ports: [{containerPort: 80, hostPort: 8080, hostIP: 10.0.0.1}]}]\n",
	"  resources: {requests: {memory: 700Mi}}\n  containers: [{name: c, image: i, resources: {requests: {cpu: 150m, memory: 100Mi}}}]\n",
	"  initContainers: [{name: s, image: i, restartPolicy: Always, resources: {requests: {memory: 100Mi}}, ports: [{containerPort: 1, hostPort: 9100}]}, {name: j, image: i, resources: {requests: {memory: 600Mi}}}]\n  containers: [{name: c, image: i, resources: {requests: {memory: 50Mi}}}]\n",
}

var hostPort = regexp.MustCompile("8080|9100")

// crowd makes nodes of many sizes with pods on them that want much and little,
// the same ones for a seed.
func crowd(r *rand.Rand, nodes int) string {
	var b strings.Builder
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	for n := range nodes {
		fmt.Fprintf(&b, "---\napiVersion: v1\nkind: Node\nmetadata: {name: n%02d, labels: {type: kwok, kubernetes.io/hostname: n%02d}}\nstatus:\n", n, n)
		list := fmt.Sprintf(`{cpu: %s, memory: %s, ephemeral-storage: %s, pods: "%s"%s}`,
			pick("500m", `"1"`, `"4"`), pick("1Gi", "1500M", "4Gi"), pick("2Gi", "20Gi"), pick("4", "6", "110"), pick("", `, nvidia.com/gpu: "1"`, `, nvidia.com/gpu: "2", hugepages-2Mi: 64Mi`))
		fmt.Fprintf(&b, "  allocatable: %s\n  capacity: %s\n", list, list)
		taken := map[string]bool{} // no node has a port twice, as kubelets see to it
		for p := range r.IntN(crowded + 1) {
			fmt.Fprintf(&b, "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p%02d-%d, namespace: %s}\nspec:\n  nodeName: n%02d\n  priorityClassName: %s\n",
				n, p, pick("work", "default"), n, pick(fmt.Sprintf("low-%d", p), fmt.Sprintf("mid-%d", p), "system-node-critical"))
			form := forms[r.IntN(len(forms))]
			if port := hostPort.FindString(form); taken[port] {
				form = forms[0]
			} else {
				taken[port] = port != ""
			}
			b.WriteString(form)
		}
	}
	return b.String()
}

// ended are pods on the first nodes whose time is over: what they had is free.
func ended(nodes int) string {
	var b strings.Builder
	for n := range nodes {
		fmt.Fprintf(&b, "---\napiVersion: v1\nkind: Pod\nmetadata: {name: ended-%d, namespace: work}\nspec:\n  nodeName: n%02d\n  containers: [{name: c, image: i, resources: {requests: {cpu: 400m, memory: 900Mi}}}]\nstatus: {phase: %s}\n",
			n, n, []string{"Succeeded", "Failed"}[n%2])
	}
	return b.String()
}

func daemonSet(name, strategy, spec string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: %s, namespace: default}
spec:
  selector: {matchLabels: {app: %s}}
  updateStrategy: {rollingUpdate: %s}
  template:
    metadata: {labels: {app: %s}}
    spec: %s
`, name, name, strategy, name, spec)
}

const atOnce = `{maxUnavailable: "100%", maxSurge: 0}`

// daemons each come to the same crowd and go again; what comes last pushes
// others out for good.
var daemons = []struct{ name, reason, spec string }{
	{"nothing", "only the number of pods counts", "{priorityClassName: least, containers: [{name: c, image: i}]}"},
	{"memory", "plain requests", "{priorityClassName: least, containers: [{name: c, image: i, resources: {requests: {cpu: 50m, memory: 200Mi}}}]}"},
	{"limits", "limits stand for requests", "{priorityClassName: least, containers: [{name: c, image: i, resources: {limits: {cpu: 300m, ephemeral-storage: 1500Mi}}}]}"},
	{"starting", "an init container needs more than what runs later", "{priorityClassName: least, initContainers: [{name: s, image: i, restartPolicy: Always, resources: {requests: {memory: 300Mi}}}, {name: j, image: i, resources: {requests: {memory: 500Mi}}}], containers: [{name: c, image: i}]}"},
	{"whole", "requests of the pod as a whole", "{priorityClassName: least, resources: {limits: {memory: 800Mi}}, containers: [{name: c, image: i, resources: {limits: {cpu: 10m}}}]}"},
	{"gpu", "an extended resource, which most nodes do not have", "{priorityClassName: least, containers: [{name: c, image: i, resources: {limits: {nvidia.com/gpu: 1}}}]}"},
	{"huge", "huge pages", "{priorityClassName: least, containers: [{name: c, image: i, resources: {limits: {hugepages-2Mi: 32Mi, memory: 10Mi}}}]}"},
	{"any-address", "a host port of all addresses", "{priorityClassName: least, containers: [{name: c, image: i, ports: [{containerPort: 1, hostPort: 8080}]}]}"},
	{"one-address", "a host port of one address", "{priorityClassName: least, containers: [{name: c, image: i, ports: [{containerPort: 1, hostPort: 8080, hostIP: 10.0.0.2}]}]}"},
	{"host-network", "ports of containers are the host's", "{priorityClassName: least, hostNetwork: true, containers: [{name: c, image: i, ports: [{containerPort: 9100}]}]}"},
	{"udp", "another protocol is another port", "{priorityClassName: least, containers: [{name: c, image: i, ports: [{containerPort: 53, hostPort: 53, protocol: UDP}, {containerPort: 9100, hostPort: 53}]}]}"},
	{"polite", "a class that does not preempt", "{priorityClassName: polite, containers: [{name: c, image: i, resources: {requests: {cpu: 300m, memory: 400Mi}}}]}"},
	{"never", "a template that does not preempt", "{priorityClassName: polite, preemptionPolicy: Never, containers: [{name: c, image: i, resources: {requests: {memory: 400Mi}}}]}"},
	{"usual", "those of low priority go", "{containers: [{name: c, image: i, resources: {requests: {cpu: 300m, memory: 400Mi}}}]}"},
	{"high", "also host ports are got by preemption", "{priorityClassName: high, containers: [{name: c, image: i, ports: [{containerPort: 1, hostPort: 8080}, {containerPort: 2, hostPort: 9100}], resources: {requests: {memory: 600Mi}}}]}"},
}

// What Fit says comes true: for every node and each DaemonSet the real
// scheduler gives the pod its node or says why not.
func TestRealScheduler(t *testing.T) {
	cp := kubetest.Start(t, kubetest.Options{Controllers: true, Scheduler: true, Nodes: 1})
	cp.Apply(t, classes())
	cp.Apply(t, crowd(rand.New(rand.NewPCG(7, 7)), 24))
	w := &scheduled{t: t, cp: cp, settled: map[string]int{}}
	w.ready()
	for _, d := range daemons {
		t.Run(d.name, func(t *testing.T) {
			w.t = t
			t.Log(d.reason)
			manifest := daemonSet(d.name, atOnce, d.spec)
			want := w.forecast(manifest, "")
			cp.Apply(t, manifest)
			w.comesTrue(d.name, want)
			w.leave(d.name, manifest)
		})
	}
	for _, tc := range []struct{ name, strategy string }{{"restarts", atOnce}, {"surges", `{maxUnavailable: 0, maxSurge: "100%"}`}} {
		t.Run(tc.name, func(t *testing.T) {
			w.t = t
			manifest := daemonSet(tc.name, tc.strategy, "{priorityClassName: least, containers: [{name: c, image: i, ports: [{containerPort: 7, hostPort: 7}], resources: {requests: {memory: 200Mi}}}]}")
			want := w.forecast(manifest, "")
			cp.Apply(t, manifest)
			w.comesTrue(tc.name, want)
			manifest = daemonSet(tc.name, tc.strategy, "{priorityClassName: least, containers: [{name: c, image: j, ports: [{containerPort: 7, hostPort: 7}], resources: {requests: {memory: 500Mi}}}]}")
			replaces := tc.name
			if tc.name == "surges" {
				replaces = ""
			}
			want = w.forecast(manifest, replaces)
			cp.Apply(t, manifest)
			w.comesTrue(tc.name, want)
			w.leave(tc.name, manifest)
		})
	}
	t.Logf("outcomes: %v", w.settled)
	for _, outcome := range []string{"bound", "preempts", "cpu", "memory", "ephemeral-storage", "nvidia.com/gpu", "hugepages-2Mi", "pods", "hostPort"} {
		if w.settled[outcome] == 0 {
			t.Errorf("no node showed %q: the crowd is too small to tell", outcome)
		}
	}
}

type scheduled struct {
	t       *testing.T
	cp      *kubetest.ControlPlane
	settled map[string]int // outcomes: bound, preempts and what lacked
	before  map[string]int // pods of each node when it was forecast
}

// outcome of a daemon pod on a node.
type outcome struct {
	Bound bool
	Gone  int      // pods that were pushed out
	Lacks []string // what the node has too little of, sorted
}

func (w *scheduled) observe() clusters.Live {
	w.t.Helper()
	live, err := new(kube.Observer).Observe(w.t.Context(), clusters.Cluster{Name: "c", Kubeconfig: &clusters.Kubeconfig{Paths: []string{w.cp.Kubeconfig()}}}, clusters.Want{Forecast: true})
	if err != nil {
		w.t.Fatal(err)
	}
	if reason, blank := live.Lacks("claims"); blank {
		w.t.Fatal(reason)
	}
	return live
}

// ready waits until kwok has taken all nodes and lets go of the pods that have
// ended, which it makes run at first.
func (w *scheduled) ready() {
	w.t.Helper()
	for range 50 {
		w.cp.Apply(w.t, ended(6))
		time.Sleep(200 * time.Millisecond)
		if !slices.ContainsFunc(w.observe().Claims, func(c clusters.Claim) bool { return strings.HasPrefix(c.Name, "ended-") }) {
			break
		}
	}
	for range 300 {
		ready := 0
		live := w.observe()
		for _, n := range live.Nodes {
			if len(n.Taints) == 0 && slices.ContainsFunc(n.Conditions, func(c corev1.NodeCondition) bool {
				return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
			}) {
				ready++
			}
		}
		if ready == len(live.Nodes) {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
	w.t.Fatal("the nodes do not become ready")
}

// forecast is what Fit says of every node, of pods that come in place of those
// of a DaemonSet where one is named.
func (w *scheduled) forecast(manifest, replaces string) map[string]outcome {
	w.t.Helper()
	var ds appsv1.DaemonSet
	if err := yaml.UnmarshalStrict([]byte(manifest), &ds); err != nil {
		w.t.Fatal(err)
	}
	live := w.observe()
	w.before = crowdOf(live)
	loads := plan.NewLoads(live.Claims)
	all := map[string]outcome{}
	for i := range live.Nodes {
		n := &live.Nodes[i]
		uid := ""
		for _, p := range live.Pods {
			if replaces != "" && p.Node == n.Name && p.Owner.Name == replaces {
				uid = p.UID
			}
		}
		lacks := loads.Fit(plan.PodOf(&ds.Spec.Template.Spec, live.Priorities, uid), n)
		text, refused := plan.Text(lacks)
		all[n.Name] = outcome{Bound: !refused}
		if text != "" {
			w.t.Logf("%s: %s", n.Name, text)
		}
		switch {
		case refused:
			all[n.Name] = outcome{Lacks: names(lacks)}
			for _, name := range names(lacks) {
				w.settled[name]++
			}
		case text == "":
			w.settled["bound"]++
		default:
			w.settled["preempts"]++
			all[n.Name] = outcome{Bound: true, Gone: lacks[0].Preempts}
		}
	}
	return all
}

// crowdOf counts the pods of the crowd by their nodes.
func crowdOf(live clusters.Live) map[string]int {
	out := map[string]int{}
	for _, c := range live.Claims {
		if strings.HasPrefix(c.Name, "p"+strings.TrimPrefix(c.Node, "n")+"-") {
			out[c.Node]++
		}
	}
	return out
}

// names are what lacks as the scheduler tells it: a port, and no more, where a
// port is taken.
func names(lacks []plan.Lack) []string {
	set := map[string]bool{}
	for _, l := range lacks {
		set[string(l.Resource)] = true
	}
	if set["hostPort"] {
		return []string{"hostPort"}
	}
	return slices.Sorted(maps.Keys(set))
}

// comesTrue gives the scheduler 20 seconds to get to what was forecast, and
// looks once more whether it stays so.
func (w *scheduled) comesTrue(name string, want map[string]outcome) {
	w.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		diff := cmp.Diff(want, w.actual(name))
		if diff == "" {
			break
		}
		if time.Now().After(deadline) {
			w.t.Errorf("what was forecast does not come true (-forecast +real):\n%s", diff)
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
	time.Sleep(time.Second)
	if diff := cmp.Diff(want, w.actual(name)); diff != "" {
		w.t.Errorf("what was forecast does not stay true (-forecast +real):\n%s", diff)
	}
}

var insufficient = regexp.MustCompile(`Insufficient ([a-zA-Z0-9./-]*[a-zA-Z0-9])|(Too many pods)|(free ports)`)

// actual is what has become of the newest pod of a DaemonSet on each node.
func (w *scheduled) actual(name string) map[string]outcome {
	all := map[string]outcome{}
	live := w.observe()
	now := crowdOf(live)
	slices.SortFunc(live.Revisions, func(a, b clusters.Revision) int { return int(b.Number - a.Number) })
	hash := ""
	for _, r := range live.Revisions {
		if r.Owner.Name == name && hash == "" {
			hash = r.Hash
		}
	}
	for _, p := range live.Pods {
		if p.Owner.Name != name || p.Labels["controller-revision-hash"] != hash || !p.Deleting.IsZero() {
			continue
		}
		o := outcome{Bound: p.Bound, Gone: w.before[p.Node] - now[p.Node]}
		reasons, _, _ := strings.Cut(p.Unschedulable, "preemption:")
		for _, m := range insufficient.FindAllStringSubmatch(reasons, -1) {
			switch {
			case m[1] != "":
				o.Lacks = append(o.Lacks, m[1])
			case m[2] != "":
				o.Lacks = append(o.Lacks, "pods")
			default:
				o.Lacks = append(o.Lacks, "hostPort")
			}
		}
		slices.Sort(o.Lacks)
		all[p.Node] = o
	}
	return all
}

// leave deletes a DaemonSet and waits until its pods are gone.
func (w *scheduled) leave(name, manifest string) {
	w.t.Helper()
	w.cp.Delete(w.t, manifest)
	for range 150 {
		live := w.observe()
		if !slices.ContainsFunc(live.Claims, func(c clusters.Claim) bool { return strings.HasPrefix(c.Name, name+"-") }) {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
	w.t.Fatalf("the pods of %s do not go", name)
}
