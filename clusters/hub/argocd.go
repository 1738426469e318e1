package hub

import (
	"encoding/json"
)

// argoCD reads a cluster Secret of Argo CD's declarative setup.
func (d *document) argoCD(data map[string][]byte) *access {
	a := &access{server: string(data["server"]), at: fields{
		server: "server", exec: "config.execProviderConfig", tlsServerName: "config.tlsClientConfig.serverName",
		insecure: "config.tlsClientConfig.insecure", proxy: "config.proxyUrl",
	}}
	if len(data["config"]) == 0 {
		return a
	}
	// Through a map of JSON, so that there is one reading of it and no more.
	var plain map[string]any
	if err := json.Unmarshal(data["config"], &plain); err != nil {
		d.refuse("config", "it is no JSON object") // the error may quote a value
		return a
	}
	text, err := json.Marshal(plain)
	if err != nil {
		d.refuse("config", "it is no JSON object")
		return a
	}
	t := d.table(d.parse("config", text), "config", []string{
		"username", "password", "bearerToken", "tlsClientConfig", "awsAuthConfig", "execProviderConfig", "disableCompression", "proxyUrl",
	}, nil)
	a.username, a.password, a.token = t.text("username"), t.text("password"), t.text("bearerToken")
	a.disableCompression, a.asks.ProxyURL = t.truth("disableCompression"), t.text("proxyUrl")
	tls := d.table(t.nodes["tlsClientConfig"], t.path("tlsClientConfig"), []string{"insecure", "serverName", "caData", "certData", "keyData"}, nil)
	a.asks.InsecureSkipTLSVerify, a.asks.TLSServerName = tls.truth("insecure"), tls.text("serverName")
	a.ca, a.certificate, a.key = tls.data("caData"), tls.data("certData"), tls.data("keyData")
	if t.has("execProviderConfig") {
		a.exec = t.argoPlugin()
	}
	if t.has("awsAuthConfig") {
		a.exec, a.at.exec = t.aws(), t.path("awsAuthConfig")
	}
	return a
}

// argoPlugin differs from a kubeconfig's in its environment, which is a map.
func (t table) argoPlugin() *plugin {
	return t.plugin("execProviderConfig", []string{"apiVersion", "command", "args", "env"}, []string{"installHint"})
}

// aws is what Argo CD's own plugin does for EKS, in the words of AWS' command.
func (t table) aws() *plugin {
	e := t.d.table(t.nodes["awsAuthConfig"], t.path("awsAuthConfig"), []string{"clusterName", "roleARN", "profile"}, nil)
	p := &plugin{
		apiVersion: "client.authentication.k8s.io/v1beta1", command: "aws",
		args: []string{"eks", "get-token", "--output=json", "--cluster-name=" + e.text("clusterName")},
	}
	if e.text("clusterName") == "" {
		t.d.refuse(e.path("clusterName"), "it is missing")
	}
	if role := e.text("roleARN"); role != "" {
		p.args = append(p.args, "--role-arn="+role)
	}
	if e.text("profile") != "" {
		t.d.refuse(e.path("profile"), "a profile is a file of the machine, which a Secret does not choose: set AWS_PROFILE for rollcall itself")
	}
	return p
}
