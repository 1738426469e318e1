package gitrepo

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// linked is a repository with every kind of entry, and a folder to serve.
func linked(t *testing.T) repo {
	t.Helper()
	r := newRepo(t)
	r.write("served/a.yaml", "a")
	r.write("served/a-b/x", "x")
	r.write("served/sub/deep/file.txt", "deep")
	r.write("served/run.sh", "#!/bin/sh\n")
	r.write("shared/s.yaml", "shared")
	r.write("top.txt", "top")
	if err := os.Chmod(filepath.Join(r.dir, "served/run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	r.link("a.yaml", "served/file-link")
	r.link("sub/deep", "served/dir-link")
	r.link("../shared", "served/out-of-folder")
	r.link("out-of-folder/s.yaml", "served/chain")
	r.link("../served/./sub/../sub//deep/file.txt", "served/dots")
	return r
}

func TestTreeIsAFileSystem(t *testing.T) {
	r := linked(t)
	r.commit("x")
	s := serve(t, r)
	expected := []string{"a.yaml", "a-b/x", "sub/deep/file.txt", "run.sh", "file-link", "dir-link"}
	for name, config := range map[string]Config{"HTTP": s.config(Config{Path: "served"}), "Local": {URL: r.dir, Path: "served"}} {
		t.Run(name, func(t *testing.T) {
			if err := fstest.TestFS(fetch(t, config).Files, expected...); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestTreeFollowsLinksInside(t *testing.T) {
	r := linked(t)
	r.commit("x")
	files := fetch(t, Config{URL: r.dir, Path: "served"}).Files
	for name, want := range map[string]string{
		"file-link": "a", "dir-link/file.txt": "deep", "out-of-folder/s.yaml": "shared", "chain": "shared", "dots": "deep",
	} {
		if got := content(t, files, name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
		i, err := fs.Stat(files, name)
		if err != nil || !i.Mode().IsRegular() || i.Size() != int64(len(want)) {
			t.Errorf("%s: stat gives %v, %v", name, i, err)
		}
	}
	entries, err := fs.ReadDir(files, "dir-link")
	if err != nil || len(entries) != 1 || entries[0].Name() != "file.txt" {
		t.Errorf("dir-link: got %v, %v", entries, err)
	}
	r.link("served", "to-served")
	r.commit("y")
	if got := content(t, fetch(t, Config{URL: r.dir, Path: "to-served"}).Files, "chain"); got != "shared" {
		t.Errorf("a link as the path: got %q", got)
	}
}

func TestTreeRefusesLinks(t *testing.T) {
	cases := map[string]struct {
		reason string
		target string
		open   string
		want   []string
	}{
		"Up":       {"it leaves the repository", "../../etc/passwd", "l", []string{`"served/l"`, `"../../etc/passwd"`, "outside of the repository"}},
		"UpDir":    {"so does what is below it", "../..", "l/x", []string{`"served/l"`, `"../.."`, "outside of the repository"}},
		"UpBack":   {"it comes back by the folder's name", "../../repo/top.txt", "l", []string{"outside of the repository"}},
		"Absolute": {"it is of this machine", "/etc/passwd", "l", []string{`"served/l"`, `"/etc/passwd"`, "outside of the repository"}},
		"Chained":  {"the one to blame is named", "sub/../../../x", "l", []string{`"served/l"`, `"sub/../../../x"`}},
		"Loop":     {"it never ends", "l", "l", []string{`"served/l"`, "40 links"}},
		"Dangling": {"nothing is there", "nope", "l", []string{`"served/l"`, `"nope"`, "not exist"}},
		"Through":  {"a file is no folder", "a.yaml/../a.yaml", "l", []string{`"served/a.yaml"`, "not a folder"}},
		"Git":      {"the repository's own files are no content", "../.git/config", "l", []string{"not exist"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := linked(t)
			r.link(tc.target, "served/l")
			r.commit("x")
			files := fetch(t, Config{URL: r.dir, Path: "served"}).Files
			_, openErr := files.Open(tc.open)
			_, readErr := fs.ReadFile(files, tc.open)
			_, statErr := fs.Stat(files, tc.open)
			_, hashErr := files.(*Tree).Hash(tc.open)
			_, dirErr := fs.ReadDir(files, tc.open)
			for _, err := range []error{openErr, readErr, statErr, hashErr, dirErr} {
				if err == nil {
					t.Fatalf("%s: want an error", tc.reason)
				}
				wantText(t, err, tc.want...)
				escapes := strings.Contains(err.Error(), "outside")
				if escapes && errors.Is(err, fs.ErrNotExist) {
					t.Errorf("an escape must not look like absence: %v", err)
				}
			}
		})
	}
}

// A folder that lists an escaping link can still be read.
func TestTreeListsWhatItWillNotFollow(t *testing.T) {
	r := newRepo(t)
	r.write("b", "x")
	r.write("a/x", "x")
	r.write("a.b", "x")
	r.link("/etc", "c")
	head := r.commit("x")
	r.git("update-index", "--add", "--cacheinfo", "160000,"+head+",module")
	r.git("commit", "-q", "-m", "y")
	files := fetch(t, Config{URL: r.dir}).Files
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Type().String()+" "+e.Name())
	}
	want := []string{"d--------- a", "---------- a.b", "---------- b", "L--------- c", "d--------- module"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sorted by name, not in Git's order (-want +got):\n%s", diff)
	}
}

func TestTreeRefusesSubmodules(t *testing.T) {
	r := newRepo(t)
	head := r.change("x")
	r.git("update-index", "--add", "--cacheinfo", "160000,"+head+",vendor/module")
	r.git("commit", "-q", "-m", "y")
	s := serve(t, r)
	files := fetch(t, s.config(Config{})).Files
	for _, name := range []string{"vendor/module", "vendor/module/x.yaml"} {
		_, err := files.Open(name)
		wantText(t, err, "submodules are not supported", `"vendor/module"`)
	}
	err := fs.WalkDir(files, ".", func(_ string, _ fs.DirEntry, err error) error { return err })
	wantText(t, err, "submodules are not supported")
	wantText(t, fetchError(t, s.config(Config{Path: "vendor/module"})), "submodules are not supported")
}

func TestTreeRefusesLFSPointers(t *testing.T) {
	r := newRepo(t)
	pointer := "version https://git-lfs.github.com/spec/v1\noid sha256:" + strings.Repeat("4", 64) + "\nsize 12345\n"
	r.write("dir/big.yaml", pointer)
	r.write("dir/doc.md", pointer+strings.Repeat("explained\n", 200))
	r.link("dir/big.yaml", "link")
	r.commit("x")
	files := fetch(t, Config{URL: r.dir}).Files
	for _, name := range []string{"dir/big.yaml", "link"} {
		_, err := files.Open(name)
		wantText(t, err, "Git LFS", `"dir/big.yaml"`)
		_, err = fs.ReadFile(files, name)
		wantText(t, err, "Git LFS")
	}
	content(t, files, "dir/doc.md") // too long for a pointer
}

func TestTreeRefusesHugeFiles(t *testing.T) {
	r := newRepo(t)
	r.write("huge.bin", strings.Repeat("\x00", maxObject+1))
	r.write("full.bin", strings.Repeat("\x00", maxObject))
	r.commit("x")
	for _, storage := range []string{"loose", "packed"} {
		files := fetch(t, Config{URL: r.dir}).Files
		_, err := files.Open("huge.bin")
		wantText(t, err, `"huge.bin"`, "16777217 bytes", "too large")
		if i, err := fs.Stat(files, "huge.bin"); err != nil || i.Size() != maxObject+1 {
			t.Errorf("%s: stat gives %v, %v", storage, i, err)
		}
		r.git("gc", "-q", "--prune=now")
	}
	if n := len(content(t, fetch(t, Config{URL: r.dir}).Files, "full.bin")); n != maxObject {
		t.Errorf("got %d bytes", n)
	}
}

func TestTreeHash(t *testing.T) {
	r := linked(t)
	r.commit("x")
	tree := fetch(t, Config{URL: r.dir, Path: "served"}).Files.(*Tree)
	for name, path := range map[string]string{
		".": "served", "a.yaml": "served/a.yaml", "sub": "served/sub", "file-link": "served/a.yaml", "chain": "shared/s.yaml",
	} {
		got, err := tree.Hash(name)
		if want := r.git("rev-parse", "HEAD:"+path); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, want)
		}
	}
	if _, err := tree.Hash("nope"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("want ErrNotExist, got %v", err)
	}
	if _, err := tree.Hash("../top.txt"); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("want ErrInvalid, got %v", err)
	}
}

func TestTreeErrorsAsAFileSystemHasThem(t *testing.T) {
	r := linked(t)
	r.commit("x")
	files := fetch(t, Config{URL: r.dir, Path: "served"}).Files
	for _, name := range []string{"nope", "nope/x", "a.yaml/x"} {
		if _, err := fs.ReadFile(files, name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: want ErrNotExist, got %v", name, err)
		}
	}
	_, err := fs.ReadFile(files, "sub")
	wantText(t, err, "is a directory")
	_, err = fs.ReadDir(files, "a.yaml")
	wantText(t, err, "not a directory")
	d, err := files.Open("sub")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(d); err == nil {
		t.Error("a folder was read as a file")
	}
	if i, err := fs.Stat(files, "run.sh"); err != nil || i.Mode() != 0o555 || i.ModTime().Year() != 2026 {
		t.Errorf("got %v, %v", i, err)
	}
}

// What is returned is the caller's: changing it changes nothing for others.
func TestTreeContentIsACopy(t *testing.T) {
	r := linked(t)
	r.commit("x")
	files := fetch(t, Config{URL: r.dir}).Files
	b, err := fs.ReadFile(files, "top.txt")
	if err != nil {
		t.Fatal(err)
	}
	copy(b, "XXX")
	if got := content(t, files, "top.txt"); got != "top" {
		t.Errorf("got %q", got)
	}
}

// Run with -race.
func TestTreeConcurrently(t *testing.T) {
	r := linked(t)
	r.commit("x")
	s := serve(t, r)
	files := fetch(t, s.config(Config{Path: "served"})).Files
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if b, err := fs.ReadFile(files, "dir-link/file.txt"); err != nil || string(b) != "deep" {
					t.Errorf("got %q, %v", b, err)
				}
				if _, err := fs.ReadDir(files, "sub"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// Trees that git itself would not write: two entries of one name mean two
// things, and a slash or dots in a name lead elsewhere.
func TestTreeRefusesMalformedNames(t *testing.T) {
	for _, names := range [][]string{{"a", "a"}, {".."}, {"."}, {"a/b"}} {
		r := newRepo(t)
		r.write("f", "x")
		r.commit("x")
		blob := r.git("rev-parse", "HEAD:f")
		raw := ""
		for _, n := range names {
			raw += "100644 " + n + "\x00" + unhex(t, blob)
		}
		r.write("raw", raw)
		tree := r.git("hash-object", "-t", "tree", "-w", "--literally", "raw")
		commit := r.git("commit-tree", "-m", "x", tree)
		r.git("update-ref", "refs/heads/odd", commit)
		err := fetchError(t, Config{URL: r.dir, Ref: Ref{Branch: "odd"}})
		if !errors.Is(err, ErrIncomplete) {
			t.Errorf("%q: want ErrIncomplete, got %v", names, err)
		}
	}
}
