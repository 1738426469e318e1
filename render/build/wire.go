package build

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/render"
)

// What parent and child say to each other, as a stream of gob values in each
// direction: the parent orders a build, the child asks for paths, the parent
// answers, and at last the child delivers. Of a cluster the child gets the name
// and the labels, which is all that a build may depend on.
type (
	order struct {
		Job    *job
		Answer *answer
	}

	job struct {
		Resolution render.Resolution
		Cluster    string
		Labels     map[string]string
		Fleet      string
		Limits     Options
	}

	reply struct {
		Ask  *ask
		Done *delivery
	}

	ask struct {
		What int
		Name string
	}

	answer struct {
		Dir, Regular bool
		Size         int64
		Hash         string
		Content      []byte
		Entries      []string // of a folder; one that ends in a slash is a folder
		Fault        int
		Text         string // of a fault
	}

	delivery struct {
		Objects  []byte // a JSON list
		Warnings []fault
		Origins  map[string]render.Origin
		Used     []render.Value
		Inputs   []render.Input
		Fault    *fault
		Schema   bool // kustomize's schema was changed: the child must not build again
	}

	// fault is a render.Error, or with an empty Code another error.
	fault struct{ Code, File, Field, Message, Cause string }
)

// What a child asks for.
const (
	askStat = iota // with the hash of a file
	askRead
	askList
)

// What may be wrong with a path.
const (
	noFault = iota
	faultAbsent
	faultUnsupported
	faultOther
)

func faultOf(err error) *fault {
	if err == nil {
		return nil
	}
	e, ok := errors.AsType[*render.Error](err)
	if !ok {
		return &fault{Message: err.Error()}
	}
	f := &fault{Code: e.Code, File: e.File, Field: e.Field, Message: e.Message}
	if e.Err != nil {
		f.Cause = e.Err.Error()
	}
	return f
}

func (f *fault) err() error {
	if f == nil {
		return nil
	}
	if f.Code == "" {
		return errors.New(f.Message)
	}
	e := &render.Error{Code: f.Code, File: f.File, Field: f.Field, Message: f.Message}
	if f.Cause != "" {
		e.Err = errors.New(f.Cause)
	}
	return e
}

// deliver packs what came of a build.
func deliver(r rendered, t *tree, err error) *delivery {
	d := &delivery{Inputs: t.recorded(), Used: t.values(), Origins: r.origins, Fault: faultOf(err)}
	for i := range r.warnings {
		d.Warnings = append(d.Warnings, *faultOf(&r.warnings[i]))
	}
	if err != nil {
		return d
	}
	list := make([]map[string]any, len(r.objects))
	for i := range r.objects {
		list[i] = r.objects[i].Object
	}
	if d.Objects, err = json.Marshal(list); err != nil {
		d.Fault = faultOf(fmt.Errorf("packing what was rendered: %w", err))
	}
	return d
}

// outcome finishes what a child delivered.
func (d *delivery) outcome(res render.Resolution) *outcome {
	out := &outcome{used: d.Used, inputs: d.Inputs, err: d.Fault.err()}
	if out.err != nil {
		return out
	}
	var list []map[string]any
	if err := utiljson.Unmarshal(d.Objects, &list); err != nil {
		out.err = fmt.Errorf("reading what was rendered: %w", err)
		return out
	}
	r := rendered{objects: make([]unstructured.Unstructured, len(list)), origins: d.Origins}
	for i := range list {
		r.objects[i].Object = list[i]
	}
	for i := range d.Warnings {
		f := d.Warnings[i]
		r.warnings = append(r.warnings, render.Error{Code: f.Code, File: f.File, Field: f.Field, Message: f.Message})
	}
	out.desired, out.err = finish(res, r)
	return out
}

// answerTo answers what a child asks of a commit's files.
func (a *ask) answerTo(files fs.FS) *answer {
	out := &answer{}
	var err error
	switch a.What {
	case askRead:
		out.Content, err = fs.ReadFile(files, a.Name)
	case askList:
		var entries []fs.DirEntry
		entries, err = fs.ReadDir(files, a.Name)
		for _, e := range entries {
			name := e.Name()
			if e.IsDir() {
				name += "/"
			}
			out.Entries = append(out.Entries, name)
		}
	default:
		err = out.stat(files, a.Name)
	}
	switch {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist):
		out.Fault = faultAbsent
	case errors.Is(err, errors.ErrUnsupported):
		out.Fault = faultUnsupported
	default:
		out.Fault = faultOther
	}
	if err != nil {
		out.Text = err.Error()
	}
	return out
}

func (out *answer) stat(files fs.FS, name string) error {
	info, err := fs.Stat(files, name)
	if err != nil {
		return err
	}
	out.Dir, out.Regular, out.Size = info.IsDir(), info.Mode().IsRegular(), info.Size()
	if out.Regular && out.Size <= render.MaxFileBytes {
		out.Hash, err = hashOf(files, name)
	}
	return err
}

// foreign is an error of the parent's file system.
type foreign struct {
	fault int
	text  string
}

func (f *foreign) Error() string { return f.text }

// Is keeps what callers tell apart.
func (f *foreign) Is(target error) bool {
	return target == fs.ErrNotExist && f.fault == faultAbsent || target == errors.ErrUnsupported && f.fault == faultUnsupported
}

// remote is a commit's files as a child sees them: it asks its parent.
type remote struct {
	ask   func(ask) (*answer, error)
	stats map[string]*answer
	kept  *keep
}

// keep holds the contents of files from build to build, by their hashes.
type keep struct {
	contents map[string][]byte
	size     int
}

// maxKept bounds the contents that a child keeps.
const maxKept = 16 << 20

func (r *remote) get(what int, name string) (*answer, error) {
	a, err := r.ask(ask{What: what, Name: name})
	if err == nil && a.Fault != noFault {
		err = &foreign{a.Fault, a.Text}
	}
	return a, err
}

// Stat asks what is at a path, once.
func (r *remote) Stat(name string) (fs.FileInfo, error) {
	a, known := r.stats[name]
	if !known {
		var err error
		if a, err = r.get(askStat, name); a == nil {
			return nil, err
		}
		r.stats[name] = a
	}
	if a.Fault != noFault {
		return nil, &foreign{a.Fault, a.Text}
	}
	return info{name, a}, nil
}

// Hash is what Stat learnt.
func (r *remote) Hash(name string) (string, error) {
	if _, err := r.Stat(name); err != nil {
		return "", err
	}
	return r.stats[name].Hash, nil
}

// ReadFile asks for a file's content, unless an earlier build had it.
func (r *remote) ReadFile(name string) ([]byte, error) {
	hash, err := r.Hash(name)
	if err != nil {
		return nil, err
	}
	if content, ok := r.kept.contents[hash]; ok {
		return content, nil
	}
	a, err := r.get(askRead, name)
	if err != nil {
		return nil, err
	}
	if r.kept.size += len(a.Content); r.kept.size > maxKept {
		clear(r.kept.contents)
		r.kept.size = len(a.Content)
	}
	r.kept.contents[hash] = a.Content
	return a.Content, nil
}

// ReadDir asks for the entries of a folder.
func (r *remote) ReadDir(name string) ([]fs.DirEntry, error) {
	a, err := r.get(askList, name)
	if err != nil {
		return nil, err
	}
	entries := make([]fs.DirEntry, len(a.Entries))
	for i, e := range a.Entries {
		dir := e[len(e)-1] == '/'
		if dir {
			e = e[:len(e)-1]
		}
		entries[i] = fs.FileInfoToDirEntry(info{e, &answer{Dir: dir, Regular: !dir}})
	}
	return entries, nil
}

// Open refuses; a build reads whole files.
func (*remote) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: errReadOnly}
}

// info describes a path of the parent's.
type info struct {
	name string
	at   *answer
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.at.Size }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.at.Dir }
func (i info) Sys() any           { return nil }

func (i info) Mode() fs.FileMode {
	switch {
	case i.at.Dir:
		return fs.ModeDir | 0o555
	case i.at.Regular:
		return 0o444
	}
	return fs.ModeIrregular
}

func (j *job) cluster() clusters.Cluster {
	return clusters.Cluster{Name: j.Cluster, Labels: j.Labels}
}
