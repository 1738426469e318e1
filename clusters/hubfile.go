package clusters

import (
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The wire structs of a hub and of what a Cluster says for its Secret.
type (
	wireHub struct {
		Kubeconfig    *wireKubeconfig `json:"kubeconfig"`
		InCluster     bool            `json:"inCluster"`
		Namespaces    []string        `json:"namespaces"`
		Secrets       []string        `json:"secrets"`
		Credentials   []string        `json:"credentials"`
		ExecCommands  []string        `json:"execCommands"`
		AllowLoopback bool            `json:"allowLoopback"`
	}

	wireSettings struct {
		TLSServerName         string          `json:"tlsServerName"`
		InsecureSkipTLSVerify bool            `json:"insecureSkipTLSVerify"`
		ProxyURL              string          `json:"proxyURL"`
		Impersonate           wireImpersonate `json:"impersonate"`
	}

	wireImpersonate struct {
		User   string              `json:"user"`
		UID    string              `json:"uid"`
		Groups []string            `json:"groups"`
		Extra  map[string][]string `json:"extra"`
	}

	wireSecretSettings struct {
		Labels       map[string]string `json:"labels"`
		Reachability *string           `json:"reachability"`
		Identity     string            `json:"identity"`
		Policy       wirePolicy        `json:"policy"`
		wireSettings
	}
)

// ParseMember is ParseCluster for a fleet with a hub: kubeconfig and recorded
// may both be missing, because a Secret of the hub may register the cluster.
func ParseMember(file string, data []byte, defaults Policy) (Cluster, error) {
	return parseCluster(file, data, defaults, true)
}

// ParseSettings returns what the cluster.yaml of a Secret says of its cluster:
// what a Cluster file says under spec, and labels. Its name and kubeconfig are
// the Secret's.
func ParseSettings(origin string, data []byte, defaults Policy) (Cluster, error) {
	d := newDocument(origin)
	var w wireSecretSettings
	d.read(data, &w)
	cl := Cluster{
		Labels:   d.labels(field.NewPath("labels"), w.Labels),
		Identity: w.Identity,
		Policy:   d.policy(field.NewPath("policy"), &w.Policy, defaults),
		Settings: d.settings(nil, &w.wireSettings),
	}
	cl.Intermittent = d.oneOf(field.NewPath("reachability"), w.Reachability, "steady", "intermittent") == "intermittent"
	return cl, d.err()
}

func (d *document) hub(at *field.Path, w *wireHub) *Hub {
	if w == nil {
		return nil
	}
	h := &Hub{
		Namespaces:    d.namespaces(at.Child("namespaces"), w.Namespaces),
		Secrets:       d.kinds(at.Child("secrets"), w.Secrets, []string{RollcallSecrets}),
		ExecCommands:  d.commands(at.Child("execCommands"), w.ExecCommands),
		AllowLoopback: w.AllowLoopback,
	}
	switch {
	case w.InCluster && w.Kubeconfig != nil:
		d.add(field.Forbidden(at.Child("inCluster"), "at most one of kubeconfig and inCluster"))
	case w.InCluster:
		h.Kubeconfig.InCluster = true
	case w.Kubeconfig == nil:
		d.add(field.Required(at, "one of kubeconfig and inCluster"))
	case w.Kubeconfig.Path == "":
		d.add(field.Required(at.Child("kubeconfig", "path"), "a kubeconfig file"))
	default:
		h.Kubeconfig = Kubeconfig{Paths: []string{w.Kubeconfig.Path}, Context: w.Kubeconfig.Context}
	}
	if w.Secrets != nil && len(w.Secrets) == 0 {
		d.add(field.Required(at.Child("secrets"), "at least one of "+strings.Join(SecretKinds, ", ")))
	}
	var taken []string
	if slices.Contains(h.Secrets, RollcallSecrets) {
		taken = []string{RollcallSecrets}
	}
	h.Credentials = d.kinds(at.Child("credentials"), w.Credentials, taken)
	for i, kind := range w.Credentials {
		if slices.Contains(SecretKinds, kind) && !slices.Contains(h.Secrets, kind) {
			d.add(field.Invalid(at.Child("credentials").Index(i), kind, "these Secrets are not read: add it to secrets, too"))
		}
	}
	return h
}

func (d *document) namespaces(at *field.Path, names []string) []string {
	for i, name := range names {
		d.invalid(at.Index(i), name, validation.IsDNS1123Label(name))
		if slices.Contains(names[:i], name) {
			d.add(field.Duplicate(at.Index(i), name))
		}
	}
	return names
}

func (d *document) kinds(at *field.Path, kinds, otherwise []string) []string {
	if kinds == nil {
		return otherwise
	}
	for i, kind := range kinds {
		d.oneOf(at.Index(i), &kind, SecretKinds...)
		if slices.Contains(kinds[:i], kind) {
			d.add(field.Duplicate(at.Index(i), kind))
		}
	}
	return kinds
}

// commands reads which exec plugins a Secret may have run: found by their names
// as a shell finds them, never by a path that a Secret chose.
func (d *document) commands(at *field.Path, commands []string) []string {
	for i, c := range commands {
		words := strings.Fields(c)
		if len(words) == 0 || strings.ContainsAny(words[0], `/\`) || strings.HasPrefix(words[0], "-") || words[0] == ".." || words[0] == "." {
			d.add(field.Invalid(at.Index(i), c, "must be the name of a command, without a path; arguments behind it must come first when it is run"))
		}
	}
	return commands
}

func (d *document) settings(at *field.Path, w *wireSettings) Settings {
	child := func(name string) *field.Path {
		if at == nil {
			return field.NewPath(name)
		}
		return at.Child(name)
	}
	if w.TLSServerName != "" {
		d.invalid(child("tlsServerName"), w.TLSServerName, validation.IsDNS1123Subdomain(w.TLSServerName))
	}
	if w.InsecureSkipTLSVerify && w.TLSServerName != "" {
		d.add(field.Forbidden(child("tlsServerName"), "nothing is verified with insecureSkipTLSVerify"))
	}
	if detail, ok := usableProxy(w.ProxyURL); !ok {
		d.add(field.Invalid(child("proxyURL"), field.OmitValueType{}, detail))
	}
	who := Impersonate(w.Impersonate)
	if who.User == "" && !who.IsZero() {
		d.add(field.Required(child("impersonate").Child("user"), "uid, groups and extra need it"))
	}
	return Settings{TLSServerName: w.TLSServerName, InsecureSkipTLSVerify: w.InsecureSkipTLSVerify, ProxyURL: w.ProxyURL, Impersonate: who}
}

// usableProxy tells what is wrong with a proxy's URL without repeating it.
func usableProxy(raw string) (detail string, ok bool) {
	if raw == "" {
		return "", true
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "socks5"}, u.Scheme):
		return "must be an http, https or socks5 URL", false
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "must not hold a credential", false
	}
	return "", true
}

// onlyForSecrets refuses settings that would be without effect: a kubeconfig
// that the operator names says these things itself.
func (d *document) onlyForSecrets(at *field.Path, s Settings) {
	for _, name := range s.Fields() {
		d.add(field.Forbidden(at.Child(name), "it repeats what a Secret of the hub says: with spec.kubeconfig write it there, with spec.recorded leave it out"))
	}
}
