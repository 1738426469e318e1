package recorded

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollcall.dev/rollcall/clusters"
)

const canary = "CANARY-7731"

// whole is an observation with something in every field, and canaries where
// secrets are.
func whole() clusters.Live {
	at := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	owner := clusters.Owner{Kind: "DaemonSet", Name: "agent", UID: "u"}
	ds := appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "obs", Name: "agent", UID: "u", Labels: map[string]string{"app": "agent"}, CreationTimestamp: metav1.NewTime(at), Annotations: map[string]string{
			"kubectl.kubernetes.io/last-applied-configuration": canary, "vault/secret": canary, "rollcall.dev/expect": "pool=a", appsv1.DeprecatedTemplateGeneration: "3",
		}},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "agent"}, Annotations: map[string]string{"x": canary}},
				Spec: corev1.PodSpec{
					Tolerations: []corev1.Toleration{{Operator: "Exists"}}, NodeSelector: map[string]string{"pool": "a"}, HostNetwork: true,
					Containers: []corev1.Container{{
						Name: "c", Image: "agent:1", Args: []string{canary}, Command: []string{canary}, Env: []corev1.EnvVar{{Name: "T", Value: canary}}, EnvFrom: []corev1.EnvFromSource{{Prefix: canary}},
						LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{HTTPHeaders: []corev1.HTTPHeader{{Name: "a", Value: canary}}}}},
						Lifecycle:     &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{canary}}}},
						Ports:         []corev1.ContainerPort{{ContainerPort: 1, HostPort: 1}},
					}},
					Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: canary}}}},
				},
			},
		},
	}
	return clusters.Live{
		ObservedAt: at, Identity: "uid", Version: "v1.37.2", DaemonSets: []appsv1.DaemonSet{ds},
		Nodes: []clusters.Node{{
			Name: "n1", Labels: map[string]string{"pool": "a"}, Taints: []corev1.Taint{{Key: "gpu", Effect: "NoSchedule"}}, Created: at, Excuse: "RMA", Lease: at,
			Conditions: []corev1.NodeCondition{{Type: "Ready", Status: "True"}}, Writers: []clusters.Writer{{Manager: "kubectl", NotAfter: at, Taints: true}},
		}},
		Pods: []clusters.Pod{
			{Namespace: "obs", Name: "agent-1", UID: "p1", Owner: owner, Node: "n1", Bound: true, Created: at, Ready: true, Message: "pull https://user:" + canary + "@host/x failed", Containers: []clusters.Container{{Name: "c", Image: "agent:1", Waiting: clusters.State{Reason: "X", Message: strings.Repeat("m", 1000)}}}},
			{Namespace: "obs", Name: "lookalike", Labels: map[string]string{"app": "agent"}, Created: at},
			{Namespace: "obs", Name: canary, Owner: clusters.Owner{Kind: "ReplicaSet"}, Created: at},
		},
		Revisions: []clusters.Revision{{Namespace: "obs", Name: "agent-a", Owner: owner, Number: 1, Hash: "a", Created: at}},
		Events:    []clusters.Event{{Namespace: "obs", Kind: "DaemonSet", Name: "agent", Reason: "FailedCreate", Message: "x", Count: 1, First: at, Last: at}},
		Blanks:    []clusters.Blank{{Resource: "leases", Reason: "forbidden: x"}},
		Claims: []clusters.Claim{
			{Namespace: "obs", Name: "agent-1", UID: "p1", Owner: "u", Node: "n1", Priority: 2000001000, Requests: corev1.ResourceList{"cpu": resource.MustParse("100m"), "example.com/gpu": resource.MustParse("1")}, HostPorts: []clusters.HostPort{{IP: "10.0.0.1", Protocol: "TCP", Port: 80}}},
			{Namespace: "web", Name: canary, UID: canary, Owner: canary, Node: "n1", Requests: corev1.ResourceList{"memory": resource.MustParse("1Gi")}},
		},
		Priorities: map[string]clusters.Priority{"high": {Value: 9, Never: true}, "": {Value: 9, Never: true}},
	}
}

func packed(t testing.TB, l clusters.Live) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, "prod-eu", "rollcall test", l); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestSnapshot(t *testing.T) {
	data := packed(t, whole())
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil || bytes.Contains(text, []byte(canary)) {
		t.Fatalf("%v; what is secret is in it: %s", err, text)
	}
	got, err := Read(t.Context(), bytes.NewReader(data), clusters.Want{Forecast: true}, "-")
	if err != nil {
		t.Fatal(err)
	}
	want := Redact(whole())
	want.Snapshot = true
	if c := want.Claims; len(c) != 2 || c[0].Name != "agent-1" || c[1].Node != "n1" || c[1].Namespace != "web" {
		t.Errorf("got claims %+v", c)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(got.Pods) != 2 || got.DaemonSets[0].Spec.Template.Spec.Containers[0].Image != "agent:1" {
		t.Errorf("got %d pods, %+v", len(got.Pods), got.DaemonSets[0])
	}
}

// A snapshot that was cut short, changed or is a newer one's is never a cluster.
func TestSnapshotDamaged(t *testing.T) {
	data := packed(t, whole())
	for i := range 50 {
		if _, err := Read(t.Context(), bytes.NewReader(data[:len(data)*i/50]), clusters.Want{}, "-"); err == nil {
			t.Errorf("cut at %d of 50: no error", i)
		}
	}
	for name, tc := range map[string]struct{ text, want string }{
		"Newer":   {`{"apiVersion": "rollcall.dev/v1alpha1", "kind": "Snapshot", "format": 2, "nodes": [], "pods": [], "daemonSets": []}`, "a newer rollcall wrote"},
		"Lacking": {`{"apiVersion": "rollcall.dev/v1alpha1", "kind": "Snapshot", "format": 1, "observedAt": "2026-12-01T09:00:00Z", "nodes": [], "pods": null, "daemonSets": []}`, "cut short or changed"},
		"Undated": {`{"apiVersion": "rollcall.dev/v1alpha1", "kind": "Snapshot", "format": 1, "nodes": [], "pods": [], "daemonSets": []}`, "cut short or changed"},
		"Beside":  {`{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}{"apiVersion": "rollcall.dev/v1alpha1", "kind": "Snapshot", "format": 1, "observedAt": "2026-12-01T09:00:00Z", "nodes": [], "pods": [], "daemonSets": []}`, "must be alone"},
		"Before":  {`{"apiVersion": "rollcall.dev/v1alpha1", "kind": "Snapshot", "format": 1, "observedAt": "2026-12-01T09:00:00Z", "nodes": [], "pods": [], "daemonSets": []}{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}`, "must be alone"},
	} {
		_, err := Read(t.Context(), strings.NewReader(tc.text), clusters.Want{}, "-")
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
	// A few bytes that unpack to more than is read.
	if _, err := io.Copy(io.Discard, &capped{in: strings.NewReader("longer than that"), left: 10}); err == nil || !strings.Contains(err.Error(), "unpacked") {
		t.Errorf("a bomb: %v", err)
	}
}

// TestSize says what a snapshot of a larger cluster costs: a node with ten daemon
// pods takes no more than a kilobyte.
func TestSize(t *testing.T) {
	l := whole()
	l.Nodes, l.Pods = nil, nil
	for n := range 1000 {
		name := fmt.Sprintf("ip-10-0-%d-%d.eu-central-1.compute.internal", n/250, n%250)
		l.Nodes = append(l.Nodes, clusters.Node{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": fmt.Sprintf("eu-%d", n%3), "pool": "a"}, Created: l.ObservedAt})
		for d := range 10 {
			l.Pods = append(l.Pods, clusters.Pod{Namespace: "obs", Name: fmt.Sprintf("agent-%d-%05x", d, n*7919), UID: fmt.Sprintf("%08x-%04x", n*104729, d), Owner: clusters.Owner{Kind: "DaemonSet", Name: "agent", UID: "u"}, Node: name, Bound: true, Created: l.ObservedAt, Ready: true, Containers: []clusters.Container{{Name: "c", Image: "agent:1", Ready: true}}})
		}
	}
	if size := len(packed(t, l)); size > 1000<<10 {
		t.Errorf("1,000 nodes and 10,000 pods take %d bytes", size)
	}
}

func TestLocation(t *testing.T) {
	data := packed(t, whole())
	var asked, sent atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Authorization") != "" {
			t.Error("the token went elsewhere")
		}
	}))
	defer elsewhere.Close()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		asked.Add(1)
		switch {
		case req.URL.Path == "/elsewhere":
			http.Redirect(w, req, elsewhere.URL, http.StatusFound)
		case req.URL.Path == "/page":
			_, _ = io.WriteString(w, "<html>login</html>")
		case req.URL.Path == "/dump":
			_, _ = io.WriteString(w, `{"apiVersion": "v1", "kind": "NodeList", "items": []}`)
		case req.URL.Path == "/gone":
			http.NotFound(w, req)
		case req.Header.Get("Authorization") != "Bearer "+canary:
			w.WriteHeader(http.StatusForbidden)
		case req.Header.Get("If-None-Match") == `"1"`:
			w.WriteHeader(http.StatusNotModified)
		default:
			sent.Add(1)
			w.Header().Set("ETag", `"1"`)
			_, _ = w.Write(data)
		}
	}))
	defer s.Close()
	dir := t.TempDir()
	ca, token, wrong := filepath.Join(dir, "ca"), filepath.Join(dir, "token"), filepath.Join(dir, "wrong")
	pem := "-----BEGIN CERTIFICATE-----\n" + base64Lines(s.Certificate().Raw) + "-----END CERTIFICATE-----\n"
	for file, text := range map[string]string{ca: pem, token: canary + "\n", wrong: canary + "x"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	at := func(path, ca, token string) clusters.Cluster {
		return clusters.Cluster{Name: "c", Recorded: []string{s.URL + path}, RecordedAuth: clusters.RecordedAuth{CAFile: ca, TokenFile: token}}
	}
	var o Observer
	for range 3 {
		l, err := o.Observe(t.Context(), at("/c.json.gz", ca, token), clusters.Want{})
		if err != nil || len(l.Nodes) != 1 || !l.Snapshot {
			t.Fatalf("%v, %+v", err, l)
		}
	}
	if asked.Load() != 3 || sent.Load() != 1 {
		t.Errorf("asked %d times, sent %d times: want what did not change to be sent once", asked.Load(), sent.Load())
	}
	for name, tc := range map[string]struct {
		cluster clusters.Cluster
		state   clusters.ObserveState
		want    string
	}{
		"WrongToken": {at("/c", ca, wrong), clusters.Denied, "recordedAuth.tokenFile"},
		"NoToken":    {at("/c", ca, ""), clusters.Denied, "403"},
		"Gone":       {at("/gone", ca, token), clusters.Failed, "404"},
		"Page":       {at("/page", ca, token), clusters.Failed, "HTML"},
		"Dump":       {at("/dump", ca, token), clusters.Failed, "no snapshot"},
		"Elsewhere":  {at("/elsewhere", ca, token), clusters.Unreachable, "redirects to"},
		"SystemCA":   {at("/c", "", token), clusters.Unreachable, "certificate"},
		"NoCA":       {at("/c", "/absent", token), clusters.Failed, "/absent"},
		"Closed":     {clusters.Cluster{Recorded: []string{"https://127.0.0.1:1/x"}}, clusters.Unreachable, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := o.Observe(t.Context(), tc.cluster, clusters.Want{})
			fault, ok := err.(*clusters.ObserveError)
			if !ok || fault.State != tc.state || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), canary) {
				t.Errorf("got %v, want %s with %q", err, tc.state, tc.want)
			}
		})
	}
	t.Run("Silent", func(t *testing.T) {
		release := make(chan struct{})
		silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
		defer silent.Close()
		defer close(release)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := o.Observe(ctx, clusters.Cluster{Recorded: []string{silent.URL}}, clusters.Want{})
		if fault, ok := err.(*clusters.ObserveError); !ok || fault.State != clusters.Unreachable {
			t.Errorf("got %v", err)
		}
	})
}

func base64Lines(der []byte) string {
	text := base64.StdEncoding.EncodeToString(der)
	var b strings.Builder
	for len(text) > 64 {
		b.WriteString(text[:64] + "\n")
		text = text[64:]
	}
	return b.String() + text + "\n"
}
