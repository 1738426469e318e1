package gitrepo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	gitcache "github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

const (
	// maxPacks is after how many downloads a cached repository is replaced by
	// a new one, so that it does not grow for ever.
	maxPacks = 50

	// staging begins the names of repositories that are not complete yet.
	staging = "new-"

	// current is the ref of the commit that was downloaded last and found
	// complete. It says what the server need not send again, never what the
	// remote's ref is.
	current = plumbing.ReferenceName("refs/rollcall/current")
)

// cache holds bare repositories, one for each URL, login and ref:
//
//	folder/key/lock    held while the rest is looked at or changed
//	folder/key/7       the seventh repository since the beginning
//	folder/key/new-…   one that is being made, or was when the process died
//	folder/key/last.json  which commit was published last, and when
//
// The one before the newest is kept, for artifacts that still read from it, and
// so is the one that has the commit published last.
type cache struct {
	folder, key string
	packs       int // in one repository, before a new one is made
}

func cacheKey(at location, a Auth, w wanted) string {
	parts := append([]string{at.shown, string(w.name()), w.Semver, w.Commit}, a.identity()...)
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])
}

func (c cache) path(name string) string { return filepath.Join(c.folder, c.key, name) }

// lock waits until no other fetch, of this or another process, holds the lock.
// The kernel gives it back when the process dies.
func (c cache) lock(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(c.path(""), 0o700); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStorage, err)
	}
	f, err := os.OpenFile(c.path("lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%w: locking it: %w", ErrStorage, err)
	}
	for pause := time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil // closing gives the lock back; nothing was written
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			_ = f.Close()
			return nil, fmt.Errorf("%w: locking it: %w", ErrStorage, err)
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, fmt.Errorf("waiting for another rollcall that holds cache %q: %w", c.path("lock"), ctx.Err())
		case <-time.After(pause):
		}
	}
}

// generations are the numbers of the repositories, ascending.
func (c cache) generations() ([]int, error) {
	entries, err := os.ReadDir(c.path(""))
	if err != nil {
		return nil, fmt.Errorf("reading the cache: %w", err)
	}
	var numbers []int
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil && n > 0 {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// newest is the path of the newest repository, and false if there is none.
func (c cache) newest() (string, bool, error) {
	numbers, err := c.generations()
	if err != nil || len(numbers) == 0 {
		return "", false, err
	}
	return c.path(strconv.Itoa(numbers[len(numbers)-1])), true, nil
}

// open returns the commit if it is cached and complete, with the tag that leads
// to it, else ErrIncomplete.
func (c cache) open(ctx context.Context, t target) (*snapshot, error) {
	path, ok, err := c.newest()
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("%w: nothing is cached", ErrIncomplete)
	}
	return verified(ctx, path, t.commit, t.want)
}

// fill gets the commit: into the repository that there is when that is sound,
// else into a new one, so that a damaged cache costs a download and no more.
func (c cache) fill(ctx context.Context, t target, s *session) (*snapshot, error) {
	snap, err := c.grow(ctx, t, s)
	if !errors.Is(err, ErrIncomplete) {
		return snap, err
	}
	return c.replace(ctx, t, s)
}

// grow downloads only what is new. It answers ErrIncomplete where a new
// repository has to be made.
func (c cache) grow(ctx context.Context, t target, s *session) (*snapshot, error) {
	path, ok, err := c.newest()
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, ErrIncomplete
	}
	store := openBare(path)
	defer store.Close()
	have, err := store.Reference(current)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrIncomplete, err)
	}
	if packs, err := store.ObjectPacks(); err != nil || len(packs) >= c.packs {
		return nil, fmt.Errorf("%w: %d packs are too many", ErrIncomplete, len(packs))
	}
	old, err := verified(ctx, path, have.Hash(), plumbing.ZeroHash)
	if err != nil {
		return nil, err
	}
	old.objects.close()
	if err := leftovers(path); err != nil {
		return nil, err
	}
	return c.complete(ctx, path, store, t, s, have.Hash())
}

// replace downloads everything into a new repository and then puts that in
// the place of the old one.
func (c cache) replace(ctx context.Context, t target, s *session) (*snapshot, error) {
	if err := c.sweep(); err != nil {
		return nil, err
	}
	stage, err := os.MkdirTemp(c.path(""), staging)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStorage, err)
	}
	defer os.RemoveAll(stage) // gone already when all went well
	store := openBare(stage)
	defer store.Close()
	if _, err := git.Init(store, nil); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStorage, err)
	}
	snap, err := c.complete(ctx, stage, store, t, s, plumbing.ZeroHash)
	if err != nil {
		return nil, err
	}
	snap.objects.close()
	path, err := c.publish(stage)
	if err != nil {
		return nil, err
	}
	return verified(ctx, path, t.commit, t.want)
}

// complete downloads the commit, reads it back and records that it is there.
func (c cache) complete(ctx context.Context, path string, store *filesystem.Storage, t target, s *session, have plumbing.Hash) (*snapshot, error) {
	if err := s.download(ctx, store, t, have); err != nil {
		return nil, err
	}
	if err := private(path); err != nil {
		return nil, err
	}
	snap, err := verified(ctx, path, t.commit, t.want)
	if err != nil {
		return nil, err
	}
	if err := store.SetReference(plumbing.NewHashReference(current, t.commit)); err != nil {
		return nil, fmt.Errorf("recording commit %s in the cache: %w", t.commit, err)
	}
	return snap, private(path)
}

// publish gives a finished repository the next number, and removes those that
// are older than the one before it.
func (c cache) publish(stage string) (string, error) {
	numbers, err := c.generations()
	if err != nil {
		return "", err
	}
	next := 1
	if len(numbers) > 0 {
		next = numbers[len(numbers)-1] + 1
		numbers = numbers[:len(numbers)-1]
	}
	path := c.path(strconv.Itoa(next))
	if err := os.Rename(stage, path); err != nil {
		return "", fmt.Errorf("publishing in the cache: %w", err)
	}
	kept, err := c.noted()
	if err != nil && !errors.Is(err, ErrNeverFetched) {
		return "", err
	}
	for _, n := range numbers {
		if strconv.Itoa(n) == kept.Repository {
			continue
		}
		if err := os.RemoveAll(c.path(strconv.Itoa(n))); err != nil {
			return "", fmt.Errorf("cleaning the cache: %w", err)
		}
	}
	return path, nil
}

// sweep removes what processes that died left behind.
func (c cache) sweep() error {
	entries, err := os.ReadDir(c.path(""))
	if err != nil {
		return fmt.Errorf("cleaning the cache: %w", err)
	}
	for _, e := range entries {
		info, err := e.Info()
		left := err == nil && strings.HasPrefix(e.Name(), noting) && time.Since(info.ModTime()) > time.Hour
		if !strings.HasPrefix(e.Name(), staging) && !left {
			continue
		}
		if err := os.RemoveAll(c.path(e.Name())); err != nil {
			return fmt.Errorf("cleaning the cache: %w", err)
		}
	}
	return nil
}

// leftovers removes the packs that a process was writing when it died.
func leftovers(path string) error {
	files, err := filepath.Glob(filepath.Join(path, "objects", "pack", "tmp_*"))
	for _, f := range files {
		err = errors.Join(err, os.Remove(f))
	}
	if err != nil {
		return fmt.Errorf("cleaning the cache: %w", err)
	}
	return nil
}

// verified opens the repository at path and reads the commit from it, and finds
// the tag that leads to it where there is one. The index is read from the disk
// each time, as the next process will.
func verified(ctx context.Context, path string, commit, tag plumbing.Hash) (*snapshot, error) {
	o, err := openObjects(func() ([]store, error) {
		s, err := newStore(osfs.New(path), gitcache.NewObjectLRU(objectCache))
		return []store{s}, err
	})
	if err != nil {
		return nil, err
	}
	snap, err := o.verify(ctx, commit)
	if err == nil && !tag.IsZero() {
		if _, absent := o.size(tag); absent != nil {
			err = fmt.Errorf("%w: tag %s: %w", ErrIncomplete, tag, absent)
		}
	}
	if err != nil {
		o.close()
		return nil, err
	}
	snap.repository = filepath.Base(path)
	return snap, nil
}

// openBare opens a repository to write to.
func openBare(path string) *filesystem.Storage {
	return filesystem.NewStorageWithOptions(osfs.New(path), gitcache.NewObjectLRU(objectCache), filesystem.Options{LargeObjectThreshold: maxObject})
}

// private makes all below path the user's alone; go-git's modes are wider. The
// folder above was made so from the start, so nothing was open meanwhile.
func private(path string) error {
	err := filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.Chmod(p, 0o700)
		}
		return os.Chmod(p, 0o600)
	})
	if err != nil {
		return fmt.Errorf("protecting the cache: %w", err)
	}
	return nil
}
