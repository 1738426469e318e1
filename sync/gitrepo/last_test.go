package gitrepo

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Whatever becomes of a repository, what was fetched last can still be served,
// with its age, by this process and by the next; and the next fetch that
// succeeds is current again.
func TestLastWhenTheRepositoryFails(t *testing.T) {
	type world struct {
		repo   repo
		server *server
	}
	cases := map[string]struct {
		fail  func(world)
		heal  func(world)
		cause error
	}{
		"Gone": {func(w world) {
			w.server.interfere(func(rw http.ResponseWriter, _ *http.Request) bool {
				rw.WriteHeader(http.StatusInternalServerError)
				return true
			})
		}, func(w world) { w.server.interfere(nil) }, statusError(500)},
		"Login": {func(w world) { w.server.interfere(login("Basic x")) }, func(w world) { w.server.interfere(nil) }, ErrUnauthorized},
		"BranchDeleted": {func(w world) {
			w.repo.git("checkout", "-q", "-b", "other")
			w.repo.git("branch", "-D", "main")
		}, func(w world) { w.repo.git("checkout", "-q", "-b", "main") }, ErrRefNotFound},
		"HalfAPack": {func(w world) {
			w.repo.change("two")
			w.server.interfere(func(rw http.ResponseWriter, req *http.Request) bool {
				if req.Method != http.MethodPost {
					return false
				}
				rw.Header().Set("Content-Type", "application/x-git-upload-pack-result")
				_, _ = io.WriteString(rw, "0034shallow "+w.repo.git("rev-parse", "HEAD")+"0000"+"0008NAK\n"+"0015\x01PACK\x00\x00\x00\x02\x00\x00\x00\x03x")
				return true
			})
		}, func(w world) { w.server.interfere(nil) }, ErrIncomplete},
		"PathRemoved": {func(w world) {
			w.repo.git("rm", "-q", "-r", "fleet")
			w.repo.commit("removed")
		}, func(w world) {
			w.repo.write("fleet/x", "x")
			w.repo.commit("back")
		}, ErrPathNotFound},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRepo(t)
			r.write("fleet/x", "x")
			first := r.change("one")
			w := world{r, serve(t, r)}
			c := w.server.config(Config{Ref: Ref{Branch: "main"}, Path: "fleet"})
			this := open(t, c)
			a := fetchFrom(t, this)
			tc.fail(w)
			for who, repository := range map[string]*Repository{"this process": this, "the next": open(t, c)} {
				if _, err := repository.Fetch(t.Context()); !errors.Is(err, tc.cause) {
					t.Errorf("%s: want %v, got %v", who, tc.cause, err)
				}
				last, err := repository.Last(t.Context())
				if err != nil {
					t.Fatalf("%s: %v", who, err)
				}
				if got := last.Revision; got.Commit != first || content(t, last.Files, "x") != "x" || got.Ref != "main" || !got.FetchedAt.Equal(a.Revision.FetchedAt) {
					t.Errorf("%s: got %+v, want what was fetched at %s", who, got, a.Revision.FetchedAt)
				}
			}
			tc.heal(w)
			fetchFrom(t, this)
			fetch(t, c)
		})
	}
}

func TestLastOfNothing(t *testing.T) {
	s := serve(t, newRepoWith(t, "one"))
	repository := open(t, s.config(Config{}))
	if _, err := repository.Last(t.Context()); !errors.Is(err, ErrNeverFetched) {
		t.Errorf("want ErrNeverFetched, got %v", err)
	}
	fetchFrom(t, repository)
	for _, garbage := range []string{"", "{", `{"commit": "../../x"}`, `{"commit": "` + strings.Repeat("a", 40) + `", "repository": "../../../etc"}`} {
		writeFile(t, repository.cache.path(recordFile), garbage)
		if _, err := open(t, s.config(Config{})).Last(t.Context()); !errors.Is(err, ErrNeverFetched) {
			t.Errorf("%q: want ErrNeverFetched, got %v", garbage, err)
		}
	}
}

func TestHistoryRewritten(t *testing.T) {
	many := func(r repo, n int) {
		for range n {
			r.commit("filler")
		}
	}
	cases := map[string]struct {
		change func(r repo)
		want   bool
	}{
		"Nothing":    {func(repo) {}, false},
		"Forward":    {func(r repo) { r.change("next") }, false},
		"FarForward": {func(r repo) { many(r, 100) }, false},
		"Amended":    {func(r repo) { r.git("commit", "-q", "--amend", "--allow-empty", "-m", "amended") }, true},
		"Backward":   {func(r repo) { r.git("reset", "-q", "--hard", "HEAD~1") }, true},
		"Orphan": {func(r repo) {
			r.git("checkout", "-q", "--orphan", "x")
			r.change("new")
			r.git("branch", "-M", "x", "main")
		}, true},
		"MergeOfTheOld": {func(r repo) {
			r.git("checkout", "-q", "-b", "side", "HEAD~2")
			r.change("side")
			r.git("merge", "-q", "-X", "ours", "-m", "m", "main")
			r.git("branch", "-M", "side", "main")
		}, false},
		"FarBehindAMerge": {func(r repo) {
			many(r, 40)
			r.git("checkout", "-q", "-b", "side", "HEAD~41")
			r.commit("side")
			r.git("merge", "-q", "-m", "m", "main")
			r.git("branch", "-M", "side", "main")
		}, false},
		"MergeIntoTheOld": {func(r repo) {
			r.git("checkout", "-q", "-b", "side", "HEAD~2")
			r.commit("side")
			r.git("checkout", "-q", "main")
			r.git("merge", "-q", "-m", "m", "side")
		}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRepo(t)
			r.change("zero")
			many(r, 40)
			r.change("one")
			before := r.change("two")
			s := serve(t, r)
			c := s.config(Config{Ref: Ref{Branch: "main"}})
			this, inPlace := open(t, c), open(t, Config{URL: r.dir, Ref: c.Ref})
			fetchFrom(t, this)
			fetchFrom(t, inPlace)
			tc.change(r)
			for who, repository := range map[string]*Repository{"this process": this, "in place": inPlace} {
				got := fetchFrom(t, repository).Revision.Replaced
				if (got == before) != tc.want || !tc.want && got != "" {
					t.Errorf("%s: replaced is %q, want it told: %v", who, got, tc.want)
				}
				if again := fetchFrom(t, repository).Revision.Replaced; again != "" {
					t.Errorf("%s: told twice", who)
				}
			}
		})
	}
}

func TestHistoryRewrittenBetweenProcesses(t *testing.T) {
	r := newRepoWith(t, "one")
	r.git("tag", "v1")
	before := r.git("rev-parse", "HEAD")
	s := serve(t, r)
	branch, tag := s.config(Config{Ref: Ref{Branch: "main"}}), s.config(Config{Ref: Ref{Tag: "v1"}})
	fetch(t, branch)
	fetch(t, tag)
	r.git("commit", "-q", "--amend", "--allow-empty", "-m", "amended")
	r.change("two")
	r.git("tag", "-f", "v1")
	for what, c := range map[string]Config{"branch": branch, "tag": tag} {
		if got := fetch(t, c).Revision.Replaced; got != before {
			t.Errorf("%s: replaced is %q, want %s", what, got, before)
		}
	}
}

// fullDisk is set in the process that has no room to write.
const fullDisk = "ROLLCALL_TEST_FULL_DISK"

// A disk that is full in the middle of a download leaves the last good commit,
// says what is wrong, and is made use of again when there is room.
func TestFullDisk(t *testing.T) {
	if url := os.Getenv(fullDisk); url != "" {
		fetchWithoutRoom(t, url, os.Getenv(fullDisk+"_CACHE"))
		return
	}
	r := newRepoWith(t, "one")
	s := serve(t, r)
	fetch(t, s.config(Config{}))
	noise := make([]byte, 300<<10)
	for i := range noise {
		noise[i] = byte(i * i * 7919 >> 3)
	}
	r.write("large.bin", string(noise))
	r.git("config", "core.compression", "0")
	r.change("two")
	cmd := exec.Command(os.Args[0], "-test.run", "^TestFullDisk$")
	cmd.Env = append(os.Environ(), fullDisk+"="+s.URL+"/repo", fullDisk+"_CACHE="+s.cache)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := content(t, fetch(t, s.config(Config{})).Files, "v.txt"); got != "two" {
		t.Errorf("with room again: %q", got)
	}
	if left, _ := filepath.Glob(filepath.Join(s.cache, "*", "*", "objects", "pack", "tmp_*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// fetchWithoutRoom may write no file above 64 KiB, as if the disk were full.
func fetchWithoutRoom(t *testing.T, url, cache string) {
	limit := syscall.Rlimit{Cur: 64 << 10, Max: 64 << 10}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	repository := open(t, Config{URL: url, Cache: cache})
	_, err := repository.Fetch(t.Context())
	if !errors.Is(err, ErrStorage) || errors.Is(err, ErrIncomplete) {
		t.Errorf("want ErrStorage, got %v", err)
	}
	last, err := repository.Last(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := content(t, last.Files, "v.txt"); got != "one" {
		t.Errorf("the last good commit has %q", got)
	}
}

// killed is set in the process that is killed.
const killed = "ROLLCALL_TEST_KILLED"

// Fault F34: a process that is killed in the middle of a fetch costs the next
// one nothing but the work.
func TestKilledWhileFetching(t *testing.T) {
	if url := os.Getenv(killed); url != "" {
		_, _ = open(t, Config{URL: url, Cache: os.Getenv(killed + "_CACHE")}).Fetch(t.Context())
		return
	}
	r := newRepoWith(t, "one")
	s := serve(t, r)
	for i := range 10 {
		r.write("large.bin", strings.Repeat(string(rune('a'+i)), 1<<20))
		v := "v" + string(rune('a'+i))
		r.change(v)
		ctx, kill := context.WithCancel(t.Context()) // by SIGKILL
		cmd := exec.CommandContext(ctx, os.Args[0], "-test.run", "^TestKilledWhileFetching$")
		cmd.Env = append(os.Environ(), killed+"="+s.URL+"/repo", killed+"_CACHE="+s.cache)
		// It is killed when it asks for the refs, when it asks for the pack, and a
		// little later, while it stores it.
		s.interfere(func(_ http.ResponseWriter, req *http.Request) bool {
			if i%3 == 0 || req.Method == http.MethodPost {
				time.AfterFunc(time.Duration(i%3*i)*time.Millisecond, kill)
			}
			return false
		})
		_ = cmd.Run()
		kill()
		s.interfere(nil)
		if i%3 != 0 {
			continue
		}
		if got := content(t, fetch(t, s.config(Config{})).Files, "v.txt"); got != v {
			t.Errorf("after kill %d: %q, want %q", i, got, v)
		}
	}
}
