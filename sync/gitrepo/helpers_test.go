package gitrepo

import (
	"context"
	"io/fs"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"rollcall.dev/rollcall/sync/source"
)

// secret is looked for in everything that is printed.
const secret = "CANARY-5f1c"

// repo is a real repository that the real git works on.
type repo struct {
	t   *testing.T
	dir string
}

func newRepo(t *testing.T) repo {
	t.Helper()
	r := repo{t: t, dir: filepath.Join(t.TempDir(), "repo")}
	if err := os.Mkdir(r.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r.git("init", "-q", "-b", "main")
	return r
}

// git runs git and returns what it prints.
func (r repo) git(args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = r.dir, gitEnv()
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func gitEnv() []string {
	return append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=gc.auto", "GIT_CONFIG_VALUE_0=0",
		"GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@example.invalid",
		"GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@example.invalid",
		"GIT_AUTHOR_DATE=2026-03-04T05:06:07Z", "GIT_COMMITTER_DATE=2026-03-05T05:06:07Z")
}

func (r repo) write(name, content string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r repo) link(target, name string) {
	r.t.Helper()
	if err := os.Symlink(target, filepath.Join(r.dir, name)); err != nil {
		r.t.Fatal(err)
	}
}

// commit records everything and returns the commit's hash.
func (r repo) commit(message string) string {
	r.t.Helper()
	r.git("add", "-A")
	r.git("commit", "-q", "--allow-empty", "-m", message)
	return r.git("rev-parse", "HEAD")
}

// packWithout is a pack of all objects but one.
func (r repo) packWithout(object string) string {
	r.t.Helper()
	omitted := r.git("rev-parse", object)
	var list []string
	for line := range strings.Lines(r.git("rev-list", "--objects", "HEAD")) {
		if h, _, _ := strings.Cut(strings.TrimSpace(line), " "); h != omitted {
			list = append(list, h)
		}
	}
	cmd := exec.Command("git", "pack-objects", "-q", "--stdout")
	cmd.Dir, cmd.Env, cmd.Stdin = r.dir, gitEnv(), strings.NewReader(strings.Join(list, "\n")+"\n")
	out, err := cmd.Output()
	if err != nil {
		r.t.Fatal(err)
	}
	return string(out)
}

// change writes v into a file and commits it.
func (r repo) change(v string) string {
	r.t.Helper()
	r.write("v.txt", v)
	return r.commit(v)
}

// server is git http-backend behind a handler that counts and may interfere.
type server struct {
	*httptest.Server
	cache string

	mu     sync.Mutex
	lists  int
	packs  int
	before func(http.ResponseWriter, *http.Request) bool // true: answered
}

// serve serves the repository as URL + "/repo".
func serve(t *testing.T, r repo) *server {
	t.Helper()
	core, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	backend := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(core)), "git-http-backend"),
		Env:  append(gitEnv(), "GIT_PROJECT_ROOT="+filepath.Dir(r.dir), "GIT_HTTP_EXPORT_ALL=1"),
	}
	s := &server{cache: filepath.Join(t.TempDir(), "cache")}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		s.mu.Lock()
		before := s.before
		if req.Method == http.MethodPost {
			s.packs++
		} else {
			s.lists++
		}
		s.mu.Unlock()
		if before == nil || !before(w, req) {
			backend.ServeHTTP(w, req)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) interfere(f func(http.ResponseWriter, *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = f
}

// counts returns the requests since the last call.
func (s *server) counts() (lists, packs int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lists, packs = s.lists, s.packs
	s.lists, s.packs = 0, 0
	return lists, packs
}

func (s *server) config(c Config) Config {
	c.URL, c.Cache = s.URL+"/repo", s.cache
	return c
}

func open(t *testing.T, c Config) *Repository {
	t.Helper()
	r, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func fetch(t *testing.T, c Config) source.Artifact {
	t.Helper()
	return fetchFrom(t, open(t, c))
}

func fetchFrom(t *testing.T, r *Repository) source.Artifact {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a, err := r.Fetch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// fetchError fetches what must fail, and looks for the canary.
func fetchError(t *testing.T, c Config) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a, err := open(t, c).Fetch(ctx)
	if err == nil {
		t.Fatalf("want an error, got revision %+v", a.Revision)
	}
	if strings.Contains(err.Error(), secret) {
		t.Errorf("the error has the secret in it: %v", err)
	}
	return err
}

func content(t *testing.T, files fs.FS, name string) string {
	t.Helper()
	b, err := fs.ReadFile(files, name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func wantText(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if err == nil || !strings.Contains(err.Error(), p) {
			t.Errorf("error %v: want %q in it", err, p)
		}
	}
}

func secretFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
