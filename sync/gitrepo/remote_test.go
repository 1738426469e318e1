package gitrepo

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestFetchRefs(t *testing.T) {
	r := newRepo(t)
	first := r.change("one")
	r.git("tag", "light")
	r.git("tag", "-a", "-m", "x", "annotated")
	r.git("tag", "-a", "-m", "x", "twice", "annotated")
	r.git("branch", "both")
	second := r.change("two")
	r.git("tag", "both")
	r.git("branch", "feature/x")
	third := r.change("three")
	s := serve(t, r)
	cases := map[string]struct {
		reason      string
		config      Config
		commit, ref string
		content     string
	}{
		"Head":         {"no ref is HEAD, named by its branch", Config{}, third, "main", "three"},
		"Branch":       {"a branch's tip", Config{Ref: Ref{Branch: "main"}}, third, "main", "three"},
		"Nested":       {"a slash in the name", Config{Ref: Ref{Branch: "feature/x"}}, second, "feature/x", "two"},
		"LightTag":     {"a tag that is only a name", Config{Ref: Ref{Tag: "light"}}, first, "light", "one"},
		"AnnotatedTag": {"peeled to its commit", Config{Ref: Ref{Tag: "annotated"}}, first, "annotated", "one"},
		"TagOfTag":     {"peeled twice", Config{Ref: Ref{Tag: "twice"}}, first, "twice", "one"},
		"BranchNotTag": {"a tag has the same name", Config{Ref: Ref{Branch: "both"}}, first, "both", "one"},
		"TagNotBranch": {"a branch has the same name", Config{Ref: Ref{Tag: "both"}}, second, "both", "two"},
		"Commit":       {"not the tip of anything on main", Config{Ref: Ref{Commit: strings.ToUpper(first)}}, first, first, "one"},
	}
	for name, tc := range cases {
		for where, config := range map[string]Config{"HTTP": s.config(tc.config), "Local": local(tc.config, r.dir)} {
			t.Run(name+where, func(t *testing.T) {
				a := fetch(t, config)
				if a.Revision.Commit != tc.commit || a.Revision.Ref != tc.ref {
					t.Errorf("%s: got %s of %q, want %s of %q", tc.reason, a.Revision.Commit, a.Revision.Ref, tc.commit, tc.ref)
				}
				if got := content(t, a.Files, "v.txt"); got != tc.content {
					t.Errorf("%s: got content %q, want %q", tc.reason, got, tc.content)
				}
				if want := time.Date(2026, 3, 5, 5, 6, 7, 0, time.UTC); !a.Revision.CommittedAt.Equal(want) {
					t.Errorf("got commit time %s, want the committer's, %s", a.Revision.CommittedAt, want)
				}
				if a.Revision.URL != config.URL || time.Since(a.Revision.FetchedAt) > time.Minute {
					t.Errorf("got URL %q, fetched at %s", a.Revision.URL, a.Revision.FetchedAt)
				}
			})
		}
	}
}

func local(c Config, dir string) Config {
	c.URL = dir
	return c
}

func TestFetchAsksOnceWhenNothingMoved(t *testing.T) {
	r := newRepo(t)
	r.change("one")
	s := serve(t, r)
	repository := open(t, s.config(Config{Ref: Ref{Branch: "main"}}))
	steps := []struct {
		reason       string
		with         *Repository
		move         bool
		lists, packs int
	}{
		{"the first fetch downloads", repository, false, 1, 1},
		{"nothing moved", repository, false, 1, 0},
		{"another process finds it in the cache", open(t, s.config(Config{Ref: Ref{Branch: "main"}})), false, 1, 0},
		{"the branch moved", repository, true, 1, 1},
		{"nothing moved again", repository, false, 1, 0},
	}
	for i, st := range steps {
		want := "one"
		if st.move {
			r.change("two")
		}
		if i >= 3 {
			want = "two"
		}
		a := fetchFrom(t, st.with)
		if lists, packs := s.counts(); lists != st.lists || packs != st.packs {
			t.Errorf("%s: got %d lists and %d packs, want %d and %d", st.reason, lists, packs, st.lists, st.packs)
		}
		if got := content(t, a.Files, "v.txt"); got != want {
			t.Errorf("%s: got %q, want %q", st.reason, got, want)
		}
	}
}

func TestFetchDownloadsOnlyWhatIsNew(t *testing.T) {
	r := newRepo(t)
	noise := make([]byte, 200_000)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range noise { // it does not compress, so it is told by size
		noise[i] = byte(random.Uint32())
	}
	r.write("big.bin", string(noise))
	r.change("one")
	s := serve(t, r)
	var sent int64
	s.interfere(func(w http.ResponseWriter, req *http.Request) bool {
		if req.Method == http.MethodPost {
			b, _ := io.ReadAll(req.Body)
			sent = int64(strings.Count(string(b), "have "))
			req.Body = io.NopCloser(strings.NewReader(string(b)))
		}
		return false
	})
	repository := open(t, s.config(Config{Ref: Ref{Branch: "main"}}))
	old := fetchFrom(t, repository)
	if sent != 0 {
		t.Errorf("the first fetch told of %d commits it has", sent)
	}
	before := packBytes(t, s.cache)
	r.change("two")
	fetchFrom(t, repository)
	if sent != 1 {
		t.Errorf("the second fetch told of %d commits it has, want 1", sent)
	}
	if grown := packBytes(t, s.cache) - before; before < 200_000 || grown <= 0 || grown > 20_000 {
		t.Errorf("one changed line cost %d bytes after %d", grown, before)
	}
	if got := content(t, old.Files, "v.txt"); got != "one" {
		t.Errorf("the old artifact now says %q", got)
	}
}

func packBytes(t *testing.T, folder string) (total int64) {
	t.Helper()
	for _, p := range packs(t, folder) {
		i, err := os.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		total += i.Size()
	}
	return total
}

func packs(t *testing.T, folder string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, "*", "*", "objects", "pack", "*.pack"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestFetchAfterForcedPush(t *testing.T) {
	r := newRepo(t)
	r.change("one")
	r.change("two")
	s := serve(t, r)
	repository := open(t, s.config(Config{Ref: Ref{Branch: "main"}}))
	fetchFrom(t, repository)
	r.git("checkout", "-q", "--orphan", "other")
	rewritten := r.change("rewritten")
	r.git("branch", "-f", "main", "other")
	r.git("reflog", "expire", "--expire=now", "--all")
	r.git("gc", "-q", "--prune=now")
	if got := fetchFrom(t, repository).Revision.Commit; got != rewritten {
		t.Errorf("got %s, want %s", got, rewritten)
	}
	if got := fetch(t, s.config(Config{Ref: Ref{Branch: "main"}})); content(t, got.Files, "v.txt") != "rewritten" {
		t.Errorf("got %q", content(t, got.Files, "v.txt"))
	}
}

func TestFetchRefNotFound(t *testing.T) {
	r := newRepo(t)
	r.change("one")
	r.git("branch", "mian")
	r.git("tag", "v1")
	s := serve(t, r)
	gone := Config{Ref: Ref{Branch: "mian"}}
	fetch(t, s.config(gone)) // cached, which must not matter
	r.git("branch", "-D", "mian")
	absent := strings.Repeat("1", 40)
	cases := map[string]struct {
		config Config
		want   []string
	}{
		"Deleted": {gone, []string{`branch "mian"`, `branches are "main"`}},
		"IsATag":  {Config{Ref: Ref{Branch: "v1"}}, []string{"there is a tag of that name"}},
		"Tag":     {Config{Ref: Ref{Tag: "v2"}}, []string{`tags are "v1"`}},
		"Commit":  {Config{Ref: Ref{Commit: absent}}, []string{absent}},
	}
	for name, tc := range cases {
		for where, config := range map[string]Config{"HTTP": s.config(tc.config), "Local": local(tc.config, r.dir)} {
			t.Run(name+where, func(t *testing.T) {
				err := fetchError(t, config)
				if !errors.Is(err, ErrRefNotFound) {
					t.Errorf("want ErrRefNotFound, got %v", err)
				}
				wantText(t, err, tc.want...)
			})
		}
	}
}

func TestFetchHeadThatPointsNowhere(t *testing.T) {
	r := newRepo(t)
	commit := r.change("one")
	s := serve(t, r)
	r.git("checkout", "-q", "--detach")
	for _, config := range []Config{s.config(Config{}), local(Config{}, r.dir)} {
		if rev := fetch(t, config).Revision; rev.Ref != "HEAD" || rev.Commit != commit {
			t.Errorf("detached: got %q at %s", rev.Ref, rev.Commit)
		}
	}
	r.git("symbolic-ref", "HEAD", "refs/heads/nope")
	for _, config := range []Config{s.config(Config{}), local(Config{}, r.dir)} {
		err := fetchError(t, config)
		if !errors.Is(err, ErrRefNotFound) {
			t.Errorf("want ErrRefNotFound, got %v", err)
		}
		wantText(t, err, `"main"`)
	}
}

func TestFetchEmptyRepository(t *testing.T) {
	r := newRepo(t)
	s := serve(t, r)
	for _, config := range []Config{s.config(Config{}), s.config(Config{Ref: Ref{Branch: "main"}}), local(Config{}, r.dir), local(Config{Ref: Ref{Branch: "main"}}, r.dir)} {
		if err := fetchError(t, config); !errors.Is(err, ErrEmpty) {
			t.Errorf("want ErrEmpty, got %v", err)
		}
	}
}

func TestFetchTagOfATreeIsAnError(t *testing.T) {
	r := newRepo(t)
	r.change("one")
	r.git("tag", "odd", "HEAD^{tree}")
	s := serve(t, r)
	for _, config := range []Config{s.config(Config{Ref: Ref{Tag: "odd"}}), local(Config{Ref: Ref{Tag: "odd"}}, r.dir)} {
		wantText(t, fetchError(t, config), "another kind of object", "tree")
	}
}

func TestFetchPath(t *testing.T) {
	r := newRepo(t)
	r.write("a/b/c.yaml", "x")
	r.commit("x")
	s := serve(t, r)
	for _, config := range []Config{s.config(Config{Path: "a/./b"}), local(Config{Path: "a/b"}, r.dir)} {
		if got := content(t, fetch(t, config).Files, "c.yaml"); got != "x" {
			t.Errorf("got %q", got)
		}
	}
	for _, path := range []string{"nope", "a/b/c.yaml", "a/b/c.yaml/d"} {
		for _, config := range []Config{s.config(Config{Path: path}), local(Config{Path: path}, r.dir)} {
			err := fetchError(t, config)
			if !errors.Is(err, ErrPathNotFound) {
				t.Errorf("%s: want ErrPathNotFound, got %v", path, err)
			}
			wantText(t, err, path)
		}
	}
}

// A server that will not give a commit by its hash still has it in a branch.
func TestFetchCommitFromAServerThatRefusesHashes(t *testing.T) {
	r := newRepo(t)
	first := r.change("one")
	r.change("two")
	s := serve(t, r)
	s.interfere(func(w http.ResponseWriter, req *http.Request) bool {
		if req.Method != http.MethodPost {
			return false
		}
		b, _ := io.ReadAll(req.Body)
		req.Body = io.NopCloser(strings.NewReader(string(b)))
		if !strings.Contains(string(b), "want "+first) {
			return false
		}
		line := "ERR upload-pack: not our ref " + first
		w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		fmt.Fprintf(w, "%04x%s", len(line)+4, line)
		return true
	})
	a := fetch(t, s.config(Config{Ref: Ref{Commit: first}}))
	if got := content(t, a.Files, "v.txt"); got != "one" {
		t.Errorf("got %q", got)
	}
	if lists, packs := s.counts(); lists != 1 || packs != 2 {
		t.Errorf("got %d lists and %d packs, want 1 and 2", lists, packs)
	}
	fetch(t, s.config(Config{Ref: Ref{Commit: first}}))
	if lists, packs := s.counts(); lists != 1 || packs != 0 {
		t.Errorf("cached: got %d lists and %d packs, want 1 and 0", lists, packs)
	}
	// Only the branch that is named is looked through.
	if got := content(t, fetch(t, s.config(Config{Ref: Ref{Branch: "main", Commit: first}})).Files, "v.txt"); got != "one" {
		t.Errorf("with its branch: got %q", got)
	}
	r.git("checkout", "-q", "--orphan", "other")
	r.change("other")
	err := fetchError(t, s.config(Config{Ref: Ref{Branch: "other", Commit: first}}))
	if wantText(t, err, `branch "other" does not lead to it`); !errors.Is(err, ErrRefNotFound) {
		t.Errorf("want ErrRefNotFound, got %v", err)
	}
}

// login is a handler that wants this Authorization, and echoes what it got, as
// a hostile server might.
func login(want string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, req *http.Request) bool {
		got := req.Header.Get("Authorization")
		if got == want {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="`+got+`"`)
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, "you sent %q", got)
		return true
	}
}

func TestFetchWithCredentials(t *testing.T) {
	r := newRepo(t)
	r.change("one")
	s := serve(t, r)
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("bot:"+secret))
	right := Auth{Username: "bot", PasswordFile: secretFile(t, secret+"\n")}
	token := Auth{TokenFile: secretFile(t, secret+"\r\n")}
	cases := map[string]struct {
		reason string
		server string // the Authorization it wants
		auth   Auth
		want   string // in the error; empty: it works
	}{
		"Basic":         {"the newline is not part of it", basic, right, ""},
		"Token":         {"the newline is not part of it", "Bearer " + secret, token, ""},
		"WrongPassword": {"refused", basic, Auth{Username: "bot", PasswordFile: secretFile(t, secret+"x")}, "refused the credentials"},
		"WrongToken":    {"refused", "Bearer other", token, "refused the credentials"},
		"Anonymous":     {"none are given", basic, Auth{}, "auth names none"},
		"NoFile":        {"it is not there", basic, Auth{TokenFile: "/nonexistent/token"}, "/nonexistent/token"},
		"EmptyFile":     {"nothing is in it", basic, Auth{TokenFile: secretFile(t, "\n")}, "is empty"},
		"TwoLines":      {"it is no token", basic, Auth{TokenFile: secretFile(t, secret+"\nx\n")}, "more than one line"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s.interfere(login(tc.server))
			config := s.config(Config{Auth: tc.auth})
			if tc.want == "" {
				if got := content(t, fetch(t, config).Files, "v.txt"); got != "one" {
					t.Errorf("%s: got %q", tc.reason, got)
				}
				return
			}
			err := fetchError(t, config)
			wantText(t, err, tc.want)
			if strings.Contains(tc.want, "credentials") && !errors.Is(err, ErrUnauthorized) {
				t.Errorf("%s: want ErrUnauthorized, got %v", tc.reason, err)
			}
			if strings.Contains(err.Error(), strings.TrimPrefix(basic, "Basic ")) {
				t.Errorf("the error has the encoded password: %v", err)
			}
		})
	}
}

func TestFetchReadsTheTokenEachTime(t *testing.T) {
	r := newRepo(t)
	r.change("one")
	s := serve(t, r)
	file := secretFile(t, "first")
	repository := open(t, s.config(Config{Auth: Auth{TokenFile: file}}))
	s.interfere(login("Bearer first"))
	fetchFrom(t, repository)
	s.interfere(login("Bearer second"))
	if err := os.WriteFile(file, []byte("second\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	fetchFrom(t, repository)
}

// Whatever a hostile server says, the secret that it was sent is not repeated.
func TestFetchErrorsHaveNoSecret(t *testing.T) {
	r := newRepo(t)
	r.change("one")
	s := serve(t, r)
	auth := Auth{TokenFile: secretFile(t, secret)}
	packet := func(w http.ResponseWriter, kind, line string) bool {
		w.Header().Set("Content-Type", "application/x-git-upload-pack-"+kind)
		fmt.Fprintf(w, "%04x%s", len(line)+4, line)
		return true
	}
	onPost := func(f func(http.ResponseWriter) bool) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, req *http.Request) bool { return req.Method == http.MethodPost && f(w) }
	}
	cases := map[string]struct {
		answer func(http.ResponseWriter, *http.Request) bool
		want   string
	}{
		"ErrLine": {func(w http.ResponseWriter, _ *http.Request) bool { return packet(w, "advertisement", "ERR "+secret) }, "[hidden]"},
		"Garbage": {func(w http.ResponseWriter, _ *http.Request) bool { return packet(w, "advertisement", secret) }, "[hidden]"},
		"ContentType": {func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", "a/"+secret)
			return true
		}, "not with Git's protocol"},
		"Status": {func(w http.ResponseWriter, _ *http.Request) bool {
			http.Error(w, secret, http.StatusServiceUnavailable)
			return true
		}, "HTTP 503"},
		"NotFound": {func(w http.ResponseWriter, _ *http.Request) bool {
			http.Error(w, secret, http.StatusNotFound)
			return true
		}, "no such repository"},
		"PackErr":     {onPost(func(w http.ResponseWriter) bool { return packet(w, "result", "ERR "+secret) }), "[hidden]"},
		"PackGarbage": {onPost(func(w http.ResponseWriter) bool { return packet(w, "result", secret) }), "sent no pack"},
		"SideBand": {onPost(func(w http.ResponseWriter) bool {
			w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
			_, _ = io.WriteString(w, "0000")
			return packet(w, "result", "NAK\n") && packet(w, "result", "\x03"+secret)
		}), "[hidden]"},
		"Empty": {onPost(func(w http.ResponseWriter) bool {
			w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
			return true
		}), "sent no pack"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s.interfere(tc.answer)
			wantText(t, fetchError(t, s.config(Config{Auth: auth})), tc.want)
		})
	}
}

func TestFetchRefusesRedirectToAnotherHost(t *testing.T) {
	r := newRepo(t)
	r.change("one")
	s := serve(t, r)
	var reached []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		reached = append(reached, req.Header.Get("Authorization"))
		http.NotFound(w, req)
	}))
	defer other.Close()
	s.interfere(func(w http.ResponseWriter, req *http.Request) bool {
		http.Redirect(w, req, other.URL+"/"+secret+req.URL.RequestURI(), http.StatusFound)
		return true
	})
	err := fetchError(t, s.config(Config{Auth: Auth{TokenFile: secretFile(t, secret)}}))
	wantText(t, err, "another host", strings.TrimPrefix(other.URL, "http://"))
	if len(reached) != 0 {
		t.Errorf("the other host was asked, with Authorization %q", reached)
	}
}

func TestFetchFollowsRedirectOnTheSameHost(t *testing.T) {
	r := newRepo(t)
	r.change("one")
	s := serve(t, r)
	s.interfere(func(w http.ResponseWriter, req *http.Request) bool {
		if rest, ok := strings.CutPrefix(req.URL.RequestURI(), "/old/"); ok {
			http.Redirect(w, req, "/"+rest, http.StatusMovedPermanently)
			return true
		}
		return false
	})
	config := s.config(Config{})
	config.URL = s.URL + "/old/repo"
	if got := content(t, fetch(t, config).Files, "v.txt"); got != "one" {
		t.Errorf("got %q", got)
	}
}

func TestFetchLimitsAnswers(t *testing.T) {
	r := newRepo(t)
	r.change("one")
	s := serve(t, r)
	endless := func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		w.(http.Flusher).Flush() // so that no length is told in advance
		for range 50 {
			_, _ = io.WriteString(w, "000a#xxxxx")
		}
		return true
	}
	for name, answer := range map[string]func(http.ResponseWriter, *http.Request) bool{"Told": nil, "NotTold": endless} {
		s.interfere(answer)
		repository := open(t, s.config(Config{}))
		repository.limits = limits{refs: 100, pack: 100, idle: time.Minute}
		_, err := repository.Fetch(t.Context())
		if wantText(t, err, "more than 100 bytes"); t.Failed() {
			t.Fatal(name)
		}
	}
	s.interfere(nil)
	for name, l := range map[string]limits{"Refs": {refs: 100, pack: 1 << 20}, "Pack": {refs: 1 << 20, pack: 100}} {
		t.Run(name, func(t *testing.T) {
			repository := open(t, s.config(Config{}))
			l.idle = time.Minute
			repository.limits = l
			_, err := repository.Fetch(t.Context())
			wantText(t, err, "more than 100 bytes")
			if left := packs(t, s.cache); len(left) != 0 {
				t.Errorf("something was published: %v", left)
			}
		})
	}
}

func TestFetchReturnsAtTheDeadline(t *testing.T) {
	r := newRepo(t)
	r.change("one")
	s := serve(t, r)
	release := make(chan struct{})
	defer close(release)
	silent := func(methods string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, req *http.Request) bool {
			if !strings.Contains(methods, req.Method) {
				return false
			}
			w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
			_, _ = io.WriteString(w, "0008NAK\n0")
			w.(http.Flusher).Flush()
			<-release
			return true
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	cases := map[string]struct {
		answer func(http.ResponseWriter, *http.Request) bool
		url    string
	}{
		"Silent":  {nil, "http://" + listener.Addr().String() + "/repo"},
		"List":    {func(http.ResponseWriter, *http.Request) bool { <-release; return true }, s.URL + "/repo"},
		"MidPack": {silent(http.MethodPost), s.URL + "/repo"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s.interfere(tc.answer)
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			start := time.Now()
			_, err := open(t, Config{URL: tc.url, Cache: s.cache}).Fetch(ctx)
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("want a deadline error, got %v", err)
			}
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}

func TestFetchUnreachable(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	err := fetchError(t, Config{URL: closed.URL + "/repo", Cache: t.TempDir()})
	if !errors.Is(err, ErrUnreachable) {
		t.Errorf("want ErrUnreachable, got %v", err)
	}
}

// Fault F32 and measured fact E9: go-git reports success for such packs.
func TestFetchFromACorruptServer(t *testing.T) {
	r := newRepo(t)
	for _, v := range []string{"one", "two", "three"} {
		r.write("f.yaml", "v: "+v+strings.Repeat("\n# line", 50))
		r.commit(v)
	}
	head := r.git("rev-parse", "HEAD")
	r.git("repack", "-adq")
	found, err := filepath.Glob(filepath.Join(r.dir, ".git/objects/pack/*.pack"))
	if err != nil || len(found) != 1 {
		t.Fatalf("packs: %v, %v", found, err)
	}
	sound, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(found[0], 0o600); err != nil {
		t.Fatal(err)
	}
	s := serve(t, r)
	repository := open(t, s.config(Config{Ref: Ref{Branch: "main"}}))
	for at := 20; at+8 < len(sound); at += 97 {
		damaged := append([]byte(nil), sound...)
		for i := range 8 {
			damaged[at+i] ^= 0xa5
		}
		if err := os.WriteFile(found[0], damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		a, err := open(t, s.config(Config{Ref: Ref{Commit: head}})).Fetch(t.Context())
		if err == nil { // what was damaged was not needed
			if got := content(t, a.Files, "f.yaml"); !strings.HasPrefix(got, "v: three") {
				t.Errorf("damage at %d: got %q", at, got)
			}
			continue
		}
		if left := packs(t, s.cache); len(left) != 0 {
			t.Errorf("damage at %d: published %v after %v", at, left, err)
		}
	}
	if err := os.WriteFile(found[0], append(sound[:12:12], make([]byte, len(sound)-12)...), 0o600); err != nil {
		t.Fatal(err)
	}
	if a, err := repository.Fetch(t.Context()); err == nil {
		t.Errorf("got %s from a server that has nothing", a.Revision.Commit)
	}
	if err := os.WriteFile(found[0], sound, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := fetchFrom(t, repository).Revision.Commit; got != head {
		t.Errorf("healed: got %s, want %s", got, head)
	}
}

// A pack that is well formed and lacks a file's content: only reading it back
// shows that.
func TestFetchFromAServerThatOmitsAnObject(t *testing.T) {
	r := newRepo(t)
	r.write("sub/f.yaml", "x")
	r.commit("x")
	s := serve(t, r)
	repository := open(t, s.config(Config{Ref: Ref{Branch: "main"}}))
	for _, omitted := range []string{"HEAD:sub/f.yaml", "HEAD:sub", "HEAD^{tree}", "HEAD"} {
		pack := r.packWithout(omitted)
		s.interfere(func(w http.ResponseWriter, req *http.Request) bool {
			if req.Method != http.MethodPost {
				return false
			}
			w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
			fmt.Fprintf(w, "00000008NAK\n%04x\x01%s0000", len(pack)+5, pack)
			return true
		})
		if _, err := repository.Fetch(t.Context()); !errors.Is(err, ErrIncomplete) {
			t.Errorf("without %s: want ErrIncomplete, got %v", omitted, err)
		}
		if left := packs(t, s.cache); len(left) != 0 {
			t.Errorf("without %s: published %v", omitted, left)
		}
	}
	s.interfere(nil)
	if got := content(t, fetchFrom(t, repository).Files, "sub/f.yaml"); got != "x" {
		t.Errorf("healed: got %q", got)
	}
}

func TestFetchFromAServerThatLacksAnObject(t *testing.T) {
	r := newRepo(t)
	r.write("sub/f.yaml", "x")
	r.commit("x")
	s := serve(t, r)
	blob := r.git("rev-parse", "HEAD:sub/f.yaml")
	tree := r.git("rev-parse", "HEAD:sub")
	for _, h := range []string{blob, tree} {
		path := filepath.Join(r.dir, ".git/objects", h[:2], h[2:])
		if err := os.Rename(path, path+".away"); err != nil {
			t.Fatal(err)
		}
		for _, config := range []Config{s.config(Config{}), local(Config{}, r.dir)} {
			err := fetchError(t, config)
			if config.URL == r.dir && !errors.Is(err, ErrIncomplete) {
				t.Errorf("want ErrIncomplete, got %v", err)
			}
		}
		if left := packs(t, s.cache); len(left) != 0 {
			t.Errorf("published %v", left)
		}
		if err := os.Rename(path+".away", path); err != nil {
			t.Fatal(err)
		}
	}
	fetch(t, s.config(Config{}))
}

func TestFetchHealsADamagedCache(t *testing.T) {
	r := newRepo(t)
	r.write("a/b.yaml", strings.Repeat("x: y\n", 100))
	r.change("one")
	s := serve(t, r)
	damage := map[string]func(string) error{
		"Emptied":   func(p string) error { return os.Truncate(p, 0) },
		"Truncated": func(p string) error { return os.Truncate(p, 150) },
		"Removed":   os.Remove,
		"Scribbled": func(p string) error {
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			for i := 12; i < len(b)-20; i++ {
				b[i] ^= 0x5a
			}
			return os.WriteFile(p, b, 0o600)
		},
		"Index": func(p string) error { return os.Truncate(strings.TrimSuffix(p, ".pack")+".idx", 40) },
	}
	for name, do := range damage {
		t.Run(name, func(t *testing.T) {
			config := s.config(Config{Ref: Ref{Branch: "main"}})
			config.Cache = filepath.Join(t.TempDir(), "cache")
			fetch(t, config)
			found := packs(t, config.Cache)
			if len(found) != 1 {
				t.Fatalf("packs: %v", found)
			}
			if err := do(found[0]); err != nil {
				t.Fatal(err)
			}
			s.counts()
			a := fetch(t, config)
			if got := content(t, a.Files, "a/b.yaml"); got != strings.Repeat("x: y\n", 100) {
				t.Errorf("got %q", got)
			}
			if lists, packs := s.counts(); lists != 1 || packs != 1 {
				t.Errorf("got %d lists and %d packs, want one of each", lists, packs)
			}
			fetch(t, config)
			if _, packs := s.counts(); packs != 0 {
				t.Errorf("healed, it still downloads")
			}
		})
	}
}

func TestCacheIsPrivateAndBounded(t *testing.T) {
	r := newRepo(t)
	r.change("0")
	s := serve(t, r)
	repository := open(t, s.config(Config{Ref: Ref{Branch: "main"}}))
	first := fetchFrom(t, repository)
	left := filepath.Join(filepath.Dir(filepath.Dir(filepath.Dir(filepath.Dir(packs(t, s.cache)[0])))), staging+"123")
	if err := os.Mkdir(left, 0o700); err != nil { // as a killed process leaves it
		t.Fatal(err)
	}
	repository.cache.packs = 3
	for i := 1; i <= 3; i++ {
		r.change(fmt.Sprint(i))
		fetchFrom(t, repository)
	}
	if n := len(packs(t, s.cache)); n != 4 {
		t.Errorf("got %d packs, want 3 in the old repository and one in the new", n)
	}
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what a killed process left is still there: %v", err)
	}
	if got := content(t, first.Files, "v.txt"); got != "0" {
		t.Errorf("the first artifact now says %q", got)
	}
	for i := 4; i <= 9; i++ {
		r.change(fmt.Sprint(i))
		fetchFrom(t, repository)
	}
	if numbers, err := repository.cache.generations(); err != nil || !slices.Equal(numbers, []int{3, 4}) {
		t.Errorf("got repositories %v, %v, want the newest and the one before", numbers, err)
	}
	err := filepath.WalkDir(s.cache, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		i, err := d.Info()
		if want := map[bool]fs.FileMode{true: 0o700, false: 0o600}[d.IsDir()]; err == nil && i.Mode().Perm() != want {
			t.Errorf("%s: mode %o", p, i.Mode().Perm())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestFetchConcurrently(t *testing.T) {
	r := newRepo(t)
	want := r.change("one")
	s := serve(t, r)
	shared := open(t, s.config(Config{Ref: Ref{Branch: "main"}}))
	var wg sync.WaitGroup
	for i := range 8 {
		with := shared
		if i%2 == 0 { // as another process
			with = open(t, s.config(Config{Ref: Ref{Branch: "main"}}))
		}
		wg.Go(func() {
			a, err := with.Fetch(t.Context())
			if err != nil || a.Revision.Commit != want {
				t.Errorf("got %s, %v", a.Revision.Commit, err)
			}
		})
	}
	wg.Wait()
	if _, packs := s.counts(); packs != 1 {
		t.Errorf("%d packs were downloaded, want 1", packs)
	}
}

func TestFetchWaitsForTheLockUntilTheDeadline(t *testing.T) {
	r := newRepo(t)
	r.change("one")
	s := serve(t, r)
	repository := open(t, s.config(Config{Ref: Ref{Branch: "main"}}))
	unlock, err := repository.cache.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = repository.Fetch(ctx)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("want a deadline error, got %v", err)
	}
	wantText(t, err, "lock")
	unlock()
	fetchFrom(t, repository)
}

// However history moves, the cache is what the real git takes for sound.
func TestCacheIsARepository(t *testing.T) {
	r := newRepo(t)
	r.change("0")
	s := serve(t, r)
	repository := open(t, s.config(Config{Ref: Ref{Branch: "main"}}))
	steps := []struct {
		reason string
		move   func()
	}{
		{"the first time", func() {}},
		{"one commit", func() { r.change("1") }},
		{"some commits", func() { r.change("2"); r.change("3"); r.change("4") }},
		{"a merge", func() {
			r.git("checkout", "-q", "-b", "side", "main~2")
			r.write("w.txt", "side")
			r.commit("side")
			r.git("checkout", "-q", "main")
			r.git("merge", "-q", "-m", "merge", "side")
		}},
		{"more commits than overlap", func() {
			for i := range overlap + 2 {
				r.git("commit", "-q", "--allow-empty", "-m", fmt.Sprint(i))
			}
			r.change("5")
		}},
		{"back", func() { r.git("reset", "-q", "--hard", "main~3") }},
		{"rewritten", func() {
			r.git("checkout", "-q", "--orphan", "other")
			r.change("6")
			r.git("branch", "-M", "other", "main")
		}},
	}
	for _, st := range steps {
		st.move()
		a := fetchFrom(t, repository)
		if want := r.git("rev-parse", "main"); a.Revision.Commit != want {
			t.Errorf("%s: got %s, want %s", st.reason, a.Revision.Commit, want)
		}
		path, ok, err := repository.cache.newest()
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		bare := repo{t: t, dir: path}
		bare.git("fsck", "--strict")
		if got, want := bare.git("show", a.Revision.Commit+":v.txt"), content(t, a.Files, "v.txt"); got != want {
			t.Errorf("%s: git shows %q and we %q", st.reason, got, want)
		}
	}
	if numbers, err := repository.cache.generations(); err != nil || len(numbers) != 1 {
		t.Errorf("got repositories %v, %v, want one that grew", numbers, err)
	}
}
