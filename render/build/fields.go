//lint:file-ignore SA1019 kustomize still loads what these deprecated fields name, so they are judged.

package build

import (
	"fmt"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
)

// use is what kustomize does with the value of a field.
type use int

const (
	useManifest use = iota // a file of objects, or a folder with a kustomization
	useFolder              // a folder with a component
	useYAML                // a YAML file
	useCRDs                // a file of definitions
	usePatch               // a YAML file, or a patch itself
	usePlugin              // a plugin's configuration: itself, a file or a folder
	useData                // a file of any content, as [key=]path
	useEnv                 // a file of any content
)

// entry is one value of a kustomization that kustomize may load.
type entry struct {
	field string
	value string
	use   use
}

// entries lists every value of a kustomization that kustomize may load. It
// follows types.Kustomization of kustomize v0.21.2 field by field; a test
// fails when a later version has fields that this one has not.
func entries(k *types.Kustomization) []entry {
	var all []entry
	add := func(u use, field string, values ...string) {
		for i, v := range values {
			all = append(all, entry{field: fmt.Sprintf("%s[%d]", field, i), value: v, use: u})
		}
	}
	add(useManifest, "resources", k.Resources...)
	add(useManifest, "bases", k.Bases...)
	add(useFolder, "components", k.Components...)
	add(useCRDs, "crds", k.Crds...)
	add(useYAML, "configurations", k.Configurations...)
	if p := k.OpenAPI["path"]; p != "" {
		all = append(all, entry{"openapi.path", p, useYAML})
	}
	add(usePlugin, "generators", k.Generators...)
	add(usePlugin, "transformers", k.Transformers...)
	add(usePlugin, "validators", k.Validators...)
	for i, p := range k.PatchesStrategicMerge {
		all = append(all, entry{fmt.Sprintf("patchesStrategicMerge[%d]", i), string(p), usePatch})
	}
	for i, r := range k.Replacements {
		if r.Path != "" {
			all = append(all, entry{fmt.Sprintf("replacements[%d].path", i), r.Path, useYAML})
		}
	}
	all = append(all, patchPaths("patches", k.Patches)...)
	all = append(all, patchPaths("patchesJson6902", k.PatchesJson6902)...)
	for i, g := range k.ConfigMapGenerator {
		all = append(all, sources(fmt.Sprintf("configMapGenerator[%d]", i), g.KvPairSources)...)
	}
	for i, g := range k.SecretGenerator {
		all = append(all, sources(fmt.Sprintf("secretGenerator[%d]", i), g.KvPairSources)...)
	}
	return all
}

func patchPaths(field string, patches []types.Patch) []entry {
	var all []entry
	for i, p := range patches {
		if p.Path != "" {
			all = append(all, entry{fmt.Sprintf("%s[%d].path", field, i), p.Path, useYAML})
		}
	}
	return all
}

func sources(field string, from types.KvPairSources) []entry {
	var all []entry
	for i, f := range from.FileSources {
		all = append(all, entry{fmt.Sprintf("%s.files[%d]", field, i), f, useData})
	}
	for i, f := range from.EnvSources {
		all = append(all, entry{fmt.Sprintf("%s.envs[%d]", field, i), f, useEnv})
	}
	if from.EnvSource != "" {
		all = append(all, entry{field + ".env", from.EnvSource, useEnv})
	}
	return all
}

// inline lists the patches that are written into a kustomization as text,
// which kustomize parses as it parses a file.
func inline(k *types.Kustomization) []entry {
	var all []entry
	for i, p := range k.Patches {
		all = append(all, entry{fmt.Sprintf("patches[%d].patch", i), p.Patch, usePatch})
	}
	for i, p := range k.PatchesJson6902 {
		all = append(all, entry{fmt.Sprintf("patchesJson6902[%d].patch", i), p.Patch, usePatch})
	}
	return all
}

// unsupported names the first field that would run a program, empty when there
// is none.
func unsupported(k *types.Kustomization) string {
	switch {
	case len(k.HelmCharts) > 0:
		return "helmCharts"
	case k.HelmGlobals != nil:
		return "helmGlobals"
	case len(k.HelmChartInflationGenerator) > 0:
		return "helmChartInflationGenerator"
	}
	return ""
}

// dataPath is the path of a generator's [key=]path.
func dataPath(value string) string {
	if _, p, keyed := strings.Cut(value, "="); keyed {
		return p
	}
	return value
}
