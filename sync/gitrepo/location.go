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
	folder string   // of a local repository
	path   string   // on an ssh server: absolute, or below the user's home
}

func (l location) isLocal() bool { return l.remote == nil }

func (l location) isSSH() bool { return l.remote != nil && l.remote.Scheme == "ssh" }

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
		return scpLocation(raw)
	}
	return location{shown: raw, folder: raw}, nil
}

func parseURL(scheme, raw string) (location, error) {
	switch scheme {
	case "http", "https", "ssh", "file":
	case "git":
		return location{}, errors.New("opening a repository: git:// neither encrypts nor knows who answers: use https or ssh")
	default:
		return location{}, fmt.Errorf("opening a repository: URLs of scheme %q are not supported, use https, ssh or a local path", scheme)
	}
	u, err := url.Parse(raw)
	if err != nil { // its text prints the URL
		return location{}, errors.New("opening a repository: the URL cannot be parsed")
	}
	if _, password := u.User.Password(); password || u.User != nil && scheme != "ssh" {
		return location{}, errors.New("opening a repository: the URL has credentials in it: name them by file in auth instead")
	}
	if u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return location{}, errors.New("opening a repository: the URL must have no query and no fragment")
	}
	switch scheme {
	case "file":
		return fileLocation(u, raw)
	case "ssh":
		return sshLocation(u, strings.TrimPrefix(u.Path, "/~/"))
	}
	return serverLocation(u)
}

// sshLocation is a path on a server. One below the home of the user, or of
// another, has a tilde, which the server's shell does not see in quotes.
func sshLocation(u *url.URL, p string) (location, error) {
	switch {
	case u.Hostname() == "":
		return location{}, fmt.Errorf("opening repository %q: the host is missing", u)
	case strings.HasPrefix(u.Hostname(), "-"), strings.HasPrefix(u.User.Username(), "-"):
		return location{}, fmt.Errorf("opening repository %q: neither host nor user must begin with a dash", u)
	case p == "" || p == "/":
		return location{}, fmt.Errorf("opening repository %q: the path is missing", u)
	case strings.HasPrefix(p, "-"), strings.ContainsFunc(p, isControl):
		return location{}, fmt.Errorf("opening repository %q: the path must not begin with a dash or hold control characters", u)
	}
	if strings.HasPrefix(p, "/~") {
		p = p[1:]
	}
	return location{shown: u.String(), remote: u, path: strings.TrimRight(p, "/")}, nil
}

// scpLocation reads Git's short form of an ssh URL, user@host:path.
func scpLocation(raw string) (location, error) {
	login, p, _ := strings.Cut(raw, ":")
	if strings.Contains(p, "@") && !strings.Contains(login, "@") {
		return location{}, errors.New("opening a repository: the URL has credentials in it: an ssh key is named in auth instead")
	}
	u := &url.URL{Scheme: "ssh", Host: login}
	if user, host, ok := strings.Cut(login, "@"); ok {
		u.User, u.Host = url.User(user), host
	}
	if u.Host != (&url.URL{Host: u.Host}).Hostname() || strings.ContainsAny(u.Host, "/?#@ ") {
		return location{}, errors.New("opening a repository: what comes before the colon is no user@host")
	}
	at, err := sshLocation(u, strings.TrimPrefix(p, "~/"))
	at.shown = raw
	return at, err
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
