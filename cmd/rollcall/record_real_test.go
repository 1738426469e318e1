package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rollcall.dev/rollcall/clusters/kube"
	"rollcall.dev/rollcall/clusters/kubetest"
	"rollcall.dev/rollcall/controller/report"
)

// shelf keeps what is put on it, for who has the token, and hands it out again.
type shelf struct {
	*httptest.Server
	mu     sync.Mutex
	things map[string][]byte
	fail   int // how many of the next requests
}

const shelfToken = "CANARY-shelf"

func newShelf(t *testing.T) *shelf {
	t.Helper()
	s := &shelf{things: map[string][]byte{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case s.fail > 0:
			s.fail--
			w.WriteHeader(http.StatusServiceUnavailable)
		case req.Header.Get("Authorization") != "Bearer "+shelfToken:
			w.WriteHeader(http.StatusUnauthorized)
		case req.Method == http.MethodPut:
			s.things[req.URL.Path], _ = io.ReadAll(req.Body)
			w.WriteHeader(http.StatusCreated)
		case s.things[req.URL.Path] == nil:
			http.NotFound(w, req)
		default:
			_, _ = w.Write(s.things[req.URL.Path])
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// What is recorded of a real cluster is judged as the cluster is: from a file, and
// from where it was pushed.
func TestRealRecord(t *testing.T) {
	cp := kubetest.Start(t, kubetest.Options{Controllers: true, Scheduler: true, Nodes: 3})
	cp.Apply(t, strings.Replace(exporter, `image: "registry.example/exporter:1"`, `image: "registry.example/exporter:1", env: [{name: T, value: CANARY-env}], args: [CANARY-arg]`, 1))
	cp.WaitDaemonSetReady(t, "default", "exporter", 3)
	cp.Apply(t, "apiVersion: v1\nkind: Node\nmetadata: {name: node-1}\nspec: {taints: [{key: dedicated, value: db, effect: NoSchedule}]}\n")
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("KUBECONFIG", cp.Kubeconfig())
	call := func(status int, args ...string) (out, errs string) {
		t.Helper()
		var o, e bytes.Buffer
		if got := run(args, streams{strings.NewReader(""), &o, &e}); got != status {
			t.Fatalf("rollcall %s: exit status %d, want %d: %s%s", strings.Join(args, " "), got, status, e.String(), o.String())
		}
		return o.String(), e.String()
	}
	scan := func(args ...string) report.Cluster {
		t.Helper()
		out, _ := call(0, append([]string{"scan", "-o", "json", "--nodes", "all", "--fail-on", "none"}, args...)...)
		var r report.Report
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatal(err)
		}
		return r.Clusters[0]
	}
	alive := scan()
	_, said := call(0, "record", "prod")
	wants(t, said, `cluster "prod": 3 nodes, 1 DaemonSets`, "redacted: prod.snapshot.json.gz")
	if info, err := os.Stat("prod.snapshot.json.gz"); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	same := func(t *testing.T, got report.Cluster) {
		t.Helper()
		if got.Identity == "" || len(got.DaemonSets) != 1 || got.DaemonSets[0].Counts.States["Misscheduled"] != 1 {
			t.Fatalf("got %+v", got)
		}
		if diff := cmp.Diff(alive.DaemonSets[0].Counts, got.DaemonSets[0].Counts); diff != "" {
			t.Errorf("(-live +recorded):\n%s", diff)
		}
		if diff := cmp.Diff(alive.DaemonSets[0].Nodes, got.DaemonSets[0].Nodes); diff != "" {
			t.Errorf("(-live +recorded):\n%s", diff)
		}
	}
	t.Run("File", func(t *testing.T) { same(t, scan("-f", "prod.snapshot.json.gz")) })

	s := newShelf(t)
	token := filepath.Join(dir, "token")
	writeFile(t, token, shelfToken+"\n")
	t.Run("Push", func(t *testing.T) {
		call(0, "record", "prod", "--push", s.URL+"/prod.json.gz", "--token-file", token)
		if bytes.Contains(s.things["/prod.json.gz"], []byte("CANARY")) {
			t.Error("a secret was pushed")
		}
		writeFile(t, filepath.Join(dir, "rollcall.yaml"), "apiVersion: rollcall.dev/v1alpha1\nkind: Fleet\nmetadata: {name: f}\nspec: {policy: {staleAfter: 2s}}\n")
		write(t, dir, "clusters/prod.yaml", "apiVersion: rollcall.dev/v1alpha1\nkind: Cluster\nmetadata: {name: prod}\nspec:\n  recorded: "+s.URL+"/prod.json.gz\n  recordedAuth: {tokenFile: "+token+"}\n  reachability: intermittent\n")
		time.Sleep(2100 * time.Millisecond)
		out, _ := call(exitIncomplete, "report", "--fail-on", "none")
		wants(t, out, "ObservationStale", "STALE", "this is how it was; it counts nowhere below", "default/exporter", "1 cluster UNKNOWN")
		call(0, "record", "prod", "--push", s.URL+"/prod.json.gz", "--token-file", token)
		out, _ = call(0, "report", "--fail-on", "none")
		if strings.Contains(out, "STALE") || !strings.Contains(out, "recorded 20") {
			t.Errorf("a new one is stale: %s", out)
		}
	})
	t.Run("Refused", func(t *testing.T) {
		writeFile(t, token, "CANARY-wrong")
		_, said := call(exitBad, "record", "prod", "--push", s.URL+"/prod.json.gz", "--token-file", token)
		wants(t, said, "401 Unauthorized")
		if strings.Contains(said, "CANARY") {
			t.Error("the token is told")
		}
	})
	t.Run("AgainAndAgain", func(t *testing.T) {
		writeFile(t, token, shelfToken)
		s.mu.Lock()
		s.fail, s.things = 1, map[string][]byte{}
		s.mu.Unlock()
		var errs bytes.Buffer
		r := recordFlags{name: "prod", push: s.URL + "/again", tokenFile: token, timeout: time.Minute}
		c, err := r.cluster()
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var observer kube.Observer
		err = r.repeat(ctx, streams{strings.NewReader(""), io.Discard, &errs}, &observer, c, func(now time.Time) time.Time {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.things["/again"] != nil {
				cancel()
			}
			return now.Add(10 * time.Millisecond)
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		wants(t, errs.String(), "it answered 503", "3 nodes, 1 DaemonSets")
	})
	t.Run("SilentAndIntermittent", func(t *testing.T) {
		cp.Stop()
		write(t, dir, "clusters/prod.yaml", "apiVersion: rollcall.dev/v1alpha1\nkind: Cluster\nmetadata: {name: prod}\nspec:\n  kubeconfig: {path: "+cp.Kubeconfig()+"}\n  reachability: intermittent\n")
		out, _ := call(0, "report", "-o", "wide", "--timeout", "10s")
		wants(t, out, "info    Unreachable", "it is declared as intermittent", "1 cluster UNKNOWN")
	})
}
