// Command rollcall tells whether every node that should run a daemon pod does,
// which nodes do not, and why. It knows flags, files and terminals, and wires
// the edges to the line of package controller.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"rollcall.dev/rollcall/clusters/kube"
	"rollcall.dev/rollcall/controller/report"
	"rollcall.dev/rollcall/render/build"
)

func main() { os.Exit(run(os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr})) }

// streams are where a command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// tell says something beside the results. What it quotes from files, clusters
// and repositories cannot steer a terminal.
func (s streams) tell(format string, args ...any) {
	fmt.Fprintln(s.err, report.Printable("rollcall: "+fmt.Sprintf(format, args...)))
}

// Exit statuses, as the README lists them.
const (
	exitFound       = 1
	exitBad         = 2
	exitIncomplete  = 3
	exitInterrupted = 130
)

// outcome is a status that is not a failure: what a report found.
type outcome struct {
	status int
	reason string
}

func (o *outcome) Error() string { return o.reason }

func run(args []string, s streams) int {
	if len(args) > 0 && args[0] == kube.GuardCommand {
		return kube.ExecGuard(args[1:], s.in, s.out, s.err)
	}
	if len(args) > 0 && args[0] == build.ChildCommand {
		return build.Child(s.in, s.out)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	cmd := rootCommand(s)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	if ctx.Err() != nil {
		return exitInterrupted
	}
	if o, ok := errors.AsType[*outcome](err); ok {
		if o.reason != "" {
			s.tell("%s", o.reason)
		}
		return o.status
	}
	if err != nil {
		s.tell("%v", err)
		return exitBad
	}
	return 0
}
