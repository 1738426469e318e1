package main

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"rollcall.dev/rollcall/sync/schedule"
)

func scheduleCommand(s streams) *cobra.Command {
	cmd := &cobra.Command{Use: "schedule", Short: "Explain schedules"}
	cmd.AddCommand(scheduleNextCommand(s))
	return cmd
}

func scheduleNextCommand(s streams) *cobra.Command {
	var f fleetFlags
	var zone string
	var n int
	cmd := &cobra.Command{
		Use:   "next [CRON]",
		Short: "Show the next runs of a cron text, or of report --watch for a fleet",
		Example: `  rollcall schedule next -f rollcall.yaml
  rollcall schedule next --time-zone America/New_York '30 2 * * *'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if n < 1 {
				return fmt.Errorf("--count %d: must be at least 1", n)
			}
			named, err := schedules(s, f, zone, args)
			if err != nil {
				return err
			}
			return printRuns(s, named, n)
		},
	}
	f.bind(cmd)
	cmd.Flags().StringVar(&zone, "time-zone", "UTC", "the zone of a CRON text")
	cmd.Flags().IntVar(&n, "count", 5, "how many runs to show")
	return cmd
}

type namedSchedule struct {
	name     string
	schedule schedule.Schedule
}

func schedules(s streams, f fleetFlags, zone string, args []string) ([]namedSchedule, error) {
	if len(args) == 1 {
		parsed, err := schedule.Parse(args[0], zone)
		return []namedSchedule{{args[0], parsed}}, err
	}
	loaded, err := f.parse(s)
	if err != nil {
		return nil, err
	}
	field, parsed, err := ticks(loaded.Fleet)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.file, err)
	}
	return []namedSchedule{{field + " " + parsed.String(), parsed}}, nil
}

func printRuns(s streams, named []namedSchedule, n int) error {
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	for _, x := range named {
		fmt.Fprintln(w, x.name)
		for _, r := range x.schedule.Upcoming(time.Now(), n) {
			fmt.Fprintf(w, "  %s\t%s\t%s\n", r.At.Format(time.RFC3339), r.At.UTC().Format(time.RFC3339), r.Note)
		}
		for _, warning := range x.schedule.Warnings() {
			s.tell("warning: %s", warning)
		}
	}
	return w.Flush()
}
