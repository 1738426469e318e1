package gitrepo

import "errors"

// Errors that a caller may tell apart with errors.Is. None of them, nor any
// text around them, holds a credential.
var (
	// ErrRefNotFound is returned when the repository answered and does not
	// have the wanted branch, tag, commit or HEAD, whatever was cached.
	ErrRefNotFound = errors.New("ref not found")

	// ErrEmpty is returned for a repository without any commit.
	ErrEmpty = errors.New("the repository is empty")

	// ErrPathNotFound is returned when the commit has no such folder.
	ErrPathNotFound = errors.New("path not found")

	// ErrUnauthorized is returned when the server refused the credentials,
	// or asks for some where none are given.
	ErrUnauthorized = errors.New("not authorized")

	// ErrUnreachable is returned when there was no answer at all.
	ErrUnreachable = errors.New("unreachable")

	// ErrHostKey is returned when an ssh server is not the one that is known.
	ErrHostKey = errors.New("the server is not trusted")

	// ErrSignature is returned for a commit or tag without a good signature of
	// somebody who is trusted.
	ErrSignature = errors.New("the signature is not trusted")

	// ErrNeverFetched is returned by Last when no commit was ever fetched.
	ErrNeverFetched = errors.New("no commit was fetched before")

	// ErrStorage is returned when the cache cannot be written to: the disk is
	// full or read-only.
	ErrStorage = errors.New("the cache cannot be written to")

	// ErrIncomplete is returned when objects of the commit are absent or
	// corrupt: nothing of it was published.
	ErrIncomplete = errors.New("incomplete or corrupt")
)
