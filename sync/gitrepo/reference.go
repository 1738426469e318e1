package gitrepo

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/go-git/go-git/v5/plumbing"
)

// listed is how many names an error about a missing ref suggests.
const listed = 5

// wanted is what to follow, as declared. The zero wanted is HEAD.
type wanted struct {
	Ref
	versions *semver.Constraints // of Semver
}

// refs is what a repository answers about itself.
type refs struct {
	head   plumbing.Hash // zero when HEAD leads to no commit
	branch string        // that HEAD points to, empty when detached
	tips   map[plumbing.ReferenceName]plumbing.Hash
	peeled map[plumbing.ReferenceName]plumbing.Hash // what annotated tags lead to
}

// target is where the wanted ref leads.
type target struct {
	ref    string        // as declared, or the branch that HEAD points to
	want   plumbing.Hash // what to ask the remote for: an annotated tag itself
	commit plumbing.Hash
	exact  bool                   // declared as a commit, so no ref needs to lead to it
	named  bool                   // chosen by the version in its name
	branch plumbing.ReferenceName // where to look for an exact one; empty: everywhere
}

func parseWanted(r Ref) (wanted, error) {
	w := wanted{Ref: r}
	w.Commit = strings.ToLower(r.Commit)
	set := 0
	for _, s := range []string{r.Branch, r.Tag, r.Semver, r.Name, r.Commit} {
		if s != "" {
			set++
		}
	}
	if set > 1 && (set != 2 || r.Branch == "" || r.Commit == "") {
		return wanted{}, fmt.Errorf("parsing ref: branch %q, tag %q, semver %q, name %q, commit %q: at most one may be set, but a commit may have its branch beside it", r.Branch, r.Tag, r.Semver, r.Name, r.Commit)
	}
	if w.Commit != "" && !regexp.MustCompile("^[0-9a-f]{40}$").MatchString(w.Commit) {
		return wanted{}, fmt.Errorf("parsing commit %q: must be 40 hexadecimal digits", r.Commit)
	}
	if short := r.Branch + r.Tag; strings.HasPrefix(short, "refs/") {
		return wanted{}, fmt.Errorf("parsing ref %q: must be the short name, without %q", short, "refs/…/")
	}
	if r.Name != "" && !strings.HasPrefix(r.Name, "refs/") {
		return wanted{}, fmt.Errorf("parsing ref %q: must be a full name, which begins with %q", r.Name, "refs/")
	}
	if name := w.name(); name != plumbing.HEAD && name.Validate() != nil {
		return wanted{}, fmt.Errorf("parsing ref %q: it is not a valid name", name)
	}
	if r.Semver == "" {
		return w, nil
	}
	var err error
	if w.versions, err = semver.NewConstraint(r.Semver); err != nil {
		return wanted{}, fmt.Errorf("parsing semver %q: it is no range of versions", r.Semver)
	}
	return w, nil
}

// name is the full name, so that a branch and a tag of one name differ.
func (w wanted) name() plumbing.ReferenceName {
	switch {
	case w.Branch != "":
		return plumbing.NewBranchReferenceName(w.Branch)
	case w.Tag != "":
		return plumbing.NewTagReferenceName(w.Tag)
	case w.Name != "":
		return plumbing.ReferenceName(w.Name)
	}
	return plumbing.HEAD
}

// isTag tells whether what is followed is a tag.
func (w wanted) isTag() bool { return w.Semver != "" || w.name().IsTag() }

// String names it in messages.
func (w wanted) String() string {
	switch {
	case w.Commit != "":
		return fmt.Sprintf("commit %q", w.Commit)
	case w.Branch != "":
		return fmt.Sprintf("branch %q", w.Branch)
	case w.Tag != "":
		return fmt.Sprintf("tag %q", w.Tag)
	case w.Semver != "":
		return fmt.Sprintf("the highest tag in %q", w.Semver)
	case w.Name != "":
		return fmt.Sprintf("ref %q", w.Name)
	}
	return "HEAD"
}

// find looks the wanted ref up among those that the repository has now.
func (w wanted) find(r refs) (target, error) {
	if w.Commit != "" {
		h := plumbing.NewHash(w.Commit)
		t := target{ref: w.Commit, want: h, commit: h, exact: true}
		if w.Branch != "" {
			t.branch = w.name()
		}
		return t, nil
	}
	if len(r.tips) == 0 && r.head.IsZero() {
		return target{}, ErrEmpty
	}
	if w.Ref == (Ref{}) {
		return w.findHead(r)
	}
	name, ref := w.name(), cmp.Or(w.Branch, w.Tag, w.Name)
	if w.versions != nil {
		var err error
		if name, err = w.highest(r); err != nil {
			return target{}, err
		}
		ref = name.Short()
	}
	tip, ok := r.tips[name]
	if !ok {
		return target{}, fmt.Errorf("%w: %s", ErrRefNotFound, w.missing(r))
	}
	t := target{ref: ref, want: tip, commit: tip, named: w.versions != nil}
	if p, ok := r.peeled[name]; ok {
		t.commit = p
	}
	return t, nil
}

func (w wanted) findHead(r refs) (target, error) {
	if r.head.IsZero() {
		return target{}, fmt.Errorf("%w: HEAD points to a branch that does not exist; %s", ErrRefNotFound, suggest("main", r.short("refs/heads/"), "branches"))
	}
	return target{ref: cmp.Or(r.branch, "HEAD"), want: r.head, commit: r.head}, nil
}

// missing says what there is instead of the wanted ref.
func (w wanted) missing(r refs) string {
	mine, other, kind, otherKind := "refs/heads/", "refs/tags/", "branches", "tag"
	switch {
	case w.Name != "":
		return suggest(w.Name, r.short(""), "refs")
	case w.Tag != "":
		mine, other, kind, otherKind = other, mine, "tags", "branch"
	}
	name := cmp.Or(w.Branch, w.Tag)
	text := suggest(name, r.short(mine), kind)
	if _, ok := r.tips[plumbing.ReferenceName(other+name)]; ok {
		text += fmt.Sprintf("; there is a %s of that name", otherKind)
	}
	return text
}

// short lists the names below prefix, without it.
func (r refs) short(prefix string) []string {
	var names []string
	for n := range r.tips {
		if s, ok := strings.CutPrefix(string(n), prefix); ok {
			names = append(names, s)
		}
	}
	slices.Sort(names)
	return names
}

// suggest lists the names nearest to the one that is not there.
func suggest(name string, names []string, kind string) string {
	if len(names) == 0 {
		return "the repository has no " + kind
	}
	slices.SortStableFunc(names, func(a, b string) int {
		return cmp.Compare(distance(name, a), distance(name, b))
	})
	some := names[:min(listed, len(names))]
	quoted := make([]string, len(some))
	for i, n := range some {
		quoted[i] = fmt.Sprintf("%.100q", n)
	}
	text := fmt.Sprintf("the repository's %s are %s", kind, strings.Join(quoted, ", "))
	if more := len(names) - len(some); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// distance is how many single-byte edits lead from a to b. Only the first 100
// bytes count: names come from the server, and the work is their product.
func distance(a, b string) int {
	a, b = a[:min(len(a), 100)], b[:min(len(b), 100)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			edit := diagonal
			if a[i] != b[j] {
				edit++
			}
			diagonal = row[j+1]
			row[j+1] = min(edit, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
