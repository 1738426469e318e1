package gitrepo

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// listed is how many names an error about a missing ref suggests.
const listed = 5

// wanted is what to follow, as declared. The zero wanted is HEAD.
type wanted struct{ branch, tag, commit string }

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
	exact  bool // declared as a commit, so no ref needs to lead to it
}

func parseWanted(branch, tag, commit string) (wanted, error) {
	w := wanted{branch: branch, tag: tag, commit: strings.ToLower(commit)}
	set := 0
	for _, s := range []string{branch, tag, commit} {
		if s != "" {
			set++
		}
	}
	if set > 1 {
		return wanted{}, fmt.Errorf("parsing ref: branch %q, tag %q, commit %q: at most one may be set", branch, tag, commit)
	}
	if commit != "" && !regexp.MustCompile("^[0-9a-f]{40}$").MatchString(w.commit) {
		return wanted{}, fmt.Errorf("parsing commit %q: must be 40 hexadecimal digits", commit)
	}
	name := branch + tag
	if strings.HasPrefix(name, "refs/") {
		return wanted{}, fmt.Errorf("parsing ref %q: must be the short name, without %q", name, "refs/…/")
	}
	if err := w.name().Validate(); name != "" && err != nil {
		return wanted{}, fmt.Errorf("parsing ref %q: it is not a valid name", name)
	}
	return w, nil
}

// name is the full name, so that a branch and a tag of one name differ.
func (w wanted) name() plumbing.ReferenceName {
	switch {
	case w.branch != "":
		return plumbing.NewBranchReferenceName(w.branch)
	case w.tag != "":
		return plumbing.NewTagReferenceName(w.tag)
	}
	return plumbing.HEAD
}

// String names it in messages.
func (w wanted) String() string {
	switch {
	case w.branch != "":
		return fmt.Sprintf("branch %q", w.branch)
	case w.tag != "":
		return fmt.Sprintf("tag %q", w.tag)
	case w.commit != "":
		return fmt.Sprintf("commit %q", w.commit)
	}
	return "HEAD"
}

// find looks the wanted ref up among those that the repository has now.
func (w wanted) find(r refs) (target, error) {
	if w.commit != "" {
		h := plumbing.NewHash(w.commit)
		return target{ref: w.commit, want: h, commit: h, exact: true}, nil
	}
	if len(r.tips) == 0 && r.head.IsZero() {
		return target{}, ErrEmpty
	}
	if w == (wanted{}) {
		return w.findHead(r)
	}
	tip, ok := r.tips[w.name()]
	if !ok {
		return target{}, fmt.Errorf("%w: %s", ErrRefNotFound, w.missing(r))
	}
	t := target{ref: cmp.Or(w.branch, w.tag), want: tip, commit: tip}
	if p, ok := r.peeled[w.name()]; ok {
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
	if w.tag != "" {
		mine, other, kind, otherKind = other, mine, "tags", "branch"
	}
	name := cmp.Or(w.branch, w.tag)
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
