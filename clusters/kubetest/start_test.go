package kubetest

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const manifest = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: default}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      containers: [{name: agent, image: agent}]
`

func TestWithoutDaemonSetControllerNobodyMakesPods(t *testing.T) {
	cp := Start(t, Options{Controllers: true, WithoutDaemonSetController: true, Nodes: 1})
	cp.Apply(t, manifest)
	// Another controller of the same process shows that it is at work.
	cp.Apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: later}\n")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	accounts := cp.dynamic.Resource(corev1.SchemeGroupVersion.WithResource("serviceaccounts")).Namespace("later")
	if err := poll(ctx, "the default ServiceAccount", func() error {
		_, err := accounts.Get(ctx, "default", metav1.GetOptions{})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	pods, err := cp.dynamic.Resource(corev1.SchemeGroupVersion.WithResource("pods")).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(pods.Items) != 0 {
		t.Errorf("%d pods, want none", len(pods.Items))
	}
}

func TestServerAlone(t *testing.T) {
	cp := Start(t, Options{})

	t.Run("a user may do what a role says and no more", func(t *testing.T) {
		cp.Apply(t, `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: nodes}
rules: [{apiGroups: [""], resources: [nodes], verbs: [list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: nodes}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: nodes}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: readers}]
`)
		client := clientOf(t, cp.User(t, "jane", "readers"))
		if _, err := client.Resource(corev1.SchemeGroupVersion.WithResource("nodes")).List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Error(err)
		}
		_, err := client.Resource(rbacv1.SchemeGroupVersion.WithResource("clusterroles")).List(t.Context(), metav1.ListOptions{})
		if !apierrors.IsForbidden(err) {
			t.Errorf("listing cluster roles: %v, want forbidden", err)
		}
	})

	t.Run("apply sets the status too and delete deletes", func(t *testing.T) {
		const node = "apiVersion: v1\nkind: Node\nmetadata: {name: hand-made}\nstatus: {conditions: [{type: Ready, status: 'True'}]}\n"
		cp.Apply(t, node)
		if err := cp.nodesReady(t.Context(), []string{"hand-made"}); err != nil {
			t.Error(err)
		}
		cp.Delete(t, node)
		if err := cp.nodesReady(t.Context(), []string{"hand-made"}); err == nil {
			t.Error("the node is still there after Delete")
		}
	})

	t.Run("a paused server is silent until it is resumed", func(t *testing.T) {
		client, err := rest.HTTPClientFor(cp.Client(t))
		if err != nil {
			t.Fatal(err)
		}
		client.Timeout = time.Second
		cp.Pause()
		if response, err := client.Get("https://" + cp.Address() + "/readyz"); err == nil {
			_ = response.Body.Close()
			t.Errorf("a paused server answered %s", response.Status)
		}
		cp.Resume()
		client.Timeout = 30 * time.Second
		response, err := client.Get("https://" + cp.Address() + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Errorf("a resumed server answered %s", response.Status)
		}
	})

	t.Run("stopped, it leaves no process", func(t *testing.T) {
		cp.Pause() // also a paused process must end
		cp.Stop()
		cp.Stop()
		if left := processesIn(t, cp.dir); len(left) > 0 {
			t.Errorf("left: %q", left)
		}
	})
}

func TestControlPlaneEndsWithItsProcess(t *testing.T) {
	if dir := os.Getenv("KUBETEST_DIE"); dir != "" {
		t.Setenv("TMPDIR", dir)
		Start(t, Options{})
		os.Exit(7) // no cleanup runs
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestControlPlaneEndsWithItsProcess$")
	cmd.Env = append(os.Environ(), "KUBETEST_DIE="+dir)
	if out, err := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 7 {
		t.Fatalf("the child ended with %v:\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := poll(ctx, "the control plane of a dead process to end", func() error {
		if left := processesIn(t, dir); len(left) > 0 {
			return running(left)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

type running []string

func (r running) Error() string { return strings.Join(r, ", ") + " runs" }

func TestAssets(t *testing.T) {
	cases := map[string]struct {
		reason string
		files  []string
		want   string // part of the error, none when empty
	}{
		"complete": {"binaries of one's own are taken", []string{"etcd", "kube-apiserver"}, ""},
		"empty":    {"a folder without them names the remedy", nil, "run make kube"},
		"partial":  {"one missing binary is named", []string{"etcd"}, `no "kube-apiserver"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, f := range tc.files {
				if err := os.WriteFile(filepath.Join(dir, f), nil, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			t.Setenv("KUBEBUILDER_ASSETS", dir)
			got, err := Assets()
			switch {
			case tc.want == "" && (err != nil || got != dir):
				t.Errorf("%s: Assets() = %q, %v, want %q", tc.reason, got, err, dir)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("%s: error %v, want one with %q", tc.reason, err, tc.want)
			}
		})
	}
}

func TestAssetsAreWhereTheBuildPutsThem(t *testing.T) {
	t.Setenv("KUBEBUILDER_ASSETS", "")
	got, err := Assets() // first: without the folder build.sh would build
	if err != nil {
		t.Fatal(err)
	}
	want, err := exec.Command("kube/build.sh").Output()
	if err != nil {
		t.Fatal(err)
	}
	if got != strings.TrimSpace(string(want)) {
		t.Errorf("Assets() = %q, build.sh says %q", got, want)
	}
}

func TestDecode(t *testing.T) {
	if _, err := decode("a: [b"); err == nil {
		t.Error("broken YAML was taken")
	}
	objects, err := decode("---\n# nothing\n---\n" + manifest)
	if err != nil || len(objects) != 1 {
		t.Errorf("decode = %d objects, %v, want 1", len(objects), err)
	}
}

func clientOf(t *testing.T, kubeconfig string) dynamic.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// processesIn lists the processes that have a folder in their command line.
func processesIn(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(data), dir) {
			continue
		}
		if pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file))); pid != os.Getpid() {
			found = append(found, strings.ReplaceAll(string(data), "\x00", " "))
		}
	}
	slices.Sort(found)
	return found
}
