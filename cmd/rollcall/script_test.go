package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"rollcall.dev/rollcall/render/build"
)

var update = flag.Bool("update", false, "rewrite golden files")

var servers sync.Map // the Git server of each script

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == build.ChildCommand || os.Getenv(asMain) != "" {
		main() // tests that call our functions build in children of this binary
	}
	testscript.Main(m, map[string]func(){"rollcall": main})
}

func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", UpdateScripts: *update, RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			fleet, err := filepath.Abs("testdata/fleet")
			env.Vars = append(env.Vars, append(environment(env.WorkDir), "FLEET="+fleet)...)
			return err
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "fleet": newFleet, "commit": commit, "steady": steady, "megabytes": megabytes, "latin1": latin1, "serve": serve,
		},
	})
}

// environment keeps commands inside a folder of their own.
func environment(dir string) []string {
	return []string{
		"HOME=" + filepath.Join(dir, "home"), "XDG_CACHE_HOME=" + filepath.Join(dir, "cache"), "KUBECONFIG=" + filepath.Join(dir, "no-kubeconfig"),
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_AUTHOR_DATE=2026-11-28T10:00:00Z",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com", "GIT_COMMITTER_DATE=2026-11-28T10:00:00Z",
	}
}

// exits STATUS COMMAND ARGS... wants that very exit status. What is printed is
// there for stdout, stderr and cmp.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND [ARGS...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("running %s: %v", args[1], err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d\nstdout: %s\nstderr: %s", got, want, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

// fleet puts the small fleet of testdata here, its repository committed.
func newFleet(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Check(os.CopyFS(ts.MkAbs("."), os.DirFS(ts.Getenv("FLEET"))))
	commit(ts, false, []string{"repository"})
}

// commit FOLDER commits all that is in it, as it stands.
func commit(ts *testscript.TestScript, _ bool, args []string) {
	steps := [][]string{{"add", "-A"}, {"commit", "-qm", "daemons"}}
	if _, err := os.Stat(ts.MkAbs(filepath.Join(args[0], ".git"))); err != nil {
		steps = append([][]string{{"init", "-q", "-b", "main"}}, steps...)
	}
	for _, git := range steps {
		ts.Check(ts.Exec("git", append([]string{"-C", args[0]}, git...)...))
	}
}

// steady FILE takes out of a report what differs from run to run.
func steady(ts *testscript.TestScript, _ bool, args []string) {
	text, err := steadyReport([]byte(ts.ReadFile(args[0])), ts.Getenv("WORK"))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), text, 0o600))
}

func steadyReport(data []byte, work string) ([]byte, error) {
	var r map[string]any
	if err := json.Unmarshal(bytes.ReplaceAll(data, []byte(work), []byte("WORK")), &r); err != nil {
		return nil, err
	}
	delete(r, "generatedAt")
	if source, ok := r["source"].(map[string]any); ok {
		for _, key := range []string{"fetchedAt", "url", "commit"} {
			if text, _ := source[key].(string); text == "" {
				return nil, fmt.Errorf("the source has no %s", key)
			}
			delete(source, key)
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(r)
	return b.Bytes(), err
}

// latin1 FILE makes a file of bytes that are no UTF-8 text.
func latin1(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte("apiVersion: v1\nkind: caf\xe9\n"), 0o600))
}

// megabytes N FILE makes a manifest of that size.
func megabytes(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	f, err := os.Create(ts.MkAbs(args[1]))
	ts.Check(err)
	defer f.Close()
	_, err = f.WriteString("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: big, namespace: obs}\ndata:\n  text: |\n")
	ts.Check(err)
	block := bytes.Repeat([]byte("    "+strings.Repeat("y", 59)+"\n"), 1<<14)
	for range n {
		_, err = f.Write(block)
		ts.Check(err)
	}
}

// serve FOLDER serves a repository over HTTP by git http-backend, as $GIT, until
// serve stop.
func serve(ts *testscript.TestScript, _ bool, args []string) {
	if s, ok := servers.LoadAndDelete(ts); ok {
		s.(*httptest.Server).Close()
	}
	if args[0] == "stop" {
		return
	}
	core, err := exec.Command("git", "--exec-path").Output()
	ts.Check(err)
	s := httptest.NewServer(&cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(core)), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + ts.MkAbs("."), "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null"},
	})
	ts.Defer(s.Close)
	servers.Store(ts, s)
	ts.Setenv("GIT", s.URL+"/"+args[0])
}
