// Package kubetest starts real Kubernetes control planes for tests: etcd and
// kube-apiserver, and where asked kube-controller-manager, kube-scheduler and
// kwok's nodes, one line in a test. It knows nothing of rollcall.
package kubetest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// startWithin bounds how long a control plane may take to become ready; on two
// busy cores it takes about 10 s.
const startWithin = 3 * time.Minute

// Options say which parts run beside etcd and kube-apiserver.
type Options struct {
	Controllers                bool // kube-controller-manager
	WithoutDaemonSetController bool // leaves Kubernetes' own DaemonSet controller out of it
	Scheduler                  bool // kube-scheduler
	Nodes                      int  // made and kept alive by kwok, named node-0, node-1, …
}

// ControlPlane is a running control plane. It ends with its test.
type ControlPlane struct {
	assets  string // folder of the binaries
	dir     string // data, certificates and logs
	address string // of the API server, 127.0.0.1:port
	token   string // of the administrator
	ca      *authority

	apiserver *process
	processes []*process // in the order of their start
	config    *rest.Config
	dynamic   dynamic.Interface
	mapper    *restmapper.DeferredDiscoveryRESTMapper
	kwok      *process
}

// Start starts a control plane and returns when it answers and its nodes are
// Ready. It fails the test where the binaries are not there.
func Start(t testing.TB, o Options) *ControlPlane {
	t.Helper()
	assets, err := Assets()
	if err != nil {
		t.Fatal(err)
	}
	cp := &ControlPlane{assets: assets, dir: t.TempDir()}
	t.Cleanup(func() {
		cp.Stop()
		if t.Failed() {
			cp.printLogs(t)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), startWithin)
	defer cancel()
	if err := cp.start(ctx, o); err != nil {
		t.Fatalf("starting a control plane: %v", err)
	}
	return cp
}

// start runs the parts in the order in which they need each other.
func (cp *ControlPlane) start(ctx context.Context, o Options) error {
	if err := cp.prepare(); err != nil {
		return err
	}
	for _, step := range []struct {
		wanted bool
		start  func(context.Context) error
	}{
		{true, cp.startServer},
		{o.Controllers, func(ctx context.Context) error { return cp.startControllers(ctx, o.WithoutDaemonSetController) }},
		{o.Scheduler, cp.startScheduler},
		{o.Nodes > 0, func(ctx context.Context) error { return cp.startNodes(ctx, o.Nodes) }},
	} {
		if !step.wanted {
			continue
		}
		if err := step.start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// prepare writes the certificates, the administrator's token and kubeconfig.
func (cp *ControlPlane) prepare() error {
	random := make([]byte, 16)
	if _, err := rand.Read(random); err != nil {
		return fmt.Errorf("making a token: %w", err)
	}
	cp.token = hex.EncodeToString(random)
	ca, err := newAuthority()
	if err != nil {
		return err
	}
	cp.ca = ca
	return ca.writeFiles(cp.dir, cp.token+",admin,admin,system:masters\n")
}

// startServer runs etcd and kube-apiserver and waits until the latter answers.
func (cp *ControlPlane) startServer(ctx context.Context) error {
	ports, err := freePorts(3)
	if err != nil {
		return err
	}
	cp.address = ports[2]
	etcd := "http://" + ports[0]
	peer := "http://" + ports[1]
	if _, err := cp.run("etcd",
		"--data-dir="+filepath.Join(cp.dir, "etcd"), "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls="+etcd, "--advertise-client-urls="+etcd,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer); err != nil {
		return err
	}
	if cp.apiserver, err = cp.run("kube-apiserver", cp.serverFlags(etcd)...); err != nil {
		return err
	}
	if err := cp.connect(); err != nil {
		return err
	}
	return cp.waitReady(ctx)
}

func (cp *ControlPlane) serverFlags(etcd string) []string {
	_, port := splitAddress(cp.address)
	return []string{
		"--etcd-servers=" + etcd,
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--secure-port=" + port,
		"--endpoint-reconciler-type=none", // a loopback address is no endpoint
		"--cert-dir=" + cp.dir,
		"--tls-cert-file=" + cp.file("serving.crt"), "--tls-private-key-file=" + cp.file("serving.key"),
		"--client-ca-file=" + cp.file("ca.crt"), "--token-auth-file=" + cp.file("tokens.csv"),
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + cp.file("serving.crt"), "--service-account-signing-key-file=" + cp.file("serving.key"),
		"--service-cluster-ip-range=10.0.0.0/24",
		"--allow-privileged=true",
		// With these no daemon pod would be wanted on a node made by hand.
		"--disable-admission-plugins=TaintNodesByCondition,ServiceAccount",
	}
}

func (cp *ControlPlane) startControllers(_ context.Context, withoutDaemonSets bool) error {
	controllers := "*"
	if withoutDaemonSets {
		controllers += ",-daemonset-controller"
	}
	_, err := cp.run("kube-controller-manager",
		"--kubeconfig="+cp.Kubeconfig(), "--leader-elect=false", "--secure-port=0", "--controllers="+controllers,
		"--service-account-private-key-file="+cp.file("serving.key"), "--root-ca-file="+cp.file("ca.crt"),
		"--kube-api-qps=500", "--kube-api-burst=1000")
	return err
}

func (cp *ControlPlane) startScheduler(context.Context) error {
	_, err := cp.run("kube-scheduler",
		"--kubeconfig="+cp.Kubeconfig(), "--leader-elect=false", "--secure-port=0", "--kube-api-qps=500", "--kube-api-burst=1000")
	return err
}

// waitReady polls /readyz until it says ok or a process of ours has ended.
func (cp *ControlPlane) waitReady(ctx context.Context) error {
	client, err := rest.HTTPClientFor(cp.config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	client.Timeout = 5 * time.Second
	defer client.CloseIdleConnections()
	return poll(ctx, "kube-apiserver to be ready", func() error {
		if p := cp.ended(); p != nil {
			return fatal{fmt.Errorf("%s ended: %w", p.name, p.err)}
		}
		response, err := client.Get(cp.config.Host + "/readyz")
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("/readyz answers %s", response.Status)
		}
		return nil
	})
}

// ended returns a process that has ended by itself, if any has.
func (cp *ControlPlane) ended() *process {
	i := slices.IndexFunc(cp.processes, func(p *process) bool {
		select {
		case <-p.done:
			return true
		default:
			return false
		}
	})
	if i < 0 {
		return nil
	}
	return cp.processes[i]
}

// Stop ends all processes at once, as when the machine is switched off, and
// returns when they are gone. A second Stop does nothing.
func (cp *ControlPlane) Stop() {
	for _, p := range slices.Backward(cp.processes) {
		p.kill()
	}
	cp.processes = nil
}

// Pause stops the API server from running: it accepts connections and says
// nothing, until Resume.
func (cp *ControlPlane) Pause() { cp.apiserver.pause() }

// Resume lets a paused API server run again.
func (cp *ControlPlane) Resume() { cp.apiserver.signal(syscall.SIGCONT) }

// Address is host:port of the API server.
func (cp *ControlPlane) Address() string { return cp.address }

func (cp *ControlPlane) file(name string) string { return filepath.Join(cp.dir, name) }

// fatal is an error that no further poll can mend.
type fatal struct{ error }

// poll calls f until it returns nil, a fatal error, or ctx ends; the error of
// the last call says what was still amiss.
func poll(ctx context.Context, what string, f func() error) error {
	for {
		err := f()
		if err == nil {
			return nil
		}
		if f, ok := errors.AsType[fatal](err); ok {
			return fmt.Errorf("waiting for %s: %w", what, f.error)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w (%w)", what, err, context.Cause(ctx))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// printLogs shows the end of each log of a test that failed.
func (cp *ControlPlane) printLogs(t testing.TB) {
	logs, _ := filepath.Glob(filepath.Join(cp.dir, "*.log"))
	for _, file := range logs {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Logf("reading %q: %v", file, err)
			continue
		}
		t.Logf("--- the end of %s ---\n%s", filepath.Base(file), data[max(0, len(data)-4000):])
	}
}
