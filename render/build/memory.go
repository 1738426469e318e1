package build

import (
	"cmp"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/render"
	"rollcall.dev/rollcall/sync/source"
)

// outcome is what came of a build: what is desired, or the repository's fault.
type outcome struct {
	desired render.Desired
	used    []render.Value
	inputs  []render.Input
	err     error
}

// memory holds outcomes by their keys. A key needs the answers to what a
// build asked, and what it will ask is known from earlier builds of the same
// overlay only: their questions.
type memory struct {
	size      int
	clock     uint64
	outcomes  map[render.Key]*remembered
	questions map[string][]*questions
	stats     Stats

	// content is which commit and folder the outcomes in now are of: of these, what
	// a question is answered with need not be asked for every cluster again.
	content string
	now     map[string]*outcome // by overlay and values
}

type remembered struct {
	out  *outcome
	last uint64 // when it was last of use
}

// questions are the paths and names that a build asked for.
type questions struct {
	names []string
	paths []string
	last  uint64
}

// maxQuestions bounds the questions of one overlay. Clusters of an overlay
// ask the same unless a value of theirs changes which files there are.
const maxQuestions = 64

func newMemory(size int) memory {
	return memory{size: size, outcomes: map[render.Key]*remembered{}, questions: map[string][]*questions{}}
}

func overlayKey(res render.Resolution) string {
	return strings.Join(append([]string{res.Overlay, res.Namespace}, res.Components...), "\x00")
}

// recall finds an outcome whose inputs are what is there now, nil without. What
// makes a build equal to another is then what its key will most likely be made
// of, as far as earlier builds of the overlay tell.
func (r *Renderer) recall(a source.Artifact, res render.Resolution, f clusters.Fleet, c clusters.Cluster) (out *outcome, equal string) {
	equal = overlayKey(res)
	asked, out := r.again(contentOf(a), equal, f, c)
	if out != nil {
		return out, ""
	}
	files := a.Files
	answers := map[string]string{}
	for i, q := range slices.Backward(asked) {
		key, ok := answerAll(files, res, q, answers, r.limits, f, c)
		if !ok {
			continue
		}
		if out := r.lookup(key, q); out != nil {
			r.settle(contentOf(a), equal, out)
			return out, ""
		}
		if i == len(asked)-1 {
			equal += string(key[:])
		}
	}
	return nil, equal
}

// contentOf tells one state of a folder from every other, empty where that is not
// known. A link may lead out of the folder, so that its hash alone does not.
func contentOf(a source.Artifact) string {
	h, ok := a.Files.(hasher)
	if !ok || a.Revision.Commit == "" {
		return ""
	}
	root, err := h.Hash(".")
	if err != nil || root == "" {
		return ""
	}
	return a.Revision.Commit + root
}

// again finds what another cluster of this very content was given, by the values
// of this one; else the questions that are known of the overlay.
func (r *Renderer) again(content, overlay string, f clusters.Fleet, c clusters.Cluster) (asked []*questions, out *outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := &r.memory
	if content != "" && content == m.content {
		for _, q := range slices.Backward(m.questions[overlay]) {
			if key, ok := valuesKey(overlay, q.names, f, c); ok && m.now[key] != nil {
				m.stats.Shared++
				return nil, m.now[key]
			}
		}
	}
	return slices.Clone(m.questions[overlay]), nil
}

// settle notes what a content gives for an overlay and values, unless a path
// could not be read, which may be no fault of the content.
func (r *Renderer) settle(content, overlay string, out *outcome) {
	if content == "" || slices.ContainsFunc(out.inputs, func(in render.Input) bool { return refused(in.Hash) }) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	m := &r.memory
	if m.content != content || len(m.now) >= m.size {
		m.content, m.now = content, map[string]*outcome{}
	}
	key := overlay
	for _, v := range out.used {
		key += "\x00" + v.Name + "\x00" + v.Value
	}
	m.now[key] = out
}

// valuesKey is the key of settle for a cluster, false where a value is lacking.
func valuesKey(overlay string, names []string, f clusters.Fleet, c clusters.Cluster) (string, bool) {
	key := overlay
	for _, name := range names {
		value, ok := render.Lookup(name, c, f.Name)
		if !ok {
			return "", false
		}
		key += "\x00" + name + "\x00" + value
	}
	return key, true
}

func (r *Renderer) lookup(key render.Key, q *questions) *outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.memory.outcomes[key]
	if m == nil {
		return nil
	}
	r.memory.clock++
	r.memory.stats.Shared++
	m.last, q.last = r.memory.clock, r.memory.clock
	return m.out
}

// answerAll answers the questions of an earlier build for this cluster and
// commit. It fails where a name has no value or a path cannot be read, which
// a build then reports.
func answerAll(files fs.FS, res render.Resolution, q *questions, answers map[string]string, limits Options, f clusters.Fleet, c clusters.Cluster) (render.Key, bool) {
	used := make([]render.Value, 0, len(q.names))
	for _, name := range q.names {
		value, defined := render.Lookup(name, c, f.Name)
		if !defined {
			return render.Key{}, false
		}
		used = append(used, render.Value{Name: name, Value: value})
	}
	inputs := make([]render.Input, 0, len(q.paths))
	for _, p := range q.paths {
		if _, known := answers[p]; !known {
			hash, err := answerPath(files, p, limits)
			if err != nil {
				return render.Key{}, false
			}
			answers[p] = hash
		}
		inputs = append(inputs, render.Input{Path: p, Hash: answers[p]})
	}
	return render.KeyOf(res, used, inputs), true
}

// remember keeps an outcome that depends on nothing but its key: not one that
// names its cluster or comes of a failing disk.
func (r *Renderer) remember(content string, res render.Resolution, out *outcome) {
	fault, judged := errors.AsType[*render.Error](out.err)
	keep := out.err == nil || judged && fault.Code != render.UndefinedSubstitution
	if keep {
		defer r.settle(content, overlayKey(res), out)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	m := &r.memory
	m.stats.Built++
	if !keep {
		return
	}
	m.clock++
	m.outcomes[render.KeyOf(res, out.used, out.inputs)] = &remembered{out, m.clock}
	m.ask(overlayKey(res), out)
	m.forget()
}

// ask notes the questions of a build unless they are known.
func (m *memory) ask(overlay string, out *outcome) {
	q := &questions{last: m.clock}
	for _, v := range out.used {
		q.names = append(q.names, v.Name)
	}
	for _, in := range out.inputs {
		q.paths = append(q.paths, in.Path)
	}
	known := m.questions[overlay]
	for _, k := range known {
		if slices.Equal(k.names, q.names) && slices.Equal(k.paths, q.paths) {
			k.last = m.clock
			return
		}
	}
	if len(known) >= maxQuestions {
		oldest := slices.MinFunc(known, func(a, b *questions) int { return cmp.Compare(a.last, b.last) })
		known = slices.DeleteFunc(slices.Clone(known), func(k *questions) bool { return k == oldest })
	}
	m.questions[overlay] = append(known, q)
}

// forget drops the outcomes longest of no use, a quarter at a time.
func (m *memory) forget() {
	if len(m.outcomes) <= m.size {
		return
	}
	var ages []uint64
	for _, o := range m.outcomes {
		ages = append(ages, o.last)
	}
	slices.Sort(ages)
	limit := ages[len(ages)/4]
	for key, o := range m.outcomes {
		if o.last <= limit {
			delete(m.outcomes, key)
		}
	}
}
