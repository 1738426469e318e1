package build

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/render"
	"rollcall.dev/rollcall/sync/source"
)

// Every feature of kustomize that needs neither network nor program gives what
// kustomize alone gives, object by object.
func TestFeatures(t *testing.T) {
	base := map[string]string{
		"base/kustomization.yaml": "resources: [ds.yaml, sa.yaml]\n",
		"base/ds.yaml":            "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: agent, namespace: obs}\nspec:\n  selector: {matchLabels: {app: agent}}\n  template:\n    metadata: {labels: {app: agent}}\n    spec: {serviceAccountName: agent, containers: [{name: c, image: 'agent:1'}]}\n",
		"base/sa.yaml":            "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: agent, namespace: obs}\n",
	}
	merge := "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: agent, namespace: obs}\nspec: {template: {spec: {containers: [{name: c, env: [{name: A, value: b}]}]}}}\n"
	cases := map[string]map[string]string{
		"namePrefix and suffix": {"kustomization.yaml": "resources: [base]\nnamePrefix: a-\nnameSuffix: -z\n"},
		"namespace":             {"kustomization.yaml": "resources: [base]\nnamespace: other\n"},
		"labels":                {"kustomization.yaml": "resources: [base]\nlabels: [{pairs: {a: b}, includeSelectors: true}, {pairs: {c: d}, includeTemplates: true}]\ncommonAnnotations: {e: f}\n"},
		"commonLabels":          {"kustomization.yaml": "resources: [base]\ncommonLabels: {a: b}\n"},
		"images":                {"kustomization.yaml": "resources: [base]\nimages: [{name: agent, newName: mirror/agent, newTag: '2'}, {name: other, digest: 'sha256:aaaa'}]\n"},
		"replicas":              {"kustomization.yaml": "resources: [base, d.yaml]\nreplicas: [{name: d, count: 3}]\n", "d.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d, namespace: obs}\nspec: {replicas: 1}\n"},
		"generators":            {"kustomization.yaml": "resources: [base]\nconfigMapGenerator: [{name: c, namespace: obs, files: [k=f.txt], literals: [a=b], envs: [e.env]}]\nsecretGenerator: [{name: s, namespace: obs, literals: [t=u], type: Opaque}]\n", "f.txt": "text\n", "e.env": "X=1\nY=2\n"},
		"references to hashes":  {"kustomization.yaml": "resources: [base]\nconfigMapGenerator: [{name: c, namespace: obs, literals: [a=b]}]\npatches: [{path: p.yaml}]\n", "p.yaml": strings.Replace(merge, "env: [{name: A, value: b}]", "envFrom: [{configMapRef: {name: c}}]", 1)},
		"generator options":     {"kustomization.yaml": "resources: [base]\ngeneratorOptions: {disableNameSuffixHash: true, labels: {a: b}}\nconfigMapGenerator: [{name: c, namespace: obs, literals: [a=b]}]\n"},
		"generator merge":       {"kustomization.yaml": "resources: [mid]\nconfigMapGenerator: [{name: c, namespace: obs, behavior: merge, literals: [x=y]}]\n", "mid/kustomization.yaml": "resources: [../base]\nconfigMapGenerator: [{name: c, namespace: obs, literals: [a=b]}]\n"},
		"strategic merge":       {"kustomization.yaml": "resources: [base]\npatches: [{path: p.yaml}]\n", "p.yaml": merge},
		"merge by target":       {"kustomization.yaml": "resources: [base]\npatches: [{path: p.yaml, target: {kind: DaemonSet, labelSelector: 'none=none'}}, {path: p.yaml, target: {kind: DaemonSet}}]\n", "p.yaml": merge},
		"JSON patch":            {"kustomization.yaml": "resources: [base]\npatches: [{target: {kind: DaemonSet, name: ag.*}, patch: '- {op: add, path: /spec/minReadySeconds, value: 5}'}]\n"},
		"patch by rename":       {"kustomization.yaml": "resources: [base]\npatches: [{target: {kind: DaemonSet}, options: {allowNameChange: true}, patch: '- {op: replace, path: /metadata/name, value: b}'}]\n"},
		"old patches":           {"kustomization.yaml": "bases: [base]\npatchesStrategicMerge: [p.yaml]\npatchesJson6902: [{target: {group: apps, version: v1, kind: DaemonSet, name: agent}, path: j.yaml}]\n", "p.yaml": merge, "j.yaml": "- {op: add, path: /spec/minReadySeconds, value: 5}\n"},
		"delete":                {"kustomization.yaml": "resources: [base]\npatches: [{patch: '{apiVersion: v1, kind: ServiceAccount, metadata: {name: agent, namespace: obs}, $patch: delete}'}]\n"},
		"components":            {"kustomization.yaml": "resources: [base]\ncomponents: [c]\n", "c/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches: [{path: p.yaml}]\nconfigMapGenerator: [{name: c, namespace: obs, literals: [a=b]}]\n", "c/p.yaml": merge},
		"replacements":          {"kustomization.yaml": "resources: [base]\nreplacements: [{source: {kind: ServiceAccount, fieldPath: metadata.name}, targets: [{select: {kind: DaemonSet}, fieldPaths: [spec.template.metadata.labels.sa], options: {create: true}}]}, {path: r.yaml}]\n", "r.yaml": "source: {kind: DaemonSet, fieldPath: 'spec.template.spec.containers.0.image', options: {delimiter: ':', index: 1}}\ntargets: [{select: {kind: ServiceAccount}, fieldPaths: [metadata.annotations.tag], options: {create: true}}]\n"},
		"vars":                  {"kustomization.yaml": "resources: [base]\nvars: [{name: V, objref: {kind: ServiceAccount, name: agent, apiVersion: v1}}]\npatches: [{path: p.yaml}]\n", "p.yaml": strings.Replace(merge, "value: b", "value: $(V)", 1)},
		"transformer":           {"kustomization.yaml": "resources: [base]\ntransformers: [t.yaml]\n", "t.yaml": "apiVersion: builtin\nkind: PrefixTransformer\nmetadata: {name: x}\nprefix: a-\nfieldSpecs: [{path: metadata/name}]\n"},
		"generator plugin":      {"kustomization.yaml": "resources: [base]\ngenerators: [g.yaml]\n", "g.yaml": "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: g, namespace: obs}\nliterals: [a=b]\n"},
		"configurations":        {"kustomization.yaml": "resources: [base]\nnamePrefix: a-\nconfigurations: [c.yaml]\n", "c.yaml": "namePrefix: [{path: metadata/annotations/n, create: false}]\n"},
		"sort order":            {"kustomization.yaml": "resources: [base]\nsortOptions: {order: legacy}\n"},
		"managed by":            {"kustomization.yaml": "resources: [base]\nbuildMetadata: [managedByLabel]\n"},
		"list":                  {"kustomization.yaml": "resources: [base, l.yaml]\n", "l.yaml": "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: obs}}\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: obs}}\n"},
		"block texts":           {"kustomization.yaml": "resources: [base, c.yaml]\n", "c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: obs}\ndata:\n  l: |\n    a\n      b\n\n    c\n  f: >-\n    a b\n      c\n    d\n  k: |+\n    x\n\n"},
	}
	for name, more := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, files := range []map[string]string{base, more} {
				for file, text := range files {
					path := filepath.Join(dir, file)
					if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			want, err := library(dir)
			if err != nil {
				t.Fatalf("kustomize alone: %v", err)
			}
			d, err := shared.Render(t.Context(), source.Artifact{Files: os.DirFS(dir)}, fleetOf("."), clusters.Cluster{Name: "c"})
			if err != nil {
				t.Fatal(err)
			}
			if got := texts(t, d); !slices.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			for _, w := range d.Warnings {
				if w.Code == render.ObjectDropped && name != "delete" || w.Code == render.DaemonSetDropped {
					t.Errorf("a false warning: %v", &w)
				}
			}
		})
	}
}
