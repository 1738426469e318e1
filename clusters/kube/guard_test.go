package kube_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd/api"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/clusters/kube"
)

func TestGuardPassesThrough(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		want   int
		stdout string
		stderr string // a part of it
	}{
		"Output":      {"a plugin's streams are its own", []string{"1m", "--", "sh", "-c", "cat; echo warning >&2; exit 7"}, 7, "input", "warning"},
		"Environment": {"so is its environment", []string{"1m", "--", "sh", "-c", "printf %s \"$ROLLCALL_TEST\""}, 0, "value", ""},
		"Signal":      {"as a shell tells it", []string{"1m", "--", "sh", "-c", "kill -TERM $$"}, 143, "", ""},
		"Late":        {"its time is already over", []string{"0s", "--", "sleep", "60"}, 124, "", ""},
		"NotFound":    {"as a shell tells it", []string{"1m", "--", "/no/such/plugin"}, 127, "", `"/no/such/plugin"`},
		"NoCommand":   {"it is no command for users", []string{"1", "--"}, 2, "", "usage"},
		"NoNumber":    {"nor for programs that err", []string{"soon", "--", "true"}, 2, "", `"soon"`},
		"NoDashes":    {"what follows is the plugin's", []string{"1", "true", "x"}, 2, "", "usage"},
	}
	t.Setenv("ROLLCALL_TEST", "value")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			got := kube.ExecGuard(tc.args, strings.NewReader("input"), &stdout, &stderr)
			if got != tc.want || stdout.String() != tc.stdout || !strings.Contains(stderr.String(), tc.stderr) {
				t.Errorf("%s: got %d, stdout %q, stderr %q, want %d, %q, %q", tc.reason, got, stdout.String(), stderr.String(), tc.want, tc.stdout, tc.stderr)
			}
		})
	}
}

// What a plugin leaves running would hold its output open for ever.
func TestGuardEndsWhatAPluginLeavesBehind(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	args := []string{"1m", "--", "sh", "-c", "sleep 300 & echo $! >" + pids + "; echo credential"}
	var stdout bytes.Buffer
	if got := kube.ExecGuard(args, nil, &stdout, os.Stderr); got != 0 || stdout.String() != "credential\n" {
		t.Errorf("got %d and %q, want 0 and the credential", got, stdout.String())
	}
	wantGone(t, pids, 1)
}

// When the process that wants the credential is killed, nobody waits for it.
func TestGuardEndsWithItsParent(t *testing.T) {
	dir := t.TempDir()
	pids := filepath.Join(dir, "pids")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The shell stands for rollcall; it tells its own number and the guard's.
	parent := exec.Command("sh", "-c", `"$0" "$@" & echo $! >>`+pids+`; wait`,
		self, kube.GuardCommand, "5m", "--", "sh", "-c", "echo $$ >>"+pids+"; sleep 300 & echo $! >>"+pids+"; wait")
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	waitForPids(t, pids, 3)
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	wantGone(t, pids, 3)
}

// An exec plugin that hangs costs a cluster its own deadline and leaves no
// process, also no child of its own.
func TestHangingPlugin(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	hangs := script(t, "echo $$ >>"+pids+"\nsleep 300 &\necho $! >>"+pids+"\nwait\n")
	path := kubeconfig(t, "https://"+closedPort(t), plugin(hangs))
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	defer cancel()
	o := &kube.Observer{}
	start := time.Now()
	_, err := o.Observe(ctx, cluster(path), clusters.Want{})
	if took := time.Since(start); took > 4*time.Second {
		t.Errorf("took %v, want no more than the deadline and the slack", took)
	}
	wantFault(t, err, clusters.Unreachable, fmt.Sprintf("exec plugin %q gave no credential within 1.5s", hangs))
	waitForPids(t, pids, 2)
	wantGone(t, pids, 2)
	if err := o.Close(); err != nil {
		t.Error(err)
	}
}

// The deadline holds even where the library does not return.
func TestDeadlineHoldsWithoutTheLibrary(t *testing.T) {
	o := &kube.Observer{Guard: script(t, "sleep 3\n"), Slack: 100 * time.Millisecond}
	path := kubeconfig(t, "https://"+closedPort(t), plugin("true"))
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := o.Observe(ctx, cluster(path), clusters.Want{})
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("took %v", took)
	}
	wantFault(t, err, clusters.Unreachable, `exec plugin "true" gave no credential`)
	if err := o.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took < 2900*time.Millisecond {
		t.Errorf("Close returned after %v, before the straggler did", took)
	}
}

func TestPluginFaults(t *testing.T) {
	cases := map[string]struct {
		reason string
		body   string
		words  []string
	}{
		"Fails":    {"an expired login, most often", "echo 'the secret' ; exit 3\n", []string{"running exec plugin", "exit code 3"}},
		"NotJSON":  {"it printed something else", "echo 'hello'\n", []string{"running exec plugin", "decoding stdout"}},
		"NoStatus": {"it forgot the credential", `echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential"}'` + "\n", []string{"didn't return a status"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			fails := script(t, tc.body)
			_, err := new(kube.Observer).Observe(t.Context(), cluster(kubeconfig(t, "https://"+closedPort(t), plugin(fails))), clusters.Want{})
			wantFault(t, err, clusters.Failed, append(tc.words, fmt.Sprintf("%q", fails))...)
			if strings.Contains(err.Error(), "the secret") || strings.Contains(err.Error(), kube.GuardCommand) {
				t.Errorf("%s: got %q, want neither the plugin's output nor the guard in it", tc.reason, err)
			}
		})
	}
}

func TestPluginNotInstalled(t *testing.T) {
	path := kubeconfig(t, "https://"+closedPort(t), plugin("no-such-plugin"))
	_, err := new(kube.Observer).Observe(t.Context(), cluster(path), clusters.Want{})
	wantFault(t, err, clusters.Failed, `exec plugin "no-such-plugin"`, "not found", "brew install the-plugin")
}

// Many clusters are read at once: none may ask at the terminal, even where
// there is one.
func TestPluginThatMustAsk(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	stdin := os.Stdin
	os.Stdin = terminal
	t.Cleanup(func() {
		os.Stdin = stdin
		_ = terminal.Close()
	})
	path := kubeconfig(t, "https://"+closedPort(t), plugin("true"), func(_ *api.Cluster, u *api.AuthInfo) { u.Exec.InteractiveMode = api.AlwaysExecInteractiveMode })
	_, err = new(kube.Observer).Observe(t.Context(), cluster(path), clusters.Want{})
	wantFault(t, err, clusters.Failed, `running exec plugin "true"`, "standard input is unavailable: log in with kubectl first")
}

func TestPluginIsAskedOnceAnObservation(t *testing.T) {
	calls := filepath.Join(t.TempDir(), "calls")
	works := script(t, "echo x >>"+calls+`
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"from-the-plugin"}}'
`)
	var wrong atomic.Int64
	s := fake(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") != "Bearer from-the-plugin" {
			wrong.Add(1)
		}
		return false
	})
	s.StartTLS()
	if _, err := new(kube.Observer).Observe(t.Context(), cluster(kubeconfig(t, s.URL, trust(s), plugin(works))), clusters.Want{}); err != nil {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(calls); string(data) != "x\n" || wrong.Load() != 0 {
		t.Errorf("the plugin was called %q, %d requests had not its token; want one call and none", data, wrong.Load())
	}
}

func waitForPids(t *testing.T, file string, n int) []string {
	t.Helper()
	for range 100 {
		if data, _ := os.ReadFile(file); len(strings.Fields(string(data))) == n {
			return strings.Fields(string(data))
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("%q does not list %d processes", file, n)
	return nil
}

// wantGone wants the processes to be gone soon, or dead and not yet collected.
func wantGone(t *testing.T, file string, n int) {
	t.Helper()
	for _, pid := range waitForPids(t, file, n) {
		gone := false
		for range 60 {
			stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
			if gone = err != nil || strings.Contains(string(stat), ") Z "); gone {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		if !gone {
			t.Errorf("process %s still runs", pid)
		}
	}
}

// client-go keeps a plugin by its command and arguments: an observer that looks
// again and again must start it with the same ones, or each look would cost a
// login and memory for ever.
func TestPluginArgumentsStayTheSame(t *testing.T) {
	calls := filepath.Join(t.TempDir(), "calls")
	guard := script(t, `echo "$@" >>`+calls+"\nexit 1\n")
	path := kubeconfig(t, "https://"+closedPort(t), plugin("true"))
	o := &kube.Observer{Guard: guard}
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		if _, err := o.Observe(ctx, cluster(path), clusters.Want{}); err == nil {
			t.Error("a plugin that fails gave a credential")
		}
		cancel()
	}
	data, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		seen[line] = true
	}
	if len(seen) != 1 {
		t.Errorf("started with %d different argument lists:\n%s", len(seen), data)
	}
}
