package kube_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rollcall.dev/rollcall/clusters/kube"
	"rollcall.dev/rollcall/clusters/kubetest"
	"rollcall.dev/rollcall/clusters/rbac"
)

const everyCompanion = `
apiVersion: v1
kind: Namespace
metadata: {name: granted}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: granted}
value: 7
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: agent, namespace: granted}
---
apiVersion: v1
kind: Service
metadata: {name: agent, namespace: granted}
spec: {ports: [{port: 80}], selector: {app: agent}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: agent, namespace: granted}
spec: {podSelector: {}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: agent, namespace: granted}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: agent}}}
---
`

// The role of apply and prune is enough to apply and to prune what it is for,
// and does not let a namespace be deleted.
func testLeastRole(t *testing.T, cp *kubetest.ControlPlane) {
	granted, err := new(kube.Observer).Grant(t.Context(), cluster(cp.Kubeconfig()), rbac.Grant{Account: "applier", Tier: "coverage", May: []string{"apply", "prune"}}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, granted.Kubeconfig.Reveal(), 0o600); err != nil {
		t.Fatal(err)
	}
	allowed(t, cp, path)
	foundations, rest, _ := strings.Cut(everyCompanion, "apiVersion: v1\nkind: ServiceAccount")
	r := rollout{cp: cp, path: path, fleet: "least", commit: "c1", stages: []string{foundations, "apiVersion: v1\nkind: ServiceAccount" + rest + configMap("granted", "c", "v") + daemonSet("granted", "agent", "")}}
	r.apply(t, "Namespace granted: created", "PriorityClass granted: created", "ServiceAccount granted/agent: created", "Service granted/agent: created",
		"NetworkPolicy granted/agent: created", "PodDisruptionBudget granted/agent: created", "ConfigMap granted/c: created", "DaemonSet granted/agent: created")
	r.inventory(t, "c1", "", 8)
	r.stages = nil
	results := r.apply(t, "ConfigMap granted/c: pruned", "Namespace granted: failed", "Service granted/agent: pruned", "ServiceAccount granted/agent: pruned",
		"DaemonSet granted/agent: pruned", "NetworkPolicy granted/agent: pruned", "PodDisruptionBudget granted/agent: pruned", "PriorityClass granted: pruned")
	if x := results[1]; x.Reason != "Forbidden" || !strings.Contains(x.Message, "may not delete namespaces") {
		t.Errorf("got %+v", x)
	}
	r.inventory(t, "c1", "c1", 1)
}
