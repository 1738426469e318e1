package gitrepo

import (
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func unhex(t *testing.T, s string) string {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestLocalRepositories(t *testing.T) {
	r := newRepo(t)
	r.change("one")
	top := t.TempDir()
	r.git("clone", "-q", "--bare", r.dir, top+"/bare.git")
	r.git("clone", "-q", "--bare", r.dir, top+"/packed.git")
	repo{t: t, dir: top + "/packed.git"}.git("gc", "-q")
	r.git("clone", "-q", "--shared", r.dir, top+"/shared")
	repo{t: t, dir: top}.git("clone", "-q", "--shared", top+"/shared", top+"/twice")
	r.git("worktree", "add", "-q", "-b", "side", top+"/worktree")
	side := repo{t: t, dir: top + "/worktree"}
	side.change("side")
	r.git("clone", "-q", "--depth", "1", "file://"+r.dir, top+"/shallow")
	r.write("v.txt", "not committed")
	cases := map[string]struct {
		reason, url, ref, want string
	}{
		"WithWorkingTree": {"what is not committed is not seen", r.dir, "main", "one"},
		"DotGit":          {"its folder itself", r.dir + "/.git", "main", "one"},
		"FileURL":         {"the same by URL", "file://" + r.dir, "main", "one"},
		"Bare":            {"no working tree", top + "/bare.git", "main", "one"},
		"Packed":          {"packed refs and objects", "file://" + top + "/packed.git", "main", "one"},
		"Shared":          {"objects of another repository", top + "/shared", "main", "one"},
		"SharedTwice":     {"and of the one that it shares with", top + "/twice", "main", "one"},
		"Worktree":        {"HEAD is the worktree's own", top + "/worktree", "side", "side"},
		"Shallow":         {"the history ends", top + "/shallow", "main", "one"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := fetch(t, Config{URL: tc.url})
			if got := content(t, a.Files, "v.txt"); got != tc.want || a.Revision.Ref != tc.ref {
				t.Errorf("%s: got %q of %q, want %q of %q", tc.reason, got, a.Revision.Ref, tc.want, tc.ref)
			}
		})
	}
	if got := content(t, fetch(t, Config{URL: top + "/worktree", Ref: Ref{Branch: "main"}}).Files, "v.txt"); got != "one" {
		t.Errorf("a branch of the worktree's repository: got %q", got)
	}
}

func TestLocalThatIsNoRepository(t *testing.T) {
	empty := t.TempDir()
	for _, dir := range []string{empty, filepath.Join(empty, "nope")} {
		wantText(t, fetchError(t, Config{URL: dir}), "there is no Git repository", dir)
	}
}

func TestLocalSeesNewCommits(t *testing.T) {
	r := newRepo(t)
	r.change("one")
	repository := open(t, Config{URL: r.dir})
	first := fetchFrom(t, repository)
	r.change("two")
	second := fetchFrom(t, repository)
	if got := content(t, second.Files, "v.txt"); got != "two" {
		t.Errorf("got %q", got)
	}
	if got := content(t, first.Files, "v.txt"); got != "one" {
		t.Errorf("the first artifact now says %q", got)
	}
}

// git gc moves objects while an artifact is read.
func TestLocalIsRepackedMeanwhile(t *testing.T) {
	r := newRepo(t)
	for _, n := range []string{"a", "b", "c"} {
		r.write(n+".yaml", strings.Repeat(n+": x\n", 10_000))
	}
	r.commit("x")
	files := fetch(t, Config{URL: r.dir}).Files
	r.git("gc", "-q", "--prune=now")
	if got := content(t, files, "a.yaml"); got != strings.Repeat("a: x\n", 10_000) {
		t.Errorf("got %d bytes", len(got))
	}
	r.write("d.yaml", "d")
	r.commit("y")
	r.git("repack", "-adqf")
	if got := content(t, files, "b.yaml"); got != strings.Repeat("b: x\n", 10_000) {
		t.Errorf("got %d bytes", len(got))
	}
}

// A file that the disk has changed is an error and not another manifest.
func TestLocalDamagedFile(t *testing.T) {
	r := newRepo(t)
	r.write("a.yaml", "good")
	r.commit("x")
	r.write("b.yaml", "evil")
	r.commit("y")
	good, evil := r.git("rev-parse", "HEAD:a.yaml"), r.git("rev-parse", "HEAD:b.yaml")
	object := func(h string) string { return filepath.Join(r.dir, ".git/objects", h[:2], h[2:]) }
	b, err := os.ReadFile(object(evil))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(object(good)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(object(good), b, 0o600); err != nil {
		t.Fatal(err)
	}
	files := fetch(t, Config{URL: r.dir}).Files
	got, err := fs.ReadFile(files, "a.yaml")
	if err == nil {
		t.Errorf("got %q", got)
	}
	wantText(t, err, `"a.yaml"`, "does not have this hash")
}

func TestLocalRefusesWhatGoGitCannotRead(t *testing.T) {
	r := newRepo(t)
	r.change("one")
	r.git("config", "core.repositoryformatversion", "1")
	r.git("config", "extensions.refstorage", "reftable")
	wantText(t, fetchError(t, Config{URL: r.dir}), "refstorage")
}
