package gitrepo

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Tree is the files of a commit below a folder, read from Git's objects as
// they are asked for. It is read-only and safe for concurrent use.
//
// Symbolic links are followed, also to outside of the folder, never to outside
// of the repository. Submodules, files in Git LFS and files above 16 MiB are
// errors that say so. ReadDir lists links as links, submodules as folders.
type Tree struct {
	objects *objects
	root    plumbing.Hash // of the repository
	base    string        // the folder served
	time    time.Time     // of the commit: that of all files
}

var (
	_ fs.ReadFileFS = (*Tree)(nil)
	_ fs.ReadDirFS  = (*Tree)(nil)
	_ fs.StatFS     = (*Tree)(nil)

	errSubmodule error = unsupported("submodules are not supported: vendor its files")
	errLFS       error = unsupported("it is a pointer of Git LFS, which is not supported: commit the file itself")
)

// unsupported is something that Git can hold and that is not served.
type unsupported string

func (u unsupported) Error() string { return string(u) }

// Is tells a reader that knows nothing of Git what kind of error it is.
func (u unsupported) Is(target error) bool { return target == errors.ErrUnsupported }

// newTree serves the folder base of the commit.
func newTree(s *snapshot, base string) (*Tree, error) {
	t := &Tree{objects: s.objects, root: s.commit.TreeHash, base: base, time: s.commit.Committer.When}
	e, err := t.resolve(".")
	if err == nil && e.mode == filemode.Submodule {
		err = errSubmodule
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: commit %s has no folder %q: %w", ErrPathNotFound, s.commit.Hash, base, err)
	case err != nil:
		return nil, fmt.Errorf("opening path %q of commit %s: %w", base, s.commit.Hash, err)
	case e.mode != filemode.Dir:
		return nil, fmt.Errorf("%w: %q of commit %s is a file", ErrPathNotFound, base, s.commit.Hash)
	}
	return t, nil
}

// Open opens a file, which it reads whole, or a folder.
func (t *Tree) Open(name string) (fs.File, error) {
	e, err := t.lookup("open", name)
	if err != nil {
		return nil, err
	}
	if e.mode == filemode.Dir {
		return &folder{info: t.info(name, e, 0), read: func() ([]fs.DirEntry, error) { return t.list("readdir", name, e) }}, nil
	}
	content, err := t.content("open", name, e)
	if err != nil {
		return nil, err
	}
	return &file{Reader: bytes.NewReader(content), info: t.info(name, e, int64(len(content)))}, nil
}

// ReadFile returns the content of a file. The caller may change it.
func (t *Tree) ReadFile(name string) ([]byte, error) {
	e, err := t.lookup("read", name)
	if err != nil {
		return nil, err
	}
	if e.mode == filemode.Dir {
		return nil, pathError("read", name, errors.New("is a directory"))
	}
	return t.content("read", name, e)
}

// ReadDir returns the entries of a folder, sorted by name.
func (t *Tree) ReadDir(name string) ([]fs.DirEntry, error) {
	e, err := t.lookup("readdir", name)
	if err != nil {
		return nil, err
	}
	if e.mode != filemode.Dir {
		return nil, pathError("readdir", name, errors.New("not a directory"))
	}
	return t.list("readdir", name, e)
}

// Stat describes what name leads to, reading no content.
func (t *Tree) Stat(name string) (fs.FileInfo, error) {
	e, err := t.lookup("stat", name)
	if err != nil {
		return nil, err
	}
	size, err := t.size(e.mode, e.hash)
	if err != nil {
		return nil, pathError("stat", name, err)
	}
	return t.info(name, e, size), nil
}

// Hash returns the hash of the file or folder that name leads to, as 40
// hexadecimal digits. Equal hashes are equal content, whatever the commit.
func (t *Tree) Hash(name string) (string, error) {
	e, err := t.lookup("hash", name)
	if err != nil {
		return "", err
	}
	return e.hash.String(), nil
}

// lookup resolves a name as fs.FS spells them.
func (t *Tree) lookup(op, name string) (entry, error) {
	if !fs.ValidPath(name) {
		return entry{}, pathError(op, name, fs.ErrInvalid)
	}
	e, err := t.resolve(name)
	if err == nil && e.mode == filemode.Submodule {
		err = fmt.Errorf("%q: %w", e.path, errSubmodule)
	}
	if err != nil {
		return entry{}, pathError(op, name, err)
	}
	return e, nil
}

// content reads a file. Its errors name the file in the repository too, for
// name may have led there through a link.
func (t *Tree) content(op, name string, e entry) ([]byte, error) {
	content, err := t.objects.read(plumbing.BlobObject, e.hash)
	if err != nil {
		return nil, pathError(op, name, fmt.Errorf("%q: %w", e.path, err))
	}
	if isLFS(content) {
		return nil, pathError(op, name, fmt.Errorf("%q: %w", e.path, errLFS))
	}
	return content, nil
}

func (t *Tree) list(op, name string, e entry) ([]fs.DirEntry, error) {
	entries, err := t.objects.tree(e.hash)
	if err != nil {
		return nil, pathError(op, name, err)
	}
	out := make([]fs.DirEntry, len(entries))
	for i, e := range entries {
		out[i] = dirEntry{tree: t, entry: e}
	}
	return out, nil
}

// size is zero for what is not a blob.
func (t *Tree) size(mode filemode.FileMode, h plumbing.Hash) (int64, error) {
	if mode == filemode.Dir || mode == filemode.Submodule {
		return 0, nil
	}
	return t.objects.size(h)
}

func (t *Tree) info(name string, e entry, size int64) info {
	return info{name: path.Base(name), mode: fileMode(e.mode), size: size, time: t.time}
}

// child finds an entry of a folder.
func (t *Tree) child(dir plumbing.Hash, name string) (object.TreeEntry, error) {
	entries, err := t.objects.tree(dir)
	if err != nil {
		return object.TreeEntry{}, err
	}
	i, ok := slices.BinarySearchFunc(entries, object.TreeEntry{Name: name}, byName)
	if !ok {
		return object.TreeEntry{}, fs.ErrNotExist
	}
	return entries[i], nil
}

// isLFS follows the specification of Git LFS: a pointer has less than 1024
// bytes and this first line.
func isLFS(content []byte) bool {
	return len(content) < 1024 && bytes.HasPrefix(content, []byte("version https://git-lfs.github.com/spec/"))
}

func pathError(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: name, Err: err}
}
