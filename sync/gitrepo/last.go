package gitrepo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"rollcall.dev/rollcall/sync/source"
)

// record is what the cache knows of the fetch that was published last. It lets
// another process serve that commit, as an old one, while the repository does
// not answer, and tell that history was rewritten.
type record struct {
	Ref         string    `json:"ref"`
	Commit      string    `json:"commit"`
	Tag         string    `json:"tag,omitempty"` // the annotated tag that led to it
	Repository  string    `json:"repository,omitempty"`
	CommittedAt time.Time `json:"committedAt"`
	FetchedAt   time.Time `json:"fetchedAt"`
}

// records tells whether fetches are recorded. What a local repository has is
// there anyway, unless its newest commit is one that is not trusted.
func (r *Repository) records() bool {
	return r.cache.folder != "" && (!r.at.isLocal() || r.verify != Verify{})
}

// publish makes a commit the last good one, here and in the cache, and notes in
// its revision which one it is instead of, where that left the ref's history.
func (r *Repository) publish(ctx context.Context, t target, s *snapshot, rev *source.Revision) error {
	before, err := r.before()
	if err != nil {
		return err
	}
	if was := plumbing.NewHash(before.Commit); !was.IsZero() && r.moved(ctx, s.objects, t, s.commit.Hash, was) {
		rev.Replaced = before.Commit
	}
	if r.records() {
		err = r.cache.note(record{
			Ref: t.ref, Commit: rev.Commit, Tag: tagOf(t), Repository: s.repository,
			CommittedAt: rev.CommittedAt.UTC(), FetchedAt: rev.FetchedAt.UTC(),
		})
		if err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = &published{t, s, *rev}
	r.last.revision.Replaced = ""
	return nil
}

func tagOf(t target) string {
	if t.want == t.commit {
		return ""
	}
	return t.want.String()
}

// before is the last good commit, of this process or of an earlier one.
func (r *Repository) before() (record, error) {
	r.mu.Lock()
	last := r.last
	r.mu.Unlock()
	switch {
	case last != nil:
		return record{Ref: last.revision.Ref, Commit: last.revision.Commit}, nil
	case !r.records():
		return record{}, nil
	}
	rec, err := r.cache.noted()
	if errors.Is(err, ErrNeverFetched) {
		return record{}, nil
	}
	return rec, err
}

// Last returns the commit that was fetched last, in this process or in an
// earlier one with the same cache. Its FetchedAt tells how old that is. It is
// read and verified again; ErrNeverFetched is that there is none.
func (r *Repository) Last(ctx context.Context) (source.Artifact, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	r.mu.Lock()
	last := r.last
	r.mu.Unlock()
	if last != nil {
		return r.again(last.target, last.snapshot, last.revision)
	}
	if !r.records() {
		return source.Artifact{}, ErrNeverFetched
	}
	rec, err := r.cache.noted()
	if err != nil {
		return source.Artifact{}, err
	}
	s, err := r.reopen(ctx, rec)
	if err != nil {
		return source.Artifact{}, fmt.Errorf("reading commit %s, which was fetched last: %w", rec.Commit, err)
	}
	t := target{ref: rec.Ref, commit: s.commit.Hash, want: plumbing.NewHash(rec.Commit), named: r.want.Semver != ""}
	if rec.Tag != "" {
		t.want = plumbing.NewHash(rec.Tag)
	}
	rev := r.revision(t, s)
	rev.FetchedAt = rec.FetchedAt
	a, err := r.again(t, s, rev)
	if err != nil {
		s.objects.close()
	}
	return a, err
}

// again serves a commit of before to whoever still trusts it: the files that
// say who is trusted may have changed since.
func (r *Repository) again(t target, s *snapshot, rev source.Revision) (_ source.Artifact, err error) {
	if rev.SignedBy, err = r.verify.check(s.objects, t); err != nil {
		return source.Artifact{}, err
	}
	return r.serve(s, rev)
}

func (r *Repository) serve(s *snapshot, rev source.Revision) (source.Artifact, error) {
	files, err := newTree(s, r.path)
	if err != nil {
		return source.Artifact{}, err
	}
	return source.Artifact{Revision: rev, Files: files}, nil
}

func (r *Repository) reopen(ctx context.Context, rec record) (*snapshot, error) {
	commit := plumbing.NewHash(rec.Commit)
	if !r.at.isLocal() {
		return verified(ctx, r.cache.path(rec.Repository), commit, plumbing.ZeroHash)
	}
	o, err := openObjects(func() ([]store, error) { return openLocal(r.at.folder) })
	if err != nil {
		return nil, err
	}
	s, err := o.verify(ctx, commit)
	if err != nil {
		o.close()
	}
	return s, err
}

const (
	recordFile = "last.json"

	// noting begins the names of records that are being written, by whoever does
	// not hold the lock; those that were left behind are old.
	noting = "last-"
)

// note writes the record in one step.
func (c cache) note(rec record) error {
	content, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.path(""), 0o700); err != nil {
		return fmt.Errorf("%w: %w", ErrStorage, err)
	}
	f, err := os.CreateTemp(c.path(""), noting)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStorage, err)
	}
	_, err = f.Write(append(content, '\n'))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), c.path(recordFile))
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("%w: recording the fetch: %w", ErrStorage, err)
	}
	return nil
}

// noted reads the record. One that cannot be read is as good as none: it only
// ever says what may be served beside a failure.
func (c cache) noted() (record, error) {
	content, err := readFile(c.path(recordFile))
	if errors.Is(err, os.ErrNotExist) {
		return record{}, ErrNeverFetched
	}
	if err != nil {
		return record{}, fmt.Errorf("reading the record of the last fetch: %w", err)
	}
	var rec record
	if json.Unmarshal(content, &rec) != nil || !plumbing.IsHash(rec.Commit) || rec.Repository != filepath.Base("/"+rec.Repository) && rec.Repository != "" || strings.HasPrefix(rec.Repository, ".") {
		return record{}, ErrNeverFetched
	}
	return rec, nil
}
