package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A report takes the place of a file as a whole and keeps its mode; what is no
// regular file is written through and stays what it is.
func TestReplace(t *testing.T) {
	dir := t.TempDir()
	plain, kept, link, pipe := filepath.Join(dir, "plain"), filepath.Join(dir, "kept"), filepath.Join(dir, "link"), filepath.Join(dir, "pipe")
	if err := os.WriteFile(kept, []byte("old and longer"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("target", link); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	read := make(chan string, 1)
	go func() {
		data, err := os.ReadFile(pipe)
		if err != nil {
			data = []byte(err.Error())
		}
		read <- string(data)
	}()
	old := syscall.Umask(0o027)
	defer syscall.Umask(old)
	for _, file := range []string{plain, kept, link, pipe} {
		if err := replace(file, []byte("new")); err != nil {
			t.Fatal(err)
		}
	}
	if got := <-read; got != "new" {
		t.Errorf("the pipe got %q", got)
	}
	for file, want := range map[string]fs.FileMode{plain: 0o640, kept: 0o600, link: fs.ModeSymlink, pipe: fs.ModeNamedPipe | 0o600} {
		info, err := os.Lstat(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode(); got.Type() != want.Type() || want.Perm() != 0 && got.Perm() != want.Perm() {
			t.Errorf("%s has mode %v, want %v", filepath.Base(file), got, want)
		}
	}
	for _, file := range []string{plain, kept, filepath.Join(dir, "target")} {
		if data, err := os.ReadFile(file); err != nil || string(data) != "new" {
			t.Errorf("%s holds %q, %v", filepath.Base(file), data, err)
		}
	}
	if err := replace(dir, []byte("new")); err == nil {
		t.Error("a folder was replaced")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 5 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}
