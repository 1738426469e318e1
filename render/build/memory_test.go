package build

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync/atomic"
	"testing"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/sync/source"
)

// failing is a commit of which one path cannot be looked at for a while.
type failing struct {
	committed
	name   string
	broken *atomic.Bool
}

func (f failing) Stat(name string) (fs.FileInfo, error) {
	if name == f.name && f.broken.Load() {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: errors.New("too many open files")}
	}
	return f.committed.Stat(name)
}

// A disk that failed once does not fail a commit for good.
func TestDiskThatHeals(t *testing.T) {
	f := failing{commit(sharing("agent:1")), "base/ds.yaml", &atomic.Bool{}}
	f.broken.Store(true)
	r := New(Options{})
	defer r.Close()
	a := source.Artifact{Files: f}
	a.Revision.Commit = "c1"
	render := func() error {
		_, err := r.Render(t.Context(), a, fleetOf("base"), clusters.Cluster{Name: "a"})
		return err
	}
	for range 2 {
		if err := render(); err == nil || !strings.Contains(err.Error(), "too many open files") {
			t.Fatalf("want the fault of the disk, got %v", err)
		}
	}
	f.broken.Store(false)
	if err := render(); err != nil {
		t.Errorf("the disk is well again: %v", err)
	}
}

// A cluster is never told of the target of another.
func TestSharedBetweenTargets(t *testing.T) {
	files := commit(sharing("agent:1"))
	files.MapFS["base/ds.yaml"].Data = []byte(strings.Replace(daemonSet, ", namespace: ns", "", 1))
	for _, overlay := range []string{"base", "absent"} {
		r := New(Options{})
		defer r.Close()
		a := source.Artifact{Files: files}
		a.Revision.Commit = "c1"
		for _, name := range []string{"one", "two"} {
			f := clusters.Fleet{Name: "fleet", Targets: []clusters.Target{{Name: name, Overlay: overlay}}}
			d, err := r.Render(t.Context(), a, f, clusters.Cluster{Name: name})
			if said := fmt.Sprint(d.Warnings, err); name == "two" && strings.Contains(said, "one") {
				t.Errorf("%s: cluster two is told %s", overlay, said)
			}
		}
	}
}
