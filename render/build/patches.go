//lint:file-ignore SA1019 kustomize still loads what these deprecated fields name, so they are judged.

package build

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"

	"go.yaml.in/yaml/v3"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/render"
)

// candidate is an object that a patch may select, by the names and namespaces
// that it had at first and has when the patch is applied. Kustomize matches
// either; one name or namespace too many errs on the side of a match.
type candidate struct {
	gvk        resid.Gvk
	names      []string // the first is the name in the file, the last the current one
	namespaces []string
	file       string                     // that declares it
	object     *unstructured.Unstructured // as declared, nil when generated
}

// scope is the objects that a kustomization's patches see.
type scope struct {
	candidates []candidate
	unsure     bool // something may have made or renamed objects unseen
}

// patches warns of patches that change nothing: a target that selects no
// object, or a patch without content. Kustomize passes both in silence, but
// panics on an empty patch with a target.
// What the overlay declares, with the names that it gives, is in all.
func (g *guard) patches(root *kustomization) (all scope, warnings []render.Error, err error) {
	j := judge{guard: g, done: map[*kustomization]scope{}}
	all = j.overlay(root)
	return all, j.warnings, j.err
}

type judge struct {
	guard    *guard
	done     map[*kustomization]scope
	warnings []render.Error
	err      error
}

// overlay judges the patches of a kustomization and of its bases, and returns
// what it renders.
func (j *judge) overlay(k *kustomization) scope {
	if s, known := j.done[k]; known {
		return s
	}
	s := j.within(k, scope{})
	j.done[k] = s
	return s
}

// within adds a kustomization's objects to a scope, judges its patches in it,
// and renames as it does. A component's scope begins with its parent's objects.
func (j *judge) within(k *kustomization, s scope) scope {
	for _, e := range entries(&k.spec) {
		if base, ok := k.bases[e.field]; ok {
			sub := j.overlay(base)
			s.candidates = append(s.candidates, sub.candidates...)
			s.unsure = s.unsure || sub.unsure
		}
		for i := range k.objects[e.field] {
			if local(&k.objects[e.field][i]) {
				continue
			}
			s.candidates = append(s.candidates, candidateOf(show(path.Join(k.dir, e.value)), &k.objects[e.field][i]))
		}
	}
	s.candidates = append(s.candidates, generated(k)...)
	s.unsure = s.unsure || len(k.spec.Generators) > 0
	for _, c := range k.components {
		s = j.within(c, s)
	}
	s.unsure = s.unsure || j.patchRenames(k)
	j.patches(k, "patches", k.spec.Patches, s)
	after := renamed(k, s)
	both := scope{slices.Concat(s.candidates, after.candidates), s.unsure || len(k.spec.Configurations) > 0}
	j.patches(k, "patchesJson6902", k.spec.PatchesJson6902, both)
	after.unsure = both.unsure || len(k.spec.Transformers)+len(k.spec.Replacements) > 0
	return after
}

func candidateOf(file string, u *unstructured.Unstructured) candidate {
	gvk := u.GroupVersionKind()
	return candidate{resid.NewGvk(gvk.Group, gvk.Version, gvk.Kind), []string{u.GetName()}, []string{u.GetNamespace()}, file, u}
}

// local tells objects that kustomize leaves out, as their files ask.
func local(u *unstructured.Unstructured) bool {
	v, there := u.GetAnnotations()[konfig.IgnoredByKustomizeAnnotation]
	return there && v != "false"
}

func generated(k *kustomization) []candidate {
	var all []candidate
	add := func(kind string, args types.GeneratorArgs) {
		all = append(all, candidate{resid.NewGvk("", "v1", kind), []string{args.Name}, []string{args.Namespace}, show(k.file), nil})
	}
	for _, g := range k.spec.ConfigMapGenerator {
		add("ConfigMap", g.GeneratorArgs)
	}
	for _, g := range k.spec.SecretGenerator {
		add("Secret", g.GeneratorArgs)
	}
	return all
}

// renamed gives the objects the names that they have after a kustomization.
func renamed(k *kustomization, s scope) scope {
	prefix, suffix, namespace := k.spec.NamePrefix, k.spec.NameSuffix, k.spec.Namespace
	out := scope{unsure: s.unsure}
	for _, c := range s.candidates {
		if prefix+suffix != "" && !keepsName(c.gvk.Kind) {
			c.names = []string{c.names[0], prefix + c.names[len(c.names)-1] + suffix}
		}
		switch {
		case namespace == "":
		case c.gvk.Kind == "Namespace" && c.gvk.Group == "": // kustomize makes it the one that the others are in
			c.names = []string{c.names[0], namespace}
		case !c.gvk.IsClusterScoped():
			c.namespaces = []string{c.namespaces[0], namespace}
		}
		out.candidates = append(out.candidates, c)
	}
	return out
}

// keepsName tells the kinds that kustomize gives no prefix or suffix.
func keepsName(kind string) bool {
	return kind == "CustomResourceDefinition" || kind == "APIService" || kind == "Namespace"
}

// mayRename finds in a patch what can give an object another identity.
var mayRename = regexp.MustCompile(`/metadata(/name|[^/\w-]|$)|/kind|/apiVersion`)

// patchRenames tells whether a patch may rename objects, which is not
// followed here.
func (j *judge) patchRenames(k *kustomization) bool {
	for _, p := range slices.Concat(k.spec.Patches, k.spec.PatchesJson6902) {
		if p.Options != nil || mayRename.MatchString(j.content(k, p)) {
			return true
		}
	}
	return false
}

// content is the text of a patch; the walk has read its file already.
func (j *judge) content(k *kustomization, p types.Patch) string {
	if p.Path == "" {
		return p.Patch
	}
	abs, err := j.guard.resolve(k, entry{}, p.Path)
	if err != nil {
		return ""
	}
	text, err := j.guard.tree.read(abs)
	if err != nil {
		return ""
	}
	return string(text)
}

// patches judges a list of patches in the scope that they are applied in.
func (j *judge) patches(k *kustomization, field string, patches []types.Patch, s scope) {
	for i, p := range patches {
		e := render.Error{File: show(k.file), Field: fmt.Sprintf("%s[%d]", field, i)}
		if blank(j.content(k, p)) {
			e.Code, e.Message = render.PatchEmpty, "the patch is empty and changes nothing: fill it in, or remove it"
			if p.Target != nil && j.err == nil {
				j.err = &e
			}
			j.warnings = append(j.warnings, e)
			continue
		}
		if p.Target == nil || s.unsure {
			continue
		}
		selector, err := types.NewSelectorRegex(p.Target)
		if err != nil {
			continue // kustomize says why
		}
		e.Field += ".target"
		switch names := selected(selector, s.candidates); {
		case len(names) == 0:
			e.Code, e.Message = render.PatchMatchesNothing, nothing(p.Target, s.candidates)
			j.warnings = append(j.warnings, e)
		case len(names) > 1 && p.Target.Name != "":
			e.Code = render.PatchMatchesSeveral
			e.Message = fmt.Sprintf("name %q is a regular expression and selects %d objects: %s", p.Target.Name, len(names), strings.Join(names[:min(len(names), 10)], ", "))
			j.warnings = append(j.warnings, e)
		}
	}
}

// selected names the objects that a target selects, each once.
func selected(s *types.SelectorRegex, candidates []candidate) []string {
	var names []string
	for _, c := range candidates {
		if name := c.gvk.Kind + " " + c.names[0]; selects(s, c) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// blank tells whether a patch says nothing: no document, or empty ones.
func blank(text string) bool {
	p, err := render.Parse("", []byte(text))
	return err == nil && !slices.ContainsFunc(p.Docs, func(doc *yaml.Node) bool {
		n := resolved(doc)
		return n != nil && n.ShortTag() != "!!null" && (n.Kind == yaml.ScalarNode || len(n.Content) > 0)
	})
}

// selects follows resmap's Select; selectors of labels and annotations are
// taken as met, since patches may change what they look at.
func selects(s *types.SelectorRegex, c candidate) bool {
	return s.MatchGvk(c.gvk) && slices.ContainsFunc(c.names, s.MatchName) &&
		slices.ContainsFunc(c.namespaces, func(ns string) bool {
			if ns == "" {
				ns = resid.DefaultNamespace
			}
			return s.MatchNamespace(ns)
		})
}

// nothing words a target that selects no object, with the nearest name.
func nothing(target *types.Selector, candidates []candidate) string {
	message := fmt.Sprintf("the target selects none of the %d objects there", len(candidates))
	names, within := make([]string, 0, len(candidates)), ""
	for _, c := range candidates {
		names = append(names, c.names[0])
		if strings.Contains(target.Name, c.names[0]) { // most likely named with its prefix or suffix
			within = c.names[0]
		}
	}
	if nearest := cmp.Or(clusters.Nearest(target.Name, names), within); nearest != "" {
		return fmt.Sprintf("%s; the nearest name is %q", message, nearest)
	}
	return message + ": correct it, or remove the patch"
}
