package recorded

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	stdinName = "-"
	sniffed   = 4096 // bytes that tell a file's form
)

// extensions of the files that are read of a folder.
var extensions = []string{".json", ".yaml", ".yml", ".gz"}

// expand replaces folders by the dump files below them, sorted by name.
func expand(files []string) ([]string, error) {
	if len(files) == 0 {
		return nil, errors.New("no dump file is given")
	}
	var all []string
	for _, name := range files {
		info, err := os.Stat(name)
		switch {
		case name == stdinName:
			all = append(all, name)
		case err != nil:
			return nil, fmt.Errorf("reading %q: %w", name, bare(err))
		case !info.IsDir():
			all = append(all, name)
		default:
			below, err := walk(name)
			if err != nil {
				return nil, err
			}
			all = append(all, below...)
		}
	}
	return all, nil
}

func walk(dir string) ([]string, error) {
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, fmt.Errorf("reading folder %q: %w", dir, bare(err))
	}
	var all []string
	err = filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name != root && strings.HasPrefix(e.Name(), "."):
			if e.IsDir() {
				return fs.SkipDir
			}
		case !e.IsDir() && slices.Contains(extensions, filepath.Ext(name)):
			rel, err := filepath.Rel(root, name)
			if err != nil {
				return err
			}
			all = append(all, filepath.Join(dir, rel))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading folder %q: %w", dir, err)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("reading folder %q: there is no .json, .yaml, .yml or .gz file below it", dir)
	}
	return all, nil
}

// bare drops the path that the file system's errors repeat.
func bare(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// file collects the objects of one file.
func (c *collector) file(ctx context.Context, stdin io.Reader, name string) error {
	var in io.Reader
	switch {
	case name != stdinName:
		f, err := os.Open(name)
		if err != nil {
			return fmt.Errorf("reading %q: %w", name, bare(err))
		}
		defer f.Close()
		in = checked{ctx, f}
		if info, err := f.Stat(); err == nil && !info.Mode().IsRegular() {
			in = cancelable{ctx, f} // <(kubectl get …) of a shell
		}
	case stdin == nil:
		return fmt.Errorf("reading %q: there is no standard input", name)
	default:
		in = cancelable{ctx, stdin}
	}
	c.reading = name
	if err := c.stream(in); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return fmt.Errorf("reading %q: %w", name, bare(err))
	}
	return nil
}

// stream collects the objects of a reader, whatever their form.
func (c *collector) stream(in io.Reader) error {
	r := bufio.NewReaderSize(in, 1<<16)
	if magic, _ := r.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		unzipped, err := gzip.NewReader(r)
		if err != nil {
			return fmt.Errorf("unzipping: %w", err)
		}
		in = unpacked(unzipped)
	} else {
		in = r
	}
	r = bufio.NewReaderSize(&text{in: in}, 1<<16)
	head, err := r.Peek(sniffed)
	if bom := []byte("\xef\xbb\xbf"); bytes.HasPrefix(head, bom) {
		if _, err := r.Discard(len(bom)); err != nil {
			return err
		}
		head = head[len(bom):]
	}
	if err := foreign(head); err != nil {
		return err
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return explain(err)
	}
	switch start := bytes.TrimSpace(head); {
	case len(start) == 0 && len(head) < sniffed-3:
		c.empty = append(c.empty, c.reading)
		return nil
	case bytes.HasPrefix(start, []byte("{")):
		return c.json(r)
	default:
		return c.yaml(r)
	}
}

// foreign tells what a file is that is no dump: what shells, proxies and
// kubectl itself leave where one was expected.
func foreign(head []byte) error {
	start := bytes.TrimSpace(head)
	switch {
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}), bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		return errors.New("at byte 0: the text is UTF-16, as PowerShell's > writes it: record it with | Out-File -Encoding utf8")
	case bytes.HasPrefix(start, []byte("<")):
		return fmt.Errorf("line %d: it is HTML or XML, not what kubectl get -o json prints: a proxy or a login page may have answered", lineOf(head, start))
	case bytes.HasPrefix(start, []byte("[")):
		return fmt.Errorf("line %d: it is a bare list, not what kubectl get -o json prints", lineOf(head, start))
	}
	for _, words := range []string{"Error from server", "error: ", "The connection to the server", "Unable to connect to the server"} {
		if bytes.HasPrefix(start, []byte(words)) {
			first, _, _ := bytes.Cut(start, []byte("\n"))
			const long = 200
			return fmt.Errorf("line %d: it is kubectl's error message, not a dump: %s", lineOf(head, start), strconv.QuoteToGraphic(string(first[:min(len(first), long)])))
		}
	}
	return nil
}

// lineOf returns the line on which the text starts.
func lineOf(head, start []byte) int {
	return 1 + bytes.Count(head[:bytes.Index(head, start)], []byte("\n"))
}

var errNUL = errors.New("there is a NUL byte: the file is damaged or no text")

// text reads up to a NUL byte, which no dump has.
type text struct {
	in     io.Reader
	offset int
}

func (t *text) Read(p []byte) (int, error) {
	n, err := t.in.Read(p)
	if i := bytes.IndexByte(p[:n], 0); i >= 0 {
		n, err = i, fmt.Errorf("at byte %d: %w", t.offset+i, errNUL)
	}
	t.offset += n
	return n, err
}

// explain words how a file ends that was not written to its end.
func explain(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it ends in the middle: record it again")
	}
	return err
}

// cancelable ends the reads of a terminal or a pipe when its context does. A
// read that waits is left behind then, for nothing can interrupt it.
type cancelable struct {
	ctx context.Context
	in  io.Reader
}

type result struct {
	data []byte
	err  error
}

func (c cancelable) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	done := make(chan result, 1)
	go func() {
		own := make([]byte, len(p))
		n, err := c.in.Read(own)
		done <- result{own[:n], err}
	}()
	select {
	case <-c.ctx.Done():
		return 0, c.ctx.Err()
	case r := <-done:
		return copy(p, r.data), r.err
	}
}

// checked ends the reads of a file between two of them.
type checked struct {
	ctx context.Context
	in  io.Reader
}

func (c checked) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.in.Read(p)
}
