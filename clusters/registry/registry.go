// Package registry finds the clusters of a fleet: in a folder of Cluster files,
// in the contexts of kubeconfigs and in the Secrets of a hub. It contacts none
// of them and does not know what is done with them.
package registry

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rollcall.dev/rollcall/clusters"
)

// maxFile is beyond what clusters accepts, so that it is the one to refuse.
const maxFile = 16 << 20

// Broken is a cluster that is declared, but not so that it can be used. It
// concerns that cluster only; the others can be reported.
type Broken struct {
	Name string // as declared, else the file's without its extension
	File string // or the Secret that declares it
	Err  error  // every fault, each with its file and line
}

// Load returns the clusters that the Cluster files in a folder declare, sorted
// by name: those that can be used and those that cannot. Folders in it and
// files that start with a dot are left out. An error means that there is no
// list of clusters at all.
func Load(dir string, defaults clusters.Policy) (ok []clusters.Cluster, broken []Broken, err error) {
	return load(dir, defaults, clusters.ParseCluster)
}

// Members is Load for a fleet with a hub: a Cluster file may leave to a Secret
// how its cluster is reached.
func Members(dir string, defaults clusters.Policy) (ok []clusters.Cluster, broken []Broken, err error) {
	return load(dir, defaults, clusters.ParseMember)
}

type parser func(file string, data []byte, defaults clusters.Policy) (clusters.Cluster, error)

func load(dir string, defaults clusters.Policy, parse parser) (ok []clusters.Cluster, broken []Broken, err error) {
	files, err := list(dir)
	if err != nil {
		return nil, nil, err
	}
	byName := map[string][]declared{}
	for _, file := range files {
		d := read(file, defaults, parse)
		byName[d.cluster.Name] = append(byName[d.cluster.Name], d)
	}
	for name, all := range byName {
		if cl, err := only(all); err != nil {
			broken = append(broken, Broken{Name: name, File: all[0].cluster.File, Err: err})
		} else {
			ok = append(ok, cl)
		}
	}
	slices.SortFunc(ok, func(a, b clusters.Cluster) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(broken, func(a, b Broken) int { return strings.Compare(a.Name, b.Name) })
	return ok, broken, nil
}

// list returns the Cluster files of a folder in the order of their names.
func list(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading clusters from %q: there is no such folder: create it with one Cluster file for each cluster, or name another in spec.clusters.directory", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("reading clusters from %q: %w", dir, bare(err))
	}
	var files []string
	for _, e := range entries {
		ext := filepath.Ext(e.Name())
		if strings.HasPrefix(e.Name(), ".") || ext != ".yaml" && ext != ".yml" || isFolder(filepath.Join(dir, e.Name())) {
			continue
		}
		files = append(files, filepath.Join(dir, e.Name()))
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("reading clusters from %q: no .yaml file is in it: write one with kind: Cluster for each cluster", dir)
	}
	return files, nil
}

func isFolder(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.IsDir()
}

// declared is what one file says: a cluster, of which only name and file are
// set beside an error.
type declared struct {
	cluster clusters.Cluster
	err     error
}

func read(file string, defaults clusters.Policy, parse parser) declared {
	data, err := content(file)
	if err != nil {
		return declared{clusters.Cluster{Name: stem(file), File: file}, err}
	}
	cl, err := parse(file, data, defaults)
	if cl.Name == "" {
		cl.Name = stem(file)
	}
	if err != nil {
		return declared{cl, err}
	}
	dir := filepath.Dir(file)
	if cl.Kubeconfig != nil {
		cl.Kubeconfig.Paths = Relative(dir, cl.Kubeconfig.Paths)
	}
	cl.Recorded = Relative(dir, cl.Recorded)
	cl.RecordedAuth.TokenFile = beside(dir, cl.RecordedAuth.TokenFile)
	cl.RecordedAuth.CAFile = beside(dir, cl.RecordedAuth.CAFile)
	return declared{cl, nil}
}

func content(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", file, bare(err))
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("reading %q: it is not a regular file", file)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", file, bare(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", file, bare(err))
	}
	return data, nil
}

// bare drops the path that the file system's errors repeat.
func bare(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

func stem(file string) string {
	base := filepath.Base(file)
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// Relative joins paths to the folder of the file that holds them. One that
// starts with ~/ is in the home folder, as a shell would have it; a URL stays.
func Relative(dir string, paths []string) []string {
	var all []string
	for _, p := range paths {
		if rest, ok := strings.CutPrefix(p, "~/"); ok {
			if home, err := os.UserHomeDir(); err == nil {
				p = filepath.Join(home, rest)
			}
		}
		if !filepath.IsAbs(p) && !strings.Contains(p, "://") {
			p = filepath.Join(dir, p)
		}
		all = append(all, p)
	}
	return all
}

func beside(dir, path string) string {
	if path == "" {
		return ""
	}
	return Relative(dir, []string{path})[0]
}

// only returns the cluster that one file alone declares. Of two of one name
// neither is used, for nothing tells which is meant.
func only(all []declared) (clusters.Cluster, error) {
	var errs []error
	if len(all) > 1 {
		var files []string
		for _, d := range all {
			files = append(files, fmt.Sprintf("%q", d.cluster.File))
		}
		errs = append(errs, fmt.Errorf("cluster %q is declared in %s: rename all but one", all[0].cluster.Name, strings.Join(files, " and ")))
	}
	for _, d := range all {
		errs = append(errs, d.err)
	}
	return all[0].cluster, errors.Join(errs...)
}
