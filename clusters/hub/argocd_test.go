package hub

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"rollcall.dev/rollcall/clusters"
)

func argo(config string) *corev1.Secret {
	return secret("cluster-1", map[string]string{argoType: "cluster", "argocd.argoproj.io/auto-label-cluster-info": "true", "env": "prod"},
		map[string]string{"name": "prod-eu", "server": "https://api.example:6443", "config": config, "project": "p", "shard": "1", "namespaces": "a,b"})
}

// Argo CD's ways to log in, and what of each is taken.
func TestArgoCD(t *testing.T) {
	const exec = `"execProviderConfig": {"command": "gcp-plugin", "args": ["gcp"], "apiVersion": "client.authentication.k8s.io/v1beta1", "installHint": "CANARY"`
	plugin := func(command string, args ...string) configUser {
		return configUser{Exec: &configExec{APIVersion: "client.authentication.k8s.io/v1beta1", Command: command, Args: args, InteractiveMode: "Never"}}
	}
	cases := map[string]struct {
		reason   string
		config   string
		settings clusters.Settings
		allowed  []string
		cluster  configCluster // but for its server
		user     configUser
		words    []string // of the error instead
	}{
		"Token":       {"a service account", `{"bearerToken": "t", "tlsClientConfig": {"insecure": false, "caData": "Q0E="}}`, clusters.Settings{}, nil, configCluster{CA: []byte("CA")}, configUser{Token: "t"}, nil},
		"Tabs":        {"JSON may be indented by tabs, YAML may not", "{\n\t\"bearerToken\":\"\\ud83d\\ude00\\/\"\n}", clusters.Settings{}, nil, configCluster{}, configUser{Token: "😀/"}, nil},
		"Certificate": {"a client certificate", `{"tlsClientConfig": {"certData": "QQ==", "keyData": "Qg=="}, "disableCompression": true}`, clusters.Settings{}, nil, configCluster{DisableCompression: true}, configUser{Certificate: []byte("A"), Key: []byte("B")}, nil},
		"Basic":       {"a password", `{"username": "u", "password": "p"}`, clusters.Settings{}, nil, configCluster{}, configUser{Username: "u", Password: "p"}, nil},
		"Insecure":    {"not in silence", `{"bearerToken": "CANARY", "tlsClientConfig": {"insecure": true}}`, clusters.Settings{}, nil, configCluster{}, configUser{}, []string{"config.tlsClientConfig.insecure: it is taken from a Secret only where", "insecureSkipTLSVerify"}},
		"InsecureSaid": {"where the Cluster says it, too", `{"bearerToken": "t", "tlsClientConfig": {"insecure": true, "caData": "Q0E="}}`, clusters.Settings{InsecureSkipTLSVerify: true}, nil,
			configCluster{Insecure: true}, configUser{Token: "t"}, nil},
		"ServerName": {"a name that is verified instead", `{"bearerToken": "CANARY", "tlsClientConfig": {"serverName": "CANARY.example"}}`, clusters.Settings{}, nil, configCluster{}, configUser{}, []string{"config.tlsClientConfig.serverName: it is taken"}},
		"Proxy":      {"requests elsewhere", `{"bearerToken": "CANARY", "proxyUrl": "http://CANARY:1"}`, clusters.Settings{}, nil, configCluster{}, configUser{}, []string{"config.proxyUrl: it is taken"}},
		"Exec":       {"a plugin that is allowed", `{` + exec + `, "env": {}}}`, clusters.Settings{}, []string{"gcp-plugin"}, configCluster{}, plugin("gcp-plugin", "gcp"), nil},
		"ExecEnv":    {"its environment never", `{` + exec + `, "env": {"LD_PRELOAD": "CANARY"}}}`, clusters.Settings{}, []string{"gcp-plugin"}, configCluster{}, configUser{}, []string{"config.execProviderConfig.env: a plugin's environment is not taken"}},
		"ExecNot":    {"one that is not", `{` + exec + `}}`, clusters.Settings{}, nil, configCluster{}, configUser{}, []string{`config.execProviderConfig.command: "gcp-plugin" may not be run`}},
		"AWS": {"in the words of AWS' command", `{"awsAuthConfig": {"clusterName": "-x", "roleARN": "arn:1"}}`, clusters.Settings{}, []string{"aws eks get-token"}, configCluster{},
			plugin("aws", "eks", "get-token", "--output=json", "--cluster-name=-x", "--role-arn=arn:1"), nil},
		"AWSNot":     {"if that is allowed", `{"awsAuthConfig": {"clusterName": "x"}}`, clusters.Settings{}, nil, configCluster{}, configUser{}, []string{`config.awsAuthConfig.command: "aws" may not be run`}},
		"AWSProfile": {"a profile can run commands", `{"awsAuthConfig": {"clusterName": "x", "profile": "CANARY"}}`, clusters.Settings{}, []string{"aws"}, configCluster{}, configUser{}, []string{"config.awsAuthConfig.profile: a profile is a file"}},
		"Unknown":    {"a later version's field may matter", `{"bearerToken": "CANARY", "sshTunnel": "CANARY"}`, clusters.Settings{}, nil, configCluster{}, configUser{}, []string{`config: field "sshTunnel" is not taken from a Secret`}},
		"NoJSON":     {"the text is not repeated", `{"bearerToken": "CANARY`, clusters.Settings{}, nil, configCluster{}, configUser{}, []string{"config: it is no JSON object"}},
		"List":       {"nor a value of a wrong form", `[{"bearerToken": "CANARY"}]`, clusters.Settings{}, nil, configCluster{}, configUser{}, []string{"config: it is no JSON object"}},
		"WrongForms": {"anywhere", `{"bearerToken": ["CANARY"], "tlsClientConfig": {"insecure": "CANARY", "caData": "CANARY"}}`, clusters.Settings{}, nil, configCluster{}, configUser{},
			[]string{"config.bearerToken: must be text", "config.tlsClientConfig.insecure: must be true or false", "config.tlsClientConfig.caData: must be base64"}},
		"Nothing": {"no credential at all", ``, clusters.Settings{}, nil, configCluster{}, configUser{}, []string{"config: no credential is in it"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := trusting
			h.ExecCommands = tc.allowed
			cl, built, err := made(h, clusters.ArgoCDSecrets, argo(tc.config), tc.settings)
			if tc.words != nil {
				wantWords(t, tc.reason, err, tc.words...)
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			tc.cluster.Server = "https://api.example:6443"
			if diff := cmp.Diff(tc.cluster, built.Clusters[0].Cluster); diff != "" {
				t.Errorf("%s: cluster -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.user, built.Users[0].User); diff != "" {
				t.Errorf("%s: user -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(map[string]string{"env": "prod"}, cl.Labels); diff != "" || cl.Name != "prod-eu" {
				t.Errorf("%s: %q, labels -want +got:\n%s", tc.reason, cl.Name, diff)
			}
		})
	}
}

// An administrator's credential is not inherited: the cluster is known, and the
// way to register it is told.
func TestNotTaken(t *testing.T) {
	h := clusters.Hub{Secrets: clusters.SecretKinds, Credentials: []string{clusters.RollcallSecrets}}
	for name, config := range map[string]string{"Good": `{"bearerToken": "CANARY", "tlsClientConfig": {"caData": "Q0E="}}`, "Hostile": `{"execProviderConfig": {"command": "/bin/sh"}}`, "Broken": `{`} {
		t.Run(name, func(t *testing.T) {
			r, _ := Read(h, clusters.DefaultPolicy(), clusters.ArgoCDSecrets, argo(config))
			if r.Err != nil || r.Taken() || r.Server != "https://api.example:6443" || name == "Good" && string(r.CA) != "CA" {
				t.Errorf("got %+v", r)
			}
			_, err := r.Cluster(h, nil, clusters.Cluster{})
			wantWords(t, name, err, `no credential is taken from Argo CD's Secret "ns/cluster-1" (its server is "api.example:6443"): register one with "rollcall cluster add prod-eu", or allow it with spec.clusters.hub.credentials: [argocd]`)
		})
	}
}
