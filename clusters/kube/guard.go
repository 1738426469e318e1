package kube

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// GuardCommand is the hidden first argument with which our own binary is
// started in place of an exec plugin. main hands what follows to ExecGuard.
const GuardCommand = "__exec-guard"

// Exit statuses of ExecGuard that are not the plugin's own, as of timeout(1).
const (
	exitUsage    = 2
	exitEnded    = 124
	exitNotFound = 127
	exitSignal   = 128 // plus the signal
)

// ExecGuard runs an exec plugin and ends it, with all that it started, when its
// time is over, when it is told to end, or when the process that wants the
// credential is gone. Its arguments are
//
//	DURATION -- COMMAND ARGS…
//
// Input, output and environment are the plugin's, and so is the exit status.
// client-go waits for a plugin without end; the guard is what it waits for
// instead.
func ExecGuard(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) < 3 || args[1] != "--" {
		_, _ = fmt.Fprintf(stderr, "usage: %s DURATION -- COMMAND ARGS…\n", GuardCommand)
		return exitUsage
	}
	limit, err := time.ParseDuration(args[0])
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "%s: %q is not a duration\n", GuardCommand, args[0])
		return exitUsage
	}
	cmd := exec.Command(args[2], args[3:]...)
	// The output is copied, never handed on as a file: a plugin may leave a
	// process in a session of its own that would hold client-go's pipe open.
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, struct{ io.Writer }{stdout}, stderr
	cmd.SysProcAttr = pluginAttributes()
	cmd.WaitDelay = time.Second
	return guarded(cmd, limit, stderr)
}

// guarded keeps to one thread, because the kernel ends a plugin when the
// thread that started it is gone.
func guarded(cmd *exec.Cmd, limit time.Duration, stderr io.Writer) int {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(told)
	parent := os.Getppid()

	if err := cmd.Start(); err != nil {
		_, _ = fmt.Fprintf(stderr, "starting exec plugin %q: %v\n", cmd.Path, err)
		return exitNotFound
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	// What a plugin leaves behind would hold its output open.
	end := func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	orphaned := time.NewTicker(100 * time.Millisecond)
	defer orphaned.Stop()
	timeout := time.After(limit)
	for {
		select {
		case err := <-done:
			end()
			return exitStatus(err)
		case <-orphaned.C:
			if os.Getppid() == parent {
				continue
			}
		case <-timeout:
		case <-told:
		}
		end()
		<-done
		return exitEnded
	}
}

func exitStatus(err error) int {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
			return 1
		}
		return 0
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return exitSignal + int(status.Signal())
	}
	return exit.ExitCode()
}
