package gitrepo

import (
	"context"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
)

// maxHistory is how many commits are looked at for the one that was followed
// before.
const maxHistory = 10_000

// moved tells whether a ref was moved to another history: what it led to before
// is not behind what it leads to now. Where history is cut short and nothing
// proves it, the answer is no.
func (r *Repository) moved(ctx context.Context, o *objects, t target, now, before plumbing.Hash) bool {
	switch {
	case now == before, t.exact, r.want.Semver != "":
		return false
	case r.want.isTag():
		return true // a tag is for one commit
	}
	behind, cut := o.ancestors(ctx, now, before)
	if behind == nil {
		return false
	}
	if len(cut) == 0 {
		return true
	}
	// What lies behind a cut is not known, but before does not where it came from
	// that commit itself.
	mine, _ := o.ancestors(ctx, before, plumbing.ZeroHash)
	delete(mine, before)
	return !slices.ContainsFunc(cut, func(h plumbing.Hash) bool { return !mine[h] })
}

// ancestors are the commits from which one came, and those of them that are not
// there, where history is cut short; nil when want is among them, or when there
// are too many to tell.
func (o *objects) ancestors(ctx context.Context, from, want plumbing.Hash) (found map[plumbing.Hash]bool, cut []plumbing.Hash) {
	found = map[plumbing.Hash]bool{from: true}
	for todo := []plumbing.Hash{from}; len(todo) > 0; {
		h := todo[0]
		todo = todo[1:]
		if len(found) > maxHistory || ctx.Err() != nil {
			return nil, nil
		}
		parents, there := o.parents(h)
		if !there {
			cut = append(cut, h)
		}
		for _, p := range parents {
			if p == want {
				return nil, nil
			}
			if !found[p] {
				found[p] = true
				todo = append(todo, p)
			}
		}
	}
	return found, cut
}
