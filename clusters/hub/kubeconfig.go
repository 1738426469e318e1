package hub

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"rollcall.dev/rollcall/clusters"
)

// access is what a Secret says of how its cluster is reached: the allow-list of
// what is taken at all.
type access struct {
	server             string
	ca                 []byte
	disableCompression bool

	token, username, password string
	certificate, key          []byte
	exec                      *plugin

	asks clusters.Settings // taken only where the Cluster says the same
	at   fields            // how the Secret calls what is asked for
}

// fields are the paths of fields, for messages.
type fields struct {
	server, exec, tlsServerName, insecure, proxy, impersonate string
}

// plugin is an exec plugin. Its environment is never taken from a Secret: it
// could load code, and neither is a hint that would be printed.
type plugin struct {
	apiVersion string
	command    string
	args       []string
	info       bool // provideClusterInfo
}

var ignored = []string{"extensions", "preferences"} // say nothing of access

// kubeconfig reads the current context of a kubeconfig, nil where there is no
// telling which that is. Other contexts are left out.
func (d *document) kubeconfig(at string, data []byte) *access {
	root := d.parse(at, data)
	if root == nil {
		return nil
	}
	if t := (table{d, at, nil}); root.Kind == yaml.MappingNode && !t.isKubeconfig(root) {
		return nil
	}
	t := d.table(root, at, []string{"apiVersion", "kind", "current-context", "contexts", "clusters", "users"}, ignored)
	name := t.text("current-context")
	if name == "" {
		d.refuse(at, "it has no current-context")
		return nil
	}
	context, ok := t.named("contexts", "context", name)
	if !ok {
		return nil
	}
	c := d.table(context.node, context.at, []string{"cluster", "user"}, append([]string{"namespace"}, ignored...))
	a := &access{}
	cluster, ok := t.named("clusters", "cluster", c.text("cluster"))
	if !ok {
		return nil
	}
	a.cluster(d, cluster)
	user, ok := t.named("users", "user", c.text("user"))
	if !ok {
		return a
	}
	a.user(d, user)
	return a
}

// isKubeconfig tells a kubeconfig from another object by its kind; everything
// else about that would only repeat it.
func (t table) isKubeconfig(root *yaml.Node) bool {
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i].Value, root.Content[i+1].Value
		if key == "apiVersion" && value != "v1" && value != "" || key == "kind" && value != "Config" && value != "" {
			t.d.refuse(t.at, "it is no kubeconfig, but another object")
			return false
		}
	}
	return true
}

// entry is one of the named lists of a kubeconfig.
type entry struct {
	node *yaml.Node
	at   string
}

// named finds the entry of a name. Two of one name are refused: readers differ
// in which of them counts.
func (t table) named(list, key, name string) (found entry, ok bool) {
	for i, n := range t.items(list) {
		e := t.d.table(n, fmt.Sprintf("%s[%d]", t.path(list), i), []string{"name", key}, nil)
		if e.text("name") != name {
			continue
		}
		if ok {
			t.d.refuse(t.path(list), "%s is there twice", shown(name))
			return found, false
		}
		found, ok = entry{e.nodes[key], e.path(key)}, true
	}
	if !ok {
		t.d.refuse(t.path(list), "%s is not there", shown(name))
	}
	return found, ok
}

func (a *access) cluster(d *document, e entry) {
	t := d.table(e.node, e.at, []string{
		"server", "certificate-authority-data", "certificate-authority", "disable-compression",
		"tls-server-name", "insecure-skip-tls-verify", "proxy-url",
	}, ignored)
	a.at.server, a.at.tlsServerName = t.path("server"), t.path("tls-server-name")
	a.at.insecure, a.at.proxy = t.path("insecure-skip-tls-verify"), t.path("proxy-url")
	a.server, a.ca = t.text("server"), t.data("certificate-authority-data")
	a.disableCompression = t.truth("disable-compression")
	a.asks.TLSServerName, a.asks.InsecureSkipTLSVerify, a.asks.ProxyURL = t.text("tls-server-name"), t.truth("insecure-skip-tls-verify"), t.text("proxy-url")
	t.noFile("certificate-authority", "certificate-authority-data")
}

func (a *access) user(d *document, e entry) {
	t := d.table(e.node, e.at, []string{
		"token", "tokenFile", "username", "password", "client-certificate-data", "client-key-data", "client-certificate", "client-key",
		"exec", "auth-provider", "as", "as-uid", "as-groups", "as-user-extra",
	}, ignored)
	a.at.exec, a.at.impersonate = t.path("exec"), t.path("as")
	a.token, a.username, a.password = t.text("token"), t.text("username"), t.text("password")
	a.certificate, a.key = t.data("client-certificate-data"), t.data("client-key-data")
	a.asks.Impersonate = clusters.Impersonate{User: t.text("as"), UID: t.text("as-uid"), Groups: t.texts("as-groups"), Extra: t.extra("as-user-extra")}
	t.noFile("tokenFile", "token")
	t.noFile("client-certificate", "client-certificate-data")
	t.noFile("client-key", "client-key-data")
	if t.has("auth-provider") {
		d.refuse(t.path("auth-provider"), "is not taken from a Secret, and current clients have none: use an exec plugin that spec.clusters.hub.execCommands allows")
	}
	if t.has("exec") {
		a.exec = t.plugin("exec", []string{"apiVersion", "command", "args", "env", "provideClusterInfo"}, []string{"installHint", "interactiveMode"})
	}
}

// noFile refuses a path: it would be read where we run, and its content sent to
// whom the Secret names.
func (t table) noFile(key, instead string) {
	if t.has(key) {
		t.d.refuse(t.path(key), "files are not read for a Secret: put the content into %s", instead)
	}
}

func (t table) plugin(key string, known, ignored []string) *plugin {
	e := t.d.table(t.nodes[key], t.path(key), known, ignored)
	p := &plugin{apiVersion: e.text("apiVersion"), command: e.text("command"), args: e.texts("args"), info: e.truth("provideClusterInfo")}
	if !slices.Contains([]string{"client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"}, p.apiVersion) {
		t.d.refuse(e.path("apiVersion"), "must be client.authentication.k8s.io/v1 or v1beta1")
	}
	if n := e.nodes["env"]; n != nil && len(n.Content) > 0 {
		t.d.refuse(e.path("env"), "a plugin's environment is not taken from a Secret: set it for rollcall itself")
	}
	return p
}

func (t table) extra(key string) map[string][]string {
	n := t.nodes[key]
	if n == nil || n.Kind != yaml.MappingNode {
		if n != nil {
			t.d.refuse(t.path(key), "must be a mapping")
		}
		return nil
	}
	var names []string
	for i := 0; i < len(n.Content); i += 2 {
		names = append(names, n.Content[i].Value)
	}
	inner := t.d.table(n, t.path(key), names, nil)
	out := map[string][]string{}
	for _, name := range names {
		out[name] = inner.texts(name)
	}
	return out
}
