// Package source is what a Git repository gives to the rest of rollcall: the
// files of one commit, and which commit that is. It knows neither how they
// were fetched nor what they are for.
package source

import (
	"io/fs"
	"time"
)

// Revision names the commit that a ref pointed to. The zero Revision means
// that there is no source: what is live is judged as it is.
type Revision struct {
	URL         string // without credentials
	Ref         string // as declared: a branch, a tag, a full name or a commit; what HEAD or a range of versions led to
	Commit      string // 40 hexadecimal digits
	CommittedAt time.Time
	FetchedAt   time.Time // when the remote was last asked and answered
	SignedBy    string    // whose signature was verified; empty where none is asked for
	Replaced    string    // the commit that the ref led to before and that its history no longer has
}

// Artifact is the files of one commit, below the declared path. Files is
// read-only, lazy and safe for concurrent use; no path in it leaves the
// repository, also not through a symbolic link.
type Artifact struct {
	Revision Revision
	Files    fs.FS
}

// IsZero tells that there is no source.
func (r Revision) IsZero() bool { return r.Commit == "" }
