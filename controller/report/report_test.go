package report_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/coverage"
	"rollcall.dev/rollcall/controller/report"
)

var update = flag.Bool("update", false, "rewrite golden files")

func TestGolden(t *testing.T) {
	for _, format := range report.Formats() {
		t.Run(format, func(t *testing.T) {
			got := encode(t, format, world(variant{}))
			file := filepath.Join("testdata", format+".golden")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// The same input gives the same bytes, in whatever order lists came.
func TestStableBytes(t *testing.T) {
	for _, format := range report.Formats() {
		want := encode(t, format, world(variant{}))
		for seed := range uint64(20) {
			got := encode(t, format, world(variant{shuffle: rand.New(rand.NewPCG(seed, 1))}))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s differs for shuffled input %d:\n%s", format, seed, diff)
			}
		}
	}
}

func TestEncodeUnknownFormat(t *testing.T) {
	err := report.Encode(&bytes.Buffer{}, "html", report.Report{}, report.Style{})
	if err == nil || !strings.Contains(err.Error(), `"html"`) || !strings.Contains(err.Error(), "table, wide, json") {
		t.Errorf("the error must name the format and those there are, got: %v", err)
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestEncodeTellsOfFailedWrites(t *testing.T) {
	for _, format := range report.Formats() {
		if err := report.Encode(failingWriter{}, format, world(variant{}), report.Style{}); err == nil {
			t.Errorf("%s: a report that was not written passes for written", format)
		}
	}
}

func TestColorOnlyRepeats(t *testing.T) {
	var b strings.Builder
	if err := report.Encode(&b, "table", world(variant{}), report.Style{Color: true}); err != nil {
		t.Fatal(err)
	}
	colored := b.String()
	if !strings.Contains(colored, "\x1b[31m") {
		t.Error("a colored table has no red")
	}
	plain := regexp.MustCompile("\x1b\\[[0-9]+m").ReplaceAllString(colored, "")
	if diff := cmp.Diff(encode(t, "table", world(variant{})), plain); diff != "" {
		t.Errorf("without its colors the table is another:\n%s", diff)
	}
}

// contract is DESIGN.md's JSON, by path: [] is an item of a list. A ? stands
// for what is left out where there is nothing to tell.
var contract = map[string]string{
	"":                                              "agents apiVersion clusters complete findings fleet generatedAt kind nodesListed source summary",
	"source":                                        "commit committedAt fetchedAt ref state url",
	"summary.renders":                               "built reused",
	"summary":                                       "clusters covered daemonSets excused findings intended nodes renders unknown upToDate",
	"summary.findings":                              "error info warning",
	"agents[]":                                      "clusters covered excused intended min missing name severity unknown unmet waiting",
	"agents[].missing":                              "count sample",
	"clusters[]":                                    "agents compared daemonSets drift excluded? held? identity? labels? name nodes observation sync unread? version?",
	"clusters[].sync":                               "components? delivery? error? overlay? state",
	"clusters[].sync.delivery":                      "at? behind commit pending?",
	"clusters[].observation":                        "at? error? recorded? stage? state",
	"clusters[].excluded":                           "count sample",
	"clusters[].agents[]":                           "covered daemonSets excused intended met min missing name severity waiting",
	"clusters[].agents[].missing":                   "count sample",
	"clusters[].daemonSets[]":                       "agents? counts inGit joined? live lost? name namespace nodes notes? outdated? owner? strayPods",
	"clusters[].daemonSets[].joined":                "count sample",
	"clusters[].daemonSets[].lost[]":                "cause message nodes",
	"clusters[].daemonSets[].lost[].cause":          "key kind",
	"clusters[].daemonSets[].lost[].nodes":          "count sample",
	"clusters[].daemonSets[].nodes[].excuse":        "node? owner reason until",
	"clusters[].daemonSets[].counts":                "covered excused intended nodes shouldRun states upToDate",
	"clusters[].daemonSets[].outdated":              "count sample",
	"clusters[].daemonSets[].notes[]":               "code message",
	"clusters[].daemonSets[].nodes[]":               "covered excuse? excused intended name pods reasons shouldContinueRunning shouldRun state upToDate",
	"clusters[].daemonSets[].nodes[].pods[]":        "deleting? name phase ready revision?",
	"clusters[].daemonSets[].nodes[].reasons[]":     "code message",
	"clusters[].daemonSets[].strayPods[]":           "name node? reasons",
	"clusters[].daemonSets[].strayPods[].reasons[]": "code message",
	"clusters[].drift[]":                            "confirmation? fields? foreign? ignored? immutable? message? object state unknown?",
	"clusters[].drift[].object":                     "apiVersion kind name namespace?",
	"clusters[].drift[].fields[]":                   "change desired live manager? notAfter? operation? path placement?",
	"clusters[].drift[].foreign[]":                  "change desired live manager? notAfter? operation? path",
	"clusters[].drift[].ignored[]":                  "change desired live manager? notAfter? operation? path rule",
	"clusters[].held[]":                             "code message objects",
	"clusters[].held[].objects":                     "count sample",
	"clusters[].unread[]":                           "object reason",
	"clusters[].unread[].object":                    "apiVersion kind name namespace?",
	"findings[]":                                    "cause cluster code daemonSets excuse? id message nodes remedy? severity since?",
	"findings[].excuse":                             "node? owner reason until",
	"findings[].cause":                              "key kind",
	"findings[].nodes":                              "count sample",
}

// open are objects whose keys are names of the input.
var open = []string{"clusters[].labels", "clusters[].daemonSets[].counts.states"}

func TestContract(t *testing.T) {
	var doc any
	if err := json.Unmarshal([]byte(encode(t, "json", world(variant{}))), &doc); err != nil {
		t.Fatal(err)
	}
	seen := map[string]map[string]bool{}
	checkKeys(t, seen, "", doc)
	for path, keys := range contract {
		for key := range strings.FieldsSeq(keys) {
			if name := strings.TrimSuffix(key, "?"); !seen[path][name] && name != "deleting" && name != "node" {
				t.Errorf("the fleet of this test shows no %s.%s: it proves nothing of that", path, name)
			}
		}
	}
}

func checkKeys(t *testing.T, seen map[string]map[string]bool, path string, v any) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			checkKeys(t, seen, path+"[]", item)
		}
	case map[string]any:
		if slices.Contains(open, path) {
			return
		}
		if seen[path] == nil {
			seen[path] = map[string]bool{}
		}
		want := strings.Fields(contract[path])
		for key, child := range v {
			seen[path][key] = true
			if !slices.Contains(want, key) && !slices.Contains(want, key+"?") {
				t.Errorf("%q has the key %q, which is not of the contract", path, key)
			}
			checkKeys(t, seen, strings.TrimPrefix(path+"."+key, "."), child)
		}
		for _, key := range want {
			if _, ok := v[key]; !ok && !strings.HasSuffix(key, "?") {
				t.Errorf("%q lacks the key %q", path, key)
			}
		}
	}
}

// YAML, JSON lines and JSON tell the same.
func TestFormatsAgree(t *testing.T) {
	r := world(variant{})
	want := encode(t, "json", r)
	fromYAML, err := yaml.YAMLToJSON([]byte(encode(t, "yaml", r)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(decode(t, []byte(want)), decode(t, fromYAML)); diff != "" {
		t.Errorf("YAML is not as JSON:\n%s", diff)
	}
	lines := strings.Split(strings.TrimSpace(encode(t, "jsonl", r)), "\n")
	doc := decode(t, []byte(lines[0]))
	parts := map[string][]any{}
	for _, line := range lines[1:] {
		item := decode(t, []byte(line))
		kind := item["kind"].(string)
		delete(item, "kind")
		parts[kind] = append(parts[kind], item)
	}
	doc["clusters"], doc["findings"] = parts["Cluster"], parts["Finding"]
	if diff := cmp.Diff(decode(t, []byte(want)), doc); diff != "" {
		t.Errorf("JSON lines are not as JSON:\n%s", diff)
	}
}

func decode(t *testing.T, data []byte) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return m
}

func TestCounts(t *testing.T) {
	r := world(variant{})
	for _, c := range r.Clusters {
		for _, d := range c.DaemonSets {
			sum := 0
			for _, n := range d.Counts.States {
				sum += n
			}
			if sum != d.Counts.Nodes || c.Nodes == nil || sum != *c.Nodes {
				t.Errorf("%s %s: states sum up to %d, nodes are %d", c.Name, d.Key(), sum, d.Counts.Nodes)
			}
			if d.Counts.Covered > d.Counts.Intended {
				t.Errorf("%s %s: covered %d of %d", c.Name, d.Key(), d.Counts.Covered, d.Counts.Intended)
			}
		}
	}
	// prod: n1 and n5 of 5 for the agent, 0 of 5 for what is absent (the node
	// with the taint is not intended). twins: 2 of 2 each. The proxy is not in
	// Git; broken adds 1 of 2, since a failed render hides nothing; gone adds
	// nothing. guarded: 2 of 2, one excused, one whose taint excludes it.
	want := report.Summary{Clusters: 6, Unknown: 1, DaemonSets: 6, Nodes: 16, Intended: 18, Covered: 9, Excused: 1}
	got := r.Summary
	got.Findings, got.Renders = report.Severities{}, nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestComplete(t *testing.T) {
	cases := map[string]struct {
		reason string
		c      report.Cluster
		want   bool
		state  report.SyncState
	}{
		"Good":        {"a cluster that was read and rendered is complete, whatever was found", prod(variant{}), true, report.OutOfSync},
		"InSync":      {"nothing differs", twin("a", variant{}), true, report.InSync},
		"Unreachable": {"what was not read is not known", gone(), false, report.SyncUnknown},
		"Unrendered":  {"what was not rendered is not known to be in sync", broken(variant{}), false, report.SyncUnknown},
		"Invalid":     {"nothing is known of a cluster whose file is wrong", report.Invalid("x", "x.yaml", errText("x")), false, report.SyncUnknown},
		"NoSource":    {"without a source there is no sync", report.NewCluster(report.Judged{}, nil), true, report.SyncNone},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := report.New(report.Scope{At: noon, NodesListed: "attention"}, []report.Cluster{tc.c}, nil)
			if r.Complete != tc.want || tc.c.Sync.State != tc.state || tc.c.Failed() == tc.want {
				t.Errorf("%s: complete %t, sync %s", tc.reason, r.Complete, tc.c.Sync.State)
			}
		})
	}
}

func TestUpToDate(t *testing.T) {
	known, unknown := prod(variant{}), twin("twin", variant{})
	cases := map[string]struct {
		reason string
		cs     []report.Cluster
		want   *int
	}{
		"None":         {"no DaemonSets, no number", nil, nil},
		"Known":        {"n1, n2 and n4 run the current revision", []report.Cluster{known}, new(3)},
		"Unknown":      {"revisions could not be read", []report.Cluster{unknown}, nil},
		"KnownFirst":   {"a sum of what is known is not shown as the whole", []report.Cluster{known, unknown}, nil},
		"UnknownFirst": {"in either order", []report.Cluster{unknown, known}, nil},
		"Unreachable":  {"a cluster that was not read adds nothing and takes nothing", []report.Cluster{known, gone()}, new(3)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := report.New(report.Scope{At: noon, NodesListed: "attention"}, tc.cs, nil).Summary.UpToDate
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// Scripts walk lists: there is none that is null.
func TestEmptyLists(t *testing.T) {
	r := report.New(report.Scope{At: noon, NodesListed: "attention"}, []report.Cluster{report.NewCluster(report.Judged{}, nil), gone()}[:1], nil)
	for _, key := range []string{"clusters", "findings"} {
		if _, ok := decode(t, []byte(encode(t, "json", r)))[key].([]any); !ok {
			t.Errorf("%s is no list where there is none", key)
		}
	}
	if text := encode(t, "json", r); strings.Contains(text, ": null") != strings.Contains(text, `"upToDate": null`) || strings.Count(text, "null") != 1 {
		t.Errorf("only upToDate may be null here:\n%s", text)
	}
}

// A dump without any time in it was seen at no known time.
func TestUndated(t *testing.T) {
	c := report.NewCluster(report.Judged{Cluster: clusters.Cluster{Name: "dump", Recorded: []string{"dump.yaml"}}}, coverage.State.Attention)
	r := report.New(report.Scope{At: noon, NodesListed: "attention"}, []report.Cluster{c}, nil)
	if c.Observation.At != nil {
		t.Errorf("observed at %s", c.Observation.At)
	}
	for _, format := range report.Formats() {
		if text := encode(t, format, r); strings.Contains(text, "0001") {
			t.Errorf("%s shows a time that nobody knows:\n%s", format, text)
		}
	}
}

func findings(r report.Report) map[string]report.Finding {
	out := map[string]report.Finding{}
	for _, f := range r.Findings {
		out[f.Cluster+" "+f.Code+" "+f.Cause.Kind] = f
	}
	return out
}

func TestFindings(t *testing.T) {
	type brief struct {
		severity   report.Severity
		key        string
		daemonSets string
		nodes      string
	}
	want := map[string]brief{
		" TargetUnmatched fleet":              {report.Warning, "target lab", "", ""},
		"broken PathNotFound render":          {report.Error, "overlays/broken kustomization.yaml PathNotFound", "", ""},
		"broken ControllerStalled controller": {report.Error, "daemonset-controller", "obs/agent", "b2"},
		"broken StatusStale template":         {report.Info, "obs/agent status", "obs/agent", ""},
		"gone Unreachable observation":        {report.Error, "gone", "", ""},
		"prod DaemonSetAbsent absent":         {report.Error, "obs/lacking", "obs/lacking", "n1 n2 n5 n6"},
		"prod FailedCreate refused":           {report.Error, "obs/agent quota daemons", "obs/agent", "n6"},
		"prod ImagePullBackOff image":         {report.Error, "agent:2", "obs/agent", "n2"},
		"prod Modified manager":               {report.Warning, "obs/agent kubectl-edit", "obs/agent", ""},
		"prod Held hold":                      {report.Info, "WindowClosed", "", ""},
		"prod IgnoreUnused object":            {report.Info, "ServiceAccount obs/agent rollcall.dev/ignore /data", "", ""},
		"prod InvalidAnnotation object":       {report.Warning, "ServiceAccount obs/agent rollcall.dev/ignore data", "", ""},
		"prod NotCompared object":             {report.Info, "unread", "", ""},
		"prod ObjectAbsent object":            {report.Error, "absent ConfigMap", "", ""},
		"prod Orphaned object":                {report.Warning, "extra", "", ""},
		"prod Refused object":                 {report.Error, "Service obs/agent", "", ""},
		"prod UnknownField object":            {report.Warning, "ServiceAccount obs/agent fields", "", ""},
		"prod NodeUnreachable node":           {report.Error, "n4", "kube-system/proxy obs/agent obs/lacking", "n4"},
		"prod ControllerStalled controller":   {report.Info, "daemonset-controller", "kube-system/proxy", "n2 n5 n6"},
		"prod OrphanPod template":             {report.Warning, "obs/agent pods OrphanPod", "obs/agent", ""},
		"prod ReadinessProbe container":       {report.Info, "kube-system/proxy c", "kube-system/proxy", "n1"},
		"prod RolloutBlocked template":        {report.Warning, "obs/agent revision", "obs/agent", "n5"},
		"prod StatusStale template":           {report.Info, "obs/agent status", "obs/agent", ""},
		"prod CoverageLost taint":             {report.Error, "gpu=yes:NoSchedule", "obs/agent", "n3"},
		" ExceptionExpired fleet":             {report.Warning, "exception code NodeNotReady, clusters guarded", "", ""},
		" ExceptionUnused fleet":              {report.Info, "exception code HeartbeatStale, clusters guarded", "", ""},
		"guarded AgentUncovered taint":        {report.Warning, "dedicated=db:NoExecute", "sec/sensor", "g4"},
		"guarded StatusStale template":        {report.Info, "sec/sensor status", "sec/sensor", ""},
		"guarded WaitingForDelete template":   {report.Info, "sec/sensor revision", "sec/sensor", "n5"},
		"twin-a DuplicateIdentity fleet":      {report.Error, "identity uid-twin", "", ""},
		"twin-b DuplicateIdentity fleet":      {report.Error, "identity uid-twin", "", ""},
		"twin-a StatusStale template":         {report.Info, "obs/agent status", "obs/agent", ""},
		"twin-b StatusStale template":         {report.Info, "obs/agent status", "obs/agent", ""},
		"twin-a TierMissing observation":      {report.Info, "events", "", ""},
		"twin-b TierMissing observation":      {report.Info, "events", "", ""},
	}
	got := map[string]brief{}
	for key, f := range findings(world(variant{})) {
		if f.Nodes.Count != len(f.Nodes.Sample) {
			t.Errorf("%s: %d nodes, %d in the sample", key, f.Nodes.Count, len(f.Nodes.Sample))
		}
		got[key] = brief{f.Severity, f.Cause.Key, strings.Join(f.DaemonSets, " "), strings.Join(f.Nodes.Sample, " ")}
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(brief{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func ids(r report.Report) []string {
	var out []string
	for _, f := range r.Findings {
		out = append(out, f.ID)
	}
	slices.Sort(out)
	return out
}

func TestFindingIDs(t *testing.T) {
	first := world(variant{})
	all := ids(first)
	if n := len(slices.Compact(slices.Clone(all))); n != len(all) {
		t.Errorf("%d findings have %d identities", len(all), n)
	}
	cases := map[string]struct {
		reason string
		v      variant
	}{
		"Pods":  {"pods are created anew with other names", variant{pods: "-x7"}},
		"Words": {"messages hold counters and durations", variant{words: " (x12 over 3m)"}},
		"Later": {"time passes", variant{later: 5 * time.Minute}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			again := world(tc.v)
			if diff := cmp.Diff(all, ids(again)); diff != "" {
				t.Errorf("%s, and the causes hold:\n%s", tc.reason, diff)
			}
			if encode(t, "json", first) == encode(t, "json", again) {
				t.Error("the variant changes nothing: it proves nothing")
			}
		})
	}
	cause := coverage.Cause{Kind: "node", Key: "n1"}
	base := report.NewFinding("a", "NodeNotReady", "m", cause).ID
	if got := report.NewFinding("a", "NodeUnreachable", "another", cause).ID; got != base {
		t.Error("the code and message are attributes: they must not change the identity")
	}
	for what, f := range map[string]report.Finding{
		"cluster": report.NewFinding("b", "NodeNotReady", "m", cause),
		"kind":    report.NewFinding("a", "NodeNotReady", "m", coverage.Cause{Kind: "taint", Key: "n1"}),
		"key":     report.NewFinding("a", "NodeNotReady", "m", coverage.Cause{Kind: "node", Key: "n2"}),
		"seam":    report.NewFinding("an", "NodeNotReady", "m", coverage.Cause{Kind: "ode", Key: "n1"}),
	} {
		if f.ID == base {
			t.Errorf("another %s must be another finding", what)
		}
	}
}

func TestSamples(t *testing.T) {
	l := clusters.Live{ObservedAt: noon}
	ds := daemonSet(variant{}, "obs", "agent", "agent:1")
	l.DaemonSets = append(l.DaemonSets, ds)
	for _, name := range []string{"n7", "n6", "n5", "n4", "n3", "n2", "n1"} {
		l.Nodes = append(l.Nodes, node(name))
	}
	c := judge(variant{}, report.Judged{Cluster: clusters.Cluster{Name: "c"}, Live: l}, coverage.State.Attention)
	r := report.New(report.Scope{At: noon, NodesListed: "attention"}, []report.Cluster{c}, nil)
	want := report.Sample{Count: 7, Sample: []string{"n1", "n2", "n3", "n4", "n5"}}
	if diff := cmp.Diff(want, findings(r)["c ControllerStalled controller"].Nodes); diff != "" {
		t.Errorf("a sample is the first five of the sorted names\n-want +got:\n%s", diff)
	}
	if table := encode(t, "table", r); !strings.Contains(table, "n1, n2, n3, n4, n5 … +2 more") {
		t.Errorf("the table must say how many more there are:\n%s", table)
	}
}

// Nodes that are listed are those that keep asks for.
func TestKeep(t *testing.T) {
	names := func(keep func(coverage.State) bool) []string {
		var out []string
		for _, d := range judge(variant{}, prodJudged(variant{}), keep).DaemonSets {
			for _, n := range d.Nodes {
				if d.Name == "agent" {
					out = append(out, n.Name+" "+n.State)
				}
			}
		}
		return out
	}
	attention := []string{"n2 NotReady", "n3 Misscheduled", "n4 NodeNotReady", "n6 Missing"}
	if diff := cmp.Diff(attention, names(coverage.State.Attention)); diff != "" {
		t.Errorf("attention\n-want +got:\n%s", diff)
	}
	all := []string{"n1 Covered", "n2 NotReady", "n3 Misscheduled", "n4 NodeNotReady", "n5 Covered", "n6 Missing"}
	if diff := cmp.Diff(all, names(func(coverage.State) bool { return true })); diff != "" {
		t.Errorf("all\n-want +got:\n%s", diff)
	}
}

func TestAtLeast(t *testing.T) {
	cases := map[string]struct {
		s                    report.Severities
		error, warning, info bool
	}{
		"Nothing": {},
		"Info":    {s: report.Severities{Info: 1}, info: true},
		"Warning": {s: report.Severities{Warning: 1}, warning: true, info: true},
		"Error":   {s: report.Severities{Error: 1}, error: true, warning: true, info: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := []bool{tc.s.AtLeast(report.Error), tc.s.AtLeast(report.Warning), tc.s.AtLeast(report.Info)}
			if diff := cmp.Diff([]bool{tc.error, tc.warning, tc.info}, got); diff != "" {
				t.Errorf("error, warning, info\n-want +got:\n%s", diff)
			}
		})
	}
}

// Findings come worst first; a summary counts them all.
func TestFindingOrder(t *testing.T) {
	r := world(variant{})
	rank := map[report.Severity]int{report.Error: 0, report.Warning: 1, report.Info: 2}
	by := map[report.Severity]int{}
	for i, f := range r.Findings {
		by[f.Severity]++
		if i > 0 && rank[f.Severity] < rank[r.Findings[i-1].Severity] {
			t.Errorf("%s comes after %s", f.Severity, r.Findings[i-1].Severity)
		}
	}
	want := report.Severities{Error: by[report.Error], Warning: by[report.Warning], Info: by[report.Info]}
	if diff := cmp.Diff(want, r.Summary.Findings); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(slices.Collect(maps.Keys(by))) != 3 {
		t.Error("the fleet of this test has no finding of some severity")
	}
}
