package build

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"rollcall.dev/rollcall/render"
)

// Each of these ended the process inside kustomize, where no recover helps,
// or was lost in silence. A regression of the first kind ends the test too.
func TestRefusedBeforeKustomizeDies(t *testing.T) {
	patch := "resources: [ds.yaml]\npatches: [{path: p.yaml, target: {kind: DaemonSet}}]\n"
	crd := func(properties string) string {
		return fmt.Sprintf(`{"a.B": {"Schema": {"properties": {"kind": {}, "apiVersion": {}, "metadata": {}, %s}}}}`, properties)
	}
	cases := map[string]struct {
		reason            string
		files             map[string]string
		code, file, field string
	}{
		"hidden document": {
			"kustomize parses what follows ---# as a document, in which the alias cycle ends the process",
			map[string]string{"kustomization.yaml": patch, "p.yaml": "a\n---#x\n- &a [*a]\n"},
			render.InvalidManifest, "p.yaml", "line 2",
		},
		"hidden document inline": {
			"the same in a patch that is text",
			map[string]string{"kustomization.yaml": "resources: [ds.yaml]\npatches:\n- target: {kind: DaemonSet}\n  patch: \"a\\n---#x\\n- &a [*a]\\n\"\n"},
			render.InvalidManifest, "kustomization.yaml", "patches[0].patch line 2",
		},
		"definition of itself": {
			"kustomize follows $ref without end",
			map[string]string{"kustomization.yaml": "resources: [ds.yaml]\ncrds: [c.json]\n", "c.json": crd(`"self": {"$ref": "a.B"}`)},
			render.Unsupported, "c.json", "a.B",
		},
		"definitions that double": {
			"kustomize follows two references to one definition twice",
			map[string]string{"kustomization.yaml": "resources: [ds.yaml]\ncrds: [c.yaml]\n", "c.yaml": doublingDefinitions(40)},
			render.OverBudget, "c.yaml", "",
		},
		"second document": {
			"kustomize drops the second document of a kustomization",
			map[string]string{"kustomization.yaml": "resources: [ds.yaml]\n---\nresources: [more.yaml]\n"},
			render.InvalidManifest, "kustomization.yaml", "line 3",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := once(t, shared, withDaemonSet(tc.files))
			e, _ := errors.AsType[*render.Error](err)
			if e == nil || e.Code != tc.code || e.File != tc.file || (tc.field != "" && e.Field != tc.field) {
				t.Errorf("%s: got %v, want %s in %q at %q", tc.reason, err, tc.code, tc.file, tc.field)
			}
		})
	}
}

func TestDefinitionsThatEndAreBuilt(t *testing.T) {
	files := withDaemonSet(map[string]string{
		"kustomization.yaml": "resources: [ds.yaml]\ncrds: [c.json]\n",
		"c.json":             `{"a.B": {"Schema": {"properties": {"kind": {}, "apiVersion": {}, "metadata": {}, "c": {"$ref": "a.C"}, "d": {"$ref": "a.C"}}}}, "a.C": {"Schema": {"properties": {}}}}`,
	})
	d, err := once(t, shared, files)
	if err != nil || len(d.DaemonSets) != 1 {
		t.Errorf("%d DaemonSets, %v; want 1", len(d.DaemonSets), err)
	}
}

// Kustomize repeats content in its errors; none of it may reach ours.
func TestErrorsHoldNoContent(t *testing.T) {
	const canary = "CANARY"
	cases := map[string]map[string]string{
		"literal without a value": {"kustomization.yaml": "resources: [ds.yaml]\nsecretGenerator: [{name: s, literals: ['CANARY, expected CANARY']}]\n"},
		"literal of a plugin": {
			"kustomization.yaml": "resources: [ds.yaml]\ngenerators: [g.yaml]\n",
			"g.yaml":             "apiVersion: builtin\nkind: SecretGenerator\nmetadata: {name: s}\nliterals: ['x]CANARY']\n",
		},
		"environment file": {
			"kustomization.yaml": "resources: [ds.yaml]\nsecretGenerator: [{name: s, envs: [e.env]}]\n",
			"e.env":              "CANARY\xff=1\n",
		},
		"patch with a bracket":   {"kustomization.yaml": "resources: [ds.yaml]\npatches:\n- target: {kind: DaemonSet}\n  patch: '{a: [], b: CANARY}'\n"},
		"patch with a back tick": {"kustomization.yaml": "resources: [ds.yaml]\npatches:\n- target: {kind: DaemonSet}\n  patch: '{a: \"`CANARY`\"}'\n"},
		"patch of a wrong form":  {"kustomization.yaml": "resources: [ds.yaml]\npatches:\n- patch: '{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent, namespace: ns}, spec: {template: {spec: {containers: CANARY}}}}'\n"},
	}
	for name, files := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := once(t, shared, withDaemonSet(files))
			if err == nil {
				t.Fatal("it was built: the case shows nothing")
			}
			for _, leak := range []string{canary, "67 65 78 65 82 89"} {
				if strings.Contains(err.Error(), leak) {
					t.Errorf("the error holds content: %v", err)
				}
			}
		})
	}
}

func withDaemonSet(files map[string]string) fstest.MapFS {
	out := fstest.MapFS{"ds.yaml": {Data: []byte(daemonSet)}}
	for name, content := range files {
		out[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return out
}

func doublingDefinitions(levels int) string {
	var b strings.Builder
	for i := range levels {
		fmt.Fprintf(&b, "d%d: {Schema: {properties: {kind: {}, apiVersion: {}, metadata: {}, a: {$ref: d%d}, b: {$ref: d%d}}}}\n", i, i+1, i+1)
	}
	return b.String()
}
