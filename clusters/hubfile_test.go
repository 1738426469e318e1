package clusters

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const hubHead = fleetHead + "  clusters:\n    hub:\n"

func TestParseFleetHub(t *testing.T) {
	ours := []string{"rollcall"}
	cases := map[string]struct {
		reason, in, directory string
		want                  *Hub
	}{
		"None":      {"clusters are in a folder", fleetHead + "  policy: {}\n", "clusters", nil},
		"InCluster": {"the least: our own Secrets, with their credentials", hubHead + "      inCluster: true\n", "", &Hub{Kubeconfig: Kubeconfig{InCluster: true}, Secrets: ours, Credentials: ours}},
		"Full": {
			"all fields", hubHead + "      kubeconfig: {path: h, context: c}\n      namespaces: [a, b]\n      secrets: [argocd, clusterapi]\n      credentials: [clusterapi]\n      execCommands: [aws eks get-token, gke-gcloud-auth-plugin]\n      allowLoopback: true\n    directory: d\n", "d",
			&Hub{Kubeconfig: Kubeconfig{Paths: []string{"h"}, Context: "c"}, Namespaces: []string{"a", "b"}, Secrets: []string{"argocd", "clusterapi"}, Credentials: []string{"clusterapi"}, ExecCommands: []string{"aws eks get-token", "gke-gcloud-auth-plugin"}, AllowLoopback: true},
		},
		"OthersOnly": {"no credential of others by default", hubHead + "      inCluster: true\n      secrets: [argocd]\n", "", &Hub{Kubeconfig: Kubeconfig{InCluster: true}, Secrets: []string{"argocd"}}},
		"NoneTaken":  {"nor of ours where it is said", hubHead + "      inCluster: true\n      credentials: []\n", "", &Hub{Kubeconfig: Kubeconfig{InCluster: true}, Secrets: ours, Credentials: []string{}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ParseFleet("f.yaml", []byte(tc.in))
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got.Hub); diff != "" || got.Directory != tc.directory {
				t.Errorf("%s: folder %q, -want +got:\n%s", tc.reason, got.Directory, diff)
			}
		})
	}
}

func TestParseFleetHubFaults(t *testing.T) {
	in := func(rest string) string { return hubHead + "      inCluster: true\n      " + rest + "\n" }
	const at = "f.yaml:8: spec.clusters.hub."
	command := func(text string) string {
		return fmt.Sprintf("%sexecCommands[0]: Invalid value: %q: must be the name of a command, without a path; arguments behind it must come first when it is run", at, text)
	}
	cases := map[string]struct{ reason, in, want string }{
		"Neither":     {"which hub?", hubHead + "      namespaces: [a]\n", "f.yaml:6: spec.clusters.hub: Required value: one of kubeconfig and inCluster"},
		"Both":        {"which hub?", in("kubeconfig: {path: x}"), "f.yaml:7: spec.clusters.hub.inCluster: Forbidden: at most one of kubeconfig and inCluster"},
		"NoPath":      {"which file?", hubHead + "      kubeconfig: {context: x}\n", "f.yaml:7: spec.clusters.hub.kubeconfig.path: Required value: a kubeconfig file"},
		"Truth":       {"true or false", hubHead + "      inCluster: 'true'\n", "f.yaml:6: spec.clusters.hub: Required value: one of kubeconfig and inCluster\nf.yaml:7: spec.clusters.hub.inCluster: Invalid value: must be true or false, is text"},
		"Kind":        {"not one of the three", in("secrets: [flux]"), at + `secrets[0]: Unsupported value: "flux": supported values: "rollcall", "argocd", "clusterapi"`},
		"NoKind":      {"nothing would be read", in("secrets: []"), at + "secrets: Required value: at least one of rollcall, argocd, clusterapi"},
		"TwoKinds":    {"twice", in("secrets: [argocd, argocd]"), at + `secrets[1]: Duplicate value: "argocd"`},
		"NotRead":     {"it would be without effect", in("credentials: [argocd]"), at + `credentials[0]: Invalid value: "argocd": these Secrets are not read: add it to secrets, too`},
		"Namespace":   {"no namespace", in("namespaces: [a/b]"), at + "namespaces[0]: Invalid value: \"a/b\": " + dnsLabel},
		"Path":        {"a Secret could be put beside it", in("execCommands: [/usr/bin/aws]"), command("/usr/bin/aws")},
		"Windows":     {"likewise", in(`execCommands: ['a\b']`), command(`a\b`)},
		"Empty":       {"any command", in("execCommands: [' ']"), command(" ")},
		"Unknown":     {"a typing error", in("namespace: a"), at + `namespace: Forbidden: unknown field, did you mean "namespaces"?`},
		"LoopbackNot": {"a number is no truth", in("allowLoopback: 1"), at + "allowLoopback: Invalid value: must be true or false, is a number"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := ParseFleet("f.yaml", []byte(tc.in))
			if err == nil {
				t.Fatalf("%s: it was accepted", tc.reason)
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

const dnsLabel = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"

// Beside a hub a Cluster file may leave the kubeconfig to a Secret, and say
// what that may say.
func TestParseMember(t *testing.T) {
	settings := "  tlsServerName: api\n  proxyURL: http://proxy:1\n  impersonate: {user: u, uid: '1', groups: [g], extra: {k: [v]}}\n"
	got, err := ParseMember("c.yaml", []byte(clusterHead+settings), DefaultPolicy())
	if err != nil {
		t.Fatal(err)
	}
	want := Cluster{Name: "c", File: "c.yaml", Policy: DefaultPolicy(), Settings: Settings{
		TLSServerName: "api", ProxyURL: "http://proxy:1",
		Impersonate: Impersonate{User: "u", UID: "1", Groups: []string{"g"}, Extra: map[string][]string{"k": {"v"}}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	const without = "it repeats what a Secret of the hub says: with spec.kubeconfig write it there, with spec.recorded leave it out"
	cases := map[string]struct{ reason, in, want string }{
		"Kubeconfig": {"it says these things itself", clusterHead + "  kubeconfig: {path: k}\n  insecureSkipTLSVerify: true\n", "c.yaml:6: spec.insecureSkipTLSVerify: Forbidden: " + without},
		"Both":       {"nothing is verified", clusterHead + "  insecureSkipTLSVerify: true\n  tlsServerName: x\n", "c.yaml:6: spec.tlsServerName: Forbidden: nothing is verified with insecureSkipTLSVerify"},
		"ProxyLogin": {"a password is not repeated", clusterHead + "  proxyURL: http://u:CANARY@p\n", "c.yaml:5: spec.proxyURL: Invalid value: must not hold a credential"},
		"ProxyFile":  {"no proxy", clusterHead + "  proxyURL: /etc/passwd\n", "c.yaml:5: spec.proxyURL: Invalid value: must be an http, https or socks5 URL"},
		"NoUser":     {"groups of whom?", clusterHead + "  impersonate: {groups: [g]}\n", "c.yaml:5: spec.impersonate.user: Required value: uid, groups and extra need it"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := ParseMember("c.yaml", []byte(tc.in), DefaultPolicy())
			if err == nil || err.Error() != tc.want {
				t.Errorf("%s: got %v, want %s", tc.reason, err, tc.want)
			}
		})
	}
	if _, err := ParseCluster("c.yaml", []byte(clusterHead+settings), DefaultPolicy()); err == nil || !strings.Contains(err.Error(), "one of kubeconfig and recorded") {
		t.Errorf("without a hub it must say how it is reached, got %v", err)
	}
}

// No way of printing shows what is hidden, alone or inside what holds it.
func TestHidden(t *testing.T) {
	h := Hide([]byte("CANARY"))
	inside := Cluster{Kubeconfig: &Kubeconfig{Inline: &Inline{Content: h}}}
	var texts []string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
		texts = append(texts, fmt.Sprintf(verb, h), fmt.Sprintf(verb, &h), fmt.Sprintf(verb, *inside.Kubeconfig.Inline))
	}
	data, err := json.Marshal(inside)
	if err != nil {
		t.Fatal(err)
	}
	var logged strings.Builder
	slog.New(slog.NewTextHandler(&logged, nil)).Info("x", "h", h, "in", inside.Kubeconfig.Inline)
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("x", "h", h, "in", inside.Kubeconfig.Inline)
	for _, text := range append(texts, string(data), logged.String(), h.String(), h.GoString()) {
		if strings.Contains(text, "CANARY") || strings.Contains(strings.ToUpper(text), "43414E415259") || strings.Contains(text, "67 65 78") || !strings.Contains(text, "[hidden]") {
			t.Errorf("got %s", text)
		}
	}
	if string(h.Reveal()) != "CANARY" || !h.Equal(Hide([]byte("CANARY"))) || h.Equal(Hidden{}) {
		t.Error("what is hidden is not what it was")
	}
}
