package build

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"

	"rollcall.dev/rollcall/render"
)

const elsewhere = "vendor it, or point the target at a folder rendered elsewhere"

// guard judges every kustomization before kustomize acts on it. Kustomize
// fetches what looks like a URL from a dozen fields whatever its file system,
// runs git, and dies of what it cannot expand; so it gets to see only what
// the guard has found to be files of the repository.
type guard struct {
	tree     *tree
	judged   map[string]*kustomization
	plugins  map[string]bool // files that passed as plugin configurations
	stack    []string        // folders being judged
	declared map[string][]string
}

// kustomization is a judged one, with what it costs to build it.
type kustomization struct {
	dir, file  string
	spec       types.Kustomization
	deprecated *[]string                 // kustomize's own words
	bases      map[string]*kustomization // of resources and bases, by entry
	components []*kustomization
	objects    map[string][]unstructured.Unstructured // of resource files, by entry
	files      int                                    // that kustomize opens, each time counted
	bytes      int
	count      int // objects of resource files, each time counted
}

func newGuard(t *tree) *guard {
	return &guard{tree: t, judged: map[string]*kustomization{}, plugins: map[string]bool{}, declared: map[string][]string{}}
}

// find returns the kustomization file of a folder, empty when it has none.
func (g *guard) find(dir string) (string, error) {
	var found []string
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		k, err := g.tree.kind(path.Join(dir, name))
		if err != nil {
			return "", err
		}
		if k == file {
			found = append(found, name)
		}
	}
	switch len(found) {
	case 0:
		return "", nil
	case 1:
		return path.Join(dir, found[0]), nil
	}
	return "", g.tree.refuse(&render.Error{Code: render.InvalidManifest, File: show(dir), Message: fmt.Sprintf("the folder has both %s and %s: keep one", found[0], found[1])})
}

// visit judges the kustomization of a folder and everything that it reaches.
func (g *guard) visit(dir string) (*kustomization, error) {
	if k, known := g.judged[dir]; known {
		return k, nil
	}
	name, err := g.find(dir)
	if err != nil {
		return nil, err
	}
	if name == "" {
		return nil, g.tree.refuse(&render.Error{Code: render.PathNotFound, File: show(dir), Message: "the folder has no kustomization.yaml: add one, or list the files in it"})
	}
	k := &kustomization{dir: dir, file: name, bases: map[string]*kustomization{}, objects: map[string][]unstructured.Unstructured{}}
	if err := g.load(k); err != nil {
		return nil, err
	}
	g.stack = append(g.stack, dir)
	defer func() { g.stack = g.stack[:len(g.stack)-1] }()
	all := entries(&k.spec)
	if len(all) > g.tree.limits.Files {
		return nil, g.tree.refuse(over(show(k.file), g.tree.limits.Files, "files"))
	}
	for _, e := range all {
		if err := g.entry(k, e); err != nil {
			return nil, err
		}
		if err := g.afford(k); err != nil {
			return nil, err
		}
	}
	g.judged[dir] = k
	return k, nil
}

// load reads a kustomization as kustomize does, so that nothing is read
// differently, after refusing what kustomize would overlook.
func (g *guard) load(k *kustomization) error {
	p, err := g.tree.parse(k.file)
	if err != nil {
		return err
	}
	content, err := g.tree.read(k.file)
	if err != nil {
		return err
	}
	if err := secondDocument(k.file, p); err != nil {
		return g.tree.refuse(err)
	}
	if err := foldedTwice(k.file, p); err != nil {
		return g.tree.refuse(err)
	}
	if err := k.spec.Unmarshal(content); err != nil {
		return g.tree.refuse(&render.Error{Code: render.InvalidManifest, File: show(k.file), Message: "the kustomization is not valid: " + firstLine(err.Error())})
	}
	k.deprecated = k.spec.CheckDeprecatedFields()
	if k.spec.CheckEmpty() != nil {
		return g.tree.refuse(&render.Error{Code: render.RenderEmpty, File: show(k.file), Message: "the kustomization is empty: list resources in it, or remove it"})
	}
	if field := unsupported(&k.spec); field != "" {
		return g.tree.refuse(&render.Error{Code: render.Unsupported, File: show(k.file), Field: field, Message: "rollcall does not run it: " + elsewhere})
	}
	g.tree.schema = g.tree.schema || len(k.spec.OpenAPI) > 0
	for _, e := range inline(&k.spec) {
		if err := g.text(k, e); err != nil {
			return err
		}
	}
	k.files, k.bytes = 1, len(content)
	return nil
}

// secondDocument refuses a kustomization of several documents: kustomize reads
// the first and drops the others in silence.
func secondDocument(name string, p render.Parsed) error {
	for i, doc := range p.Docs {
		if n := resolved(doc); i > 0 && n != nil && n.ShortTag() != "!!null" {
			return &render.Error{Code: render.InvalidManifest, File: show(name), Field: fmt.Sprintf("line %d", n.Line), Message: "kustomize reads only the first document of a kustomization: make it one"}
		}
	}
	return nil
}

// foldedTwice refuses keys that differ only in case: kustomize takes
// Resources for resources, and the last one wins.
func foldedTwice(name string, p render.Parsed) error {
	for _, doc := range p.Docs {
		if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
			continue
		}
		seen := map[string]*yaml.Node{}
		for i := 0; i < len(doc.Content[0].Content); i += 2 {
			key := doc.Content[0].Content[i]
			folded := strings.ToLower(strings.ToUpper(key.Value)) // some letters have two lower cases
			if first := seen[folded]; first != nil {
				return &render.Error{Code: render.InvalidManifest, File: show(name), Field: fmt.Sprintf("line %d", key.Line),
					Message: fmt.Sprintf("kustomize takes key %q for key %q of line %d: keep one", key.Value, first.Value, first.Line)}
			}
			seen[folded] = key
		}
	}
	return nil
}

// text scans YAML that is a text within a kustomization.
func (g *guard) text(k *kustomization, e entry) error {
	if _, err := render.Parse(show(k.file), []byte(e.value)); err != nil {
		if fault, ok := err.(*render.Error); ok {
			fault.Field = strings.TrimSuffix(e.field+" "+fault.Field, " ")
		}
		return g.tree.refuse(err)
	}
	return nil
}

// entry judges one value that kustomize may load.
func (g *guard) entry(k *kustomization, e entry) error {
	value := e.value
	switch e.use {
	case usePatch, usePlugin:
		if render.IsRemoteText(value) {
			return g.remote(k, e)
		}
		if p, err := render.Parse(show(k.file), []byte(value)); !isPath(value, p, err) {
			return g.inlined(k, e, p)
		}
	case useData:
		value = dataPath(value)
	}
	if render.IsRemote(value) || render.IsRemote(e.value) {
		return g.remote(k, e)
	}
	abs, err := g.resolve(k, e, value)
	if err != nil {
		return err
	}
	at, err := g.tree.kind(abs)
	switch {
	case err != nil:
		return err
	case at == absent:
		return g.fault(k, e, render.PathNotFound, fmt.Sprintf("%q does not exist: add it, or remove the entry", show(abs)))
	case at == folder:
		return g.folder(k, e, abs)
	}
	return g.leaf(k, e, abs)
}

// isPath tells whether a text that may be YAML names a file: it is one word
// to a YAML parser.
func isPath(value string, p render.Parsed, err error) bool {
	if strings.ContainsAny(value, "\n{") {
		return false
	}
	return err != nil || (len(p.Docs) == 1 && len(p.Docs[0].Content) == 1 && p.Docs[0].Content[0].Kind == yaml.ScalarNode)
}

// inlined judges a patch or a plugin configuration within a kustomization.
func (g *guard) inlined(k *kustomization, e entry, p render.Parsed) error {
	if err := g.text(k, e); err != nil {
		return err
	}
	if e.use == usePlugin {
		return g.plugin(k.file, e.field+" ", p)
	}
	return nil
}

func (g *guard) remote(k *kustomization, e entry) error {
	return g.fault(k, e, render.RemoteReference, "the entry is fetched from elsewhere, which rollcall never does: "+elsewhere)
}

// resolve makes a path of a value, which must stay in the repository.
func (g *guard) resolve(k *kustomization, e entry, value string) (string, error) {
	if value == "" {
		return "", g.fault(k, e, render.PathNotFound, "the path is empty: remove the entry")
	}
	if path.IsAbs(value) {
		return "", g.fault(k, e, render.PathNotFound, fmt.Sprintf("%q is absolute: write it relative to the kustomization", value))
	}
	abs := path.Join(k.dir, value)
	if _, inside := relative(abs); !inside {
		return "", g.fault(k, e, render.PathNotFound, fmt.Sprintf("%q leaves the repository: "+elsewhere, value))
	}
	return abs, nil
}

func (g *guard) fault(k *kustomization, e entry, code, message string) error {
	fault := &render.Error{Code: code, File: show(k.file), Field: e.field, Message: message}
	switch {
	case k.dir != fleetRoot:
	case e.use == useFolder:
		fault.File, fault.Field = "", "spec.components"
	default:
		fault.File, fault.Field = "", "spec.targets"
	}
	return g.tree.refuse(fault)
}

// folder judges a folder that an entry names.
func (g *guard) folder(k *kustomization, e entry, abs string) error {
	switch e.use {
	case usePlugin:
		return g.pluginFolder(k, e, abs)
	case useManifest, useFolder:
	default:
		return g.fault(k, e, render.PathNotFound, fmt.Sprintf("%q is a folder: name a file", show(abs)))
	}
	for _, dir := range append([]string{k.dir}, g.stack...) {
		if dir == abs || strings.HasPrefix(dir, abs+"/") {
			return g.fault(k, e, render.InvalidManifest, fmt.Sprintf("%q is, or holds, a folder that leads here: kustomizations must not form a circle", show(abs)))
		}
	}
	base, err := g.visit(abs)
	if err != nil {
		return err
	}
	component := base.spec.Kind == types.ComponentKind
	if component != (e.use == useFolder) {
		return g.fault(k, e, render.InvalidManifest, fmt.Sprintf("%q has kind %s: components are listed under components, and nothing else is", show(abs), kindOf(base)))
	}
	if component {
		k.components = append(k.components, base)
	} else {
		k.bases[e.field] = base
	}
	k.files += base.files
	k.bytes += base.bytes
	k.count += base.count
	return nil
}

func kindOf(k *kustomization) string {
	if k.spec.Kind == "" {
		return types.KustomizationKind
	}
	return k.spec.Kind
}

// leaf judges a file that an entry names.
func (g *guard) leaf(k *kustomization, e entry, abs string) error {
	if e.use == useFolder {
		return g.fault(k, e, render.PathNotFound, fmt.Sprintf("%q is a file: name the component's folder", show(abs)))
	}
	if !strings.HasPrefix(abs, k.dir+"/") {
		return g.fault(k, e, render.PathNotFound, fmt.Sprintf("%q is not below the folder of its kustomization, where kustomize reads files from: move it there, or name its folder", show(abs)))
	}
	content, err := g.tree.read(abs)
	if err != nil {
		return err
	}
	k.files++
	k.bytes += len(content)
	if e.use == useData || e.use == useEnv {
		g.tree.data[abs] = true
		return nil
	}
	p, err := g.tree.parse(abs)
	if err != nil {
		return err
	}
	switch e.use {
	case usePlugin:
		g.plugins[abs] = true
		return g.plugin(abs, "", p)
	case useManifest:
		return g.manifest(k, e, abs, p)
	case useCRDs:
		if fault := crds(p); fault != nil {
			fault.File = show(abs)
			return g.tree.refuse(fault)
		}
	}
	return nil
}

// manifest judges a file of objects.
func (g *guard) manifest(k *kustomization, e entry, abs string, p render.Parsed) error {
	objects, err := render.Objects(show(abs), p)
	if err != nil {
		return g.tree.refuse(err)
	}
	k.objects[e.field] = objects
	k.count += len(objects)
	for i := range objects {
		id := resourceID(&objects[i])
		if !slices.Contains(g.declared[id], show(abs)) {
			g.declared[id] = append(g.declared[id], show(abs))
		}
	}
	return nil
}

// afford refuses what costs more than a build may.
func (g *guard) afford(k *kustomization) error {
	l := g.tree.limits
	switch {
	case k.files > l.Files:
		return g.tree.refuse(over(show(k.file), l.Files, "files"))
	case k.bytes > l.Bytes:
		return g.tree.refuse(over(show(k.file), l.Bytes, "bytes"))
	case k.count > l.Objects:
		return g.tree.refuse(over(show(k.file), l.Objects, "objects"))
	}
	return nil
}

// file judges a file that kustomize opens, also one that the walk missed.
func (g *guard) file(abs string) error {
	if g.tree.data[abs] {
		return nil
	}
	p, err := g.tree.parse(abs)
	if err != nil {
		return err
	}
	if g.plugins[abs] || !hasBuiltin(p) {
		return nil
	}
	return g.plugin(abs, "", p)
}
