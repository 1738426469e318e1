package build

import (
	"bufio"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"

	"rollcall.dev/rollcall/render"
)

const (
	// maxJobs is after how many builds a child is replaced, so that what a
	// library leaks does not stay.
	maxJobs = 1000

	// maxTalk is how much one build may send: its questions and its objects.
	maxTalk = 256 << 20

	// maxSaid is how much of what a child writes before it dies is kept.
	maxSaid = 64 << 10
)

// pool runs builds in children, which it starts when they are needed and keeps.
type pool struct {
	program string
	slots   chan struct{}

	mu   sync.Mutex
	idle []*child

	looks sync.WaitGroup // at files, for children
}

func newPool(program string, size int) *pool {
	return &pool{program: program, slots: make(chan struct{}, size)}
}

// run has one build made. Its error is that there is no outcome.
func (p *pool) run(ctx context.Context, files fs.FS, j *job) (*delivery, error) {
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	for {
		c, err := p.take()
		if err != nil {
			return nil, fmt.Errorf("starting a process to build in: %w", err)
		}
		d, err := p.try(ctx, c, files, j)
		if !errors.Is(err, errDied) || c.jobs == 1 {
			return d, err
		}
		// It may have been what earlier builds left behind: try a new one.
	}
}

// try has a child build, and keeps the child if it can build again.
func (p *pool) try(ctx context.Context, c *child, files fs.FS, j *job) (*delivery, error) {
	limited, cancel := context.WithTimeoutCause(ctx, j.Limits.Duration, slow(j))
	defer cancel()
	d, err := c.do(limited, files, j)
	if err == nil && !d.Schema && !c.killed && c.jobs < maxJobs {
		p.put(c)
		return d, nil
	}
	said := c.end()
	switch {
	case err == nil:
		return d, nil
	case limited.Err() != nil:
		return nil, context.Cause(limited)
	case errors.Is(err, errTalk):
		return nil, over(j.Resolution.Overlay, maxTalk, "bytes that a build may render to")
	}
	return nil, died(j, said)
}

// errDied is what a child's end is recognised by.
var errDied = errors.New("the process that built it ended")

// slow is why a build is ended that takes too long.
func slow(j *job) error {
	return &render.Error{Code: render.OverBudget, File: j.Resolution.Overlay, Message: fmt.Sprintf("the build took longer than the %s allowed: split the overlay", j.Limits.Duration)}
}

// died words what ended a child. What it wrote may hold content and is only
// looked at for the words of Go's runtime.
func died(j *job, said string) error {
	e := &render.Error{Code: render.OverBudget, File: j.Resolution.Overlay, Err: errDied}
	switch {
	case strings.Contains(said, "out of memory"), strings.Contains(said, "cannot allocate memory"), strings.Contains(said, "failed to allocate"):
		e.Message = fmt.Sprintf("the build needs more than the %d MiB of memory allowed: split the overlay", j.Limits.Memory>>20)
	case strings.Contains(said, "stack overflow"), strings.Contains(said, "goroutine stack exceeds"):
		e.Message = "the build ran into itself without end: look for what refers to itself"
	default:
		e.Code, e.Message = render.InvalidManifest, "kustomize ended its process on it: render it with kustomize and simplify what fails"
	}
	return e
}

func (p *pool) take() (*child, error) {
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		c := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return c, nil
	}
	p.mu.Unlock()
	return start(p.program, &p.looks)
}

func (p *pool) put(c *child) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, c)
}

// close ends the children that are idle and waits for them.
func (p *pool) close() {
	p.mu.Lock()
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	for _, c := range idle {
		c.end()
	}
	p.looks.Wait()
}

// child is a process that builds, and its pipes.
type child struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *gob.Encoder
	flow *flow
	said *said
	from *gob.Decoder
	jobs int

	looks  *sync.WaitGroup
	killed bool // or about to be, though it delivered
}

func start(program string, looks *sync.WaitGroup) (*child, error) {
	if program == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		program = self
	}
	c := &child{cmd: exec.Command(program, ChildCommand), said: &said{}, looks: looks}
	c.cmd.Stderr = c.said
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}                              // an interrupt at the terminal is for us
	c.cmd.Env = []string{"PATH=/nonexistent", "HOME=/nonexistent", "GOTRACEBACK=single"} // it has no need of ours, nor of any program
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	c.flow = &flow{r: out}
	c.out, c.from = gob.NewEncoder(c.in), gob.NewDecoder(bufio.NewReader(c.flow))
	return c, nil
}

// do has the child build and answers its questions. The child is killed when
// ctx ends, whatever it is doing.
func (c *child) do(ctx context.Context, files fs.FS, j *job) (*delivery, error) {
	c.jobs++
	c.flow.left = maxTalk
	spare := context.AfterFunc(ctx, func() { _ = c.cmd.Process.Kill() })
	defer func() { c.killed = !spare() }()
	if err := c.out.Encode(order{Job: j}); err != nil {
		return nil, err
	}
	for {
		var r reply
		if err := c.from.Decode(&r); err != nil {
			return nil, err
		}
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case r.Done != nil:
			return r.Done, nil
		case r.Ask == nil:
			return nil, errors.New("the child says nothing")
		}
		a, err := c.look(ctx, files, r.Ask)
		if err != nil {
			return nil, err
		}
		if err := c.out.Encode(order{Answer: a}); err != nil {
			return nil, err
		}
	}
}

// look answers a child, but waits no longer than ctx for a disk that hangs.
func (c *child) look(ctx context.Context, files fs.FS, a *ask) (*answer, error) {
	done := make(chan *answer, 1)
	c.looks.Go(func() { done <- a.answerTo(files) })
	select {
	case a := <-done:
		return a, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// end ends the child, waits for it and returns what it wrote to its standard
// error.
func (c *child) end() string {
	_ = c.in.Close()
	_ = c.cmd.Process.Kill() // it may have ended by itself
	_ = c.cmd.Wait()
	return c.said.text()
}

// errTalk ends a build that sends too much.
var errTalk = errors.New("the build sends too much")

// flow bounds what a child sends.
type flow struct {
	r    io.Reader
	left int
}

func (f *flow) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if f.left -= n; f.left < 0 {
		return 0, errTalk
	}
	return n, err
}

// said keeps the beginning of what a child writes, where Go's runtime says what
// it died of.
type said struct {
	mu   sync.Mutex
	head []byte
}

// Write keeps what there is room for.
func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if room := maxSaid - len(s.head); room > 0 {
		s.head = append(s.head, p[:min(room, len(p))]...)
	}
	return len(p), nil
}

func (s *said) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.head)
}
