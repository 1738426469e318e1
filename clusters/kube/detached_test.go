package kube_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/clusters/kube"
)

// client-go reads a plugin's output to its end. A process that the plugin
// detached is not of its group, and must not keep that end from coming.
func TestDetachedProcessDoesNotHoldThePipe(t *testing.T) {
	dir := t.TempDir()
	path := script(t, fmt.Sprintf("setsid sh -c 'echo $$ >%s/pid; exec sleep 60' &\nwhile [ ! -s %s/pid ]; do sleep 0.05; done\necho credential\n", dir, dir))
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	t.Cleanup(func() {
		data, err := os.ReadFile(dir + "/pid")
		pid, _ := strconv.Atoi(strings.TrimSpace(string(data)))
		if err != nil || pid == 0 || syscall.Kill(pid, syscall.SIGKILL) != nil {
			t.Errorf("the plugin detached no process that lives on (%q, %v): nothing was tested", data, err)
		}
	})
	if status := kube.ExecGuard([]string{"30s", "--", path}, nil, w, io.Discard); status != 0 {
		t.Errorf("exit status %d, want 0", status)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if err != nil || string(out) != "credential\n" {
		t.Errorf("read %q, %v, want the credential and then the end", out, err)
	}
}

// Proxies put a page of their own in place of the Status of a 410.
func TestGoneWithoutStatusIsReadOnceMore(t *testing.T) {
	asked := 0
	s := fake(t, daemonSets(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Query().Get("continue") == "":
			send(w, 200, list("DaemonSetList", "apps/v1", `"resourceVersion":"1","continue":"more"`))
		case asked == 0:
			asked++
			http.Error(w, "gone", http.StatusGone)
		default:
			send(w, 200, list("DaemonSetList", "apps/v1", `"resourceVersion":"2"`))
		}
	}))
	s.Start()
	if _, err := (&kube.Observer{}).Observe(t.Context(), cluster(kubeconfig(t, s.URL)), clusters.Want{}); err != nil {
		t.Errorf("got %v, want the list afresh", err)
	}
	if asked != 1 {
		t.Error("no page was answered with 410: nothing was tested")
	}
}
