package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"
)

// Style is how a text format is printed.
type Style struct {
	Color bool
	Wide  bool
}

// Formats are the names that Encode takes.
func Formats() []string {
	return []string{"table", "wide", "json", "jsonl", "yaml", "markdown", "name"}
}

// Encode prints a report in one format.
func Encode(w io.Writer, format string, r Report, s Style) error {
	var text string
	switch format {
	case "table":
		text = table(r, s)
	case "wide":
		s.Wide = true
		text = table(r, s)
	case "markdown":
		text = markdown(r)
	case "name":
		text = names(r)
	case "json":
		return encodeJSON(w, r)
	case "jsonl":
		return encodeLines(w, r)
	case "yaml":
		data, err := yaml.Marshal(r)
		if err != nil {
			return fmt.Errorf("encoding the report as YAML: %w", err)
		}
		text = string(data)
	default:
		return fmt.Errorf("unknown output format %q: use one of %s", format, strings.Join(Formats(), ", "))
	}
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

func encodeJSON(w io.Writer, r Report) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(r); err != nil {
		return fmt.Errorf("writing the report as JSON: %w", err)
	}
	return nil
}

// encodeLines prints one JSON object a line: a head without lists, then each
// cluster, then each finding; kind tells them apart.
func encodeLines(w io.Writer, r Report) error {
	head := r
	head.Clusters, head.Findings = nil, nil
	e := json.NewEncoder(w)
	lines := []any{struct {
		Report
		Clusters bool `json:"clusters,omitempty"` // hides the lists
		Findings bool `json:"findings,omitempty"`
	}{Report: head}}
	for _, c := range r.Clusters {
		lines = append(lines, struct {
			Kind string `json:"kind"`
			Cluster
		}{"Cluster", c})
	}
	for _, f := range r.Findings {
		lines = append(lines, struct {
			Kind string `json:"kind"`
			Finding
		}{"Finding", f})
	}
	for _, l := range lines {
		if err := e.Encode(l); err != nil {
			return fmt.Errorf("writing the report as JSON lines: %w", err)
		}
	}
	return nil
}

// names prints what counts and needs attention as kubectl prints names.
func names(r Report) string {
	var b strings.Builder
	for _, c := range r.Clusters {
		for _, d := range c.DaemonSets {
			if d.counts && (d.needsAttention() || !d.Live || len(d.wrong()) > 0) {
				fmt.Fprintf(&b, "%s/%s/daemonset.apps/%s\n", clean(c.Name), clean(d.Namespace), clean(d.Name))
			}
		}
	}
	return b.String()
}

// Printable shows what a terminal would obey in text from a cluster or a
// repository. Its lines stay lines.
func Printable(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = clean(l)
	}
	return strings.Join(lines, "\n")
}

// clean makes text from a cluster or a repository harmless on a terminal:
// control characters, escapes and direction marks are shown, not sent.
func clean(s string) string {
	if !strings.ContainsFunc(s, unprintable) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t':
			b.WriteByte(' ')
		case unprintable(r):
			fmt.Fprintf(&b, "\\u%04x", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func unprintable(r rune) bool {
	return r < 0x20 || r >= 0x7f && r <= 0x9f || r == '\u2028' || r == '\u2029' || r == '\u200e' || r == '\u200f' ||
		r == '\u061c' || r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' || r == '\ufffd'
}
