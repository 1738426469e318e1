package build

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tolerating is a DaemonSet with tolerations, or a patch of them.
func tolerating(tolerations string) string {
	return "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: agent}\nspec:\n  selector: {matchLabels: {app: agent}}\n  template:\n    metadata: {labels: {app: agent}}\n    spec:\n      tolerations: [" + tolerations + "]\n      containers: [{name: c, image: \"i:1\"}]\n"
}

// What an overlay does to what it declares is said where it does it, and only
// there.
func TestOdd(t *testing.T) {
	const settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"
	for name, tc := range map[string]struct {
		files map[string]string
		want  []string // codes and objects
	}{
		"ClusterScopedInANamespace": {map[string]string{
			"kustomization.yaml": "namespace: prod\nresources: [role.yaml, ds.yaml]",
			"role.yaml":          "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: agent}\nrules: []\n",
		}, nil},
		"NamespaceRenamed": {map[string]string{
			"kustomization.yaml": "namespace: prod\nresources: [namespace.yaml, ds.yaml]",
			"namespace.yaml":     "apiVersion: v1\nkind: Namespace\nmetadata: {name: base}\n",
		}, nil},
		"GeneratorMergesAFile": {map[string]string{
			"kustomization.yaml":      "resources: [base, ds.yaml]\nconfigMapGenerator: [{name: settings, behavior: merge, literals: [a=b]}]",
			"base/kustomization.yaml": "resources: [settings.yaml]",
			"base/settings.yaml":      settings + "data: {x: y}\n",
		}, nil},
		"FileWithAHash": {map[string]string{
			"kustomization.yaml": "resources: [settings.yaml, ds.yaml]",
			"settings.yaml":      "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\n  annotations: {kustomize.config.k8s.io/needs-hash: \"true\"}\n",
		}, nil},
		"LocalConfig": {map[string]string{
			"kustomization.yaml": "resources: [settings.yaml, ds.yaml]",
			"settings.yaml":      "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\n  annotations: {config.kubernetes.io/local-config: \"true\"}\n",
		}, nil},
		"NameLikeAGenerated": {map[string]string{
			"kustomization.yaml":      "resources: [base, more.yaml, ds.yaml]",
			"base/kustomization.yaml": "configMapGenerator: [{name: settings, literals: [a=b]}]",
			"more.yaml":               strings.Replace(settings, "settings", "settings-more", 1),
		}, nil},
		"SameNameElsewhere": {map[string]string{
			"kustomization.yaml": "resources: [one.yaml, two.yaml, ds.yaml]",
			"one.yaml":           settings,
			"two.yaml":           strings.Replace(settings, "settings", "settings, namespace: other", 1),
		}, nil},
		"PatchOfAllMetadata": {map[string]string{
			"kustomization.yaml": "resources: [settings.yaml, ds.yaml]\npatches:\n- target: {kind: ConfigMap}\n  patch: |\n    - {op: replace, path: /metadata, value: {name: other}}\n",
			"settings.yaml":      settings,
		}, nil},
		"TolerationsOfAll": {map[string]string{
			"kustomization.yaml": "resources: [ds.yaml]\npatches: [{path: patch.yaml}]",
			"ds.yaml":            tolerating("{key: gpu, operator: Exists, effect: NoSchedule}, {key: node-role.kubernetes.io/control-plane, effect: NoSchedule}"),
			"patch.yaml":         tolerating("{operator: Exists}"),
		}, nil},
		"TolerationsOfAllEffects": {map[string]string{
			"kustomization.yaml": "resources: [ds.yaml]\npatches: [{path: patch.yaml}]",
			"ds.yaml":            tolerating("{key: gpu, value: a, effect: NoSchedule}, {key: gpu, value: a, effect: NoExecute}"),
			"patch.yaml":         tolerating("{key: gpu, operator: Exists}"),
		}, nil},
		"TolerationsOfOneValue": {map[string]string{
			"kustomization.yaml": "resources: [ds.yaml]\npatches: [{path: patch.yaml}]",
			"ds.yaml":            tolerating("{key: gpu, operator: Exists}"),
			"patch.yaml":         tolerating("{key: gpu, operator: Equal}"),
		}, []string{"TolerationsDropped DaemonSet agent"}},
		"TolerationsOfOneEffect": {map[string]string{
			"kustomization.yaml": "resources: [ds.yaml]\npatches: [{path: patch.yaml}]",
			"ds.yaml":            tolerating("{operator: Exists}"),
			"patch.yaml":         tolerating("{operator: Exists, effect: NoSchedule}"),
		}, []string{"TolerationsDropped DaemonSet agent"}},
		"Dropped": {map[string]string{
			"kustomization.yaml": "namespace: prod\nnamePrefix: x-\nresources: [settings.yaml, ds.yaml]\npatches: [{patch: '{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, $patch: delete}'}]",
			"settings.yaml":      settings,
		}, []string{"DaemonSetRenamed DaemonSet prod/x-agent", "ObjectDropped ConfigMap settings"}},
		"ComponentPrefix": {map[string]string{
			"kustomization.yaml":   "resources: [ds.yaml, settings.yaml]\ncomponents: [c]\nnamespace: prod",
			"c/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnamePrefix: x-\nresources: [more.yaml]\n",
			"c/more.yaml":          strings.Replace(settings, "settings", "more", 1),
			"settings.yaml":        settings,
		}, []string{"DaemonSetRenamed DaemonSet prod/x-agent"}},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.files["ds.yaml"] == "" {
				tc.files["ds.yaml"] = tolerating("")
			}
			d, err := once(t, shared, filesOf(tc.files))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, w := range d.Warnings {
				if w.Code != "NoNamespace" {
					got = append(got, w.Code+" "+w.Field)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
