package kubetest_test

import (
	"testing"

	"rollcall.dev/rollcall/clusters/kubetest"
)

const agent = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: default}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: c, image: "registry.example/agent:1"}]}
`

func TestDaemonSetRunsOnKwokNodes(t *testing.T) {
	cp := kubetest.Start(t, kubetest.Options{Controllers: true, Scheduler: true, Nodes: 3})
	cp.Apply(t, agent)
	cp.WaitDaemonSetReady(t, "default", "agent", 3)
	cp.AddNodes(t, []string{"pool=gpu"}, "gpu-1")
	cp.WaitDaemonSetReady(t, "default", "agent", 4)
}
