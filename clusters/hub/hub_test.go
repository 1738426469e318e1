package hub

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollcall.dev/rollcall/clusters"
)

// trusting is a hub of which all is taken and nothing may be run.
var trusting = clusters.Hub{Secrets: clusters.SecretKinds, Credentials: clusters.SecretKinds}

func secret(name string, labels map[string]string, data map[string]string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: labels}, Data: map[string][]byte{}}
	for k, v := range data {
		s.Data[k] = []byte(v)
	}
	return s
}

func ours(kubeconfig string) *corev1.Secret {
	return secret("c", map[string]string{Label: "true"}, map[string]string{"kubeconfig": kubeconfig})
}

// made is the cluster of a Secret, and its kubeconfig as it was built.
func made(h clusters.Hub, kind string, s *corev1.Secret, own clusters.Settings) (clusters.Cluster, config, error) {
	r, ok := Read(h, clusters.DefaultPolicy(), kind, s)
	if !ok {
		return clusters.Cluster{}, config{}, fmt.Errorf("registers nothing")
	}
	cl, err := r.Cluster(h, []string{"hub.example:6443", "10.1.1.1:6443"}, clusters.Cluster{Settings: own})
	if err != nil {
		return cl, config{}, err
	}
	var built config
	err = json.Unmarshal(cl.Kubeconfig.Inline.Content.Reveal(), &built)
	return cl, built, err
}

func wantWords(t *testing.T, reason string, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("%s: it was accepted", reason)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: no %q in: %v", reason, w, err)
		}
	}
	if strings.Contains(err.Error(), "CANARY") {
		t.Errorf("%s: a secret is in: %v", reason, err)
	}
}

// Kubeconfigs as somebody might put them into a Secret who means harm, or by
// mistake: each is refused, and what of it is named.
func TestHostileKubeconfigs(t *testing.T) {
	want := map[string][]string{
		"auth_provider":   {`users[0].user.auth-provider: is not taken`, `clusters[0].cluster.server: is a loopback address`},
		"cert_paths":      {`certificate-authority: files are not read`, `client-certificate: files are not read`, `client-key: files are not read`},
		"empty":           {"kubeconfig: it is missing or empty"},
		"exec_hang":       {`users[0].user.exec.command: "/bin/sleep" is a path`},
		"exec":            {`users[0].user.exec.command: "/bin/sh" is a path`, "execCommands"},
		"tls_proxy_as":    {"tls-server-name: it is taken from a Secret only where", "insecure-skip-tls-verify: it is taken", "proxy-url: it is taken", "user.as: it is taken", "impersonate"},
		"no_context":      {`kubeconfig.contexts: "missing" is not there`},
		"not_kubeconfig":  {"it is no kubeconfig, but another object"},
		"plain_http":      {"clusters[0].cluster.server: must be https"},
		"token_file":      {"users[0].user.tokenFile: files are not read for a Secret: put the content into token"},
		"aliases":         {"users[0].user.token: anchors and aliases are not accepted"},
		"twice":           {`kubeconfig.users: "u" is there twice`},
		"unknown_field":   {`users[0].user: field "impersonate-everyone" is not taken from a Secret`},
		"environment":     {"users[0].user.exec.env: a plugin's environment is not taken", `exec.command: "aws" may not be run for a Secret`},
		"broken":          {"kubeconfig: it is no YAML at line "},
		"broken_alias":    {"kubeconfig: it is no YAML"},
		"two_documents":   {"more than one document"},
		"two_lines":       {"users[0].user.token: must be text in one line"},
		"not_base64":      {"certificate-authority-data: must be base64"},
		"half_credential": {"a client certificate needs its key"},
		"no_credential":   {"no credential is in it"},
		"user_in_url":     {"server: must not hold a user"},
	}
	files, err := filepath.Glob("testdata/hostile/*.yaml")
	if err != nil || len(files) != len(want) {
		t.Fatalf("%d files for %d cases: %v", len(files), len(want), err)
	}
	for name, words := range want {
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("testdata/hostile", name+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = made(trusting, clusters.RollcallSecrets, ours(string(data)), clusters.Settings{})
			wantWords(t, name, err, append(words, `Secret "ns/c"`)...)
			if _, hasOne, err := readOnly(string(data)); hasOne || err != nil {
				t.Errorf("without its credential it is known all the same, got %v, %v", hasOne, err)
			}
		})
	}
}

// readOnly reads a kubeconfig of a kind whose credential is not taken.
func readOnly(data string) (Registration, bool, error) {
	r, _ := Read(clusters.Hub{Secrets: clusters.SecretKinds}, clusters.DefaultPolicy(), clusters.RollcallSecrets, ours(data))
	return r, r.Taken(), r.Err
}

// What a kubeconfig asks for is taken only where the settings say the same, and
// every part of it counts.
func TestRepeated(t *testing.T) {
	data, err := os.ReadFile("testdata/hostile/tls_proxy_as.yaml")
	if err != nil {
		t.Fatal(err)
	}
	allowing := trusting
	allowing.AllowLoopback = true
	same := clusters.Settings{
		InsecureSkipTLSVerify: true, TLSServerName: "other.invalid", ProxyURL: "socks5://attacker.invalid:1080",
		Impersonate: clusters.Impersonate{User: "system:admin", Groups: []string{"system:masters"}},
	}
	_, built, err := made(allowing, clusters.RollcallSecrets, ours(string(data)), same)
	if err != nil {
		t.Fatal(err)
	}
	want := configCluster{Server: "https://127.0.0.1:6443", TLSServerName: "other.invalid", Insecure: true, ProxyURL: "socks5://attacker.invalid:1080"}
	if diff := cmp.Diff(want, built.Clusters[0].Cluster); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(configUser{Token: "t", As: "system:admin", AsGroups: []string{"system:masters"}}, built.Users[0].User); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for name, change := range map[string]func(*clusters.Settings){
		"insecure-skip-tls-verify": func(s *clusters.Settings) { s.InsecureSkipTLSVerify = false },
		"tls-server-name":          func(s *clusters.Settings) { s.TLSServerName = "a" },
		"proxy-url":                func(s *clusters.Settings) { s.ProxyURL = "socks5://other:1080" },
		"user.as":                  func(s *clusters.Settings) { s.Impersonate.Groups = nil },
	} {
		other := same
		change(&other)
		_, _, err := made(allowing, clusters.RollcallSecrets, ours(string(data)), other)
		wantWords(t, name, err, name+": it is taken from a Secret only where")
		if strings.Count(err.Error(), "\n") != 0 {
			t.Errorf("%s alone differs, got %v", name, err)
		}
	}
}

const userless = `{apiVersion: v1, kind: Config, current-context: x, preferences: {}, contexts: [{name: x, context: {cluster: k, user: u, namespace: n}}, {name: other, context: {cluster: gone, user: gone}}],
clusters: [{name: k, cluster: {server: "https://api.example", certificate-authority-data: Q0E=}}], users: [{name: other, user: {tokenFile: /etc/passwd}}, {name: u, user: %s}]}`

// Only what may be run is, with no environment, hint or terminal.
func TestExec(t *testing.T) {
	eks := `{exec: {apiVersion: client.authentication.k8s.io/v1, command: aws, args: [eks, get-token, --cluster-name, c], env: null, installHint: CANARY, provideClusterInfo: true, interactiveMode: Always}}`
	cases := map[string]struct {
		reason  string
		allowed []string
		user    string
		words   []string // of the error
	}{
		"Allowed":      {"by its name", []string{"gke-gcloud-auth-plugin", "aws"}, eks, nil},
		"WithArgs":     {"and how its arguments begin", []string{"aws eks get-token"}, eks, nil},
		"OtherArgs":    {"else the command could do anything", []string{"aws eks list", "aws s3 cp"}, eks, []string{"user.exec.args: command \"aws\" is allowed", "not with these arguments"}},
		"FewerArgs":    {"all of them must be there", []string{"aws eks get-token --cluster-name c --region r"}, eks, []string{"not with these arguments"}},
		"Nothing":      {"the default", nil, eks, []string{`"aws" may not be run for a Secret: allow it in spec.clusters.hub.execCommands`}},
		"Prefix":       {"a name is a whole word", []string{"awsome", "a"}, eks, []string{`"aws" may not be run`}},
		"SameNamePath": {"a path is one of the Secret's choice", []string{"aws"}, strings.Replace(eks, "command: aws", "command: ./aws", 1), []string{`"./aws" is a path`}},
		"Empty":        {"no command", []string{"aws"}, strings.Replace(eks, "command: aws", "command: ''", 1), []string{`"" may not be run`}},
		"OldVersion":   {"of no protocol that is spoken", []string{"aws"}, strings.Replace(eks, "io/v1,", "io/v1alpha1,", 1), []string{"exec.apiVersion: must be"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := trusting
			h.ExecCommands = tc.allowed
			_, built, err := made(h, clusters.RollcallSecrets, ours(fmt.Sprintf(userless, tc.user)), clusters.Settings{})
			if tc.words != nil {
				wantWords(t, tc.reason, err, tc.words...)
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			want := config{
				APIVersion: "v1", Kind: "Config", Current: "c",
				Contexts: []namedContext{{"c", map[string]string{"cluster": "c", "user": "c"}}},
				Clusters: []namedCluster{{"c", configCluster{Server: "https://api.example", CA: []byte("CA")}}},
				Users: []namedUser{{"c", configUser{Exec: &configExec{
					APIVersion: "client.authentication.k8s.io/v1", Command: "aws", Args: []string{"eks", "get-token", "--cluster-name", "c"}, ProvideClusterInfo: true, InteractiveMode: "Never",
				}}}},
			}
			if diff := cmp.Diff(want, built); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// The name, labels and settings of a cluster by the kind of its Secret.
func TestRead(t *testing.T) {
	kubeconfig := fmt.Sprintf(userless, "{token: CANARY}")
	capi := func(name string) *corev1.Secret {
		return secret(name, map[string]string{clusterAPIName: "workload", "env": "prod"}, map[string]string{"value": kubeconfig})
	}
	labelled := func(value string, more map[string]string) *corev1.Secret {
		s := ours(kubeconfig)
		s.Labels = clusters.MergeLabels(more, map[string]string{Label: value})
		return s
	}
	labelledArgo := argo(`{"bearerToken": "CANARY", "tlsClientConfig": {"caData": "Q0E="}}`)
	labelledArgo.Labels[Label], labelledArgo.Data["name"], labelledArgo.Data["server"] = "eu-1", []byte("arn:aws:eks:eu-1"), []byte("https://api.example")
	cases := map[string]struct {
		reason    string
		kind      string
		secret    *corev1.Secret
		name      string
		labels    map[string]string
		wrong     string
		registers bool
	}{
		"Own":        {"named as the Secret", clusters.RollcallSecrets, labelled("true", map[string]string{"env": "prod", "rollcall.dev/x": "y"}), "c", map[string]string{"env": "prod"}, "", true},
		"Labelled":   {"or as the label says", clusters.RollcallSecrets, labelled("eu-1", nil), "eu-1", nil, "", true},
		"BadName":    {"the Secret stands for it", clusters.RollcallSecrets, labelled("EU_1", nil), "c", nil, "its cluster's name is none that can be used", true},
		"ArgoCD":     {"the label goes before Argo CD's own name, which may be anything", clusters.ArgoCDSecrets, labelledArgo, "eu-1", map[string]string{"env": "prod"}, "", true},
		"ClusterAPI": {"by its owner's name", clusters.ClusterAPISecrets, capi("workload-kubeconfig"), "workload", map[string]string{"env": "prod"}, "", true},
		"Keys":       {"its other Secrets are none", clusters.ClusterAPISecrets, capi("workload-ca"), "", nil, "", false},
		"ForUsers":   {"the one for users has another life", clusters.ClusterAPISecrets, capi("workload-user-kubeconfig"), "", nil, "", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, h := range []clusters.Hub{trusting, {Secrets: clusters.SecretKinds}} {
				r, ok := Read(h, clusters.DefaultPolicy(), tc.kind, tc.secret)
				if ok != tc.registers {
					t.Fatalf("%s: registers %v", tc.reason, ok)
				}
				if !ok {
					continue
				}
				if r.Name != tc.name || r.Server != "https://api.example" || string(r.CA) != "CA" || r.Taken() != (len(h.Credentials) > 0) {
					t.Errorf("%s: got %q at %q, CA %q, taken %v", tc.reason, r.Name, r.Server, r.CA, r.Taken())
				}
				if diff := cmp.Diff(tc.labels, r.Labels); diff != "" {
					t.Errorf("%s: labels -want +got:\n%s", tc.reason, diff)
				}
				if (r.Err == nil) != (tc.wrong == "") || r.Err != nil && !strings.Contains(r.Err.Error(), tc.wrong) {
					t.Errorf("%s: got %v, want %q", tc.reason, r.Err, tc.wrong)
				}
				if all := fmt.Sprintf("%v %+v %#v", r, r, r); strings.Contains(all, "CANARY") {
					t.Errorf("%s: printing it shows the credential", tc.reason)
				}
			}
		})
	}
}

// The settings beside a kubeconfig are read as strictly as a Cluster file.
func TestOwnSettings(t *testing.T) {
	s := ours(fmt.Sprintf(userless, "{token: t}"))
	s.Data["cluster.yaml"] = []byte("labels: {env: prod}\nreachability: intermittent\npolicy: {startupGrace: 1h}\nidentity: me\nimpersonate: {user: viewer}\n")
	r, _ := Read(trusting, clusters.DefaultPolicy(), clusters.RollcallSecrets, s)
	cl, err := r.Cluster(trusting, nil, *r.Own)
	if err != nil {
		t.Fatal(err)
	}
	if !cl.Intermittent || cl.Identity != "me" || cl.Policy.StartupGrace.Hours() != 1 || cl.Labels["env"] != "prod" || cl.File != `Secret "ns/c"` {
		t.Errorf("got %+v", cl)
	}
	if text := string(cl.Kubeconfig.Inline.Content.Reveal()); !strings.Contains(text, `"as":"viewer"`) {
		t.Errorf("the settings count also where the kubeconfig is silent, got %s", text)
	}
	delete(s.Data, "cluster.yaml")
	s.Annotations = map[string]string{"rollcall.dev/cluster.yaml": "insecureSkipTLSVerify: yes please\nlabel: {a: b}\nproxyURL: http://me:CANARY@proxy\n"}
	r, _ = Read(trusting, clusters.DefaultPolicy(), clusters.RollcallSecrets, s)
	wantWords(t, "by annotation", r.Err, `Secret "ns/c" cluster.yaml:1: insecureSkipTLSVerify`, `cluster.yaml:2: label: Forbidden: unknown field, did you mean "labels"?`, "cluster.yaml:3: proxyURL: Invalid value: must not hold a credential")
}

func TestSelectors(t *testing.T) {
	got := Selectors([]string{clusters.ClusterAPISecrets, clusters.RollcallSecrets})
	want := []Selector{
		{clusters.RollcallSecrets, "rollcall.dev/cluster,argocd.argoproj.io/secret-type!=cluster", "type!=cluster.x-k8s.io/secret"},
		{clusters.ClusterAPISecrets, "cluster.x-k8s.io/cluster-name", "type=cluster.x-k8s.io/secret"},
	}
	if !slices.Equal(want, got) {
		t.Errorf("got %v", got)
	}
}
