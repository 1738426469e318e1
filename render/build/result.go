package build

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	"sigs.k8s.io/kustomize/kyaml/resid"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"rollcall.dev/rollcall/render"
)

// rendered is what kustomize made of an overlay, and what is odd about it.
type rendered struct {
	objects  []unstructured.Unstructured
	warnings []render.Error
	origins  map[string]render.Origin // by the objects' identities
}

// build walks and builds the overlay. It holds the one recover of rollcall:
// kustomize panics on some of what it does not expect.
func build(t *tree, res render.Resolution, unguarded bool) (r rendered, err error) {
	defer func() {
		if p := recover(); p != nil {
			r, err = rendered{}, panicked(res.Overlay, p)
		}
	}()
	overlay := path.Join(treeRoot, res.Overlay)
	if err := t.exists(overlay, "the overlay"); err != nil {
		return r, err
	}
	g := newGuard(t)
	name, err := g.find(overlay)
	if err != nil {
		return r, err
	}
	if name == "" && len(res.Components) == 0 {
		r, err = plain(t, overlay)
	} else {
		r, err = g.kustomize(res, overlay, name == "", unguarded)
	}
	if err != nil {
		return rendered{}, err
	}
	if len(r.objects) > t.limits.Objects {
		return rendered{}, over(res.Overlay, t.limits.Objects, "objects")
	}
	r.warnings = append(r.warnings, namespaces(res, r.objects)...)
	return r, nil
}

// finish makes of what was rendered what is desired.
func finish(res render.Resolution, r rendered) (render.Desired, error) {
	d, err := render.Finish(res.Overlay, r.objects)
	d.Origins = r.origins
	d.Warnings = append(r.warnings, d.Warnings...)
	slices.SortStableFunc(d.Warnings, func(a, b render.Error) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Field, b.Field))
	})
	return d, err
}

// exists refuses a folder of the fleet file that is not there.
func (t *tree) exists(abs, who string) error {
	k, err := t.kind(abs)
	switch {
	case err != nil:
		return err
	case k == absent:
		return &render.Error{Code: render.PathNotFound, File: show(abs), Message: who + " does not exist in the repository: add the folder, or correct the fleet file"}
	case k == file:
		return &render.Error{Code: render.PathNotFound, File: show(abs), Message: who + " is a file: name the folder that holds it"}
	}
	return nil
}

// kustomize lets the guard walk the overlay and its components, then runs
// kustomize over what the guard saw.
func (g *guard) kustomize(res render.Resolution, overlay string, bare, unguarded bool) (r rendered, err error) {
	root, err := g.roots(res, overlay, bare)
	if err != nil {
		return r, err
	}
	d := disk{tree: g.tree, guard: g}
	var all scope
	if unguarded {
		d.guard = nil
	} else {
		k, err := g.visit(root)
		if err != nil {
			return r, err
		}
		if all, r.warnings, err = g.patches(k); err != nil {
			return r, err
		}
	}
	o := krusty.MakeDefaultOptions()
	o.LoadRestrictions, o.PluginConfig = types.LoadRestrictionsRootOnly, types.DisabledPluginConfig()
	m, err := krusty.MakeKustomizer(o).Run(d, root)
	if err != nil || g.tree.refused != nil {
		return r, g.explain(res.Overlay, err)
	}
	if r.objects, err = objectsOf(res.Overlay, m); err != nil {
		return r, err
	}
	origins, odd := g.odd(res, all, r.objects)
	r.origins, r.warnings = origins, append(r.warnings, odd...)
	return r, nil
}

// roots returns the folder to build. Where components apply it is one of ours
// that lists them; a folder without a kustomization then gets one of ours.
func (g *guard) roots(res render.Resolution, overlay string, bare bool) (string, error) {
	if bare {
		names, err := g.tree.listing(overlay)
		if err != nil {
			return "", err
		}
		if err := noneNested(res.Overlay, names); err != nil {
			return "", err
		}
		if len(names) == 0 {
			return "", &render.Error{Code: render.RenderEmpty, File: res.Overlay, Message: "the folder holds neither a kustomization nor manifests: add some, or point the target elsewhere"}
		}
		var k types.Kustomization
		for _, name := range names {
			k.Resources = append(k.Resources, strings.TrimPrefix(name, strings.TrimPrefix(res.Overlay+"/", "./")))
		}
		if err := g.tree.add(overlay, k); err != nil {
			return "", err
		}
	}
	if len(res.Components) == 0 {
		return overlay, nil
	}
	k := types.Kustomization{Resources: []string{".." + overlay}}
	for _, c := range res.Components {
		abs := path.Join(treeRoot, c)
		if err := g.tree.exists(abs, "the component"); err != nil {
			return "", err
		}
		k.Components = append(k.Components, ".."+abs)
	}
	return fleetRoot, g.tree.add(fleetRoot, k)
}

// add puts a kustomization of ours into a folder.
func (t *tree) add(dir string, k types.Kustomization) error {
	content, err := json.Marshal(k)
	if err != nil {
		return fmt.Errorf("writing the kustomization of %q: %w", show(dir), err)
	}
	t.added[path.Join(dir, "kustomization.yaml")] = content
	return nil
}

// objectsOf takes the objects out of kustomize without going through text, but
// where that makes a difference: kustomize build writes folded and literal text so
// that it may be read with other line breaks, and that is what is applied from it.
func objectsOf(overlay string, m resmap.ResMap) ([]unstructured.Unstructured, error) {
	objects := make([]unstructured.Unstructured, 0, m.Size())
	for _, r := range m.Resources() {
		u, err := render.Object(overlay, r.YNode())
		if err != nil {
			return nil, err
		}
		if blocks(r.YNode()) {
			data, err := r.MarshalJSON()
			if err != nil {
				return nil, fmt.Errorf("reading %s: %w", render.Name(&u), err)
			}
			var printed map[string]any
			if err := utiljson.Unmarshal(data, &printed); err != nil {
				return nil, fmt.Errorf("reading %s: %w", render.Name(&u), err)
			}
			u.Object, _ = asPrinted(u.Object, printed).(map[string]any)
		}
		objects = append(objects, u)
	}
	return objects, nil
}

// blocks tells whether a node has folded or literal text in it.
func blocks(n *yaml.Node) bool {
	if n.Style&(yaml.FoldedStyle|yaml.LiteralStyle) != 0 {
		return true
	}
	return slices.ContainsFunc(n.Content, blocks)
}

// asPrinted takes the texts of what was printed; what else differs is how YAML
// 1.1 and 1.2 read a word, in which kubectl is followed.
func asPrinted(v, printed any) any {
	switch v := v.(type) {
	case string:
		if p, ok := printed.(string); ok {
			return p
		}
	case map[string]any:
		p, _ := printed.(map[string]any)
		for key := range v {
			v[key] = asPrinted(v[key], p[key])
		}
	case []any:
		if p, ok := printed.([]any); ok && len(p) == len(v) {
			for i := range v {
				v[i] = asPrinted(v[i], p[i])
			}
		}
	}
	return v
}

// namespaces gives the target's namespace to namespaced objects that have
// none. Kinds that kustomize's schema does not know are left alone.
func namespaces(res render.Resolution, objects []unstructured.Unstructured) []render.Error {
	var missing []render.Error
	for i := range objects {
		u := &objects[i]
		if u.GetNamespace() != "" {
			continue
		}
		namespaced, known := openapi.IsNamespaceScoped(yaml.TypeMeta{APIVersion: u.GetAPIVersion(), Kind: u.GetKind()})
		switch {
		case !known || !namespaced:
		case res.Namespace != "":
			u.SetNamespace(res.Namespace)
		default:
			missing = append(missing, render.Error{Code: render.NoNamespace, File: res.Overlay, Field: render.Name(u), Message: "the object has no namespace: set it in the kustomization, or give the target a namespace"})
		}
	}
	return missing
}

// explain says why kustomize failed: the first refusal, else its own words.
func (g *guard) explain(overlay string, err error) error {
	if g.tree.refused != nil {
		return g.tree.refused
	}
	message := strings.ReplaceAll(err.Error(), treeRoot+"/", "")
	if id, files := g.twice(message); len(files) > 0 {
		return &render.Error{Code: render.InvalidManifest, File: files[0], Field: id, Message: fmt.Sprintf("the object is also in %s: keep one", strings.Join(files[1:], ", "))}
	}
	return &render.Error{Code: render.InvalidManifest, File: overlay, Message: "kustomize cannot build it: " + g.withoutSecrets(message)}
}

// twice finds the object that kustomize met twice, and the files that hold it.
func (g *guard) twice(message string) (id string, files []string) {
	_, rest, found := strings.Cut(message, "already registered id: ")
	if !found {
		return "", nil
	}
	if end := strings.IndexAny(rest, "'\"\n "); end >= 0 {
		rest = rest[:end]
	}
	id = rest
	if len(g.declared[id]) > 1 {
		return id, g.declared[id]
	}
	return "", nil
}

// resourceID is kustomize's name of an object.
func resourceID(u *unstructured.Unstructured) string {
	gvk := u.GroupVersionKind()
	return resid.NewResIdWithNamespace(resid.NewGvk(gvk.Group, gvk.Version, gvk.Kind), u.GetName(), u.GetNamespace()).String()
}

// quotedContent matches where kustomize repeats content of the repository,
// which may hold secrets: configurations, patches, resources and literals.
var quotedContent = regexp.MustCompile("(?s)with config: `.*`|\\[patch: \"(?:[^\"\\\\]|\\\\.)*\"\\]|for the following resource:.*|literal sources \\[.*, expected|invalid literal source .*, expected|line \\[[0-9 ]+\\] has invalid utf8 bytes.*|invalid utf8 bytes : .*|decoding [\\[{].*|JsonOp=.*|for patch [\\[{].*")

// withoutSecrets shortens a message of kustomize's to its first line, without
// what it repeats of files and without any content of a generated Secret.
func (g *guard) withoutSecrets(message string) string {
	message = quotedContent.ReplaceAllString(message, "…")
	for _, k := range g.judged {
		for _, secret := range g.secrets(k) {
			if strings.TrimSpace(secret) != "" {
				message = strings.ReplaceAll(message, secret, "…")
			}
		}
	}
	return firstLine(message)
}

// secrets lists what a kustomization puts into generated Secrets: each line,
// and each part of it that follows an equals sign.
func (g *guard) secrets(k *kustomization) []string {
	var lines []string
	for i, s := range k.spec.SecretGenerator {
		lines = append(lines, s.LiteralSources...)
		for _, e := range sources(fmt.Sprint(i), s.KvPairSources) {
			value := e.value
			if e.use == useData {
				value = dataPath(value)
			}
			lines = append(lines, strings.Split(string(g.tree.cache[path.Join(k.dir, value)]), "\n")...)
		}
	}
	for _, line := range slices.Clone(lines) {
		if _, value, keyed := strings.Cut(line, "="); keyed {
			lines = append(lines, value)
		}
	}
	return lines
}

// firstLine returns the start of a message.
func firstLine(message string) string {
	const long = 400
	message, _, _ = strings.Cut(message, "\n")
	if len(message) > long {
		message = strings.ToValidUTF8(message[:long], "") + "…"
	}
	return message
}

// panicked words a panic of kustomize's. Only the runtime's own messages are
// repeated, since others may hold content.
func panicked(overlay string, p any) error {
	e := &render.Error{Code: render.InvalidManifest, File: overlay, Message: "kustomize panicked on it: render it with kustomize and simplify what fails"}
	if err, ok := p.(error); ok {
		if _, ours := errors.AsType[runtime.Error](err); ours {
			e.Err = err
		}
	}
	return e
}
