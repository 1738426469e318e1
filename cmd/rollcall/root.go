package main

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func rootCommand(s streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "rollcall",
		Short: "Which nodes lack, misplace or lag their daemon pods, and why",
		Long: `rollcall tells, for every DaemonSet and node of many clusters, whether the
daemon pod is there, and if not, why. It only reads, but for rollcall apply.

Exit status: 0 nothing at or above --fail-on, 1 found, 2 bad input, source or
flags, 3 incomplete (a cluster could not be read or rendered), 130 interrupted.`,
		Example: `  # the cluster of the current kubeconfig context
  rollcall scan

  # what Git says against every registered cluster
  rollcall report -f rollcall.yaml

  # the whole story of one node
  rollcall why node/n1 ds/logger -n obs --context prod-eu`,
		SilenceErrors: true, SilenceUsage: true,
	}
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return fmt.Errorf("%w\nsee: %s --help", err, c.CommandPath())
	})
	root.AddCommand(scanCommand(s), reportCommand(s), recordCommand(s), whyCommand(s), diffCommand(s), planCommand(s), applyCommand(s), waitCommand(s), renderCommand(s), clusterCommand(s), rbacCommand(s), scheduleCommand(s), versionCommand(s))
	return root
}

func versionCommand(s streams) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		Example: "  rollcall version",
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(s.out, "rollcall", version())
			return err
		},
	}
}

// version is what the build recorded of itself.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	text := info.Main.Version
	for _, k := range info.Settings {
		if k.Key == "vcs.revision" {
			text += " " + k.Value
		}
	}
	return text + " " + info.GoVersion
}
