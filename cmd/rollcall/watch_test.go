package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"rollcall.dev/rollcall/controller/report"
)

// A watch prints a report at once and the next one at the next tick, with the
// commit that was made meanwhile; an interrupt ends it with 130. It is a
// process with a clock of its own: this takes one period of its poll.
func TestWatch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/fleet")); err != nil {
		t.Fatal(err)
	}
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", filepath.Join(dir, "repository")}, args...)...)
		cmd.Env = append(os.Environ(), environment(dir)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	git("init", "-q", "-b", "main")
	git("add", "-A")
	git("commit", "-qm", "first")

	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, "rollcall", "report", "--watch", "-o", "jsonl", "-f", filepath.Join(dir, "rollcall.yaml"))
	cmd.Env = append(os.Environ(), environment(dir)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	first := nextCommit(t, lines)
	write(t, dir, "repository/base/kustomization.yaml", "resources: [agent.yaml]\nimages: [{name: agent, newTag: dev}]\n")
	git("commit", "-qam", "second")
	if second := nextCommit(t, lines); second == first {
		t.Errorf("the second report is of commit %s again", second)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() { // the rest of the second report
	}
	exit, ok := errors.AsType[*exec.ExitError](cmd.Wait())
	if !ok || exit.ExitCode() != exitInterrupted {
		t.Errorf("it ended with %v, want %d", exit, exitInterrupted)
	}
}

// nextCommit waits for the head of the next report.
func nextCommit(t *testing.T, lines *bufio.Scanner) string {
	t.Helper()
	for lines.Scan() {
		var head report.Report
		if err := json.Unmarshal(lines.Bytes(), &head); err != nil {
			t.Fatalf("%v in %s", err, lines.Text())
		}
		if head.Kind == "Report" {
			return head.Source.Commit
		}
	}
	t.Fatalf("no further report: %v", lines.Err())
	return ""
}
