package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-git/v5/plumbing"
	gitcache "github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/objfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

const (
	// maxObject is the largest object that is read: a manifest is far
	// smaller, and the size is known before anything is unpacked.
	maxObject = 16 << 20

	// objectCache bounds what go-git keeps of delta bases.
	objectCache = 8 * gitcache.MiByte

	// treeCache bounds the decoded entries of folders that are kept.
	treeCache = 1 << 16

	// maxTags is how many tags may point to one another.
	maxTags = 16
)

var (
	// errTooLarge is returned for an object above maxObject.
	errTooLarge = errors.New("too large")

	// errKind is returned for an object of another type than asked for.
	errKind = errors.New("it is another kind of object")
)

// objects reads a repository's objects, one at a time: go-git's storage is not
// safe for concurrent use. Whatever it returns has the hash that was asked
// for, so that a damaged disk cannot change a manifest.
type objects struct {
	open func() ([]store, error)

	mu      sync.Mutex
	stores  []store // the repository's own, then its alternates
	trees   map[plumbing.Hash][]object.TreeEntry
	entries int // in trees, together
}

// openObjects reads through the storages that open returns, and opens them
// again when an object is not found: others may have repacked meanwhile.
func openObjects(open func() ([]store, error)) (*objects, error) {
	stores, err := open()
	if err != nil {
		return nil, err
	}
	return &objects{open: open, stores: stores, trees: map[plumbing.Hash][]object.TreeEntry{}}, nil
}

// store is a storage that is only read from, and its objects that are not in a
// pack.
type store struct {
	*filesystem.Storage
	loose map[plumbing.Hash]bool
}

// newStore lists the folder of a repository once: looking for a file of its own
// for each object took most of the time of a large repository. What others add
// meanwhile is seen when an object is not found, by opening anew. Packs are kept
// open, and big objects out of memory.
func newStore(dir billy.Filesystem, shared gitcache.Object) (store, error) {
	s := store{filesystem.NewStorageWithOptions(dir, shared, filesystem.Options{
		ExclusiveAccess: true, KeepDescriptors: true, LargeObjectThreshold: maxObject,
	}), map[plumbing.Hash]bool{}}
	err := s.ForEachObjectHash(func(h plumbing.Hash) error {
		s.loose[h] = true
		return nil
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		_ = s.Close() // only read from
		return store{}, fmt.Errorf("listing objects: %w", err)
	}
	return s, nil
}

// read returns the content of an object of this type.
func (o *objects) read(kind plumbing.ObjectType, h plumbing.Hash) ([]byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var content []byte
	err := o.retry(func() (err error) {
		content, err = o.readOnce(kind, h)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", kind, h, err)
	}
	return content, nil
}

// size is that of an object's content, from its header.
func (o *objects) size(h plumbing.Hash) (int64, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var size int64
	err := o.retry(func() (err error) {
		_, size, err = o.find(h)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("reading the size of object %s: %w", h, err)
	}
	return size, nil
}

// retry does it again over newly opened storages when the first try failed.
func (o *objects) retry(do func() error) error {
	err := do()
	if err == nil || errors.Is(err, errTooLarge) || errors.Is(err, errKind) {
		return err
	}
	stores, openErr := o.open()
	if openErr != nil {
		return errors.Join(err, openErr)
	}
	closeAll(o.stores)
	o.stores = stores
	return do()
}

func (o *objects) readOnce(kind plumbing.ObjectType, h plumbing.Hash) ([]byte, error) {
	store, size, err := o.find(h)
	if err != nil {
		return nil, err
	}
	if size > maxObject {
		return nil, fmt.Errorf("%w: %d bytes, at most %d are read", errTooLarge, size, maxObject)
	}
	obj, err := store.EncodedObject(plumbing.AnyObject, h)
	if err != nil {
		return nil, err
	}
	if obj.Type() != kind {
		return nil, fmt.Errorf("%w: a %s", errKind, obj.Type())
	}
	r, err := obj.Reader()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	content := make([]byte, size)
	if _, err := io.ReadFull(r, content); err != nil {
		return nil, err
	}
	if plumbing.ComputeHash(kind, content) != h {
		return nil, errors.New("its content does not have this hash")
	}
	return content, nil
}

// find returns the storage that has the object, and the object's size.
func (o *objects) find(h plumbing.Hash) (store, int64, error) {
	for _, s := range o.stores {
		size, err := s.size(h)
		if err == nil {
			return s, size, nil
		}
		if !errors.Is(err, plumbing.ErrObjectNotFound) {
			return store{}, 0, err
		}
	}
	return store{}, 0, plumbing.ErrObjectNotFound
}

// size reads the header of a loose object itself: EncodedObjectSize leaves the
// file of one open, and a local repository may have thousands.
func (s store) size(h plumbing.Hash) (int64, error) {
	if !s.loose[h] {
		return s.EncodedObjectSize(h)
	}
	fs, hex := s.Filesystem(), h.String()
	f, err := fs.Open(fs.Join("objects", hex[:2], hex[2:]))
	if errors.Is(err, os.ErrNotExist) {
		return 0, plumbing.ErrObjectNotFound // packed meanwhile
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	r, err := objfile.NewReader(f)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	_, size, err := r.Header()
	return size, err
}

func (o *objects) commit(h plumbing.Hash) (*object.Commit, error) {
	content, err := o.read(plumbing.CommitObject, h)
	if err != nil {
		return nil, err
	}
	return decodeCommit(h, content)
}

// parents are those of a commit, and false for one that is not there: history
// may be cut short, which is no reason to look again.
func (o *objects) parents(h plumbing.Hash) ([]plumbing.Hash, bool) {
	o.mu.Lock()
	content, err := o.readOnce(plumbing.CommitObject, h)
	o.mu.Unlock()
	if err != nil {
		return nil, false
	}
	c, err := decodeCommit(h, content)
	if err != nil {
		return nil, false
	}
	return c.ParentHashes, true
}

func decodeCommit(h plumbing.Hash, content []byte) (*object.Commit, error) {
	c := &object.Commit{}
	if err := c.Decode(encoded(plumbing.CommitObject, content)); err != nil {
		return nil, fmt.Errorf("decoding commit %s: %w", h, err)
	}
	return c, nil
}

// peel follows annotated tags to what they tag. What is no tag stays.
func (o *objects) peel(h plumbing.Hash) (plumbing.Hash, error) {
	for range maxTags {
		content, err := o.read(plumbing.TagObject, h)
		if err != nil { // not a tag, or absent: reading the commit will tell
			return h, nil
		}
		t := &object.Tag{}
		if err := t.Decode(encoded(plumbing.TagObject, content)); err != nil {
			return h, fmt.Errorf("decoding tag %s: %w", h, err)
		}
		h = t.Target
	}
	return h, fmt.Errorf("peeling tag %s: more than %d tags point to one another", h, maxTags)
}

// tree returns a folder's entries, sorted by name.
func (o *objects) tree(h plumbing.Hash) ([]object.TreeEntry, error) {
	if entries, ok := o.cached(h); ok {
		return entries, nil
	}
	content, err := o.read(plumbing.TreeObject, h)
	if err != nil {
		return nil, err
	}
	t := &object.Tree{}
	if err := t.Decode(encoded(plumbing.TreeObject, content)); err != nil {
		return nil, fmt.Errorf("decoding tree %s: %w", h, err)
	}
	slices.SortFunc(t.Entries, byName)
	if err := checkNames(t.Entries); err != nil {
		return nil, fmt.Errorf("reading tree %s: %w", h, err)
	}
	o.keep(h, t.Entries)
	return t.Entries, nil
}

func (o *objects) cached(h plumbing.Hash) ([]object.TreeEntry, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	entries, ok := o.trees[h]
	return entries, ok
}

// keep remembers a folder, forgetting all others when there are too many.
func (o *objects) keep(h plumbing.Hash, entries []object.TreeEntry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.entries += len(entries); o.entries > treeCache {
		clear(o.trees)
		o.entries = len(entries)
	}
	o.trees[h] = entries
}

// checkNames refuses what Git itself never writes and what would make one path
// mean two things.
func checkNames(entries []object.TreeEntry) error {
	for i, e := range entries {
		if e.Name == "." || e.Name == ".." || strings.Contains(e.Name, "/") {
			return fmt.Errorf("it has an entry %q, which is no name", e.Name)
		}
		if i > 0 && entries[i-1].Name == e.Name {
			return fmt.Errorf("it has two entries %q", e.Name)
		}
	}
	return nil
}

// verify reads the commit and all of its trees, and finds all of its files.
func (o *objects) verify(ctx context.Context, h plumbing.Hash) (*snapshot, error) {
	c, err := o.commit(h)
	if errors.Is(err, errKind) {
		return nil, err // complete or not, it can never be served
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrIncomplete, err)
	}
	seen := map[plumbing.Hash]bool{c.TreeHash: true}
	for todo := []plumbing.Hash{c.TreeHash}; len(todo) > 0; {
		tree := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		entries, err := o.tree(tree)
		if err != nil {
			return nil, fmt.Errorf("%w: commit %s: %w", ErrIncomplete, h, err)
		}
		for _, e := range entries {
			if err := ctx.Err(); err != nil {
				return nil, fmt.Errorf("verifying commit %s: %w", h, err)
			}
			if e.Mode == filemode.Submodule || seen[e.Hash] {
				continue
			}
			seen[e.Hash] = true
			if e.Mode == filemode.Dir {
				todo = append(todo, e.Hash)
			} else if _, err := o.size(e.Hash); err != nil {
				return nil, fmt.Errorf("%w: commit %s: file %q: %w", ErrIncomplete, h, e.Name, err)
			}
		}
	}
	return &snapshot{objects: o, commit: c}, nil
}

func (o *objects) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	closeAll(o.stores)
}

func closeAll(stores []store) {
	for _, s := range stores {
		_ = s.Close() // only read from: nothing can be lost
	}
}

func byName(a, b object.TreeEntry) int { return strings.Compare(a.Name, b.Name) }

// encoded wraps content for go-git's decoders.
func encoded(kind plumbing.ObjectType, content []byte) plumbing.EncodedObject {
	m := &plumbing.MemoryObject{}
	m.SetType(kind)
	_, _ = m.Write(content) // to memory
	return m
}
