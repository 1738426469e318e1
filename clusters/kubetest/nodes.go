package kubetest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// AddNodes adds nodes that kwok keeps alive, each with the labels given as
// key=value beside its own, and waits until they are Ready. The control plane
// must have been started with Nodes.
func (cp *ControlPlane) AddNodes(t testing.TB, labels []string, names ...string) {
	t.Helper()
	if cp.kwok == nil {
		t.Fatal("adding nodes: the control plane was started without Nodes")
	}
	ctx, cancel := context.WithTimeout(t.Context(), startWithin)
	defer cancel()
	if err := cp.addNodes(ctx, labels, names); err != nil {
		t.Fatal(err)
	}
}

// startNodes runs kwok, which plays the kubelet of every node.
func (cp *ControlPlane) startNodes(ctx context.Context, n int) error {
	files, err := filepath.Glob(filepath.Join(cp.assets, "stages", "*.yaml"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("looking for kwok's stages: none in %q: run make kube", filepath.Join(cp.assets, "stages"))
	}
	for _, file := range append([]string{filepath.Join(cp.assets, "stage-crd.yaml")}, files...) {
		data, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("reading kwok's stages: %w: run make kube", err)
		}
		if err := cp.apply(ctx, string(data)); err != nil {
			return fmt.Errorf("applying %q: %w", filepath.Base(file), err)
		}
	}
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	if cp.kwok, err = cp.run("kwok", "--kubeconfig="+cp.Kubeconfig(), "--config="+os.DevNull, "--manage-nodes-with-label-selector=type=kwok", "--enable-crds=Stage",
		"--node-lease-duration-seconds=40", "--server-address="+ports[0]); err != nil {
		return err
	}
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("node-%d", i)
	}
	return cp.addNodes(ctx, nil, names)
}

func (cp *ControlPlane) addNodes(ctx context.Context, labels []string, names []string) error {
	for _, name := range names {
		if err := cp.apply(ctx, nodeManifest(name, labels)); err != nil {
			return err
		}
	}
	return poll(ctx, "the nodes to be Ready", func() error {
		if p := cp.ended(); p != nil {
			return fatal{fmt.Errorf("%s ended: %w", p.name, p.err)}
		}
		return cp.nodesReady(ctx, names)
	})
}

func nodeManifest(name string, labels []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: v1\nkind: Node\nmetadata:\n  name: %q\n  labels:\n", name)
	fmt.Fprintf(&b, "    kubernetes.io/hostname: %q\n    kubernetes.io/os: linux\n    kubernetes.io/arch: amd64\n    type: kwok\n", name)
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		fmt.Fprintf(&b, "    %q: %q\n", key, value)
	}
	b.WriteString("status:\n")
	for _, field := range []string{"allocatable", "capacity"} {
		fmt.Fprintf(&b, "  %s: {cpu: \"32\", memory: 256Gi, pods: \"110\", ephemeral-storage: 1Ti}\n", field)
	}
	return b.String()
}

func (cp *ControlPlane) nodesReady(ctx context.Context, names []string) error {
	client := cp.dynamic.Resource(corev1.SchemeGroupVersion.WithResource("nodes"))
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	ready := map[string]bool{}
	for _, item := range list.Items {
		var n corev1.Node
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &n); err != nil {
			return fatal{err}
		}
		for _, c := range n.Status.Conditions {
			ready[n.Name] = ready[n.Name] || c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		}
	}
	for _, name := range names {
		if !ready[name] {
			return fmt.Errorf("node %q is not Ready", name)
		}
	}
	return nil
}
