package gitrepo

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

const (
	maxLinks  = 40   // as Linux
	maxTarget = 4096 // bytes of a link's target, as Linux
)

// entry is what a path leads to once links are followed.
type entry struct {
	path string // in the repository
	mode filemode.FileMode
	hash plumbing.Hash
}

// link is a symbolic link; the nil link is the path that was asked for.
type link struct{ path, target string }

// step is a part of a path, and the link that it came from.
type step struct {
	part string
	from *link
}

// walk follows a path through trees. Its stack begins with the repository's
// root and is never emptied, which is what keeps links inside.
type walk struct {
	tree  *Tree
	stack []entry
	todo  []step
	links int
}

// resolve follows name, which is below the served folder, to its end.
func (t *Tree) resolve(name string) (entry, error) {
	w := &walk{tree: t, stack: []entry{{path: ".", mode: filemode.Dir, hash: t.root}}}
	w.todo = steps(path.Join(t.base, name), nil)
	for len(w.todo) > 0 {
		s := w.todo[0]
		w.todo = w.todo[1:]
		if err := w.take(s); err != nil {
			return entry{}, err
		}
	}
	return w.top(), nil
}

func (w *walk) top() entry { return w.stack[len(w.stack)-1] }

func (w *walk) take(s step) error {
	dir := w.top()
	switch {
	case s.part == "" || s.part == ".":
		return nil
	case dir.mode == filemode.Submodule:
		return fmt.Errorf("%q: %w", dir.path, errSubmodule)
	case dir.mode != filemode.Dir:
		return s.from.explain(fmt.Errorf("%q is not a folder: %w", dir.path, fs.ErrNotExist))
	case s.part == "..":
		if len(w.stack) == 1 {
			return s.from.escapes()
		}
		w.stack = w.stack[:len(w.stack)-1]
		return nil
	}
	e, err := w.tree.child(dir.hash, s.part)
	if errors.Is(err, fs.ErrNotExist) {
		return s.from.explain(err)
	}
	if err != nil {
		return fmt.Errorf("folder %q: %w", dir.path, err)
	}
	return w.enter(path.Join(dir.path, s.part), e)
}

func (w *walk) enter(at string, e object.TreeEntry) error {
	if e.Mode != filemode.Symlink {
		w.stack = append(w.stack, entry{path: at, mode: e.Mode, hash: e.Hash})
		return nil
	}
	if w.links++; w.links > maxLinks {
		return fmt.Errorf("symbolic link %q: more than %d links lead to one another", at, maxLinks)
	}
	size, err := w.tree.objects.size(e.Hash)
	if err != nil {
		return fmt.Errorf("symbolic link %q: %w", at, err)
	}
	if size == 0 || size > maxTarget {
		return fmt.Errorf("symbolic link %q: its target has %d bytes", at, size)
	}
	target, err := w.tree.objects.read(plumbing.BlobObject, e.Hash)
	if err != nil {
		return fmt.Errorf("symbolic link %q: %w", at, err)
	}
	l := &link{path: at, target: string(target)}
	if path.IsAbs(l.target) {
		return l.escapes()
	}
	w.todo = append(steps(l.target, l), w.todo...)
	return nil
}

// escapes is the error for a path that leaves the repository. Without a link
// there is none: Config.Path and fs.ValidPath have refused it.
func (l *link) escapes() error {
	if l == nil {
		return fs.ErrInvalid
	}
	return fmt.Errorf("symbolic link %q points to %q, which is outside of the repository", l.path, l.target)
}

// explain adds the link that led to something absent.
func (l *link) explain(err error) error {
	if l == nil {
		return err
	}
	return fmt.Errorf("symbolic link %q points to %q: %w", l.path, l.target, err)
}

func steps(p string, from *link) []step {
	parts := strings.Split(p, "/")
	out := make([]step, len(parts))
	for i, part := range parts {
		out[i] = step{part: part, from: from}
	}
	return out
}
