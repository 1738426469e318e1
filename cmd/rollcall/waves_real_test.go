package main

import (
	"fmt"
	"strings"
	"testing"

	"rollcall.dev/rollcall/clusters/kubetest"
)

// A commit goes through two real clusters in waves: the second waits until the
// first carries it and its nodes do, stops where the first lost nodes by it, and
// nothing begins outside a window. The report shows each hold.
func TestRealWaves(t *testing.T) {
	dev := kubetest.Start(t, kubetest.Options{Controllers: true, Scheduler: true, Nodes: 2})
	prod := kubetest.Start(t, kubetest.Options{Controllers: true, Scheduler: true, Nodes: 2})
	g := newGitOps(t, dev, "may: [apply]", map[string]string{"namespace.yaml": obsNamespace, "account.yaml": obsAccount, "agent.yaml": obsAgent("1", "app: agent", "")})
	declare := func(name string, cp *kubetest.ControlPlane, policy string) {
		write(t, g.dir, "clusters/"+name+".yaml", fmt.Sprintf("apiVersion: rollcall.dev/v1alpha1\nkind: Cluster\nmetadata: {name: %s, labels: {env: %s}}\nspec: {kubeconfig: {path: %q}%s}\n", name, name, cp.Kubeconfig(), policy))
	}
	declare("one", dev, "")
	declare("two", prod, "")
	fleet := func(resume string) {
		write(t, g.dir, "rollcall.yaml", `apiVersion: rollcall.dev/v1alpha1
kind: Fleet
metadata: {name: real}
spec:
  source: {url: repository}
  clusters: {directory: clusters}
  targets: [{name: all, clusters: {}, overlay: base}]
  policy: {may: [apply], startupGrace: 1s}
  rollout: {`+resume+`waves: [{name: canary, clusters: {matchLabels: {env: one}}}, {name: rest, clusters: {}}]}
`)
	}
	fleet("")

	g.apply(1, "one  DaemonSet obs/agent created", "two  5 objects held: WaveWaits: wave 2 of 2 (rest) waits for one (without the commit) of wave 1 (canary)")
	dev.WaitDaemonSetReady(t, "obs", "agent", 2)
	g.apply(0, "two  DaemonSet obs/agent created")
	prod.WaitDaemonSetReady(t, "obs", "agent", 2)
	g.apply(0, "0 created, 0 configured")

	t.Run("Halt", func(t *testing.T) {
		g := &gitOps{t, dev, g.dir}
		commit := g.put("agent.yaml", strings.Replace(obsAgent("1", "app: agent", ""), "      serviceAccountName", "      nodeSelector: {kubernetes.io/hostname: node-0}\n      serviceAccountName", 1))
		g.run(1, []string{"plan"}, "obs/agent LOSES 1 node: node-1", "nodeSelector wants kubernetes.io/hostname=node-0", "two  base", "WaveWaits")
		g.apply(1, "one  DaemonSet obs/agent configured")
		dev.WaitDaemonSetReady(t, "obs", "agent", 1)
		g.apply(1, "two  DaemonSet obs/agent held: WaveHalted", "one", "{kubernetes.io/hostname=node-0}", "resume: "+commit)
		g.run(1, []string{"report", "--fail-on", "warning"}, "held, WaveHalted: ", "Held  two  hold WaveHalted")
		fleet("resume: " + commit + ", ")
		g.apply(0, "two  DaemonSet obs/agent configured")
		fleet("")
		g.put("agent.yaml", obsAgent("1", "app: agent", ""))
		g.apply(1, "one  DaemonSet obs/agent configured")
		dev.WaitDaemonSetReady(t, "obs", "agent", 2)
		g.apply(0, "two  DaemonSet obs/agent configured")
	})
	t.Run("Window", func(t *testing.T) {
		g := &gitOps{t, dev, g.dir}
		declare("one", dev, `, policy: {windows: [{deny: "0 0 * * *", for: 24h}]}`)
		g.put("agent.yaml", obsAgent("2", "app: agent", ""))
		g.apply(1, "one  DaemonSet obs/agent held: WindowClosed: deny window", "two  DaemonSet obs/agent held: WaveWaits")
		g.run(0, []string{"report", "--fail-on", "error"}, "held, WindowClosed")
	})
}
