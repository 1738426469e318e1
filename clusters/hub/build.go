package hub

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"rollcall.dev/rollcall/clusters"
)

// allow checks what can be told without the Cluster's settings: that there is a
// credential, and that a plugin is one that the fleet allows.
func (d *document) allow(a *access, commands []string) error {
	if a == nil {
		return nil
	}
	check := &document{origin: d.origin}
	switch {
	case len(d.faults) > 0 && a.exec == nil: // what is missing may be what was refused
	case len(a.certificate) > 0 != (len(a.key) > 0):
		check.refuse(a.where(), "a client certificate needs its key, and a key its certificate")
	case a.token == "" && a.username == "" && len(a.certificate) == 0 && a.exec == nil:
		check.refuse(a.where(), "no credential is in it: a token, a client certificate with its key, or an exec plugin")
	}
	if a.exec != nil {
		a.exec.allowed(check, a.at.exec, commands)
	}
	return check.err()
}

func (a *access) where() string {
	if at, ok := strings.CutSuffix(a.at.exec, ".exec"); ok {
		return at
	}
	return "config"
}

// allowed refuses a command that the fleet does not name, or whose arguments do
// not begin as it says.
func (p *plugin) allowed(d *document, at string, commands []string) {
	if strings.ContainsAny(p.command, `/\`) {
		d.refuse(at+".command", "%s is a path: a Secret may only name a command that spec.clusters.hub.execCommands allows", shown(p.command))
		return
	}
	words := append([]string{p.command}, p.args...)
	for _, c := range commands {
		if first := strings.Fields(c); len(first) > 0 && len(first) <= len(words) && slices.Equal(first, words[:len(first)]) {
			return
		}
	}
	if slices.ContainsFunc(commands, func(c string) bool { return strings.HasPrefix(c, p.command+" ") }) {
		d.refuse(at+".args", "command %s is allowed in spec.clusters.hub.execCommands, but not with these arguments", shown(p.command))
		return
	}
	d.refuse(at+".command", "%s may not be run for a Secret: allow it in spec.clusters.hub.execCommands if it is trusted with any argument", shown(p.command))
}

// Cluster makes a cluster that can be observed of a registration whose
// credential was taken. own is what the fleet itself says of it: settings,
// labels, policy; addresses are those of the hub.
func (r Registration) Cluster(h clusters.Hub, addresses []string, own clusters.Cluster) (clusters.Cluster, error) {
	switch {
	case r.access == nil && r.Err != nil:
		return clusters.Cluster{}, r.Err
	case r.access == nil:
		return clusters.Cluster{}, r.NotTaken()
	}
	in := clusters.Inline{Origin: r.Origin(), AllowLoopback: h.AllowLoopback, Hub: addresses}
	d := &document{origin: r.Origin()}
	if why := checkServer(r.access.server, in); why != "" {
		d.refuse(r.access.at.server, "%s", why)
	}
	r.access.repeated(d, own.Settings)
	content, err := r.access.encode(r.Name, own.Settings)
	if err := errors.Join(r.Err, d.err(), err); err != nil {
		return clusters.Cluster{}, err
	}
	in.Content = clusters.Hide(content)
	own.Name, own.Labels = r.Name, clusters.MergeLabels(r.Labels, own.Labels)
	if own.File == "" {
		own.File = r.Origin()
	}
	own.Kubeconfig = &clusters.Kubeconfig{Context: r.Name, Inline: &in}
	return own, nil
}

// repeated refuses what the Secret says and the Cluster's settings do not.
func (a *access) repeated(d *document, own clusters.Settings) {
	refuse := func(bad bool, at, key string) {
		if bad {
			d.refuse(at, "it is taken from a Secret only where the Cluster's own settings say the same: %s in a Cluster file of this name, or in cluster.yaml beside the kubeconfig", key)
		}
	}
	refuse(a.asks.TLSServerName != "" && a.asks.TLSServerName != own.TLSServerName, a.at.tlsServerName, "tlsServerName")
	refuse(a.asks.InsecureSkipTLSVerify && !own.InsecureSkipTLSVerify, a.at.insecure, "insecureSkipTLSVerify")
	refuse(a.asks.ProxyURL != "" && a.asks.ProxyURL != own.ProxyURL, a.at.proxy, "proxyURL")
	who := a.asks.Impersonate
	refuse(!who.IsZero() && !sameImpersonate(who, own.Impersonate), a.at.impersonate, "impersonate")
}

func sameImpersonate(a, b clusters.Impersonate) bool {
	return a.User == b.User && a.UID == b.UID && slices.Equal(a.Groups, b.Groups) && maps.EqualFunc(a.Extra, b.Extra, slices.Equal[[]string])
}

// The structs of a kubeconfig as it is built: what is not here cannot be in it.
type (
	config struct {
		APIVersion string         `json:"apiVersion"`
		Kind       string         `json:"kind"`
		Current    string         `json:"current-context"`
		Contexts   []namedContext `json:"contexts"`
		Clusters   []namedCluster `json:"clusters"`
		Users      []namedUser    `json:"users"`
	}

	namedContext struct {
		Name    string            `json:"name"`
		Context map[string]string `json:"context"`
	}

	namedCluster struct {
		Name    string        `json:"name"`
		Cluster configCluster `json:"cluster"`
	}

	configCluster struct {
		Server             string `json:"server"`
		CA                 []byte `json:"certificate-authority-data,omitempty"`
		TLSServerName      string `json:"tls-server-name,omitempty"`
		Insecure           bool   `json:"insecure-skip-tls-verify,omitempty"`
		ProxyURL           string `json:"proxy-url,omitempty"`
		DisableCompression bool   `json:"disable-compression,omitempty"`
	}

	namedUser struct {
		Name string     `json:"name"`
		User configUser `json:"user"`
	}

	configUser struct {
		Token       string              `json:"token,omitempty"`
		Username    string              `json:"username,omitempty"`
		Password    string              `json:"password,omitempty"`
		Certificate []byte              `json:"client-certificate-data,omitempty"`
		Key         []byte              `json:"client-key-data,omitempty"`
		Exec        *configExec         `json:"exec,omitempty"`
		As          string              `json:"as,omitempty"`
		AsUID       string              `json:"as-uid,omitempty"`
		AsGroups    []string            `json:"as-groups,omitempty"`
		AsExtra     map[string][]string `json:"as-user-extra,omitempty"`
	}

	configExec struct {
		APIVersion         string   `json:"apiVersion"`
		Command            string   `json:"command"`
		Args               []string `json:"args"`
		ProvideClusterInfo bool     `json:"provideClusterInfo"`
		InteractiveMode    string   `json:"interactiveMode"`
	}
)

// encode writes the kubeconfig. The settings that it repeats are the Cluster's.
func (a *access) encode(name string, own clusters.Settings) ([]byte, error) {
	cluster := configCluster{
		Server: a.server, CA: a.ca, TLSServerName: own.TLSServerName, Insecure: own.InsecureSkipTLSVerify,
		ProxyURL: own.ProxyURL, DisableCompression: a.disableCompression,
	}
	if cluster.Insecure {
		cluster.CA = nil // client-go refuses both
	}
	user := configUser{
		Token: a.token, Username: a.username, Password: a.password, Certificate: a.certificate, Key: a.key,
		As: own.Impersonate.User, AsUID: own.Impersonate.UID, AsGroups: own.Impersonate.Groups, AsExtra: own.Impersonate.Extra,
	}
	if p := a.exec; p != nil {
		user.Exec = &configExec{APIVersion: p.apiVersion, Command: p.command, Args: p.args, ProvideClusterInfo: p.info, InteractiveMode: "Never"}
	}
	data, err := json.Marshal(config{
		APIVersion: "v1", Kind: "Config", Current: name,
		Contexts: []namedContext{{name, map[string]string{"cluster": name, "user": name}}},
		Clusters: []namedCluster{{name, cluster}}, Users: []namedUser{{name, user}},
	})
	if err != nil {
		return nil, fmt.Errorf("building the kubeconfig of cluster %q: its fields cannot be encoded", name)
	}
	return data, nil
}
