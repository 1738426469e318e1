package gitrepo

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"time"

	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// file is an opened file: its content is in memory.
type file struct {
	*bytes.Reader
	info info
}

func (f *file) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *file) Close() error               { return nil }

// folder is an opened folder. It is for one goroutine, as all opened files.
type folder struct {
	info info
	read func() ([]fs.DirEntry, error)
	rest []fs.DirEntry
	done bool // rest is filled
}

func (f *folder) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *folder) Close() error               { return nil }

func (f *folder) Read([]byte) (int, error) {
	return 0, pathError("read", f.info.name, errors.New("is a directory"))
}

func (f *folder) ReadDir(n int) ([]fs.DirEntry, error) {
	if !f.done {
		entries, err := f.read()
		if err != nil {
			return nil, err
		}
		f.rest, f.done = entries, true
	}
	if n > 0 && len(f.rest) == 0 {
		return nil, io.EOF
	}
	if n <= 0 || n > len(f.rest) {
		n = len(f.rest)
	}
	out := f.rest[:n:n]
	f.rest = f.rest[n:]
	return out, nil
}

// dirEntry is an entry as a folder lists it: a link is a link here.
type dirEntry struct {
	tree  *Tree
	entry object.TreeEntry
}

func (d dirEntry) Name() string      { return d.entry.Name }
func (d dirEntry) IsDir() bool       { return d.Type().IsDir() }
func (d dirEntry) Type() fs.FileMode { return fileMode(d.entry.Mode).Type() }
func (d dirEntry) String() string    { return fs.FormatDirEntry(d) }

func (d dirEntry) Info() (fs.FileInfo, error) {
	size, err := d.tree.size(d.entry.Mode, d.entry.Hash)
	if err != nil {
		return nil, pathError("stat", d.entry.Name, err)
	}
	return info{name: d.entry.Name, mode: fileMode(d.entry.Mode), size: size, time: d.tree.time}, nil
}

// info describes a file. All files have the commit's time: Git has no other.
type info struct {
	name string
	mode fs.FileMode
	size int64
	time time.Time
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) Mode() fs.FileMode  { return i.mode }
func (i info) ModTime() time.Time { return i.time }
func (i info) IsDir() bool        { return i.mode.IsDir() }
func (i info) Sys() any           { return nil }
func (i info) String() string     { return fs.FormatFileInfo(i) }

// fileMode is read-only. A submodule is a folder, so that who walks the tree
// enters it and is told, in place of passing it by.
func fileMode(m filemode.FileMode) fs.FileMode {
	switch m {
	case filemode.Dir, filemode.Submodule:
		return fs.ModeDir | 0o555
	case filemode.Symlink:
		return fs.ModeSymlink | 0o444
	case filemode.Executable:
		return 0o555
	}
	return 0o444
}
