package render

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// What kustomize takes for something to fetch, read off its loader: a scheme,
// a user of an SSH address, GitHub's short form, and go-getter's prefix. The
// check is wider than kustomize's own, so that it also covers what a later
// version may learn.
var (
	scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)
	user   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]*@`)
	marker = regexp.MustCompile(`(?i)^(git::|ssh:|https?:|file:|github\.com[/:])`)
)

// IsRemote tells whether a path in a kustomization would be fetched rather
// than read from the repository.
func IsRemote(entry string) bool {
	return scheme.MatchString(entry) || IsRemoteText(entry) ||
		strings.Contains(entry, "//") || strings.Contains(entry, "?ref=")
}

// IsRemoteText is IsRemote for a field that may hold YAML instead of a path,
// in which a colon or two slashes are nothing unusual.
func IsRemoteText(text string) bool {
	return marker.MatchString(text) || user.MatchString(text)
}

// within cleans a path of the fleet file, which must stay in the repository.
func within(p string) (string, *Error) {
	switch {
	case p == "":
		return "", &Error{Code: PathNotFound, Message: `the path is empty; "." is the root of the repository`}
	case IsRemote(p):
		return "", &Error{Code: RemoteReference, Message: fmt.Sprintf("%q is not a path in the repository: copy what it names into the repository", p)}
	case path.IsAbs(p):
		return "", &Error{Code: PathNotFound, Message: fmt.Sprintf("%q is absolute: write it relative to the root of the repository", p)}
	}
	clean := path.Clean(p)
	if clean == ".." || strings.HasPrefix(clean, "../") {
		return "", &Error{Code: PathNotFound, Message: fmt.Sprintf("%q leaves the repository: name a folder inside it", p)}
	}
	return clean, nil
}
