package gitrepo

import (
	"context"

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
	behind, whole := o.ancestors(ctx, now, before)
	if behind == nil {
		return false
	}
	if whole {
		return true
	}
	// Both histories meet, and before is not where they do.
	mine, _ := o.ancestors(ctx, before, plumbing.ZeroHash)
	delete(mine, before)
	for h := range mine {
		if behind[h] {
			return true
		}
	}
	return false
}

// ancestors are the commits from which one came, and whether these are all of
// them; nil when want is among them, or when there are too many to tell.
func (o *objects) ancestors(ctx context.Context, from, want plumbing.Hash) (found map[plumbing.Hash]bool, whole bool) {
	found, whole = map[plumbing.Hash]bool{from: true}, true
	for todo := []plumbing.Hash{from}; len(todo) > 0; {
		h := todo[0]
		todo = todo[1:]
		if len(found) > maxHistory || ctx.Err() != nil {
			return nil, false
		}
		parents, there := o.parents(h)
		whole = whole && there
		for _, p := range parents {
			if p == want {
				return nil, false
			}
			if !found[p] {
				found[p] = true
				todo = append(todo, p)
			}
		}
	}
	return found, whole
}
