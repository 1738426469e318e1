package clusters

import (
	"bytes"
	"fmt"
	"time"

	"go.yaml.in/yaml/v3"
)

// FormatCluster is the Cluster file of a cluster that is reached by one
// kubeconfig, as ParseCluster reads it. Its policy is left to the fleet file.
func FormatCluster(c Cluster) ([]byte, error) {
	if c.Kubeconfig == nil || len(c.Kubeconfig.Paths) != 1 {
		return nil, fmt.Errorf("writing cluster %q: it is not reached by one kubeconfig", c.Name)
	}
	type kubeconfig struct {
		Path    string `yaml:"path"`
		Context string `yaml:"context,omitempty"`
	}
	var file struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string `yaml:"kind"`
		Metadata   struct {
			Name   string            `yaml:"name"`
			Labels map[string]string `yaml:"labels,omitempty"`
		} `yaml:"metadata"`
		Spec struct {
			Kubeconfig   kubeconfig `yaml:"kubeconfig"`
			Reachability string     `yaml:"reachability,omitempty"`
			Identity     string     `yaml:"identity,omitempty"`
		} `yaml:"spec"`
		Status struct {
			Identity     string `yaml:"identity,omitempty"`
			Version      string `yaml:"version,omitempty"`
			RegisteredAt string `yaml:"registeredAt,omitempty"`
		} `yaml:"status,omitempty"`
	}
	file.APIVersion, file.Kind = APIVersion, "Cluster"
	file.Metadata.Name, file.Metadata.Labels = c.Name, c.Labels
	file.Spec.Kubeconfig, file.Spec.Identity = kubeconfig{c.Kubeconfig.Paths[0], c.Kubeconfig.Context}, c.Identity
	if c.Intermittent {
		file.Spec.Reachability = "intermittent"
	}
	file.Status.Identity, file.Status.Version = c.Registered.Identity, c.Registered.Version
	if !c.Registered.At.IsZero() {
		file.Status.RegisteredAt = c.Registered.At.UTC().Format(time.RFC3339)
	}
	var b bytes.Buffer
	b.WriteString("# Written by rollcall cluster add.\n")
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(file); err != nil {
		return nil, fmt.Errorf("writing cluster %q: %w", c.Name, err)
	}
	return b.Bytes(), nil
}

// WithKubeconfig is a Cluster file that names another kubeconfig and context;
// all else in it stays, comments too.
func WithKubeconfig(file string, data []byte, path, context string) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil || len(doc.Content) == 0 {
		return nil, fmt.Errorf("changing %q: it is not YAML", file)
	}
	at := doc.Content[0]
	for _, key := range []string{"spec", "kubeconfig"} {
		if at = valueOf(at, key); at == nil || at.Kind != yaml.MappingNode {
			return nil, fmt.Errorf("changing %q: it has no mapping %s", file, key)
		}
	}
	set(at, "path", path)
	set(at, "context", context)
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(&doc); err != nil {
		return nil, fmt.Errorf("changing %q: %w", file, err)
	}
	return b.Bytes(), nil
}

func valueOf(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

func set(n *yaml.Node, key, value string) {
	text := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
	if old := valueOf(n, key); old != nil {
		*old = *text
		return
	}
	n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, text)
}
