package kubetest

import (
	"fmt"
	"os"
	"testing"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// connect makes the clients of the test's own requests.
func (cp *ControlPlane) connect() error {
	if err := cp.writeKubeconfig(cp.Kubeconfig(), "admin", &api.AuthInfo{Token: cp.token}); err != nil {
		return err
	}
	cp.config = &rest.Config{
		Host: "https://" + cp.address, BearerToken: cp.token, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: cp.ca.pem()},
	}
	var err error
	if cp.dynamic, err = dynamic.NewForConfig(cp.config); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	asking, err := discovery.NewDiscoveryClientForConfig(cp.config)
	if err != nil {
		return fmt.Errorf("making a discovery client: %w", err)
	}
	cp.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(asking))
	return nil
}

// Kubeconfig is the path of the administrator's kubeconfig. Its only context
// is named kubetest.
func (cp *ControlPlane) Kubeconfig() string { return cp.file("admin.kubeconfig") }

// Client is the administrator's configuration for a client of the test's own.
func (cp *ControlPlane) Client(t testing.TB) *rest.Config {
	t.Helper()
	return rest.CopyConfig(cp.config)
}

// User makes a user with a client certificate and returns the path of a
// kubeconfig for it. What it may do, Apply grants by RBAC; else nothing.
func (cp *ControlPlane) User(t testing.TB, name string, groups ...string) string {
	t.Helper()
	certificate, key, err := cp.ca.issue(name, groups...)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.CreateTemp(cp.dir, "user-*.kubeconfig")
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cp.writeKubeconfig(file.Name(), name, &api.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key}); err != nil {
		t.Fatal(err)
	}
	return file.Name()
}

func (cp *ControlPlane) writeKubeconfig(path, user string, auth *api.AuthInfo) error {
	config := api.NewConfig()
	config.Clusters["kubetest"] = &api.Cluster{Server: "https://" + cp.address, CertificateAuthorityData: cp.ca.pem()}
	config.AuthInfos[user] = auth
	config.Contexts["kubetest"] = &api.Context{Cluster: "kubetest", AuthInfo: user}
	config.CurrentContext = "kubetest"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("writing the kubeconfig of %q: %w", user, err)
	}
	return nil
}
