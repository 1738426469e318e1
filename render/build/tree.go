package build

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/render"
)

// Where kustomize sees the artifact, and the kustomization that we add. They
// lie beside each other because kustomize refuses a base above itself.
const (
	treeRoot  = "/tree"
	fleetRoot = "/fleet"

	// below marks an Input that is a listing of the manifests in a folder
	// and all below it.
	below = "/..."
)

// hasher is what a file system may offer: Git knows the hash of every file
// without reading it.
type hasher interface {
	Hash(name string) (string, error)
}

// tree reads one commit for one cluster and remembers what it was asked. It
// serves one build and is used by one goroutine at a time.
type tree struct {
	ctx     context.Context
	files   fs.FS
	cluster clusters.Cluster
	fleet   string
	limits  Options

	added  map[string][]byte // kustomizations of ours, by absolute path
	data   map[string]bool   // files that are data, not YAML for kustomize
	cache  map[string][]byte
	parsed map[string]render.Parsed
	inputs map[string]string
	used   map[string]string

	schema  bool // kustomize's schema, which is global, is changed
	nodes   int
	opens   int
	bytes   int
	refused error // the first refusal, which kustomize may mask by a later one
}

func newTree(ctx context.Context, files fs.FS, f clusters.Fleet, c clusters.Cluster, limits Options) *tree {
	return &tree{
		ctx: ctx, files: files, cluster: c, fleet: f.Name, limits: limits,
		added: map[string][]byte{}, data: map[string]bool{}, cache: map[string][]byte{},
		parsed: map[string]render.Parsed{}, inputs: map[string]string{}, used: map[string]string{},
	}
}

// refuse remembers the first refusal.
func (t *tree) refuse(err error) error {
	if t.refused == nil {
		t.refused = err
	}
	return err
}

// relative returns a path below the root of the artifact, and whether it is.
func relative(abs string) (name string, inside bool) {
	if abs == treeRoot {
		return ".", true
	}
	name, inside = strings.CutPrefix(abs, treeRoot+"/")
	return name, inside && fs.ValidPath(name)
}

// show names a path for a message.
func show(abs string) string {
	name, inside := relative(abs)
	if !inside {
		return strings.TrimPrefix(abs, "/")
	}
	return name
}

type entryKind int

const (
	absent entryKind = iota
	folder
	file
)

// kind tells what is at a path, and records that it was asked.
func (t *tree) kind(abs string) (entryKind, error) {
	if _, ours := t.added[abs]; ours {
		return file, nil
	}
	if abs == fleetRoot {
		return folder, nil
	}
	name, inside := relative(abs)
	if !inside {
		return absent, nil
	}
	k, err := stat(t.files, name)
	if err != nil {
		t.inputs[name] = refusal(err)
		return absent, t.refuse(err)
	}
	switch k {
	case absent:
		t.inputs[name] = render.Absent
	case folder:
		t.inputs[name] = render.Folder
	case file:
		_, err = t.record(name)
	}
	return k, err
}

// refusal stands for a hash where a path cannot be read: a build that failed of
// it must not be taken for one of a commit where it can.
func refusal(err error) string { return unread + err.Error() }

const unread = "refused: "

func refused(hash string) bool { return strings.HasPrefix(hash, unread) }

// record notes the hash of a file's content.
func (t *tree) record(name string) (string, error) {
	if h, known := t.inputs[name]; known {
		return h, nil
	}
	h, err := hashOf(t.files, name)
	if err != nil {
		return "", t.refuse(err)
	}
	t.inputs[name] = h
	return h, nil
}

func stat(files fs.FS, name string) (entryKind, error) {
	info, err := fs.Stat(files, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return absent, nil
	case errors.Is(err, errors.ErrUnsupported):
		return absent, &render.Error{Code: render.Unsupported, File: name, Message: "the path cannot be read", Err: err}
	case err != nil:
		return absent, &render.Error{Code: render.PathNotFound, File: name, Message: "the path cannot be read", Err: err}
	case info.IsDir():
		return folder, nil
	case !info.Mode().IsRegular():
		return absent, &render.Error{Code: render.Unsupported, File: name, Message: "the path is neither a file nor a folder: replace it by one"}
	case info.Size() > render.MaxFileBytes:
		return absent, &render.Error{Code: render.OverBudget, File: name, Message: fmt.Sprintf("%d bytes are more than the %d allowed in a file: split it", info.Size(), render.MaxFileBytes)}
	}
	return file, nil
}

func hashOf(files fs.FS, name string) (string, error) {
	if h, ok := files.(hasher); ok {
		sum, err := h.Hash(name)
		if err != nil {
			return "", fmt.Errorf("hashing %q: %w", name, err)
		}
		return sum, nil
	}
	content, err := fs.ReadFile(files, name)
	if err != nil {
		return "", fmt.Errorf("reading %q: %w", name, err)
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), nil
}

// read returns a file's text with the cluster's values in it.
func (t *tree) read(abs string) ([]byte, error) {
	if err := t.ctx.Err(); err != nil {
		return nil, t.refuse(fmt.Errorf("reading %q: %w", show(abs), context.Cause(t.ctx)))
	}
	if content, ours := t.added[abs]; ours {
		return content, nil
	}
	if content, known := t.cache[abs]; known {
		return content, nil
	}
	k, err := t.kind(abs)
	if err != nil {
		return nil, err
	}
	if k != file {
		return nil, &fs.PathError{Op: "read", Path: show(abs), Err: fs.ErrNotExist}
	}
	name, _ := relative(abs)
	content, err := fs.ReadFile(t.files, name)
	if errors.Is(err, errors.ErrUnsupported) {
		err = &render.Error{Code: render.Unsupported, File: name, Message: "the file cannot be read", Err: err}
	}
	if err != nil {
		return nil, t.refuse(fmt.Errorf("reading %q: %w", name, err))
	}
	if content, err = t.substitute(name, content); err != nil {
		return nil, t.refuse(err)
	}
	t.cache[abs] = content
	return content, nil
}

func (t *tree) substitute(name string, content []byte) ([]byte, error) {
	if render.IsLFSPointer(content) {
		return nil, render.ScanText(name, content)
	}
	text := string(content)
	if !render.Substitutes(text) {
		return content, nil
	}
	if !utf8.Valid(content) {
		return nil, &render.Error{Code: render.Unsupported, File: name, Message: "the file is binary and holds a ${cluster.…} or ${fleet.…}: nothing is replaced in binary files; write $${ or save it as UTF-8"}
	}
	text, used, err := render.Substitute(name, text, t.cluster, t.fleet)
	if err != nil {
		return nil, err
	}
	for _, v := range used {
		t.used[v.Name] = v.Value
	}
	return []byte(text), nil
}

// parse reads and scans a YAML file.
func (t *tree) parse(abs string) (render.Parsed, error) {
	if p, known := t.parsed[abs]; known {
		return p, nil
	}
	content, err := t.read(abs)
	if err != nil {
		return render.Parsed{}, err
	}
	p, err := render.Parse(show(abs), content)
	if err != nil {
		return render.Parsed{}, t.refuse(err)
	}
	if t.nodes += p.Nodes; t.nodes > t.limits.Nodes {
		return render.Parsed{}, t.refuse(over(show(abs), t.limits.Nodes, "YAML nodes with aliases expanded"))
	}
	t.parsed[abs] = p
	return p, nil
}

// open is read for kustomize, which pays for every time it opens a file.
func (t *tree) open(abs string) ([]byte, error) {
	content, err := t.read(abs)
	if err != nil {
		return nil, err
	}
	t.opens++
	t.bytes += len(content)
	switch {
	case t.opens > t.limits.Files:
		return nil, t.refuse(over(show(abs), t.limits.Files, "files"))
	case t.bytes > t.limits.Bytes:
		return nil, t.refuse(over(show(abs), t.limits.Bytes, "bytes"))
	}
	return content, nil
}

func over(name string, limit int, what string) *render.Error {
	return &render.Error{Code: render.OverBudget, File: name, Message: fmt.Sprintf("the build needs more than the %d %s allowed, each counted every time it is reached: split the overlay, or reach its bases once", limit, what)}
}

// listing names the manifests in and below a folder, sorted.
func (t *tree) listing(abs string) ([]string, error) {
	dir, _ := relative(abs)
	names, err := list(t.files, dir, t.limits.Files)
	if err != nil {
		return nil, t.refuse(err)
	}
	t.inputs[dir+below] = hashNames(names)
	return names, nil
}

func list(files fs.FS, dir string, limit int) ([]string, error) {
	var names []string
	err := fs.WalkDir(files, dir, func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, errors.ErrUnsupported) {
			return &render.Error{Code: render.Unsupported, File: name, Message: "the folder cannot be read", Err: err}
		}
		if err != nil {
			return fmt.Errorf("listing %q: %w", dir, err)
		}
		if !d.IsDir() && (slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name)) || path.Base(name) == "Kustomization") {
			names = append(names, name)
		}
		if len(names) > limit {
			return over(dir, limit, "files")
		}
		return nil
	})
	slices.Sort(names)
	return names, err
}

func hashNames(names []string) string {
	sum := sha256.Sum256([]byte(strings.Join(names, "\x00")))
	return hex.EncodeToString(sum[:])
}

// recorded returns what was asked, sorted by path.
func (t *tree) recorded() []render.Input {
	inputs := make([]render.Input, 0, len(t.inputs))
	for name, hash := range t.inputs {
		inputs = append(inputs, render.Input{Path: name, Hash: hash})
	}
	slices.SortFunc(inputs, func(a, b render.Input) int { return cmp.Compare(a.Path, b.Path) })
	return inputs
}

// values are those that were substituted, sorted by name.
func (t *tree) values() []render.Value {
	values := make([]render.Value, 0, len(t.used))
	for name, value := range t.used {
		values = append(values, render.Value{Name: name, Value: value})
	}
	slices.SortFunc(values, func(a, b render.Value) int { return strings.Compare(a.Name, b.Name) })
	return values
}

// answerPath is what recorded would say today of a path that a build asked for.
func answerPath(files fs.FS, name string, limits Options) (string, error) {
	if dir, listed := strings.CutSuffix(name, below); listed {
		names, err := list(files, dir, limits.Files)
		return hashNames(names), err
	}
	k, err := stat(files, name)
	if err != nil {
		return refusal(err), nil
	}
	switch k {
	case absent:
		return render.Absent, nil
	case folder:
		return render.Folder, nil
	}
	return hashOf(files, name)
}
