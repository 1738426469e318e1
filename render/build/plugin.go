package build

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/konfig"

	"rollcall.dev/rollcall/render"
)

// plugin judges the configurations of plugins in a file, or in the field of a
// kustomization. Only those built into kustomize may run, and none of them
// may load what is not in the repository.
func (g *guard) plugin(name, field string, p render.Parsed) error {
	refuse := func(code, at, message string) error {
		return g.tree.refuse(&render.Error{Code: code, File: show(name), Field: strings.TrimSpace(field + at), Message: message})
	}
	for _, doc := range p.Docs {
		for _, config := range configs(doc) {
			kind, version := scalarOf(config, "kind"), scalarOf(config, "apiVersion")
			at := fmt.Sprintf("line %d", config.Line)
			switch {
			case version != konfig.BuiltinPluginApiVersion:
				return refuse(render.Unsupported, at, fmt.Sprintf("rollcall runs no plugin or KRM function such as %q: %s", version+" "+kind, elsewhere))
			case strings.HasPrefix(kind, "Helm"):
				return refuse(render.Unsupported, at, "rollcall does not run Helm: "+elsewhere)
			}
			if n := loads(config, ""); n != nil {
				return refuse(render.RemoteReference, fmt.Sprintf("line %d", n.Line), "the plugin would fetch it from elsewhere, which rollcall never does: "+elsewhere)
			}
			if err := g.texts(name, config); err != nil {
				return err
			}
		}
	}
	return nil
}

// pluginFolder judges a folder of plugin configurations. It may only list
// files: what patches and replacements make of a configuration cannot be
// judged before kustomize acts on it.
func (g *guard) pluginFolder(k *kustomization, e entry, abs string) error {
	if slices.Contains(g.stack, abs) {
		return g.fault(k, e, render.InvalidManifest, fmt.Sprintf("%q refers back to itself", show(abs)))
	}
	sub, err := g.visit(abs)
	if err != nil {
		return err
	}
	more := sub.spec
	more.MetaData, more.Resources = nil, nil
	if more.CheckEmpty() == nil {
		return g.fault(k, e, render.Unsupported, fmt.Sprintf("%q does more than list resources, which rollcall cannot judge: list the plugin's files themselves", show(abs)))
	}
	k.files += sub.files
	k.bytes += sub.bytes
	for i, r := range sub.spec.Resources {
		inner := entry{fmt.Sprintf("resources[%d]", i), r, usePlugin}
		if err := g.entry(sub, inner); err != nil {
			return err
		}
	}
	return nil
}

// configs returns the mappings of a document that kustomize would take for
// configurations: itself, or the items of a list.
func configs(n *yaml.Node) []*yaml.Node {
	n = resolved(n)
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	items := fieldOf(n, "items")
	if items == nil || !strings.HasSuffix(scalarOf(n, "kind"), "List") {
		return []*yaml.Node{n}
	}
	var all []*yaml.Node
	for _, item := range items.Content {
		all = append(all, configs(item)...)
	}
	return all
}

// hasBuiltin tells whether a file holds the configuration of a builtin plugin.
func hasBuiltin(p render.Parsed) bool {
	return slices.ContainsFunc(p.Docs, func(doc *yaml.Node) bool {
		return slices.ContainsFunc(configs(doc), func(c *yaml.Node) bool {
			return scalarOf(c, "apiVersion") == konfig.BuiltinPluginApiVersion
		})
	})
}

// loads finds a scalar that a builtin plugin would fetch: a URL below a key
// that holds paths. Keys are compared as encoding/json does, without case.
func loads(n *yaml.Node, key string) *yaml.Node {
	n = resolved(n)
	if n == nil {
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			inner := resolved(n.Content[i]).Value
			if inner == "<<" {
				inner = key
			}
			if found := loads(n.Content[i+1], inner); found != nil {
				return found
			}
		}
	case yaml.SequenceNode:
		for _, item := range n.Content {
			if found := loads(item, key); found != nil {
				return found
			}
		}
	case yaml.ScalarNode:
		if fetches(key, n.Value) {
			return n
		}
	}
	return nil
}

// fetches tells whether a builtin plugin would fetch a value under a key.
func fetches(key, value string) bool {
	is := func(keys ...string) bool {
		return slices.ContainsFunc(keys, func(k string) bool { return strings.EqualFold(k, key) })
	}
	switch {
	case is("files", "envs", "env"):
		return render.IsRemote(value) || render.IsRemote(dataPath(value))
	case is("path", "targetFilePath", "valuesFile", "repo", "url"):
		return render.IsRemote(value)
	case is("paths", "patchesStrategicMerge"):
		return render.IsRemoteText(value)
	}
	return false
}

// texts scans the patches that a configuration holds as text.
func (g *guard) texts(name string, n *yaml.Node) error {
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := resolved(n.Content[i]), resolved(n.Content[i+1])
		if !slices.ContainsFunc([]string{"patch", "patches", "jsonOp", "paths"}, func(k string) bool { return strings.EqualFold(k, key.Value) }) {
			continue
		}
		for _, v := range append([]*yaml.Node{value}, value.Content...) {
			if v = resolved(v); v == nil || v.Kind != yaml.ScalarNode {
				continue
			}
			if err := render.Scan(show(name), []byte(v.Value)); err != nil {
				return g.tree.refuse(err)
			}
		}
	}
	return nil
}

// resolved follows a document to its content and an alias to its node.
func resolved(n *yaml.Node) *yaml.Node {
	switch {
	case n.Kind == yaml.AliasNode:
		return n.Alias
	case n.Kind == yaml.DocumentNode && len(n.Content) > 0:
		return resolved(n.Content[0])
	case n.Kind == yaml.DocumentNode:
		return nil
	}
	return n
}

// fieldOf returns the value of a key of a mapping, nil without it.
func fieldOf(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if resolved(n.Content[i]).Value == key {
			return resolved(n.Content[i+1])
		}
	}
	return nil
}

func scalarOf(n *yaml.Node, key string) string {
	if v := fieldOf(n, key); v != nil && v.Kind == yaml.ScalarNode {
		return v.Value
	}
	return ""
}
