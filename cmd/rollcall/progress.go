package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/term"

	"rollcall.dev/rollcall/controller/report"
)

// progress shows on a terminal which clusters are still awaited.
type progress struct {
	mu      sync.Mutex
	w       io.Writer // nil: silent
	total   int
	done    int
	waiting []string
}

func newProgress(s streams, total int) *progress {
	p := &progress{total: total}
	if isTerminal(s.err) && os.Getenv("CI") == "" {
		p.w = s.err
	}
	return p
}

// Begin is told that a cluster is being looked at.
func (p *progress) Begin(cluster string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = append(p.waiting, cluster)
	p.draw()
}

// Done is told that a cluster has been looked at.
func (p *progress) Done(cluster string, _ report.Cluster) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	p.waiting = slices.DeleteFunc(p.waiting, func(c string) bool { return c == cluster })
	p.draw()
}

func (p *progress) draw() {
	if p.w == nil {
		return
	}
	text := fmt.Sprintf("%d of %d clusters; waiting for %s", p.done, p.total, strings.Join(p.waiting[:min(3, len(p.waiting))], ", "))
	if more := len(p.waiting) - 3; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if p.done == p.total {
		text = ""
	}
	width := 80
	if f, ok := p.w.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 { // some terminals have no size
			width = w
		}
	}
	shown := []rune(report.Printable(text))
	fmt.Fprintf(p.w, "\r\x1b[K%s", string(shown[:min(len(shown), width-1)]))
}
