package build

import (
	"bufio"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	"rollcall.dev/rollcall/clusters"
)

// ChildCommand is the hidden first argument with which our own binary is
// started to build overlays. main hands what follows to Child.
const ChildCommand = "__render"

// exitSlow is how a child ends that was not killed when its time was over.
const exitSlow = 124

// Child builds what its parent orders until its input ends. What kustomize or a
// YAML library dies of ends this process and not rollcall: memory that runs out
// and an overflown stack cannot be recovered from.
func Child(in io.Reader, out io.Writer) int {
	w := bufio.NewWriter(out)
	c := &conversation{in: gob.NewDecoder(bufio.NewReader(in)), buffer: w, out: gob.NewEncoder(w)}
	kept := &keep{contents: map[string][]byte{}}
	for limited := false; ; {
		var o order
		if err := c.in.Decode(&o); err != nil || o.Job == nil {
			return 0 // the parent is done, or gone
		}
		if !limited {
			limitMemory(o.Job.Limits.Memory)
			limited = true
		}
		// A parent that died cannot end a build that asks it for nothing.
		orphan := time.AfterFunc(o.Job.Limits.Duration+time.Second, func() { os.Exit(exitSlow) })
		d := c.build(o.Job, kept)
		orphan.Stop()
		if err := c.say(reply{Done: d}); err != nil {
			return 1
		}
	}
}

// limitMemory lets the collector rest while there is room, since a build is short
// and leaves little, and work hard before the kernel refuses memory.
func limitMemory(bytes int64) {
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(bytes / 4 * 3)
	limitData(uint64(bytes))
}

// conversation is a child's side of the pipes.
type conversation struct {
	in     *gob.Decoder
	buffer *bufio.Writer
	out    *gob.Encoder
}

func (c *conversation) say(r reply) error {
	if err := c.out.Encode(r); err != nil {
		return err
	}
	return c.buffer.Flush()
}

func (c *conversation) ask(a ask) (*answer, error) {
	if err := c.say(reply{Ask: &a}); err != nil {
		return nil, fmt.Errorf("asking for %q: %w", a.Name, err)
	}
	var o order
	if err := c.in.Decode(&o); err != nil {
		return nil, fmt.Errorf("asking for %q: %w", a.Name, err)
	}
	if o.Answer == nil {
		return nil, errors.New("the parent gave no answer")
	}
	return o.Answer, nil
}

func (c *conversation) build(j *job, kept *keep) *delivery {
	files := &remote{ask: c.ask, stats: map[string]*answer{}, kept: kept}
	t := newTree(context.Background(), files, clusters.Fleet{Name: j.Fleet}, j.cluster(), j.Limits)
	for _, v := range j.Resolution.Used {
		t.used[v.Name] = v.Value
	}
	r, err := build(t, j.Resolution, false)
	d := deliver(r, t, err)
	d.Schema = t.schema
	return d
}
