// Package gitrepo follows one ref of a Git repository and serves the files of
// the commit it points to straight from Git's objects, without a checkout. It
// knows the remote, the credentials and the cache on disk, and nothing of
// clusters or of what the files are for.
//
// # Why
//
// Git objects are verified by hash whenever they are read, and a commit is
// published only when it, all its trees and the presence of all its files have
// been checked: go-git reports success for packs that lack objects. The wanted
// ref is always resolved by asking the remote; what the cache once held under
// that name is never an answer. No transport of go-git's global table is used
// or replaced: its file transport would run git-upload-pack.
package gitrepo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing/object"

	"rollcall.dev/rollcall/sync/source"
)

// patience bounds a fetch whose context has no deadline of its own.
const patience = 15 * time.Minute

// Config says which repository to read and what of it to follow.
type Config struct {
	URL    string // https, http, ssh, user@host:path, file, or a local path
	Ref    Ref
	Path   string // the folder inside the repository to serve; empty is all
	Auth   Auth   // not for local repositories
	Verify Verify
	Cache  string // folder that holds bare repositories; unused for local ones
}

// Ref is what to follow: at most one is set, but a commit may have its branch
// beside it. The zero Ref is the remote's HEAD.
type Ref struct {
	Branch, Tag string // short names
	Semver      string // a range of versions, of which the highest tag counts
	Name        string // a full name such as refs/pull/12/head
	Commit      string // 40 hexadecimal digits
}

// Repository is a repository of which one ref is followed. It is safe for
// concurrent use, also by several processes that share a cache.
type Repository struct {
	at     location
	want   wanted
	path   string // clean and slash-separated, "." for all
	auth   Auth
	verify Verify
	cache  cache
	limits limits

	mu        sync.Mutex
	last      *published // what was published last: verified, so it need not be again
	token     string     // of a GitHub App's installation
	tokenEnds time.Time
}

// published is what a fetch returned.
type published struct {
	target   target
	snapshot *snapshot
	revision source.Revision
}

// snapshot is a commit that was found complete.
type snapshot struct {
	objects    *objects
	commit     *object.Commit
	repository string // its number in the cache; empty for a local repository
}

// Open validates c. It touches neither the network nor the disk.
func Open(c Config) (*Repository, error) {
	at, err := parseLocation(c.URL)
	if err != nil {
		return nil, err
	}
	r := &Repository{at: at, auth: c.Auth, verify: c.Verify, limits: defaultLimits()}
	if r.want, err = parseWanted(c.Ref); err != nil {
		return nil, err
	}
	if r.path, err = parsePath(c.Path); err != nil {
		return nil, err
	}
	if err := c.Auth.validate(at); err != nil {
		return nil, err
	}
	if err := c.Verify.validate(r.want); err != nil {
		return nil, err
	}
	if !at.isLocal() && c.Cache == "" {
		return nil, errors.New("opening a remote repository: no cache folder is given")
	}
	r.cache = cache{folder: c.Cache, key: cacheKey(at, c.Auth, r.want), packs: maxPacks}
	return r, nil
}

// Fetch asks the repository for the ref and returns the files of its commit,
// downloading only what is not cached. The error says what was refused, absent
// or incomplete; see the package's errors for those a caller may tell apart.
func (r *Repository) Fetch(ctx context.Context) (source.Artifact, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	a, err := r.fetch(ctx)
	if errors.Is(err, ErrUnauthorized) && r.auth.GitHubApp.AppID != 0 {
		r.forgetToken()
	}
	if err != nil {
		return source.Artifact{}, fmt.Errorf("fetching %s from %q: %w", r.want, r.at.shown, err)
	}
	return a, nil
}

func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, patience)
}

func (r *Repository) fetch(ctx context.Context) (source.Artifact, error) {
	read := r.readRemote
	if r.at.isLocal() {
		read = r.readLocal
	}
	t, s, err := read(ctx)
	if err != nil {
		return source.Artifact{}, err
	}
	a, err := r.take(ctx, t, s)
	if err != nil && r.remembered(t) != s {
		s.objects.close() // nobody was given it
	}
	return a, err
}

// take verifies a commit that was read, and publishes it.
func (r *Repository) take(ctx context.Context, t target, s *snapshot) (_ source.Artifact, err error) {
	rev := r.revision(t, s)
	if rev.SignedBy, err = r.verify.check(s.objects, t); err != nil {
		return source.Artifact{}, err
	}
	a, err := r.serve(s, rev)
	if err != nil {
		return source.Artifact{}, err
	}
	if err := r.publish(ctx, t, s, &a.Revision); err != nil {
		return source.Artifact{}, err
	}
	return a, nil
}

func (r *Repository) revision(t target, s *snapshot) source.Revision {
	return source.Revision{
		URL:         r.at.shown,
		Ref:         t.ref,
		Commit:      s.commit.Hash.String(),
		CommittedAt: s.commit.Committer.When,
		FetchedAt:   time.Now(),
	}
}

// remembered is the last published snapshot if it is of this commit, by this tag.
func (r *Repository) remembered(t target) *snapshot {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil || r.last.target.commit != t.commit || r.last.target.want != t.want {
		return nil
	}
	return r.last.snapshot
}

// parsePath returns p clean and slash-separated. What leaves the repository is
// refused, by name and not by what a link there may do: see Tree.
func parsePath(p string) (string, error) {
	clean := filepath.ToSlash(filepath.Clean(cmp.Or(p, ".")))
	if strings.HasPrefix(clean, "/") || clean == ".." || strings.HasPrefix(clean, "../") {
		return "", fmt.Errorf("opening path %q: it must be relative and inside the repository", p)
	}
	return clean, nil
}
