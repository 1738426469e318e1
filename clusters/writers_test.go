package clusters

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	monday  = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	tuesday = monday.AddDate(0, 0, 1)
)

// wrote is an entry of managedFields, in which a zero time is no time.
func wrote(manager, subresource string, at time.Time, raw string) metav1.ManagedFieldsEntry {
	m := metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource}
	if !at.IsZero() {
		m.Time = &metav1.Time{Time: at}
	}
	if raw != "" {
		m.FieldsV1 = metav1.NewFieldsV1(raw)
	}
	return m
}

// inTemplate is a set of fields of a pod template's spec.
func inTemplate(raw string) string { return `{"f:spec":{"f:template":{"f:spec":` + raw + `}}}` }

func TestLastWriter(t *testing.T) {
	tolerations := []string{"f:spec", "f:template", "f:spec", "f:tolerations"}
	image := []string{"f:spec", "f:template", "f:spec", "f:containers", `k:{"name":"c"}`, "f:image"}
	type entries = []metav1.ManagedFieldsEntry
	one := func(raw string) entries { return entries{wrote("m", "", monday, raw)} }
	mine := Writer{Manager: "m", NotAfter: monday}
	cases := map[string]struct {
		reason  string
		managed entries
		path    []string
		want    Writer
		ok      bool
	}{
		"Atomic":        {"a list that is not merged", one(inTemplate(`{"f:tolerations":{}}`)), tolerations, mine, true},
		"Beside":        {"others stand before and after it", one(inTemplate(`{"f:a":{"f:b":{}},"f:tolerations":{},"f:z":{}}`)), tolerations, mine, true},
		"Below":         {"whoever owns an item wrote the list, too", one(inTemplate(`{"f:tolerations":{"k:{\"key\":\"a\"}":{}}}`)), tolerations, mine, true},
		"Item":          {"a key with quotes in it", one(inTemplate(`{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:image":{}}}}`)), image, mine, true},
		"OtherItem":     {"another item", one(inTemplate(`{"f:containers":{"k:{\"name\":\"d\"}":{".":{},"f:image":{}}}}`)), image, Writer{}, false},
		"Whole":         {"the whole above it", one(inTemplate(`{"f:containers":{}}`)), image, mine, true},
		"WholeDot":      {"likewise", one(inTemplate(`{"f:containers":{".":{}}}`)), image, mine, true},
		"WholeItem":     {"the whole item", one(inTemplate(`{"f:containers":{"k:{\"name\":\"c\"}":{}}}`)), image, mine, true},
		"Parent":        {"who owns an item and other fields of it does not own this one", one(inTemplate(`{"f:containers":{".":{},"k:{\"name\":\"c\"}":{".":{},"f:name":{}}}}`)), image, Writer{}, false},
		"Sibling":       {"another field", one(inTemplate(`{"f:nodeSelector":{}}`)), tolerations, Writer{}, false},
		"Nothing":       {"an empty set owns nothing", one(`{}`), tolerations, Writer{}, false},
		"NoPath":        {"no field was asked for", one(`{}`), nil, Writer{}, false},
		"Spaces":        {"JSON as people write it", one(` { "f:spec" : { "f:x" : { } , "f:template" : {` + "\n\t" + `"f:spec":{"f:tolerations":{}} } } }`), tolerations, mine, true},
		"Escaped":       {"a name may be escaped", one(inTemplate(`{"f:\u0074olerations":{}}`)), tolerations, mine, true},
		"Deceptive":     {"a name that holds braces and quotes", one(inTemplate(`{"v:\"}}{\\":{"f:tolerations":{}}}`)), tolerations, Writer{}, false},
		"Status":        {"through a subresource it is not written", entries{wrote("m", "status", monday, inTemplate(`{"f:tolerations":{}}`))}, tolerations, Writer{}, false},
		"NoFields":      {"an entry without a set", entries{wrote("m", "", monday, "")}, tolerations, Writer{}, false},
		"LastOfTwo":     {"the order does not decide", entries{wrote("late", "", tuesday, inTemplate(`{"f:tolerations":{}}`)), wrote("early", "", monday, inTemplate(`{"f:tolerations":{}}`))}, tolerations, Writer{Manager: "late", NotAfter: tuesday}, true},
		"LastOfTwoLast": {"likewise", entries{wrote("early", "", monday, inTemplate(`{"f:tolerations":{}}`)), wrote("late", "", tuesday, inTemplate(`{"f:tolerations":{}}`))}, tolerations, Writer{Manager: "late", NotAfter: tuesday}, true},
		"Timeless":      {"one with a time goes first", entries{wrote("none", "", time.Time{}, inTemplate(`{"f:tolerations":{}}`)), wrote("m", "", monday, inTemplate(`{"f:tolerations":{}}`))}, tolerations, mine, true},
		"OnlyTimeless":  {"of several without a time the first one", entries{wrote("a", "", time.Time{}, inTemplate(`{"f:tolerations":{}}`)), wrote("b", "", time.Time{}, inTemplate(`{"f:tolerations":{}}`))}, tolerations, Writer{Manager: "a"}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := LastWriter(tc.managed, tc.path...)
			if diff := cmp.Diff(tc.want, got); diff != "" || ok != tc.ok {
				t.Errorf("%s: got %v, -want +got:\n%s", tc.reason, ok, diff)
			}
		})
	}
}

// What is no set of fields owns nothing, wherever it breaks off.
func TestLastWriterBroken(t *testing.T) {
	path := []string{"f:spec", "f:a", "f:b"}
	for _, raw := range []string{`null`, `[]`, `"f:spec"`, `{"f:spec":[]}`, `{"f:spec":{"f:a":3}}`, `{"f:spec":{"f:a"`, `{"f:spec":{"f:x":{},`, `{"f:spec":{"f:x":{"`, `{"f:spec":{"f:a":{"\`, `{"f:spec":{"f:a":{"\x":{}`, `{"f:spec" "f:a":{}}`, "{\"f:spec\":{\"f:x\":{\"f:y\":\"}"} {
		if w, ok := LastWriter([]metav1.ManagedFieldsEntry{wrote("m", "", monday, raw)}, path...); ok {
			t.Errorf("%s: got %+v", raw, w)
		}
	}
}

func TestNodeOfWriters(t *testing.T) {
	worn := map[string]string{"a": "1", "example.com/b": "2", "c": "3"}
	const taints = `{"f:spec":{"f:podCIDR":{},"f:taints":{}}}`
	cases := map[string]struct {
		reason  string
		managed []metav1.ManagedFieldsEntry
		want    []Writer
	}{
		"None":   {"no managedFields", nil, nil},
		"Taints": {"they are one list", []metav1.ManagedFieldsEntry{wrote("m", "", monday, taints)}, []Writer{{Manager: "m", NotAfter: monday, Taints: true}}},
		"Labels": {"key by key, of those that the node has", []metav1.ManagedFieldsEntry{wrote("m", "", monday, `{"f:metadata":{"f:annotations":{"f:a":{}},"f:labels":{".":{},"f:c":{},"f:example.com/b":{},"f:gone":{}},"f:name":{}}}`)},
			[]Writer{{Manager: "m", NotAfter: monday, Labels: []string{"c", "example.com/b"}}}},
		"Both": {"in one entry, in any order", []metav1.ManagedFieldsEntry{wrote("m", "", monday, `{"f:status":{"f:x":{}},"f:spec":{"f:taints":{"k:{\"key\":\"a\"}":{}}},"f:metadata":{"f:labels":{"f:a":{}}}}`)},
			[]Writer{{Manager: "m", NotAfter: monday, Taints: true, Labels: []string{"a"}}}},
		"Subresource": {"the kubelet labels through status", []metav1.ManagedFieldsEntry{wrote("kubelet", "status", monday, `{"f:metadata":{"f:labels":{"f:a":{}}},"f:status":{}}`)},
			[]Writer{{Manager: "kubelet", NotAfter: monday, Labels: []string{"a"}}}},
		"Several": {"an entry each, also of one manager; a time is not needed", []metav1.ManagedFieldsEntry{wrote("m", "", monday, taints), wrote("m", "x", time.Time{}, taints)},
			[]Writer{{Manager: "m", NotAfter: monday, Taints: true}, {Manager: "m", Taints: true}}},
		"LocalTime": {"times are UTC", []metav1.ManagedFieldsEntry{wrote("m", "", monday.In(time.FixedZone("x", 3600)), taints)}, []Writer{{Manager: "m", NotAfter: monday, Taints: true}}},
		"Others": {"who owns neither, nothing, or what is broken", []metav1.ManagedFieldsEntry{
			wrote("status", "status", monday, `{"f:status":{"f:taints":{},"f:labels":{"f:a":{}}}}`), wrote("none", "", monday, ""),
			wrote("dot", "", monday, `{"f:metadata":{"f:labels":{".":{}}}}`), wrote("gone", "", monday, `{"f:metadata":{"f:labels":{"f:gone":{}}}}`),
			wrote("broken", "", monday, `{"f:spec":["f:taints"]}`), wrote("deep", "", monday, `{"f:spec":{"f:x":{"f:taints":{}}}}`),
			wrote("annotation", "", monday, `{"f:metadata":{"f:annotations":{"f:labels":{"f:a":{}}}}}`)}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			n := NodeOf(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: worn, ManagedFields: tc.managed}})
			if diff := cmp.Diff(tc.want, n.Writers); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			for _, w := range n.Writers {
				if w.NotAfter.Location() != time.UTC {
					t.Errorf("%s: in zone %s", tc.reason, w.NotAfter.Location())
				}
			}
		})
	}
}

// Thousands of nodes share the names of their managers, and a node its keys.
func TestNodeOfShares(t *testing.T) {
	n := benchNode(t)
	got := NodeOf(n)
	if len(got.Writers) != 3 || len(got.Writers[0].Labels) < 10 {
		t.Fatalf("got writers %+v", got.Writers)
	}
	keys := map[*byte]bool{}
	for key := range n.Labels {
		keys[unsafe.StringData(key)] = true
	}
	for _, key := range got.Writers[0].Labels {
		if !keys[unsafe.StringData(key)] {
			t.Errorf("key %q is a copy", key)
		}
	}
	again := NodeOf(benchNode(t))
	for i, w := range got.Writers {
		if unsafe.StringData(w.Manager) != unsafe.StringData(again.Writers[i].Manager) {
			t.Errorf("manager %q is there twice", w.Manager)
		}
	}
	if allocs := testing.AllocsPerRun(100, func() { NodeOf(n) }); allocs > 10 {
		t.Errorf("a node costs %v allocations", allocs)
	}
}

// benchNode is a node as clouds make them: 16 labels, four managers and a few
// kilobytes of managedFields. It shares no string with an earlier one.
func benchNode(t testing.TB) *corev1.Node {
	t.Helper()
	labels, owned := map[string]string{}, map[string]any{".": map[string]any{}}
	for i := range 16 {
		key := fmt.Sprintf("topology.example.com/label-%d", i)
		labels[key], owned["f:"+key] = "value", map[string]any{}
	}
	var conditions strings.Builder
	for i := range 12 {
		fmt.Fprintf(&conditions, `"k:{\"type\":\"Condition%d\"}":{".":{},"f:lastHeartbeatTime":{},"f:lastTransitionTime":{},"f:message":{},"f:reason":{},"f:status":{},"f:type":{}},`, i)
	}
	text, err := json.Marshal(owned)
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: labels, ManagedFields: []metav1.ManagedFieldsEntry{
		wrote(strings.Clone("kubelet"), "", monday, `{"f:metadata":{"f:annotations":{".":{},"f:volumes.kubernetes.io/controller-managed-attach-detach":{}},"f:labels":`+string(text)+`},"f:spec":{"f:providerID":{}}}`),
		wrote(strings.Clone("kube-controller-manager"), "", monday, `{"f:metadata":{"f:annotations":{"f:node.alpha.kubernetes.io/ttl":{}}},"f:spec":{"f:podCIDR":{},"f:podCIDRs":{".":{},"v:\"10.0.0.0/24\"":{}},"f:taints":{}}}`),
		wrote(strings.Clone("kubectl-label"), "", tuesday, `{"f:metadata":{"f:labels":{"f:topology.example.com/label-3":{}}}}`),
		wrote(strings.Clone("kubelet"), "status", tuesday, `{"f:status":{"f:conditions":{`+conditions.String()+`".":{}}}}`),
	}}}
}

func BenchmarkNodeOf(b *testing.B) {
	n := benchNode(b)
	b.ReportAllocs()
	for b.Loop() {
		NodeOf(n)
	}
}
