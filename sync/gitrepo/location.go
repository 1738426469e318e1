package gitrepo

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// location is a validated URL: of a server, or a folder on this machine.
type location struct {
	shown  string   // as printed: without credentials, which are refused
	remote *url.URL // nil for a local repository
	folder string
}

func (l location) isLocal() bool { return l.remote == nil }

// parseLocation sorts out what a URL is. No error prints a URL that may have a
// credential in it.
func parseLocation(raw string) (location, error) {
	switch scheme, _, ok := strings.Cut(raw, "://"); {
	case raw == "":
		return location{}, errors.New("opening a repository: no URL is given")
	case strings.ContainsFunc(raw, isControl):
		return location{}, errors.New("opening a repository: the URL has control characters in it")
	case strings.HasPrefix(raw, "-"):
		return location{}, fmt.Errorf("opening repository %q: it must not begin with a dash", raw)
	case ok:
		return parseURL(strings.ToLower(scheme), raw)
	case isSCPLike(raw):
		return location{}, errors.New("opening a repository: ssh (user@host:path) is not supported yet, use https or a local path")
	}
	return location{shown: raw, folder: raw}, nil
}

func parseURL(scheme, raw string) (location, error) {
	switch scheme {
	case "http", "https", "file":
	case "ssh", "git", "git+ssh", "ssh+git":
		return location{}, fmt.Errorf("opening a repository: %s:// is not supported yet, use https or a local path", scheme)
	default:
		return location{}, fmt.Errorf("opening a repository: URLs of scheme %q are not supported, use https or a local path", scheme)
	}
	u, err := url.Parse(raw)
	if err != nil { // its text prints the URL
		return location{}, errors.New("opening a repository: the URL cannot be parsed")
	}
	if u.User != nil {
		return location{}, errors.New("opening a repository: the URL has credentials in it: name them by file in auth instead")
	}
	if u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return location{}, errors.New("opening a repository: the URL must have no query and no fragment")
	}
	if scheme == "file" {
		return fileLocation(u, raw)
	}
	return serverLocation(u)
}

func fileLocation(u *url.URL, raw string) (location, error) {
	if u.Host != "" && u.Host != "localhost" {
		return location{}, fmt.Errorf("opening repository %q: a file URL has three slashes and no host", raw)
	}
	if u.Path == "" {
		return location{}, fmt.Errorf("opening repository %q: the path is missing", raw)
	}
	return location{shown: raw, folder: u.Path}, nil
}

func serverLocation(u *url.URL) (location, error) {
	switch {
	case u.Hostname() == "":
		return location{}, fmt.Errorf("opening repository %q: the host is missing", u)
	case strings.HasPrefix(u.Hostname(), "-"):
		return location{}, fmt.Errorf("opening repository %q: the host must not begin with a dash", u)
	}
	for strings.HasSuffix(u.Path, "/") {
		u = &url.URL{Scheme: u.Scheme, Host: u.Host, Path: strings.TrimSuffix(u.Path, "/")}
	}
	return location{shown: u.String(), remote: u}, nil
}

// isSCPLike follows Git: a colon before the first slash makes a host of it.
func isSCPLike(raw string) bool {
	before, _, ok := strings.Cut(raw, ":")
	return ok && !strings.Contains(before, "/")
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }
