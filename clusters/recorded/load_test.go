package recorded

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rollcall.dev/rollcall/clusters"
)

// podItems are pods in JSON that are named by namespace/name.
func podItems(pods ...string) (items []string) {
	for _, p := range pods {
		ns, name, _ := strings.Cut(p, "/")
		items = append(items, fmt.Sprintf(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": %q, "name": %q, "uid": "u-%s"},
			"spec": {"nodeName": "n1", "priority": 7, "containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}}, "ports": [{"containerPort": 1, "hostPort": 2}]}]}, "status": {"phase": "Running"}}`, ns, name, name))
	}
	return items
}

// podDump is a list of them, as kubectl prints it.
func podDump(pods ...string) string {
	return `{"apiVersion": "v1", "kind": "List", "items": [` + strings.Join(podItems(pods...), ",") + `]}`
}

const besides = `{"apiVersion": "v1", "kind": "NodeList", "items": [{"metadata": {"name": "n1"}, "status": {"allocatable": {"example.com/gpu": "2"}}}]}
{"apiVersion": "apps/v1", "kind": "DaemonSetList", "items": []}`

func claims(l clusters.Live) (out []string) {
	for _, c := range l.Claims {
		out = append(out, fmt.Sprintf("%s/%s on %s", c.Namespace, c.Name, c.Node))
	}
	return out
}

// A dump tells how full nodes are only if it holds all pods: a part of them
// would make nodes look empty.
func TestDumpClaims(t *testing.T) {
	whole := podDump("a/p", "b/q")
	for name, tc := range map[string]struct {
		reason string
		files  [][2]string
		want   []string
		blank  bool
	}{
		"All":       {"one list with pods of several namespaces", [][2]string{{"a.json", whole}}, []string{"a/p on n1", "b/q on n1"}, false},
		"One":       {"a list of one namespace may have been asked for so", [][2]string{{"a.json", podDump("a/p", "a/q")}}, nil, true},
		"Several":   {"so may several of one each", [][2]string{{"a.json", podDump("a/p")}, {"b.json", podDump("b/q")}}, nil, true},
		"OneFile":   {"also in one file", [][2]string{{"a.json", podDump("a/p") + podDump("b/q")}}, nil, true},
		"NoList":    {"single objects tell nothing of others", [][2]string{{"a.json", strings.Join(podItems("a/p", "b/q"), "\n")}}, nil, true},
		"Ended":     {"of a pod that is seen again the later one counts", [][2]string{{"a.json", whole}, {"b.json", strings.ReplaceAll(podDump("a/p"), "Running", "Succeeded")}}, []string{"b/q on n1"}, false},
		"Nodeless":  {"a pod without a node claims nothing", [][2]string{{"a.json", strings.Replace(whole, `"nodeName": "n1", `, "", 1)}}, []string{"b/q on n1"}, false},
		"YAML":      {"the form does not matter", [][2]string{{"a.yaml", "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: p, namespace: a}, spec: {nodeName: n1}}\n- {apiVersion: v1, kind: Pod, metadata: {name: q, namespace: b}, spec: {nodeName: n1}}\n"}}, []string{"a/p on n1", "b/q on n1"}, false},
		"YAMLParts": {"nor do documents add up", [][2]string{{"a.yaml", "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: p, namespace: a}, spec: {nodeName: n1}}\n---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: q, namespace: b}, spec: {nodeName: n1}}\n"}}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			live, err := read(t, clusters.Want{Forecast: true}, append(tc.files, [2]string{"z.json", besides})...)
			if err != nil {
				t.Fatal(err)
			}
			_, blank := live.Lacks("claims")
			if diff := cmp.Diff(tc.want, claims(live)); diff != "" || blank != tc.blank {
				t.Errorf("%s: blank: %v, want %v, claims -want +got:\n%s", tc.reason, blank, tc.blank, diff)
			}
		})
	}
}

func TestDumpForecast(t *testing.T) {
	class := `{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9, "globalDefault": true, "preemptionPolicy": "Never"}`
	files := [][2]string{{"a.json", podDump("a/p", "b/q")}, {"b.json", besides}}
	live, err := read(t, clusters.Want{Forecast: true}, files...)
	if reason, blank := live.Lacks("priorityclasses"); err != nil || !blank || reason != "not in the dump" {
		t.Errorf("got %q, %v, %v", reason, blank, err)
	}
	if q := live.Nodes[0].Allocatable["example.com/gpu"]; q.Value() != 2 {
		t.Errorf("got allocatable %v", live.Nodes[0].Allocatable)
	}
	live, err = read(t, clusters.Want{Forecast: true}, append(files, [2]string{"c.json", class})...)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]clusters.Priority{"": {Value: 9, Never: true}, "high": {Value: 9, Never: true}}, live.Priorities); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	c := live.Claims[0]
	if cpu := c.Requests["cpu"]; cpu.Value() != 1 || c.UID != "u-p" || c.Priority != 7 || len(c.HostPorts) != 1 || c.HostPorts[0].Port != 2 {
		t.Errorf("got %+v", c)
	}
	plain, err := read(t, clusters.Want{}, append(files, [2]string{"c.json", class})...)
	if err != nil || plain.Claims != nil || plain.Priorities != nil {
		t.Errorf("got claims nobody wants: %v, %v, %v", plain.Claims, plain.Priorities, err)
	}
	if _, blank := plain.Lacks("claims"); blank {
		t.Error("what nobody wants is not lacking")
	}
}

// A snapshot says whether it was recorded with a forecast, and one without pods
// is none without claims.
func TestSnapshotForecast(t *testing.T) {
	resources := func(l clusters.Live) (out []string) {
		for _, b := range l.Blanks {
			out = append(out, b.Resource)
		}
		slices.Sort(out)
		return out
	}
	without := whole()
	without.Claims, without.Priorities = nil, nil
	empty := whole()
	empty.Claims, empty.Priorities = []clusters.Claim{}, map[string]clusters.Priority{}
	refused := without
	refused.Blanks = []clusters.Blank{{Resource: "claims", Reason: "forbidden: x"}}
	for name, tc := range map[string]struct {
		live     clusters.Live
		forecast bool
		want     []string
	}{
		"Whole":     {whole(), true, []string{"leases"}},
		"Empty":     {empty, true, []string{"leases"}},
		"Without":   {without, true, []string{"claims", "leases", "priorityclasses"}},
		"Refused":   {refused, true, []string{"claims", "priorityclasses"}},
		"Unwanted":  {whole(), false, []string{"leases"}},
		"NotAsked":  {without, false, []string{"leases"}},
		"Forgotten": {refused, false, nil},
	} {
		live, err := Read(t.Context(), bytes.NewReader(packed(t, tc.live)), clusters.Want{Forecast: tc.forecast}, "-")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, resources(live)); diff != "" || !tc.forecast && (live.Claims != nil || live.Priorities != nil) {
			t.Errorf("%s: %d claims, blanks -want +got:\n%s", name, len(live.Claims), diff)
		}
	}
}
