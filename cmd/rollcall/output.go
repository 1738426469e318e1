package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"rollcall.dev/rollcall/controller/coverage"
	"rollcall.dev/rollcall/controller/report"
)

// outputFlags say what is printed where, and what makes the exit status 1.
type outputFlags struct {
	outputs  []string
	nodes    string
	failOn   string
	baseline string
	known    map[string]report.Severity // findings of the baseline, by ID
	names    map[string]string          // of its clusters, by who they are
}

func (o *outputFlags) bind(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVarP(&o.outputs, "output", "o", nil, "`FORMAT` or FORMAT=FILE, repeatable: "+strings.Join(report.Formats(), ", "))
	f.StringVar(&o.nodes, "nodes", "attention", "which nodes to list: attention or all")
	f.StringVar(&o.failOn, "fail-on", "warning", "exit with 1 on findings at or above: error, warning, new (against --baseline) or none")
	f.StringVar(&o.baseline, "baseline", "", "a `FILE` of an earlier -o json, for --fail-on new")
}

// check refuses bad flags, and a baseline that is none, before anything else is
// read.
func (o *outputFlags) check() error {
	if !slices.Contains([]string{"attention", "all"}, o.nodes) {
		return fmt.Errorf("--nodes %q: use attention or all", o.nodes)
	}
	if !slices.Contains([]string{"error", "warning", "new", "none"}, o.failOn) {
		return fmt.Errorf("--fail-on %q: use error, warning, new or none", o.failOn)
	}
	if (o.failOn == "new") != (o.baseline != "") {
		return fmt.Errorf("--fail-on new and --baseline FILE go together: record one with -o json=FILE")
	}
	if len(o.outputs) == 0 {
		o.outputs = []string{"table"}
	}
	terminal := 0
	for _, out := range o.outputs {
		format, file, named := strings.Cut(out, "=")
		if !slices.Contains(report.Formats(), format) {
			return fmt.Errorf("--output %q: use one of %s, or FORMAT=FILE", out, strings.Join(report.Formats(), ", "))
		}
		if named && file == "" {
			return fmt.Errorf("--output %q: the file is missing: write %s=FILE", out, format)
		}
		if !named {
			terminal++
		}
	}
	if terminal > 1 {
		return fmt.Errorf("--output: only one format can go to standard output: write the others as FORMAT=FILE")
	}
	return o.readBaseline()
}

func (o *outputFlags) readBaseline() error {
	if o.baseline == "" {
		return nil
	}
	data, err := os.ReadFile(o.baseline)
	if err != nil {
		return fmt.Errorf("reading the baseline: %w", err)
	}
	var r report.Report
	if err := json.Unmarshal(data, &r); err != nil || r.Kind != "Report" {
		return fmt.Errorf("reading the baseline %q: it is not a report of -o json", o.baseline)
	}
	o.known = map[string]report.Severity{}
	for _, f := range r.Findings {
		o.known[f.ID] = f.Severity
	}
	o.names = namesOf(r)
	return nil
}

// namesOf are the names of clusters by who they are; of two of one identity
// neither is told by it.
func namesOf(r report.Report) map[string]string {
	names, twice := map[string]string{}, map[string]bool{}
	for _, c := range r.Clusters {
		_, known := names[c.Identity]
		twice[c.Identity] = known || twice[c.Identity]
		names[c.Identity] = c.Name
	}
	delete(names, "")
	maps.DeleteFunc(names, func(id, _ string) bool { return twice[id] })
	return names
}

// renamed are the names that clusters had in the baseline, by those that they
// have now.
func (o *outputFlags) renamed(r report.Report) map[string]string {
	out := map[string]string{}
	for id, now := range namesOf(r) {
		if was, ok := o.names[id]; ok && was != now {
			out[now] = was
		}
	}
	return out
}

func (o *outputFlags) keep() func(coverage.State) bool {
	if o.nodes == "all" {
		return func(coverage.State) bool { return true }
	}
	return coverage.State.Attention
}

// write prints the report in every format that was asked for.
func (o *outputFlags) write(s streams, r report.Report) error {
	for _, out := range o.outputs {
		format, file, named := strings.Cut(out, "=")
		if !named {
			if err := report.Encode(s.out, format, r, report.Style{Color: colored(s.out)}); err != nil {
				return err
			}
			continue
		}
		var b bytes.Buffer
		if err := report.Encode(&b, format, r, report.Style{}); err != nil {
			return err
		}
		if err := replace(file, b.Bytes()); err != nil {
			return fmt.Errorf("writing %s: %w", format, err)
		}
	}
	return nil
}

// replace writes a file whole or not at all. What is no regular file, a link or
// a device, is written through.
func replace(file string, data []byte) error {
	mode := os.FileMode(0o666) // less the umask
	info, err := os.Lstat(file)
	if err == nil {
		mode = info.Mode().Perm()
	}
	if err == nil && !info.Mode().IsRegular() {
		return os.WriteFile(file, data, mode)
	}
	tmp, err := os.OpenFile(fmt.Sprintf("%s/.%s.%d", filepath.Dir(file), filepath.Base(file), os.Getpid()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // gone already when all went well
	if _, err := tmp.Write(data); err != nil {
		tmp.Close()
		return err
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), file)
}

// status is what the report says to a script.
func (o *outputFlags) status(r report.Report) error {
	if !r.Complete {
		source := ""
		if r.Source != nil && r.Source.Error != "" {
			source = "the source is stale, "
		}
		return &outcome{exitIncomplete, fmt.Sprintf("incomplete: %s%d of %d clusters could not be read or rendered; findings: %d error, %d warning",
			source, incomplete(r), r.Summary.Clusters, r.Summary.Findings.Error, r.Summary.Findings.Warning)}
	}
	if o.found(r) {
		return &outcome{exitFound, ""}
	}
	return nil
}

func incomplete(r report.Report) int {
	n := 0
	for _, c := range r.Clusters {
		if c.Failed() {
			n++
		}
	}
	return n
}

func (o *outputFlags) found(r report.Report) bool {
	switch o.failOn {
	case "none":
		return false
	case "new":
		renamed := o.renamed(r)
		return slices.ContainsFunc(r.Findings, func(f report.Finding) bool { return o.isNew(f, renamed) })
	}
	return r.Summary.Findings.AtLeast(report.Severity(o.failOn))
}

// isNew tells whether a finding is worse than it was in the baseline, which may
// not have it at all.
func (o *outputFlags) isNew(f report.Finding, renamed map[string]string) bool {
	was, known := o.known[f.ID]
	if name, ok := renamed[f.Cluster]; ok && !known {
		was, known = o.known[f.IDUnder(name)]
	}
	if !known {
		was = report.Info
	}
	return f.Severity.Above(was)
}

// writeJSON prints a value as the other outputs do: indented, one document.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// colored tells whether w is a terminal that wants colour.
func colored(w io.Writer) bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && isTerminal(w)
}

func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
