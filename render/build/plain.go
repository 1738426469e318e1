package build

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"

	"rollcall.dev/rollcall/render"
)

// plain reads a folder without a kustomization: the objects of every manifest
// in it and below it.
func plain(t *tree, dir string) (r rendered, err error) {
	names, err := t.listing(dir)
	if err != nil {
		return r, err
	}
	if err := noneNested(show(dir), names); err != nil {
		return r, err
	}
	r.origins = map[string]render.Origin{}
	in := map[string]string{}
	for _, name := range names {
		abs := path.Join(treeRoot, name)
		if _, err := t.open(abs); err != nil {
			return r, err
		}
		p, err := t.parse(abs)
		if err != nil {
			return r, err
		}
		objects, err := render.Objects(name, p)
		if err != nil {
			return r, err
		}
		for i := range objects {
			id := resourceID(&objects[i])
			if first, twice := in[id]; twice {
				return r, &render.Error{Code: render.InvalidManifest, File: first, Field: render.Name(&objects[i]), Message: fmt.Sprintf("the object is also in %s: keep one", name)}
			}
			in[id] = name
			r.origins[render.Identity(&objects[i])] = render.Origin{File: name, Name: objects[i].GetName(), Namespace: objects[i].GetNamespace()}
		}
		if r.objects = append(r.objects, objects...); len(r.objects) > t.limits.Objects {
			return r, over(show(dir), t.limits.Objects, "objects")
		}
	}
	return r, nil
}

// noneNested refuses a folder that has no kustomization while one below it
// has: some of its files are then not meant to be read as they are.
func noneNested(dir string, names []string) error {
	for _, name := range names {
		if slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(name)) {
			return &render.Error{Code: render.Unsupported, File: name, Message: fmt.Sprintf("%q has no kustomization, yet this folder below it has: point the target at %q, or add a kustomization to %q", dir, strings.TrimSuffix(path.Dir(name), "/"), dir)}
		}
	}
	return nil
}
