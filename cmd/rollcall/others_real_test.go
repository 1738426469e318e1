package main

import (
	"strings"
	"testing"

	"rollcall.dev/rollcall/clusters/kubetest"
)

// What others add to a DaemonSet stays under an apply or does not as the plan
// says: a key of the node selector stays, an item of the tolerations, which are
// one list, is fought over.
func TestRealOthers(t *testing.T) {
	cp := kubetest.Start(t, kubetest.Options{Controllers: true, Scheduler: true, Nodes: 2})
	tolerant := func(image string) string {
		return strings.Replace(obsAgent(image, "app: agent", ""), "      containers:", "      tolerations: [{key: gpu, operator: Exists}]\n      containers:", 1)
	}
	g := newGitOps(t, cp, "may: [apply]", map[string]string{"namespace.yaml": obsNamespace, "account.yaml": obsAccount, "agent.yaml": tolerant("1")})
	g.apply(0, "DaemonSet obs/agent created")
	cp.WaitDaemonSetReady(t, "obs", "agent", 2)

	kubectl(t, cp, "-n", "obs", "patch", "ds/agent", "--type=merge", "-p", `{"spec":{"template":{"spec":{"nodeSelector":{"pool":"nowhere"}}}}}`)
	cp.WaitDaemonSetReady(t, "obs", "agent", 0)
	g.run(0, []string{"plan"}, "held, AddedByOthers: spec.template.spec.nodeSelector.pool")
	g.put("agent.yaml", tolerant("2"))
	if out := g.run(0, []string{"plan"}, "what others added stays: spec.template.spec.nodeSelector.pool"); strings.Contains(out, " gains ") {
		t.Error("the plan has nodes gain a pod that the live node selector keeps out")
	}
	g.apply(0, "DaemonSet obs/agent configured")
	if left := kubectl(t, cp, "-n", "obs", "get", "ds/agent", "-o", "jsonpath={.spec.template.spec.nodeSelector.pool}"); left != "nowhere" {
		t.Errorf("the apply took the node selector: %q is left", left)
	}

	kubectl(t, cp, "-n", "obs", "patch", "ds/agent", "--type=json", "-p", `[{"op":"add","path":"/spec/template/spec/tolerations/-","value":{"key":"edge","operator":"Exists"}}]`)
	g.run(0, []string{"plan"}, "DaemonSet obs/agent configure", "spec.template.spec.tolerations[1]")
	g.apply(1, "DaemonSet obs/agent failed: Conflict", "spec.template.spec.tolerations")
}
