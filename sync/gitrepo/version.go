package gitrepo

import (
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/go-git/go-git/v5/plumbing"
)

// highest is the tag of the highest version in the wanted range. Tags that are
// no version are passed over; versions are compared as semver.org has it, so
// that one before a release counts only where the range names such a one.
func (w wanted) highest(r refs) (plumbing.ReferenceName, error) {
	var best *semver.Version
	var same []string // tags of the best version
	versions := 0
	for _, tag := range r.short("refs/tags/") {
		v, err := semver.NewVersion(tag)
		if err != nil {
			continue
		}
		versions++
		switch {
		case !w.versions.Check(v) || best != nil && v.LessThan(best):
		case best != nil && v.Equal(best):
			same = append(same, tag)
		default:
			best, same = v, []string{tag}
		}
	}
	if best == nil {
		return "", fmt.Errorf("%w: %s", ErrRefNotFound, w.noVersion(r, versions))
	}
	first := plumbing.NewTagReferenceName(same[0])
	for _, tag := range same[1:] {
		if name := plumbing.NewTagReferenceName(tag); r.lead(name) != r.lead(first) {
			return "", fmt.Errorf("tags %q and %q are the same version and lead to different commits: delete one", same[0], tag)
		}
	}
	return first, nil
}

// lead is the commit that a ref leads to.
func (r refs) lead(name plumbing.ReferenceName) plumbing.Hash {
	if h, ok := r.peeled[name]; ok {
		return h
	}
	return r.tips[name]
}

func (w wanted) noVersion(r refs, versions int) string {
	tags := r.short("refs/tags/")
	if versions == 0 {
		return suggest("v1.0.0", tags, "tags") + ", none of which is a version such as v1.2.3"
	}
	return strings.Replace(suggest(w.Semver, tags, "tags"), "the repository's tags are", "none of its versions is in the range; its tags are", 1)
}
