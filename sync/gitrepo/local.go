package gitrepo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	gitcache "github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// maxAlternates is how many repositories may lend objects to one another.
const maxAlternates = 16

// readLocal reads a repository on this machine in place: bare, with a working
// tree (what is not committed there is not seen), or a linked working tree.
func (r *Repository) readLocal(ctx context.Context) (target, *snapshot, error) {
	open := func() ([]store, error) { return openLocal(r.at.folder) }
	o, err := openObjects(open)
	if err != nil {
		return target{}, nil, err
	}
	t, s, err := r.resolveLocal(ctx, o)
	if err != nil || s.objects != o {
		o.close()
	}
	return t, s, err
}

func (r *Repository) resolveLocal(ctx context.Context, o *objects) (target, *snapshot, error) {
	answer, err := localRefs(o.stores[0].Storage)
	if err != nil {
		return target{}, nil, err
	}
	if r.want.Semver != "" {
		for name, tip := range answer.tips {
			if name.IsTag() {
				answer.peeled[name], _ = o.peel(tip) // a broken one is found when it is read
			}
		}
	}
	t, err := r.want.find(answer)
	if err != nil {
		return target{}, nil, err
	}
	if r.want.isTag() {
		if t.commit, err = o.peel(t.commit); err != nil {
			return target{}, nil, err
		}
	}
	if s := r.remembered(t); s != nil {
		return t, s, nil
	}
	s, err := o.verify(ctx, t.commit)
	if t.exact && errors.Is(err, plumbing.ErrObjectNotFound) {
		if _, absent := o.size(t.commit); absent != nil {
			return target{}, nil, fmt.Errorf("%w: the repository does not have it", ErrRefNotFound)
		}
	}
	return t, s, err
}

// localRefs is what a remote would answer about its refs.
func localRefs(s *filesystem.Storage) (refs, error) {
	answer := refs{tips: map[plumbing.ReferenceName]plumbing.Hash{}, peeled: map[plumbing.ReferenceName]plumbing.Hash{}}
	iter, err := s.IterReferences()
	if err != nil {
		return refs{}, fmt.Errorf("listing refs: %w", err)
	}
	defer iter.Close()
	err = iter.ForEach(func(ref *plumbing.Reference) error {
		if ref.Name() == plumbing.HEAD {
			return nil
		}
		if h, ok := follow(s, ref.Name()); ok {
			answer.tips[ref.Name()] = h
		}
		return nil
	})
	if err != nil {
		return refs{}, fmt.Errorf("listing refs: %w", err)
	}
	head, err := s.Reference(plumbing.HEAD)
	if err != nil {
		return refs{}, fmt.Errorf("reading HEAD: %w", err)
	}
	if head.Type() == plumbing.SymbolicReference {
		answer.branch = head.Target().Short()
	}
	answer.head, _ = follow(s, plumbing.HEAD)
	return answer, nil
}

// follow resolves symbolic refs. One that leads nowhere is not there.
func follow(s *filesystem.Storage, name plumbing.ReferenceName) (plumbing.Hash, bool) {
	for range maxTags {
		ref, err := s.Reference(name)
		if err != nil {
			return plumbing.ZeroHash, false
		}
		if ref.Type() == plumbing.HashReference {
			return ref.Hash(), !ref.Hash().IsZero()
		}
		name = ref.Target()
	}
	return plumbing.ZeroHash, false
}

// openLocal opens the repository at folder and those it borrows objects from.
// go-git finds and checks it; its storage is then opened anew with our limits.
func openLocal(folder string) ([]store, error) {
	repo, err := git.PlainOpenWithOptions(folder, &git.PlainOpenOptions{EnableDotGitCommonDir: true})
	if errors.Is(err, git.ErrRepositoryNotExists) {
		return nil, errors.New("there is no Git repository")
	}
	if err != nil {
		return nil, err
	}
	found, ok := repo.Storer.(*filesystem.Storage)
	if !ok {
		return nil, fmt.Errorf("its storage is a %T", repo.Storer)
	}
	shared := gitcache.NewObjectLRU(objectCache)
	own, err := newStore(found.Filesystem(), shared)
	if err != nil {
		return nil, err
	}
	if _, err := own.Filesystem().Stat("HEAD"); err != nil {
		return nil, errors.New("there is no Git repository")
	}
	return appendAlternates([]store{own}, shared)
}

// appendAlternates adds the object folders that objects/info/alternates names,
// and those that these name: go-git looks into the first level only, and not
// for sizes.
func appendAlternates(stores []store, shared gitcache.Object) ([]store, error) {
	for i := 0; i < len(stores); i++ {
		folders, err := alternates(stores[i].Storage)
		if err != nil {
			return nil, err
		}
		for _, f := range folders {
			if len(stores) > maxAlternates {
				return nil, fmt.Errorf("it borrows objects from more than %d repositories", maxAlternates)
			}
			s, err := newStore(osfs.New(f), shared)
			if err != nil {
				return nil, err
			}
			stores = append(stores, s)
		}
	}
	return stores, nil
}

// alternates are the repositories, not the object folders, named in the file.
func alternates(s *filesystem.Storage) ([]string, error) {
	f, err := s.Filesystem().Open("objects/info/alternates")
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading alternates: %w", err)
	}
	defer f.Close()
	var folders []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if !filepath.IsAbs(line) {
			line = filepath.Join(s.Filesystem().Root(), "objects", line)
		}
		folders = append(folders, filepath.Dir(filepath.Clean(line)))
	}
	return folders, nil
}
