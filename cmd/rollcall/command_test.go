package main

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Every verb shows how it is used; a word that is only a group of verbs lists
// them.
func TestEveryCommandHasAnExample(t *testing.T) {
	seen := 0
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		if !c.Runnable() && c.HasParent() {
			return
		}
		seen++
		var out, errs bytes.Buffer
		args := append(strings.Fields(c.CommandPath())[1:], "--help")
		if status := run(args, streams{strings.NewReader(""), &out, &errs}); status != 0 || errs.Len() > 0 {
			t.Errorf("%s: exit status %d, %s", c.CommandPath(), status, errs.String())
		}
		if c.Short == "" && c.HasParent() {
			t.Errorf("%s has no short description", c.CommandPath())
		}
		_, example, ok := strings.Cut(out.String(), "Examples:\n")
		if !ok || !strings.Contains(example, "  rollcall") {
			t.Errorf("the help of %q has no example:\n%s", c.CommandPath(), out.String())
		}
	}
	walk(rootCommand(streams{strings.NewReader(""), io.Discard, io.Discard}))
	if seen < 9 {
		t.Errorf("%d commands were seen", seen)
	}
}

// Wrong flags are told before anything is read; nothing is printed as if known.
func TestWrongFlags(t *testing.T) {
	east := "testdata/fleet/dumps/east.yaml"
	cases := map[string]struct {
		args []string
		want string
	}{
		"Nodes":           {[]string{"scan", "-f", east, "--nodes", "some"}, `--nodes "some": use attention or all`},
		"Format":          {[]string{"scan", "-f", east, "-o", "html"}, `--output "html": use one of table, wide, json, jsonl, yaml, markdown, name, or FORMAT=FILE`},
		"TwoFormats":      {[]string{"scan", "-f", east, "-o", "json", "-o", "yaml"}, "only one format can go to standard output"},
		"NoFile":          {[]string{"scan", "-f", east, "-o", "json="}, `--output "json=": the file is missing: write json=FILE`},
		"NoFolder":        {[]string{"scan", "-f", east, "-o", "json=no/such/folder/report.json"}, "writing json: open no/such/folder/"},
		"FailOn":          {[]string{"scan", "-f", east, "--fail-on", "sometimes"}, `--fail-on "sometimes": use error, warning, new or none`},
		"NewOfWhat":       {[]string{"scan", "-f", east, "--fail-on", "new"}, "--fail-on new and --baseline FILE go together"},
		"BaselineForWhat": {[]string{"scan", "-f", east, "--baseline", "report.json"}, "--fail-on new and --baseline FILE go together"},
		"Timeout":         {[]string{"scan", "-f", east, "--timeout", "0s"}, "--timeout 0s: must be positive"},
		"Selector":        {[]string{"scan", "-f", east, "-l", "a=("}, `--selector "a=(": `},
		"DumpAndContext":  {[]string{"scan", "-f", east, "--context", "east"}, "it does not go with --kubeconfig, --context, --contexts or --all-contexts"},
		"TwoNames":        {[]string{"scan", "a", "b"}, "accepts at most 1 arg(s), received 2"},
		"Unknown":         {[]string{"scan", "--bogus"}, "unknown flag: --bogus\nsee: rollcall scan --help\n"},
		"UnknownVerb":     {[]string{"bogus"}, `unknown command "bogus"`},
		"ReportOfWhat":    {[]string{"report", "extra"}, "extra"},
		"ListFormat":      {[]string{"cluster", "list", "-f", "testdata/fleet/rollcall.yaml", "-o", "html"}, `--output "html": use table, json or name`},
		"CheckFormat":     {[]string{"cluster", "check", "-f", "testdata/fleet/rollcall.yaml", "-o", "html"}, `--output "html": use table or json`},
		"Count":           {[]string{"schedule", "next", "--count", "0", "@daily"}, "--count 0: must be at least 1"},
		"NeverDue":        {[]string{"schedule", "next", "0 0 30 2 *"}, `"0 0 30 2 *"`},
		"NotCron":         {[]string{"schedule", "next", "* * *"}, `"* * *"`},
		"Zone":            {[]string{"schedule", "next", "--time-zone", "Nowhere/Else", "@daily"}, "Nowhere/Else"},
		"WhyFormat":       {[]string{"why", "node/n1", "-f", east, "-o", "html"}, `--output "html": use text, json or yaml`},
		"WhyWhat":         {[]string{"why", "n1", "-f", east}, "name a node: rollcall why node/NAME [ds/NAME]"},
		"WhyCluster":      {[]string{"why", "node/n1", "-f", east, "--cluster", "east"}, "--cluster names a cluster of a fleet file"},
		"WhyWhichCluster": {[]string{"why", "node/n1", "-f", "testdata/fleet/rollcall.yaml"}, "--cluster: name one cluster: there are east, lab, west"},
		"RenderWhat":      {[]string{"render", "-f", "testdata/fleet/rollcall.yaml"}, "name one cluster: there are east, lab, west"},
		"RenderWho":       {[]string{"render", "nord", "-f", "testdata/fleet/rollcall.yaml"}, `there is no cluster "nord": there are east, lab, west`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			if status := run(tc.args, streams{strings.NewReader(""), &out, &errs}); status != exitBad {
				t.Errorf("exit status %d, want %d", status, exitBad)
			}
			if !strings.HasPrefix(errs.String(), "rollcall: ") || !strings.Contains(errs.String(), tc.want) || out.Len() > 0 {
				t.Errorf("want %q, got %q; on standard output %q", tc.want, errs.String(), out.String())
			}
		})
	}
}

func TestNoColourButOnTerminals(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	t.Setenv("TERM", "xterm-256color")
	t.Setenv("NO_COLOR", "")
	for name, out := range map[string]io.Writer{"a file": file, "/dev/null": null, "a pipe": w, "a buffer": &bytes.Buffer{}} {
		if colored(out) {
			t.Errorf("%s is coloured", name)
		}
	}
}

// What is quoted beside the results cannot steer a terminal; faults stay on a
// line each.
func TestTell(t *testing.T) {
	var errs bytes.Buffer
	streams{err: &errs}.tell("%s: %v", "a\x1b[2J\rb", "first\nsecond\u202e")
	want := "rollcall: a\\u001b[2J\\u000db: first\nsecond\\u202e\n"
	if errs.String() != want {
		t.Errorf("got %q, want %q", errs.String(), want)
	}
}
