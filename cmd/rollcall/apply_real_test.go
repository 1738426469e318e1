package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rollcall.dev/rollcall/clusters/kubetest"
)

// gitOps is a fleet of one real cluster, its repository and rollcall.
type gitOps struct {
	t   *testing.T
	cp  *kubetest.ControlPlane
	dir string
}

// newGitOps makes a fleet whose repository holds files below base.
func newGitOps(t *testing.T, cp *kubetest.ControlPlane, policy string, files map[string]string) *gitOps {
	t.Helper()
	assets, err := kubetest.Assets()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBEBUILDER_ASSETS", assets)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	g := &gitOps{t: t, cp: cp, dir: t.TempDir()}
	write(t, g.dir, "rollcall.yaml", `apiVersion: rollcall.dev/v1alpha1
kind: Fleet
metadata: {name: real}
spec:
  source: {url: repository}
  clusters: {directory: clusters}
  targets: [{name: all, clusters: {}, overlay: base}]
  policy: {`+policy+`}
`)
	write(t, g.dir, "clusters/one.yaml", fmt.Sprintf("apiVersion: rollcall.dev/v1alpha1\nkind: Cluster\nmetadata: {name: one}\nspec: {kubeconfig: {path: %q}}\n", cp.Kubeconfig()))
	for name, text := range files {
		write(t, g.dir, "repository/base/"+name, text)
	}
	g.git("init", "-q", "-b", "main")
	g.commit()
	return g
}

func (g *gitOps) git(args ...string) string {
	g.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
	cmd.Dir = filepath.Join(g.dir, "repository")
	out, err := cmd.CombinedOutput()
	if err != nil {
		g.t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit commits all that is there and returns which commit that is.
func (g *gitOps) commit() string {
	g.t.Helper()
	g.git("add", "-A")
	g.git("commit", "-q", "--allow-empty", "-m", "daemons")
	return g.git("rev-parse", "HEAD")
}

// put writes a file of the repository, or removes it when it is empty, and
// commits.
func (g *gitOps) put(name, text string) string {
	g.t.Helper()
	if text == "" {
		if err := os.Remove(filepath.Join(g.dir, "repository/base", name)); err != nil {
			g.t.Fatal(err)
		}
		return g.commit()
	}
	write(g.t, g.dir, "repository/base/"+name, text)
	return g.commit()
}

// run runs rollcall and wants an exit status and words.
func (g *gitOps) run(want int, args []string, words ...string) string {
	g.t.Helper()
	var o, e bytes.Buffer
	args = append(args, "-f", filepath.Join(g.dir, "rollcall.yaml"))
	status := run(args, streams{strings.NewReader(""), &o, &e})
	g.t.Logf("$ rollcall %s\n%s%s(exit status %d)", strings.Join(args, " "), e.String(), o.String(), status)
	if status != want {
		g.t.Fatalf("exit status %d, want %d", status, want)
	}
	contains(g.t, o.String()+e.String(), words...)
	return o.String()
}

func (g *gitOps) apply(want int, words ...string) string {
	g.t.Helper()
	return g.run(want, []string{"apply", "--all"}, words...)
}

const (
	obsNamespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: obs}\n"
	obsConfig    = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: agent, namespace: obs}\ndata: {level: info}\n"
	obsSecret    = "apiVersion: v1\nkind: Secret\nmetadata: {name: agent, namespace: obs}\nstringData: {token: CANARY}\n"
	obsAccount   = `apiVersion: v1
kind: ServiceAccount
metadata: {name: agent, namespace: obs}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: agent}
rules: [{apiGroups: [""], resources: [nodes], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: agent}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: agent}
subjects: [{kind: ServiceAccount, name: agent, namespace: obs}]
`
	obsCustom = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: probes.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: probes, singular: probe, kind: Probe, listKind: ProbeList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
---
apiVersion: example.com/v1
kind: Probe
metadata: {name: agent, namespace: obs}
spec: {every: 10s}
`
)

// obsAgent is the DaemonSet; its pods have the labels app and tier.
func obsAgent(image, selector, annotations string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: obs, annotations: {%s}}
spec:
  selector: {matchLabels: {%s}}
  template:
    metadata: {labels: {app: agent, tier: node}}
    spec:
      serviceAccountName: agent
      containers: [{name: c, image: "agent:%s", resources: {requests: {cpu: 10m}}}]
`, annotations, selector, image)
}

// another is a DaemonSet like the agent, of another name.
func another(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(obsAgent("1", "app: agent", ""), "app: agent", "app: "+name), "name: agent, namespace", "name: "+name+", namespace")
}

func agentFiles() map[string]string {
	return map[string]string{
		"namespace.yaml": obsNamespace, "config.yaml": obsConfig, "secret.yaml": obsSecret, "account.yaml": obsAccount, "custom.yaml": obsCustom,
		"agent.yaml": obsAgent("1", "app: agent", ""), "second.yaml": another("second"),
	}
}

// A fleet is applied, found in line, changed by hand and by Git, pruned, taken
// over and replaced, on a real cluster.
func TestRealApply(t *testing.T) {
	cp := kubetest.Start(t, kubetest.Options{Controllers: true, Scheduler: true, Nodes: 3})
	g := newGitOps(t, cp, "may: [apply, prune], maxDeletes: 2", agentFiles())

	g.run(0, []string{"plan"}, "DaemonSet obs/agent create", "obs/agent gains 3 nodes", "Namespace obs create", "9 to create, 1 to configure")
	g.apply(0, "DaemonSet obs/agent created", "Probe obs/agent created", "10 created, 0 configured, 0 unchanged, 0 pruned, 0 kept, 0 held, 0 failed")
	cp.WaitDaemonSetReady(t, "obs", "agent", 3)
	if out := g.run(0, []string{"diff"}, "9 objects as in Git", "1 Secret, which are never read"); strings.Contains(out, "CANARY") {
		t.Error("a Secret is shown")
	}
	before := kubectl(t, cp, "get", "configmaps,daemonsets,secrets", "-A", "-o", "jsonpath={range .items[*]}{.metadata.name} {.metadata.resourceVersion}{\"\\n\"}{end}")
	g.apply(0, "0 created, 0 configured")
	if after := kubectl(t, cp, "get", "configmaps,daemonsets,secrets", "-A", "-o", "jsonpath={range .items[*]}{.metadata.name} {.metadata.resourceVersion}{\"\\n\"}{end}"); after != before {
		t.Errorf("a second run writes:\n%s\nbefore:\n%s", after, before)
	}

	t.Run("ByHand", func(t *testing.T) { byHand(&gitOps{t, cp, g.dir}) })
	t.Run("Prune", func(t *testing.T) { prunes(&gitOps{t, cp, g.dir}) })
	t.Run("Adopt", func(t *testing.T) { adopts(&gitOps{t, cp, g.dir}) })
	t.Run("Selector", func(t *testing.T) { replaces(&gitOps{t, cp, g.dir}) })
	t.Run("Moved", func(t *testing.T) { moves(&gitOps{t, cp, g.dir}) })
}

// byHand: what somebody changes by hand is told with the program and the time,
// is not taken back against the other manager, and is where Git says so.
func byHand(g *gitOps) {
	g.edit("ds/agent", "s/cpu: 10m/cpu: 90m/")
	g.run(1, []string{"diff"}, "@ spec.template.spec.containers[name=c].resources.requests.cpu", "- 90m, last written by kubectl-edit not later than 20", "+ 10m")
	g.edit("ds/agent", "s/cpu: 90m/cpu: 10m/")
	file := filepath.Join(g.t.TempDir(), "tuned.yaml")
	write(g.t, filepath.Dir(file), "tuned.yaml", "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: agent, namespace: obs}\nspec: {template: {spec: {priorityClassName: system-node-critical}}}\n")
	kubectl(g.t, g.cp, "apply", "--server-side", "--field-manager=node-tuner", "-f", file)
	g.run(1, []string{"diff", "-o", "json"}, `"path": "spec.template.spec.priorityClassName"`, `"change": "added"`, `"manager": "node-tuner"`, `"operation": "Apply"`)
	g.run(1, []string{"report", "--fail-on", "warning"}, "manager obs/agent node-tuner", `spec.template.spec.priorityClassName is "system-node-critical" and not in Git, last written by node-tuner not later than 20`)
	g.apply(0, "held, AddedByOthers: spec.template.spec.priorityClassName is") // which an apply would leave
	write(g.t, filepath.Dir(file), "tuned.yaml", "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: agent, namespace: obs}\n")
	kubectl(g.t, g.cp, "apply", "--server-side", "--field-manager=node-tuner", "-f", file)
	g.run(0, []string{"diff"})

	kubectl(g.t, g.cp, "-n", "obs", "set", "image", "ds/agent", "c=agent:hotfix")
	g.run(1, []string{"diff", "ds/agent"}, "spec.template.spec.containers[name=c].image", "- agent:hotfix, last written by kubectl-set not later than 20", "+ agent:1", "Modified confirmed")
	g.run(1, []string{"report", "--fail-on", "warning"}, "Modified", "manager obs/agent kubectl-set")
	g.apply(1, `DaemonSet obs/agent failed: Conflict: others own fields with other values: "kubectl-set" owns spec.template.spec.containers[name="c"].image`, "rollcall.dev/force: fields")
	g.put("agent.yaml", obsAgent("1", "app: agent", "rollcall.dev/force: fields"))
	g.apply(0, "DaemonSet obs/agent configured")
	g.run(0, []string{"diff"})
	g.cp.WaitDaemonSetReady(g.t, "obs", "agent", 3)
}

// edit is kubectl edit with sed for an editor.
func (g *gitOps) edit(object, program string) {
	g.t.Helper()
	g.t.Setenv("KUBE_EDITOR", "sed -i '"+program+"'")
	kubectl(g.t, g.cp, "-n", "obs", "edit", object)
}

// prunes: what left Git goes, no more of it than allowed, and no DaemonSet
// without approval of the commit.
func prunes(g *gitOps) {
	g.put("config.yaml", strings.Replace(obsConfig, "name: agent", "name: other", 1))
	g.run(0, []string{"plan"}, "ConfigMap obs/agent prune", "ConfigMap obs/other create")
	g.apply(0, "ConfigMap obs/agent pruned", "ConfigMap obs/other created")
	kubectl(g.t, g.cp, "-n", "obs", "annotate", "configmap/other", "rollcall.dev/prune=disabled")
	g.put("config.yaml", obsConfig)
	g.apply(0, "ConfigMap obs/agent created", "1 kept", "ConfigMap obs/other held: Kept: its annotation rollcall.dev/prune is disabled")
	kubectl(g.t, g.cp, "-n", "obs", "delete", "configmap/other")
	g.apply(0, "0 pruned, 0 kept, 0 held")

	g.put("secret.yaml", "")
	g.run(0, []string{"plan"}, "Secret obs/agent prune")
	if out := g.apply(0, "Secret obs/agent pruned"); strings.Contains(out, "CANARY") {
		g.t.Error("a Secret is shown")
	}
	g.apply(0, "nothing to do") // nor is it looked for again

	commit := g.put("second.yaml", "")
	g.run(1, []string{"plan"}, "obs/second LOSES 3 nodes: node-0, node-1, node-2", "the DaemonSet is no longer in Git")
	g.apply(1, "DaemonSet obs/second held: NotApproved", commit)
	g.run(2, []string{"apply", "--clusters", "one", "--approve", strings.Repeat("a", 40)}, "the commit to apply is "+commit)
	g.run(0, []string{"apply", "--clusters", "one", "--approve", commit}, "DaemonSet obs/second pruned")
	g.apply(0, "0 pruned")
}

// adopts: what another deployer has is held, explained, and taken over without
// a restart, and what it set beside Git goes.
func adopts(g *gitOps) {
	for _, d := range []struct {
		name, meta, held string
		deliver          []string
	}{
		{"client", "", "deployed by kubectl", []string{"apply"}},
		{"server", "", "deployed by kubectl", []string{"apply", "--server-side"}},
		{"argo", ", labels: {argocd.argoproj.io/instance: agents}", "deployed by Argo CD agents", []string{"apply", "--server-side", "--field-manager=argocd-controller"}},
		{"flux", ", labels: {kustomize.toolkit.fluxcd.io/name: agents}", "deployed by Flux Kustomization agents", []string{"apply", "--server-side", "--field-manager=kustomize-controller"}},
		{"helm", ", labels: {app.kubernetes.io/managed-by: Helm}, annotations: {meta.helm.sh/release-name: agents}", "deployed by Helm agents", []string{"create", "--field-manager=helm"}},
	} {
		g.t.Run(d.name, func(t *testing.T) {
			g := &gitOps{t, g.cp, g.dir}
			wanted := strings.Replace(another(d.name), ", annotations: {}", "", 1)
			file := filepath.Join(t.TempDir(), "m.yaml")
			write(t, filepath.Dir(file), "m.yaml", strings.Replace(wanted, "namespace: obs", "namespace: obs"+d.meta, 1))
			kubectl(t, g.cp, append(d.deliver, "-f", file)...)
			g.cp.WaitDaemonSetReady(t, "obs", d.name, 3)
			pods := g.pods("app=" + d.name)

			g.put(d.name+".yaml", wanted)
			g.run(0, []string{"plan"}, "held, OtherDeployer: it is "+d.held, "--adopt 'DaemonSet/obs/"+d.name+"'")
			g.apply(1, "DaemonSet obs/"+d.name+" held: OtherDeployer")
			g.run(0, []string{"apply", "--all", "--adopt", "DaemonSet/obs/" + d.name}, "taken over from ", "DaemonSet obs/"+d.name+" configured")
			g.run(0, []string{"diff"})
			g.apply(0, "0 configured")
			if left := kubectl(t, g.cp, "-n", "obs", "get", "ds/"+d.name, "-o", "jsonpath={.metadata.generation} {.metadata.labels} {.metadata.annotations}"); !strings.HasPrefix(left, "1 {\"rollcall.dev/fleet\":\"real\"} ") || strings.Contains(left, "agents") {
				t.Errorf("the template was changed, or the other's marks stay: %s", left)
			}
			if now := g.pods("app=" + d.name); now != pods {
				t.Errorf("pods restarted:\n%s\nwere:\n%s", now, pods)
			}
		})
	}
}

// moves: a cluster that goes by another name, and an overlay that goes to
// another cluster, delete nothing by themselves.
func moves(g *gitOps) {
	declaration, err := os.ReadFile(filepath.Join(g.dir, "clusters/one.yaml"))
	if err != nil {
		g.t.Fatal(err)
	}
	fleet, err := os.ReadFile(filepath.Join(g.dir, "rollcall.yaml"))
	if err != nil {
		g.t.Fatal(err)
	}
	left := g.put("client.yaml", "")
	write(g.t, g.dir, "clusters/one.yaml", strings.Replace(string(declaration), "name: one", "name: uno", 1))
	g.apply(1, "DaemonSet obs/client held: ClusterRenamed: what was applied was for cluster \"one\", and this is \"uno\"")
	g.apply(1, "ClusterRenamed") // nor the next time
	write(g.t, g.dir, "clusters/one.yaml", string(declaration))

	write(g.t, g.dir, "rollcall.yaml", strings.Replace(string(fleet), "clusters: {}, overlay", "clusters: {names: [other]}, overlay", 1))
	g.run(1, []string{"plan"}, "DaemonSet obs/agent prune", "OverlayMoved: it came from overlay \"base\"", "LOSES 3 nodes")
	g.apply(1, "held: OverlayMoved")
	g.run(1, []string{"report", "--fail-on", "warning"}, "Orphaned", "held, OverlayMoved")
	write(g.t, g.dir, "rollcall.yaml", string(fleet))
	g.run(0, []string{"apply", "--all", "--approve", left}, "DaemonSet obs/client pruned", "1 pruned, 0 kept, 0 held")
}

// replaces: another selector is held with the two ways out, and on request the
// DaemonSet is made anew around its pods.
func replaces(g *gitOps) {
	pods := g.pods("app=agent")
	g.put("agent.yaml", obsAgent("1", "app: agent, tier: node", ""))
	g.run(0, []string{"plan"}, "held, SelectorImmutable", "Either keep the old selector in Git, or annotate it with rollcall.dev/replace: orphan")
	g.apply(1, "DaemonSet obs/agent held: SelectorImmutable")
	g.put("agent.yaml", obsAgent("1", "app: agent, tier: node", "rollcall.dev/replace: orphan"))
	g.apply(0, "DaemonSet obs/agent created: Replaced: with another selector; 3 pods were kept")
	if now := g.pods("app=agent,tier=node"); now != pods {
		g.t.Errorf("the pods were not kept:\n%s\nwere:\n%s", now, pods)
	}
	g.apply(0, "0 created, 0 configured")
}

// pods are the names and UIDs of pods, sorted.
func (g *gitOps) pods(selector string) string {
	g.t.Helper()
	return kubectl(g.t, g.cp, "-n", "obs", "get", "pods", "-l", selector, "--sort-by=.metadata.name", "-o", "jsonpath={range .items[*]}{.metadata.name} {.metadata.uid}{\"\\n\"}{end}")
}
