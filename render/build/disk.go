package build

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// errReadOnly answers every attempt of kustomize to write, or to use a part
// of its file system interface that a build does not need.
var errReadOnly = errors.New("the file system of a build is read-only")

// disk is the file system that kustomize sees: a tree, with the guard at its
// door, so that nothing that the walk did not see slips through.
type disk struct {
	tree  *tree
	guard *guard // nil only in the test that shows what it is for
}

var _ filesys.FileSystem = disk{}

// ReadFile lets kustomize open a file, once the guard has judged it.
func (d disk) ReadFile(name string) ([]byte, error) {
	name = path.Clean(name)
	content, err := d.tree.open(name)
	if err != nil || d.guard == nil {
		return content, err
	}
	if slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(name)) && !d.tree.data[name] {
		_, err = d.guard.visit(path.Dir(name))
		return content, err
	}
	return content, d.guard.file(name)
}

// CleanedAbs splits a path into its folder and, if it names a file, its name.
func (d disk) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	name = path.Clean(name)
	k, err := d.tree.kind(name)
	switch {
	case err != nil:
		return "", "", err
	case k == folder:
		return filesys.ConfirmedDir(name), "", nil
	case k == file:
		return filesys.ConfirmedDir(path.Dir(name)), path.Base(name), nil
	}
	return "", "", fmt.Errorf("%q does not exist: %w", show(name), fs.ErrNotExist)
}

// IsDir tells whether a path is a folder.
func (d disk) IsDir(name string) bool {
	k, err := d.tree.kind(path.Clean(name))
	return err == nil && k == folder
}

// Exists tells whether something is at a path.
func (d disk) Exists(name string) bool {
	k, err := d.tree.kind(path.Clean(name))
	return err == nil && k != absent
}

// Create refuses.
func (disk) Create(string) (filesys.File, error) { return nil, errReadOnly }

// Mkdir refuses.
func (disk) Mkdir(string) error { return errReadOnly }

// MkdirAll refuses.
func (disk) MkdirAll(string) error { return errReadOnly }

// RemoveAll refuses.
func (disk) RemoveAll(string) error { return errReadOnly }

// Open refuses; a build reads whole files.
func (disk) Open(string) (filesys.File, error) { return nil, errReadOnly }

// ReadDir refuses; a build names every file.
func (disk) ReadDir(string) ([]string, error) { return nil, errReadOnly }

// Glob refuses; a build names every file.
func (disk) Glob(string) ([]string, error) { return nil, errReadOnly }

// WriteFile refuses.
func (disk) WriteFile(string, []byte) error { return errReadOnly }

// Walk refuses; a build names every file.
func (disk) Walk(string, filepath.WalkFunc) error { return errReadOnly }
