package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/report"
)

func whyCommand(s streams) *cobra.Command {
	var l lookFlags
	var files []string
	var cluster, output string
	var codes bool
	cmd := &cobra.Command{
		Use:     "why node/NAME [ds/NAME]",
		Aliases: []string{"explain"},
		Short:   "Tell the whole story of one node: each check in order, with what it compared",
		Example: `  rollcall why node/n1
  rollcall why node/n1 ds/logger -n obs --context prod-eu
  rollcall why node/n1 -f rollcall.yaml --cluster prod-eu
  rollcall why --codes`,
		Args: cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if codes {
				return printCodes(s, output)
			}
			if output != "text" && output != "json" && output != "yaml" {
				return fmt.Errorf("--output %q: use text, json or yaml", output)
			}
			node, ok := strings.CutPrefix(append(args, "")[0], "node/")
			if !ok || node == "" {
				return fmt.Errorf("name a node: rollcall why node/NAME [ds/NAME]")
			}
			return why(cmd.Context(), s, l, files, cluster, node, daemonSetName(args[1:]), output)
		},
	}
	l.bind(cmd)
	f := cmd.Flags()
	f.StringArrayVarP(&files, "filename", "f", nil, "a fleet file, or dumps: `FILE`, - for standard input")
	f.StringVar(&cluster, "cluster", "", "the `NAME` of a cluster of the fleet file")
	f.StringVarP(&output, "output", "o", "text", "text, json or yaml")
	f.BoolVar(&codes, "codes", false, "print every code with its severity, meaning and remedy")
	return cmd
}

func why(ctx context.Context, s streams, l lookFlags, files []string, cluster, node, ds, output string) error {
	want, err := l.want(ds)
	if err != nil {
		return err
	}
	o := outputFlags{nodes: "attention"}
	p, err := whyPass(ctx, s, l, files, cluster, want, o)
	if err != nil {
		return err
	}
	defer p.close()
	p.line.Retain = true
	r, err := p.once(ctx)
	if err != nil {
		return err
	}
	c := r.Clusters[0]
	if c.Observation.State != clusters.Fresh {
		return &outcome{exitIncomplete, fmt.Sprintf("cluster %q is %s: %s: %s", c.Name, c.Observation.State, c.Observation.Stage, c.Observation.Error)}
	}
	story, err := report.NewStory(c, node)
	if err != nil {
		return err
	}
	if err := printStory(s, story, output); err != nil {
		return err
	}
	if c.Sync.Error != "" {
		return &outcome{exitIncomplete, fmt.Sprintf("what Git wants in cluster %q is not known, the live template was judged: %s", c.Name, c.Sync.Error)}
	}
	return nil
}

// whyPass looks at one cluster: of a fleet file, of dumps or of a context.
func whyPass(ctx context.Context, s streams, l lookFlags, files []string, cluster string, want clusters.Want, o outputFlags) (*pass, error) {
	if len(files) == 1 && isFleetFile(files[0]) {
		f := fleetFlags{file: files[0]}
		loaded, err := f.load(ctx, s)
		if err != nil {
			return nil, err
		}
		c, err := loaded.only(cluster)
		if err != nil {
			return nil, fmt.Errorf("--cluster: %w", err)
		}
		loaded.members, loaded.broken = []clusters.Cluster{c}, nil
		return loaded.pass(s, want, l.timeout, o)
	}
	if cluster != "" {
		return nil, fmt.Errorf("--cluster names a cluster of a fleet file: give that with -f")
	}
	l.dumps = files
	cs, err := l.clusters()
	if err != nil {
		return nil, err
	}
	if len(cs) != 1 {
		return nil, fmt.Errorf("name one cluster with --context: there are %s", clusterNames(cs))
	}
	return newPass(s, clusters.Fleet{}, cs, want, l.timeout, o), nil
}

// isFleetFile tells a fleet file from a dump by its kind. What cannot be read
// here is told about where it is read.
func isFleetFile(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 4096)
	n, _ := f.Read(head) // an empty head is no fleet file
	return fleetKind.Match(head[:n])
}

var fleetKind = regexp.MustCompile(`(?m)^\s*"?kind"?:\s*["']?Fleet["']?\s*,?\s*(#.*)?$`)

func printStory(s streams, story report.Story, output string) error {
	switch output {
	case "json":
		return writeJSON(s.out, story)
	case "yaml":
		data, err := yaml.Marshal(story)
		if err != nil {
			return fmt.Errorf("encoding the story as YAML: %w", err)
		}
		_, err = s.out.Write(data)
		return err
	}
	_, err := fmt.Fprint(s.out, story.Text(report.Style{Color: colored(s.out)}))
	return err
}

func printCodes(s streams, output string) error {
	switch output {
	case "json":
		return writeJSON(s.out, report.Codes)
	case "text":
	default:
		return fmt.Errorf("--output %q: use text or json for --codes", output)
	}
	for _, c := range report.Codes {
		if _, err := fmt.Fprintf(s.out, "%-26s %s\n  %s\n  remedy: %s\n", c.Name, c.Severity, c.Meaning, c.Remedy); err != nil {
			return err
		}
	}
	return nil
}
