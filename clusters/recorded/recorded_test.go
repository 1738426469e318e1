package recorded

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"

	"rollcall.dev/rollcall/clusters"
)

func file(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// read reads dumps that are given as text, under the names of files.
func read(t *testing.T, want clusters.Want, files ...[2]string) (clusters.Live, error) {
	t.Helper()
	dir := t.TempDir()
	var names []string
	for _, f := range files {
		names = append(names, filepath.Join(dir, f[0]))
		if err := os.WriteFile(filepath.Join(dir, f[0]), []byte(f[1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	live, err := Read(t.Context(), nil, want, names...)
	if err != nil {
		err = errors.New(strings.ReplaceAll(err.Error(), dir, "DIR"))
	}
	return live, err
}

func zip(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// names lists what a Live holds, so that a test can say it in a line each.
func names(l clusters.Live) map[string]string {
	all := map[string][]string{}
	add := func(kind, ns, name string) {
		all[kind] = append(all[kind], strings.TrimPrefix(ns+"/"+name, "/"))
	}
	for _, n := range l.Nodes {
		add("nodes", "", n.Name)
	}
	for _, p := range l.Pods {
		add("pods", p.Namespace, p.Name)
	}
	for _, ds := range l.DaemonSets {
		add("daemonsets", ds.Namespace, ds.Name)
	}
	for _, r := range l.Revisions {
		add("revisions", r.Namespace, r.Name)
	}
	for _, e := range l.Events {
		add("events", e.Kind+" "+e.Namespace, e.Name)
	}
	for _, b := range l.Blanks {
		add("blanks", "", b.Resource+": "+b.Reason)
	}
	out := map[string]string{}
	for kind, list := range all {
		slices.Sort(list)
		out[kind] = strings.Join(list, ", ")
	}
	return out
}

var full = map[string]string{
	"nodes":      "n1, n2",
	"pods":       "kube-system/agent-1, kube-system/agent-2, logging/log-1",
	"daemonsets": "kube-system/agent, logging/log",
	"revisions":  "kube-system/agent-h1",
	"events":     "DaemonSet kube-system/agent, DaemonSet logging/log, Pod kube-system/agent-1",
}

func TestReadForms(t *testing.T) {
	fullJSON, fullYAML := file(t, "full.json"), file(t, "full.yaml")
	items := func(text string) []string { // of a dump in YAML, one document each
		_, text, _ = strings.Cut(text, "items:\n- ")
		text, _, _ = strings.Cut(text, "\nkind: List")
		var all []string
		for item := range strings.SplitSeq(text, "\n- ") {
			all = append(all, strings.ReplaceAll("  "+item, "\n  ", "\n")[2:]+"\n")
		}
		return all
	}
	indented := strings.Replace(strings.ReplaceAll(fullYAML, "\n", "\n  "), "\n  items:", "\nitems:", 1)
	indented = strings.NewReplacer("\n  kind: List", "\nkind: List", "\n  metadata:\n    resourceVersion", "\nmetadata:\n  resourceVersion").Replace(indented)
	cases := map[string]struct {
		reason string
		files  [][2]string
	}{
		"JSON":          {"what kubectl get -o json prints", [][2]string{{"a", fullJSON}}},
		"YAML":          {"what kubectl get -o yaml prints", [][2]string{{"a", fullYAML}}},
		"YAMLIndented":  {"not how kubectl prints, but how other tools do", [][2]string{{"a", indented}}},
		"JSONZipped":    {"told by its first bytes, not its name", [][2]string{{"a.json", zip(t, fullJSON)}}},
		"YAMLZipped":    {"told by its first bytes, not its name", [][2]string{{"a", zip(t, fullYAML)}}},
		"YAMLDocuments": {"each object a document", [][2]string{{"a", "---\n" + strings.Join(items(fullYAML), "---\n") + "...\n"}}},
		"CRLF":          {"went through Windows", [][2]string{{"a", strings.ReplaceAll(fullYAML, "\n", "\r\n")}}},
		"ByteOrderMark": {"went through Windows", [][2]string{{"a", "\ufeff" + fullJSON}, {"b", "\ufeff" + fullYAML}}},
		"Minified":      {"went through jq -c", [][2]string{{"a", strings.Join(strings.Fields(fullJSON), " ")}}},
		"JSONInYAML":    {"JSON is YAML", [][2]string{{"a", "# a comment first\n" + fullJSON}}},
		"Twice":         {"an object is itself", [][2]string{{"a", fullJSON}, {"b", fullYAML}}},
		"Concatenated":  {"cat a b", [][2]string{{"a", fullJSON + fullJSON + "{\"kind\":\"List\",\"apiVersion\":\"v1\",\"items\":[]}"}}},
		"EmptyBeside":   {"kubectl printed nothing there", [][2]string{{"a", ""}, {"b", fullJSON}, {"c", " \n"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			live, err := read(t, clusters.Want{}, tc.files...)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(full, names(live)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if live.Identity != "uid-of-the-cluster" || !live.ObservedAt.Equal(time.Date(2026, 1, 2, 3, 11, 0, 0, time.UTC)) {
				t.Errorf("%s: identity %q at %v", tc.reason, live.Identity, live.ObservedAt)
			}
		})
	}
}

// JSON and YAML give the same values, to the last field.
func TestReadSame(t *testing.T) {
	a, err := Read(t.Context(), nil, clusters.Want{}, "testdata/full.json")
	if err != nil {
		t.Fatal(err)
	}
	b, err := Read(t.Context(), nil, clusters.Want{}, "testdata/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("-json +yaml:\n%s", diff)
	}
	ds := a.DaemonSets[0]
	if ds.Kind != "" || len(ds.Annotations) != 1 || ds.Annotations["note"] != "- dash\n# no comment\nkind: Trap\n" || ds.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable.String() != "10%" {
		t.Errorf("DaemonSet %+v", ds)
	}
	if r := a.Revisions[0]; r.Number != 3 || r.Hash != "h1" || r.Owner.Name != "agent" || r.Placement.NodeSelector["disk"] != "ssd" {
		t.Errorf("revision %+v", r)
	}
	if p := a.Pods[0]; p.Node != "n1" || !p.Ready || p.UID != "uid-agent-1" || len(p.Containers) != 1 {
		t.Errorf("pod %+v", p)
	}
}

// A folder as kubectl cluster-info dump writes it: typed lists whose items
// name no kind, null where there are none, and other files.
func TestReadFolder(t *testing.T) {
	live, err := Read(t.Context(), nil, clusters.Want{}, "testdata/dump")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"nodes": full["nodes"], "pods": full["pods"], "daemonsets": full["daemonsets"], "events": full["events"],
		"blanks": "controllerrevisions: not in the dump, namespaces: not in the dump",
	}
	if diff := cmp.Diff(want, names(live)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestReadFolderFaults(t *testing.T) {
	empty := t.TempDir()
	if err := os.WriteFile(filepath.Join(empty, "notes.txt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	gone := filepath.Join(empty, "gone.json")
	cases := map[string]struct {
		reason string
		files  []string
		want   string
	}{
		"None":    {"nothing was given", nil, "no dump file is given"},
		"Empty":   {"nothing to read", []string{empty}, fmt.Sprintf("reading folder %q: there is no .json, .yaml, .yml or .gz file below it", empty)},
		"Missing": {"no such file", []string{"testdata/full.json", gone}, fmt.Sprintf("reading %q: no such file or directory", gone)},
		"NoStdin": {"nothing to read from", []string{"-"}, `reading "-": there is no standard input`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := Read(t.Context(), nil, clusters.Want{}, tc.files...); err == nil || err.Error() != tc.want {
				t.Errorf("%s: got %v, want %s", tc.reason, err, tc.want)
			}
		})
	}
}

func TestReadWant(t *testing.T) {
	app, err := labels.Parse("app=log")
	if err != nil {
		t.Fatal(err)
	}
	agent := map[string]string{
		"nodes": "n1, n2", "pods": "kube-system/agent-1, kube-system/agent-2", "daemonsets": "kube-system/agent",
		"revisions": "kube-system/agent-h1", "events": "DaemonSet kube-system/agent, Pod kube-system/agent-1",
	}
	log := map[string]string{"nodes": "n1, n2", "pods": "logging/log-1", "daemonsets": "logging/log", "events": "DaemonSet logging/log"}
	cases := map[string]struct {
		reason string
		want   clusters.Want
		holds  map[string]string
	}{
		"All":       {"the pods of other namespaces are left out", clusters.Want{}, full},
		"Namespace": {"of one namespace", clusters.Want{Namespace: "kube-system"}, agent},
		"Name":      {"of one name", clusters.Want{Name: "agent"}, agent},
		"Selector":  {"by label", clusters.Want{Selector: app}, log},
		"None":      {"none is wanted, which is no fault of the dump", clusters.Want{Name: "x"}, map[string]string{"nodes": "n1, n2"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			live, err := Read(t.Context(), nil, tc.want, "testdata/full.json")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.holds, names(live)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

const (
	aNode = `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"}}`
	aPod  = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p1","namespace":"a"}}`
	aDS   = `{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"d1","namespace":"a"}}`
)

func headed(rest string) string {
	return `{"apiVersion":"rollcall.dev/v1alpha1","kind":"Recording"` + rest + `}`
}

// What is not there is told, unless it is known that there is none.
func TestReadMissing(t *testing.T) {
	const pods = "kubectl get --raw /api/v1/pods > pods.json"
	cases := map[string]struct {
		reason string
		files  [][2]string
		want   string // the error, or the blanks
	}{
		"NoPods":      {"all would pass for missing", [][2]string{{"a", aNode + aDS}}, "no pods in the dump: record them with: " + pods},
		"NoNodes":     {"none would be intended", [][2]string{{"a", aPod + aDS}}, "no nodes in the dump: record them with: kubectl get --raw /api/v1/nodes > nodes.json"},
		"NoDaemonSet": {"there would be nothing to report", [][2]string{{"a", aPod + aNode}}, "no daemonsets in the dump: record them with: kubectl get --raw /apis/apps/v1/daemonsets > daemonsets.json"},
		"Nothing":     {"all of them", [][2]string{{"a", `{"apiVersion":"v1","kind":"List","items":[]}`}}, "no nodes, no pods, no daemonsets in the dump: record them with: kubectl get --raw /api/v1/nodes > nodes.json; " + pods + "; kubectl get --raw /apis/apps/v1/daemonsets > daemonsets.json"},
		"EmptyFile":   {"which kubectl left so", [][2]string{{"a", aNode + aDS}, {"pods.json", ""}}, "no pods in the dump: record them with: " + pods + " (DIR/pods.json is empty: kubectl prints nothing there when it is refused)"},
		"OtherGroup":  {"not what Kubernetes calls so", [][2]string{{"a", aNode + aDS + `{"apiVersion":"metrics.k8s.io/v1","kind":"Pod","metadata":{"name":"x"}}`}}, "no pods in the dump: record them with: " + pods},
		"Optional":    {"they are blank", [][2]string{{"a", aNode + aPod + aDS}}, "controllerrevisions: not in the dump, events: not in the dump, namespaces: not in the dump"},
		"TypedList":   {"an empty list of a kind tells that there is none", [][2]string{{"a", aNode + aDS + `{"kind":"PodList","apiVersion":"v1","items":[]}` + `{"apiVersion":"v1","items":null,"kind":"EventList"}`}}, "controllerrevisions: not in the dump, namespaces: not in the dump"},
		"TypedYAML":   {"likewise", [][2]string{{"a", aNode}, {"b", "kind: PodList\napiVersion: v1\nitems: []\n---\napiVersion: apps/v1\nitems:\nkind: DaemonSetList\n"}}, "controllerrevisions: not in the dump, events: not in the dump, namespaces: not in the dump"},
		"Header":      {"what was recorded is known to be empty", [][2]string{{"a", headed(`,"kinds":["nodes","pods","DaemonSets","events"]`)}}, "controllerrevisions: not in the dump, namespaces: not in the dump"},
		"NoSystem":    {"the cluster's identity is unknown", [][2]string{{"a", aNode + aPod + aDS + `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a","uid":"u"}}`}}, "controllerrevisions: not in the dump, events: not in the dump, namespaces: kube-system is not in the dump"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			live, err := read(t, clusters.Want{}, tc.files...)
			got := names(live)["blanks"]
			if err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("%s:\n got %s\nwant %s", tc.reason, got, tc.want)
			}
		})
	}
}

func TestReadHeader(t *testing.T) {
	dump := aNode + aPod + aDS + `{"apiVersion":"v1","kind":"Event","metadata":{"name":"e","namespace":"a"},"involvedObject":{"kind":"Pod"},"series":{"count":2,"lastObservedTime":"2026-05-05T05:05:05.000000Z"}}`
	at := func(text string) time.Time {
		v, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	cases := map[string]struct {
		reason  string
		text    string
		at      time.Time
		version string
	}{
		"None":    {"the newest time in the dump", dump, at("2026-05-05T05:05:05Z"), ""},
		"Header":  {"it knows better", headed(`,"observedAt":"2026-06-06T08:06:06+02:00","version":"v1.34.2","more":1`) + dump, at("2026-06-06T06:06:06Z"), "v1.34.2"},
		"Late":    {"wherever it stands", dump + headed(`,"observedAt":"2026-04-04T04:04:04Z"`), at("2026-04-04T04:04:04Z"), ""},
		"Several": {"the newest of them", headed(`,"observedAt":"2026-06-06T06:06:06Z"`) + dump + headed(`,"observedAt":"2026-04-04T04:04:04Z","version":"v1.33.0"`), at("2026-06-06T06:06:06Z"), "v1.33.0"},
		"NoTime":  {"no header and no time: unknown, not today", aNode + aPod + aDS, time.Time{}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			live, err := read(t, clusters.Want{}, [2]string{"a", tc.text})
			if err != nil {
				t.Fatal(err)
			}
			if !live.ObservedAt.Equal(tc.at) || live.Version != tc.version {
				t.Errorf("%s: got %v and %q, want %v and %q", tc.reason, live.ObservedAt, live.Version, tc.at, tc.version)
			}
		})
	}
}

// Each of these is the newest time of its dump; when a deletion will be over
// is none.
func TestReadNewest(t *testing.T) {
	const newest, older = `"2026-03-03T03:03:03Z"`, `"2026-02-02T02:02:02Z"`
	object := func(apiVersion, kind, rest string) string {
		return `{"apiVersion":"` + apiVersion + `","kind":"` + kind + `","metadata":{"name":"x","namespace":"a","creationTimestamp":` + older + `}` + rest + `}`
	}
	cases := map[string]string{
		"Creation":       `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x","creationTimestamp":` + newest + `,"deletionTimestamp":"2027-01-01T00:00:00Z"}}`,
		"ManagedFields":  `{"apiVersion":"apps/v1","kind":"ControllerRevision","revision":1,"metadata":{"name":"x","managedFields":[{"manager":"m"},{"time":` + newest + `}]}}`,
		"Heartbeat":      object("v1", "Node", `,"status":{"conditions":[{"type":"Ready","lastHeartbeatTime":`+newest+`,"lastTransitionTime":null}]}`),
		"NodeTransition": object("v1", "Node", `,"status":{"conditions":[{"type":"Ready","lastTransitionTime":`+newest+`}]}`),
		"PodCondition":   object("v1", "Pod", `,"status":{"conditions":[{"type":"Ready","lastTransitionTime":`+newest+`}]}`),
		"PodStart":       object("v1", "Pod", `,"status":{"startTime":`+newest+`}`),
		"Running":        object("v1", "Pod", `,"status":{"containerStatuses":[{"state":{"running":{"startedAt":`+newest+`}}}]}`),
		"Terminated":     object("v1", "Pod", `,"status":{"initContainerStatuses":[{"state":{"terminated":{"startedAt":`+older+`,"finishedAt":`+newest+`}}}]}`),
		"LastState":      object("v1", "Pod", `,"status":{"containerStatuses":[{"lastState":{"terminated":{"finishedAt":`+newest+`}}}]}`),
		"DaemonSet":      object("apps/v1", "DaemonSet", `,"status":{"conditions":[{"type":"x","lastTransitionTime":`+newest+`}]}`),
		"Namespace":      `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"x","creationTimestamp":` + newest + `}}`,
		"Lease":          `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"x","namespace":"kube-node-lease"},"spec":{"renewTime":"2026-03-03T03:03:03.000000Z"}}`,
		"OtherLease":     object("coordination.k8s.io/v1", "Lease", `,"metadata":{"name":"x","namespace":"a","creationTimestamp":`+newest+`},"spec":{"renewTime":"2026-04-04T04:04:04.000000Z"}`),
		"EventLast":      object("v1", "Event", `,"lastTimestamp":`+newest),
		"EventTime":      object("v1", "Event", `,"eventTime":"2026-03-03T03:03:03.000000Z"`),
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			live, err := read(t, clusters.Want{}, [2]string{"a", aNode + text + aPod + aDS})
			if err != nil {
				t.Fatal(err)
			}
			if want := time.Date(2026, 3, 3, 3, 3, 3, 0, time.UTC); !live.ObservedAt.Equal(want) {
				t.Errorf("got %v, want %v", live.ObservedAt, want)
			}
		})
	}
}

// Leases of kube-node-lease are their nodes', wherever they stand in the dumps;
// without them nothing is blank.
func TestReadLeases(t *testing.T) {
	lease := func(namespace, name, renewed string) string {
		return `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"` + name + `","namespace":"` + namespace + `"},"spec":{"renewTime":` + renewed + `}}`
	}
	const time1, time2, future = `"2026-05-05T07:05:05.000000+02:00"`, `"2026-05-05T05:06:05.000000Z"`, `"2126-05-05T05:05:05.000000Z"`
	at1, at2 := time.Date(2026, 5, 5, 5, 5, 5, 0, time.UTC), time.Date(2026, 5, 5, 5, 6, 5, 0, time.UTC)
	const node1 = `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1","creationTimestamp":"2026-05-05T05:05:00Z"}}`
	cases := map[string]struct {
		reason         string
		first, second  string
		lease, written time.Time
	}{
		"After":       {"after the node", node1, lease("kube-node-lease", "n1", time1), at1, at1},
		"Before":      {"before the node", lease("kube-node-lease", "n1", time1), node1, at1, at1},
		"Later":       {"the later one counts, as of every object", node1 + lease("kube-node-lease", "n1", time2), lease("kube-node-lease", "n1", time1), at1, at2},
		"OtherNode":   {"of a node that is no more", node1, lease("kube-node-lease", "n2", time2), time.Time{}, at2},
		"OtherLease":  {"a namesake is no heartbeat", node1, lease("kube-system", "n1", time2), time.Time{}, at1.Add(-5 * time.Second)},
		"NeverTaken":  {"nothing is known", node1, lease("kube-node-lease", "n1", "null"), time.Time{}, at1.Add(-5 * time.Second)},
		"TypedList":   {"as a folder of kubectl has it", node1, `{"kind":"LeaseList","apiVersion":"coordination.k8s.io/v1","items":[{"metadata":{"name":"n1","namespace":"kube-node-lease"},"spec":{"renewTime":` + time1 + `}}]}`, at1, at1},
		"FutureFirst": {"a clock that is wrong dates nothing", lease("kube-node-lease", "n1", future), node1, time.Date(2126, 5, 5, 5, 5, 5, 0, time.UTC), at1.Add(-5 * time.Second)},
		"FutureOther": {"nor does it keep another from dating", node1 + lease("kube-node-lease", "n2", future), lease("kube-node-lease", "n1", time1), at1, at1},
		"None":        {"a dump need not have any", node1, "", time.Time{}, at1.Add(-5 * time.Second)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			live, err := read(t, clusters.Want{}, [2]string{"a", tc.first}, [2]string{"b", aPod + aDS + tc.second})
			if err != nil {
				t.Fatal(err)
			}
			if n := live.Nodes[0]; len(live.Nodes) != 1 || !n.Lease.Equal(tc.lease) || n.Lease.Location() != time.UTC {
				t.Errorf("%s: got lease %v, want %v", tc.reason, n.Lease, tc.lease)
			}
			if !live.ObservedAt.Equal(tc.written) {
				t.Errorf("%s: observed at %v, want %v", tc.reason, live.ObservedAt, tc.written)
			}
			if got := names(live)["blanks"]; strings.Contains(got, "leases") {
				t.Errorf("%s: blanks: %s", tc.reason, got)
			}
		})
	}
}

// A node's lease and its conditions are told by one clock: if it is wrong, it
// is wrong in both.
func TestReadLeaseAhead(t *testing.T) {
	node := func(name, minute string) string {
		return `{"apiVersion":"v1","kind":"Node","metadata":{"name":"` + name + `"},"status":{"conditions":[{"type":"Ready","lastHeartbeatTime":"2026-05-05T05:` + minute + `:00Z"}]}}` +
			`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"` + name + `","namespace":"kube-node-lease"},"spec":{"renewTime":"2026-05-05T05:` + minute + `:30.000000Z"}}`
	}
	live, err := read(t, clusters.Want{}, [2]string{"a", aPod + aDS + node("n1", "01") + node("n2", "02") + node("n3", "40")})
	if want := time.Date(2026, 5, 5, 5, 2, 30, 0, time.UTC); err != nil || !live.ObservedAt.Equal(want) {
		t.Errorf("got %v, %v, want %v", live.ObservedAt, err, want)
	}
}

// Revisions of nobody are passed over, as when a cluster is observed live: of
// which DaemonSet they are is a guess.
func TestReadOrphanRevision(t *testing.T) {
	orphan := `{"apiVersion":"apps/v1","kind":"ControllerRevision","revision":9,"metadata":{"name":"r","namespace":"a"}}`
	live, err := read(t, clusters.Want{}, [2]string{"a", aNode + aPod + aDS + orphan})
	if err != nil {
		t.Fatal(err)
	}
	if _, blank := live.Lacks("controllerrevisions"); len(live.Revisions) != 0 || blank {
		t.Errorf("got %+v, blank: %v", live.Revisions, blank)
	}
}

// Of two dumps of an object the later one counts, also when it was made anew.
func TestReadLastWins(t *testing.T) {
	old := `{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"d1","namespace":"a","uid":"u1","generation":1}}`
	same := `{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"d1","namespace":"a","uid":"u1","generation":2}}`
	anew := `{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"d1","namespace":"a","uid":"u2","generation":3}}`
	other := `{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"d1","namespace":"b","uid":"u1","generation":4}}`
	for want, later := range map[int64]string{2: same, 3: anew} {
		live, err := read(t, clusters.Want{}, [2]string{"a", aNode + aPod + old + other}, [2]string{"b", later})
		if err != nil {
			t.Fatal(err)
		}
		if len(live.DaemonSets) != 2 || live.DaemonSets[0].Generation != want {
			t.Errorf("got %+v, want generation %d", live.DaemonSets, want)
		}
	}
}

func TestReadFaults(t *testing.T) {
	fullJSON, fullYAML := file(t, "full.json"), file(t, "full.yaml")
	utf16 := "\xff\xfe" + strings.Join(strings.Split(fullJSON[:200], ""), "\x00")
	system := func(uid string) string {
		return `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system","uid":"` + uid + `"}}`
	}
	cut := strings.Index(fullYAML, "\n- apiVersion: apps/v1")
	cases := map[string]struct {
		reason string
		text   string
		want   string
	}{
		"JSONCut":        {"the disk was full", fullJSON[:1000], "after byte 931: the JSON ends in the middle: record it again"},
		"JSONCutBetween": {"between two items", `{"apiVersion":"v1","items":[` + aNode + `,`, "after byte 87: the JSON ends in the middle: record it again"},
		"JSONZippedCut":  {"the disk was full", zip(t, fullJSON)[:300], "it ends in the middle: record it again"},
		"YAMLCutLine":    {"in a line", fullYAML[:cut+40], "line 199: items[6]: decoding v1.DaemonSet: it has no name"},
		"YAMLCut":        {"between two items: kubectl prints kind after them", fullYAML[:cut+1], "line 1: the list has no kind, which follows its items: the file ends too early, record it again"},
		"NotJSON":        {"a slip", `{"kind": Pod}`, "after byte 8: not JSON: invalid character 'P' looking for beginning of value"},
		"JSONMiddle":     {"far into it", aNode + aPod + `{"kind":"Pod","x":]}`, "after byte 149: not JSON: invalid character ']' looking for beginning of value"},
		"NULFirst":       {"damaged", "{\x00}", "at byte 1: there is a NUL byte: the file is damaged or no text"},
		"NULJSON":        {"far into it", `{"a": "` + strings.Repeat("x", 5000) + "\x00\"}", "at byte 5007: there is a NUL byte: the file is damaged or no text"},
		"NULYAML":        {"far into it", "a: |\n  " + strings.Repeat("x", 5000) + "\n  \x00\n", "at byte 5010: there is a NUL byte: the file is damaged or no text"},
		"UTF16":          {"PowerShell", utf16, "at byte 0: the text is UTF-16, as PowerShell's > writes it: record it with | Out-File -Encoding utf8"},
		"HTML":           {"a login page", "\n<!DOCTYPE html><html>", "line 2: it is HTML or XML, not what kubectl get -o json prints: a proxy or a login page may have answered"},
		"KubectlError":   {"2>&1", "Error from server (Forbidden): pods is forbidden: User \"\x1b[31mx\" cannot\nmore", `line 1: it is kubectl's error message, not a dump: "Error from server (Forbidden): pods is forbidden: User \"\x1b[31mx\" cannot"`},
		"Table":          {"without -o", "NAME   STATUS   AGE\nn1     Ready    5d\n", "line 1: want an object, as kubectl get -o yaml prints it"},
		"BareList":       {"jq .items", "[" + aNode + "]", "line 1: it is a bare list, not what kubectl get -o json prints"},
		"Scalar":         {"null is no observation", aNode + " null", "before byte 63: want an object, as kubectl get -o json prints it"},
		"ItemNull":       {"null is no object", `{"kind":"List","items":[null]}`, "before byte 28: items[0]: want an object"},
		"ItemsText":      {"no list", `{"kind":"List","items":"x"}`, "before byte 26: items: want a list"},
		"ItemsTextYAML":  {"no list", "kind: List\nitems: x\n", "line 2: items: want a list"},
		"NoKind":         {"what is it?", `{"metadata":{"name":"x"}}`, "before byte 25: the object has no kind"},
		"NoName":         {"no object of a cluster", `{"apiVersion":"v1","kind":"Pod","metadata":{}}`, "before byte 46: decoding v1.Pod: it has no name"},
		"WrongType":      {"the object is named", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x","namespace":"a"},"spec":{"nodeName":["CANARY"]}}`, `before byte 103: decoding v1.Pod "a/x": json: cannot unmarshal array into Go struct field PodSpec.spec.nodeName of type string`},
		"WrongTypeYAML":  {"the line is told", "apiVersion: v1\nitems:\n- kind: Node\n  apiVersion: v1\n  metadata: {name: a}\n- kind: Node\n  apiVersion: v1\n  metadata: {name: [a]}\nkind: List\n", "line 6: items[1]: decoding v1.Node of unknown name: json: cannot unmarshal array into Go struct field ObjectMeta.metadata.name of type string"},
		"YAMLSyntax":     {"far into it, after items and in another document", fullYAML + "---\na: b\nc: d: e\n", fmt.Sprintf("line %d: not YAML: mapping values are not allowed in this context", strings.Count(fullYAML, "\n")+3)},
		"YAMLAfterItems": {"the lines of items are counted", "items:\n- kind: Node\n  apiVersion: v1\n  metadata: {name: a}\nkind: List\nkind2: a: b\n", "line 6: not YAML: mapping values are not allowed in this context"},
		"Alias":          {"a bomb", "kind: List\na: &a [x]\nitems:\n- kind: Node\n  apiVersion: v1\n  metadata: {name: n, labels: &b {}}\n", "line 6: anchors and aliases are refused: kubectl prints none"},
		"AliasCycle":     {"a bomb", "kind: Node\napiVersion: v1\na: &a [*a]\n", "line 3: anchors and aliases are refused: kubectl prints none"},
		"DuplicateKey":   {"which one would count?", "kind: Node\napiVersion: v1\nmetadata: {name: a, name: b}\n", "line 3: duplicate key \"name\""},
		"YAMLFloat":      {"JSON has none", "kind: Node\nx: .inf\n", "line 2: want a number that JSON has, too"},
		"TwoClusters":    {"pods of one on nodes of the other", system("u1") + system("u2"), `before byte 166: it is of another cluster than "DIR/a": the namespace kube-system has the UID "u2" here and "u1" there`},
		"NewHeader":      {"not understood", `{"apiVersion":"rollcall.dev/v2","kind":"Recording"}`, `before byte 51: the Recording is of version "rollcall.dev/v2": this rollcall knows "rollcall.dev/v1alpha1"`},
		"BadHeader":      {"no time", headed(`,"observedAt":"noon"`), `decoding the Recording: parsing time "noon" as "2006-01-02T15:04:05Z07:00"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := read(t, clusters.Want{}, [2]string{"a", tc.text})
			if err == nil {
				t.Fatalf("%s: it was accepted", tc.reason)
			}
			if !strings.HasPrefix(err.Error(), `reading "DIR/a": `) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s:\n got %v\nwant %s", tc.reason, err, tc.want)
			}
			if strings.Contains(err.Error(), "CANARY") {
				t.Errorf("%s: a value is shown: %v", tc.reason, err)
			}
		})
	}
}

func TestObserve(t *testing.T) {
	o := Observer{Stdin: strings.NewReader(file(t, "full.yaml"))}
	live, err := o.Observe(t.Context(), clusters.Cluster{Name: "c", Recorded: []string{"-"}}, clusters.Want{Name: "log"})
	if err != nil {
		t.Fatal(err)
	}
	if got := names(live)["daemonsets"]; got != "logging/log" {
		t.Errorf("got %q", got)
	}
	_, err = o.Observe(t.Context(), clusters.Cluster{Name: "c", Recorded: []string{"-"}}, clusters.Want{})
	failed, ok := errors.AsType[*clusters.ObserveError](err)
	if !ok || failed.State != clusters.Failed || failed.Stage != "reading the dump" {
		t.Errorf("stdin that was read to its end: %v", err)
	}
	_, err = o.Observe(t.Context(), clusters.Cluster{Name: "c", Recorded: []string{"gone"}}, clusters.Want{})
	if want := `reading the dump: reading "gone": no such file or directory`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// A terminal on which nobody types does not hold up the end.
func TestObserveCanceled(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	time.AfterFunc(20*time.Millisecond, func() { cancel(stopped) })
	_, err := (&Observer{Stdin: r}).Observe(ctx, clusters.Cluster{Recorded: []string{"-"}}, clusters.Want{})
	if !errors.Is(err, stopped) {
		t.Errorf("got %v", err)
	}
	_, err = (&Observer{}).Observe(ctx, clusters.Cluster{Recorded: []string{"testdata/full.json"}}, clusters.Want{})
	if !errors.Is(err, stopped) {
		t.Errorf("of a file: got %v", err)
	}
}

// endless makes a dump of n pods as it is read, and notes how much memory is
// held meanwhile.
type endless struct {
	head, item, tail string
	n                int
	rest             string
	read             int
	most             uint64
}

func (e *endless) Read(p []byte) (int, error) {
	if e.rest == "" && e.n >= 0 {
		e.rest, e.head = e.head, ""
		if e.rest == "" && e.n > 0 {
			e.rest = strings.ReplaceAll(e.item, "NUMBER", fmt.Sprint(e.n))
		}
		if e.rest == "" || e.n == 0 {
			e.rest = e.tail
		}
		e.n--
		if e.n%64 == 0 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			e.most = max(e.most, m.HeapAlloc)
		}
	}
	if e.rest == "" {
		return 0, io.EOF
	}
	n := copy(p, e.rest)
	e.rest, e.read = e.rest[n:], e.read+n
	return n, nil
}

// A dump is never held whole: reading megabytes of pods takes a small part of them.
func TestReadStreams(t *testing.T) {
	filler := strings.Repeat("x", 20_000)
	cases := map[string]*endless{
		"JSON": {
			head: `{"apiVersion":"v1","items":[` + aNode + "," + aDS,
			item: `,{"apiVersion":"v1","kind":"Pod","metadata":{"name":"pNUMBER","namespace":"a","annotations":{"x":"` + filler + `"}}}`,
			tail: `],"kind":"List"}`, n: 400,
		},
		"YAML": {
			head: "apiVersion: v1\nitems:\n- " + aNode + "\n- " + aDS + "\n",
			item: "- apiVersion: v1\n  kind: Pod\n  metadata:\n    name: pNUMBER\n    namespace: a\n    annotations:\n      x: " + filler + "\n",
			tail: "kind: List\n", n: 150,
		},
	}
	for name, e := range cases {
		t.Run(name, func(t *testing.T) {
			runtime.GC()
			var before runtime.MemStats
			runtime.ReadMemStats(&before)
			live, err := Read(t.Context(), e, clusters.Want{}, "-")
			if err != nil {
				t.Fatal(err)
			}
			if len(live.Pods) < 149 || e.read < 2_900_000 {
				t.Fatalf("got %d pods of %d bytes", len(live.Pods), e.read)
			}
			if held := int64(e.most) - int64(before.HeapAlloc); held > 3<<19 {
				t.Errorf("%d bytes were held of a dump of %d", held, e.read)
			} else {
				t.Logf("%d bytes were held of a dump of %d", held, e.read)
			}
		})
	}
}

// What Git gives a namespace and is the whole cluster's is in the dump without
// one, and is found; what has a namespace is found in that one only.
func TestReadOfCluster(t *testing.T) {
	const role = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"r"}}`
	const config = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"r","namespace":"b"}}`
	file := filepath.Join(t.TempDir(), "dump.json")
	if err := os.WriteFile(file, []byte(aNode+aPod+aDS+role+config), 0o600); err != nil {
		t.Fatal(err)
	}
	found := clusters.Reference{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Namespace: "a", Name: "r"}
	elsewhere := clusters.Reference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: "r"}
	live, err := Read(t.Context(), nil, clusters.Want{Objects: []clusters.Reference{found, elsewhere}}, file)
	if err != nil {
		t.Fatal(err)
	}
	if len(live.Objects) != 1 || live.Objects[0].GetKind() != "ClusterRole" {
		t.Errorf("got %v", live.Objects)
	}
	if want := map[string]string{elsewhere.Identity(): "not in the dump"}; !maps.Equal(live.Unread, want) {
		t.Errorf("unread: got %v, want %v", live.Unread, want)
	}
}

// Any bytes are refused with an error that names the file, or give an
// observation of what is wanted.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"full.json", "full.yaml"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, seed := range []string{"", "items:\n-", "items:\n- - a\n", "---\n---\n", "{\"items\":[{}]}", "a: &a [*a]", "\x1f\x8b", "items:\n  - a\n - b\n", "? a\n: items\n", aNode + aPod + aDS} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		live, err := Read(t.Context(), bytes.NewReader(data), clusters.Want{Namespace: "a"}, "-")
		if err != nil {
			if strings.TrimSpace(err.Error()) == "" {
				t.Error("an error that says nothing")
			}
			return
		}
		for _, ds := range live.DaemonSets {
			if ds.Namespace != "a" {
				t.Errorf("DaemonSet of namespace %q", ds.Namespace)
			}
		}
		if len(live.DaemonSets) == 0 && len(live.Pods) > 0 {
			t.Errorf("%d pods of no DaemonSet", len(live.Pods))
		}
	})
}

// A node whose clock runs ahead does not date the dump: by its time all other
// nodes would not have been heard from for long.
func TestHeartbeat(t *testing.T) {
	at := func(minutes int) time.Time { return time.Date(2026, 1, 2, 3, minutes, 0, 0, time.UTC) }
	cases := map[string]struct {
		reason string
		beats  []time.Time
		want   time.Time
	}{
		"None":    {"no node, no time", nil, time.Time{}},
		"Newest":  {"the newest of all", []time.Time{at(1), at(5), at(3)}, at(5)},
		"Ahead":   {"one of several, far ahead", []time.Time{at(1), at(3), at(40)}, at(3)},
		"Slight":  {"within what heartbeats differ by", []time.Time{at(1), at(3), at(9)}, at(9)},
		"OfTwo":   {"of two nodes it is not known which one is wrong", []time.Time{at(1), at(40)}, at(40)},
		"OneDead": {"a node that is behind is dead, and dates nothing", []time.Time{at(0), at(40), at(41)}, at(41)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := heartbeat(slices.Values(tc.beats)); !got.Equal(tc.want) {
				t.Errorf("%s: got %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}
