package clusters

import "maps"

// The kinds of Secrets that register a cluster.
const (
	RollcallSecrets   = "rollcall"   // with our own label
	ArgoCDSecrets     = "argocd"     // Argo CD's cluster Secrets
	ClusterAPISecrets = "clusterapi" // Cluster API's NAME-kubeconfig
)

// SecretKinds are all of them, in the order of the documentation.
var SecretKinds = []string{RollcallSecrets, ArgoCDSecrets, ClusterAPISecrets}

// Hub is a cluster whose Secrets register clusters, and what of these Secrets
// is trusted.
type Hub struct {
	Kubeconfig   Kubeconfig
	Namespaces   []string // empty: all
	Secrets      []string // kinds that are read
	Credentials  []string // kinds whose credential is taken, too
	ExecCommands []string // command, and the arguments that must come first
	// AllowLoopback lets a Secret name a loopback address or the hub itself.
	// Link-local and metadata addresses are no clusters and never allowed.
	AllowLoopback bool
}

// Inline is a kubeconfig that a hub's Secret supplied. Its content was built
// anew from fields that are harmless or allowed.
type Inline struct {
	Content       Hidden
	Origin        string // for messages, such as Secret "argocd/prod"
	AllowLoopback bool
	Hub           []string // addresses of the hub's own API server, host:port
}

// Settings are what a kubeconfig from a Secret may say only where the Cluster
// says the same: they weaken TLS, send requests elsewhere or change who asks.
type Settings struct {
	TLSServerName         string
	InsecureSkipTLSVerify bool
	ProxyURL              string
	Impersonate           Impersonate
}

// Fields are the names of the settings that are set, as they are written.
func (s Settings) Fields() []string {
	var out []string
	for _, f := range []struct {
		set  bool
		name string
	}{
		{s.TLSServerName != "", "tlsServerName"}, {s.InsecureSkipTLSVerify, "insecureSkipTLSVerify"},
		{s.ProxyURL != "", "proxyURL"}, {!s.Impersonate.IsZero(), "impersonate"},
	} {
		if f.set {
			out = append(out, f.name)
		}
	}
	return out
}

// Impersonate is as whom requests are made.
type Impersonate struct {
	User   string
	UID    string
	Groups []string
	Extra  map[string][]string
}

// IsZero tells that nobody is impersonated.
func (i Impersonate) IsZero() bool {
	return i.User == "" && i.UID == "" && len(i.Groups) == 0 && len(i.Extra) == 0
}

// MergeLabels returns the labels of both; those of over win.
func MergeLabels(base, over map[string]string) map[string]string {
	if len(base)+len(over) == 0 {
		return nil
	}
	all := map[string]string{}
	maps.Copy(all, base)
	maps.Copy(all, over)
	return all
}
