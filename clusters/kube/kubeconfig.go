package kube

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"rollcall.dev/rollcall/clusters"
)

// loadKubeconfig merges the files as kubectl merges $KUBECONFIG and makes the
// configuration of the context. The environment is not asked: what is observed
// is what was declared, never the cluster that this process happens to run in.
func loadKubeconfig(k *clusters.Kubeconfig) (*rest.Config, error) {
	switch {
	case k.InCluster:
		return inCluster()
	case k.Inline != nil:
		return inline(k)
	}
	all, err := merge(k.Paths)
	if err != nil {
		return nil, err
	}
	return contextOf(all, k, quoted(k.Paths))
}

func inCluster() (*rest.Config, error) {
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the credential of the pod that this runs in: %w", err)
	}
	return config, nil
}

// inline is a kubeconfig of a Secret, which was built from an allow-list. That
// no file is read for it and that TLS is used is checked here, too, where it
// would happen.
func inline(k *clusters.Kubeconfig) (*rest.Config, error) {
	all, err := clientcmd.Load(k.Inline.Content.Reveal())
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of %s: it cannot be decoded", k.Inline.Origin) // the error may quote it
	}
	config, err := contextOf(all, k, "of "+k.Inline.Origin)
	if err != nil {
		return nil, err
	}
	if config.CAFile+config.CertFile+config.KeyFile+config.BearerTokenFile != "" || config.AuthProvider != nil || !strings.HasPrefix(config.Host, "https://") {
		return nil, fmt.Errorf("reading the kubeconfig of %s: it names a file, an auth-provider or a server without TLS", k.Inline.Origin)
	}
	return config, guardDial(config, k.Inline)
}

// contextOf makes the configuration of one context; where says whose it is.
func contextOf(all *api.Config, k *clusters.Kubeconfig, where string) (*rest.Config, error) {
	name := cmp.Or(k.Context, all.CurrentContext)
	if name == "" {
		return nil, fmt.Errorf("reading kubeconfig %s: no context was chosen and it has no current-context; %s", where, available(all))
	}
	context := all.Contexts[name]
	if context == nil {
		return nil, fmt.Errorf("reading kubeconfig %s: no context %q; %s", where, name, available(all))
	}
	cluster, user := all.Clusters[context.Cluster], all.AuthInfos[context.AuthInfo]
	if cluster == nil {
		return nil, fmt.Errorf("reading kubeconfig %s: no cluster %q, which context %q names", where, context.Cluster, name)
	}
	if user == nil && context.AuthInfo != "" {
		return nil, fmt.Errorf("reading kubeconfig %s: no user %q, which context %q names", where, context.AuthInfo, name)
	}
	if err := errors.Join(missingFiles(cluster, user)...); err != nil {
		return nil, err
	}
	if err := checkURLs(context.Cluster, cluster); err != nil {
		return nil, err
	}
	config, err := clientcmd.NewNonInteractiveClientConfig(*all, name, &clientcmd.ConfigOverrides{}, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading context %q of kubeconfig %s: %w", name, where, err)
	}
	return config, nil
}

// merge loads the files. One that is named alone must exist; of several some
// may be missing, as kubectl has it.
func merge(paths []string) (*api.Config, error) {
	if len(paths) == 0 {
		return nil, errors.New("reading the kubeconfig: no file is named")
	}
	found := slices.DeleteFunc(slices.Clone(paths), func(p string) bool {
		_, err := os.Stat(p)
		return len(paths) > 1 && os.IsNotExist(err)
	})
	if len(found) == 0 {
		return nil, fmt.Errorf("reading kubeconfig %s: none of the files exists", quoted(paths))
	}
	rules := clientcmd.ClientConfigLoadingRules{Precedence: found}
	if len(paths) == 1 {
		rules.ExplicitPath = paths[0]
	}
	all, err := rules.Load()
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig %s: %w", quoted(paths), err)
	}
	return all, nil
}

// missingFiles are the files that a kubeconfig refers to and that are not
// there. Data in the kubeconfig itself goes before a file.
func missingFiles(cluster *api.Cluster, user *api.AuthInfo) []error {
	var missing []error
	check := func(origin, field, path string, data []byte) {
		if path == "" || len(data) > 0 {
			return
		}
		if _, err := os.Stat(path); err != nil {
			if e, ok := errors.AsType[*os.PathError](err); ok {
				err = e.Err
			}
			missing = append(missing, fmt.Errorf("reading kubeconfig %q: its %s %q: %w", origin, field, path, err))
		}
	}
	if !cluster.InsecureSkipTLSVerify {
		check(cluster.LocationOfOrigin, "certificate-authority", cluster.CertificateAuthority, cluster.CertificateAuthorityData)
	}
	if user != nil {
		check(user.LocationOfOrigin, "client-certificate", user.ClientCertificate, user.ClientCertificateData)
		check(user.LocationOfOrigin, "client-key", user.ClientKey, user.ClientKeyData)
		check(user.LocationOfOrigin, "tokenFile", user.TokenFile, nil)
	}
	return missing
}

// checkURLs goes before client-go's own check, which repeats a URL with the
// password in it.
func checkURLs(name string, cluster *api.Cluster) error {
	for _, u := range []struct{ field, value string }{{"server", cluster.Server}, {"proxy-url", cluster.ProxyURL}} {
		if _, err := url.Parse(u.value); err != nil && strings.Contains(u.value, "://") {
			return fmt.Errorf("reading kubeconfig %q: the %s of cluster %q is no URL", cluster.LocationOfOrigin, u.field, name)
		}
	}
	return nil
}

func available(all *api.Config) string {
	names := slices.Sorted(maps.Keys(all.Contexts))
	if len(names) == 0 {
		return "it has no contexts"
	}
	const shown = 20
	if more := len(names) - shown; more > 0 {
		return fmt.Sprintf("available: %s and %d more", quoted(names[:shown]), more)
	}
	return "available: " + quoted(names)
}

func quoted(names []string) string {
	var b strings.Builder
	for i, n := range names {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", n)
	}
	return b.String()
}
