package render

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// The budgets of one file.
const (
	MaxFileBytes = 8 << 20
	MaxFileNodes = 200_000 // with aliases expanded
	MaxFileDepth = 100

	// maxMarks bounds the memory that parsing takes before nodes can be
	// counted: every node costs at least one of these marks in the text.
	maxMarks = 3 * MaxFileNodes
)

// Parsed is a YAML or JSON file that passed the scan.
type Parsed struct {
	Docs  []*yaml.Node
	Nodes int // with aliases expanded
}

// Scan refuses a YAML or JSON file that is too big, too deep or ambiguous,
// before anything expands its aliases: kustomize and most YAML libraries die
// of a few hundred bytes otherwise.
func Scan(file string, data []byte) error {
	_, err := Parse(file, data)
	return err
}

// Parse scans a file and returns its documents, aliases unexpanded.
func Parse(file string, data []byte) (Parsed, error) {
	if err := ScanText(file, data); err != nil {
		return Parsed{}, err
	}
	if at := falseSeparator(data); at >= 0 {
		return Parsed{}, &Error{Code: InvalidManifest, File: file, Field: lineOf(data, at), Message: "kustomize ends a document here and YAML does not: write --- alone, or a blank after it"}
	}
	if n := marks(data); n > maxMarks {
		return Parsed{}, &Error{Code: OverBudget, File: file, Message: fmt.Sprintf("more than %d YAML nodes: split the file", MaxFileNodes)}
	}
	s := scanner{file: file, seen: map[*yaml.Node]size{}}
	var p Parsed
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var doc yaml.Node
		err := decoder.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return p, nil
		}
		if err != nil {
			return Parsed{}, syntax(file, err)
		}
		sz, err := s.node(&doc, 0)
		if err != nil {
			return Parsed{}, err
		}
		if p.Nodes += sz.nodes; p.Nodes > MaxFileNodes {
			return Parsed{}, s.tooMany(&doc)
		}
		p.Docs = append(p.Docs, &doc)
	}
}

// ScanText refuses what no text file of a repository should be: too big,
// unresolved, or not there at all because only Git LFS knows it.
func ScanText(file string, data []byte) error {
	invalid := func(field, message string) error {
		return &Error{Code: InvalidManifest, File: file, Field: field, Message: message}
	}
	switch {
	case len(data) > MaxFileBytes:
		return &Error{Code: OverBudget, File: file, Message: fmt.Sprintf("%d bytes are more than the %d allowed in a file: split it", len(data), MaxFileBytes)}
	case IsLFSPointer(data):
		return invalid("", "the file is a Git LFS pointer, its content is not in the repository: store manifests without LFS")
	case bytes.HasPrefix(data, []byte("\xff\xfe")), bytes.HasPrefix(data, []byte("\xfe\xff")):
		return invalid("", "the file is in UTF-16: save it as UTF-8")
	}
	if at := bytes.IndexByte(data, 0); at >= 0 {
		return invalid(lineOf(data, at), "the file holds a NUL byte: it is binary or in UTF-16; save it as UTF-8 text")
	}
	if at := invalidUTF8(data); at >= 0 {
		return invalid(lineOf(data, at), "the file is not valid UTF-8: save it as UTF-8")
	}
	if at := conflict(data); at >= 0 {
		return invalid(lineOf(data, at), "the file holds a Git conflict marker: resolve the merge")
	}
	return nil
}

// IsLFSPointer tells whether a file only stands for one kept by Git LFS.
func IsLFSPointer(data []byte) bool {
	return bytes.HasPrefix(data, []byte("version https://git-lfs.github.com/spec/"))
}

func invalidUTF8(data []byte) int {
	if utf8.Valid(data) {
		return -1
	}
	for at := 0; at < len(data); {
		r, n := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && n == 1 {
			return at
		}
		at += n
	}
	return -1
}

// conflict finds a line that Git writes into a file it could not merge.
func conflict(data []byte) int {
	for _, mark := range []string{"<<<<<<< ", ">>>>>>> "} {
		if bytes.HasPrefix(data, []byte(mark)) {
			return 0
		}
		if at := bytes.Index(data, []byte("\n"+mark)); at >= 0 {
			return at + 1
		}
	}
	return -1
}

func lineOf(data []byte, at int) string {
	return fmt.Sprintf("line %d", 1+bytes.Count(data[:at], []byte("\n")))
}

// marks counts the characters that can begin a node.
func marks(data []byte) int {
	n := bytes.Count(data, []byte("- ")) + bytes.Count(data, []byte("-\n")) + bytes.Count(data, []byte("-\t"))
	for _, c := range data {
		switch c {
		case ',', '[', '{', ':', '?':
			n++
		}
	}
	return n
}

var yamlLine = regexp.MustCompile(`^yaml: line (\d+): `)

func syntax(file string, err error) *Error {
	text := err.Error()
	e := &Error{Code: InvalidManifest, File: file}
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		e.Field, text = "line "+m[1], text[len(m[0]):]
	}
	e.Message = "the file is not valid YAML: " + strings.TrimPrefix(text, "yaml: ")
	return e
}

// size is what a node amounts to with its aliases expanded.
type size struct{ nodes, height int }

// scanner measures the nodes of one file. Anchored nodes are measured once;
// one that is being measured when an alias names it contains itself.
type scanner struct {
	file string
	seen map[*yaml.Node]size
}

// measuring stands for the nodes of what is being measured.
const measuring = -1

func (s *scanner) node(n *yaml.Node, depth int) (size, error) {
	if n.Kind == yaml.AliasNode {
		return s.alias(n, depth)
	}
	if depth > MaxFileDepth {
		return size{}, s.tooDeep(n)
	}
	if n.Anchor != "" {
		s.seen[n] = size{nodes: measuring}
	}
	if n.Kind == yaml.MappingNode {
		if err := s.keys(n); err != nil {
			return size{}, err
		}
	}
	total := size{nodes: 1}
	for _, child := range n.Content {
		sz, err := s.node(child, depth+1)
		if err != nil {
			return size{}, err
		}
		total.nodes += sz.nodes
		total.height = max(total.height, sz.height+1)
		if total.nodes > MaxFileNodes {
			return size{}, s.tooMany(n)
		}
	}
	if n.Anchor != "" {
		s.seen[n] = total
	}
	return total, nil
}

func (s *scanner) alias(n *yaml.Node, depth int) (size, error) {
	sz, known := s.seen[n.Alias]
	switch {
	case sz.nodes == measuring:
		return size{}, s.at(n, InvalidManifest, fmt.Sprintf("alias %q contains itself", n.Value))
	case !known:
		return s.node(n.Alias, depth)
	case depth+sz.height > MaxFileDepth:
		return size{}, s.tooDeep(n)
	}
	return sz, nil
}

// keys refuses keys that are given twice or are not text. JSON knows only
// texts as keys, so 1 and "1" are the same.
func (s *scanner) keys(n *yaml.Node) error {
	lines := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		tag := key.ShortTag()
		if key.Kind != yaml.ScalarNode || (tag != "!!str" && tag != "!!merge") {
			return s.at(n.Content[i], InvalidManifest, "a key is not text: quote it")
		}
		if first, twice := lines[key.Value]; twice {
			return s.at(n.Content[i], InvalidManifest, fmt.Sprintf("key %q is given twice, first on line %d: keep one", short(key.Value), first))
		}
		lines[key.Value] = n.Content[i].Line
	}
	return nil
}

func (s *scanner) at(n *yaml.Node, code, message string) *Error {
	return &Error{Code: code, File: s.file, Field: fmt.Sprintf("line %d", n.Line), Message: message}
}

func (s *scanner) tooDeep(n *yaml.Node) *Error {
	return s.at(n, OverBudget, fmt.Sprintf("nested deeper than %d levels", MaxFileDepth))
}

func (s *scanner) tooMany(n *yaml.Node) *Error {
	return s.at(n, OverBudget, fmt.Sprintf("more than %d YAML nodes with aliases expanded: split the file, or write out what the aliases repeat", MaxFileNodes))
}

// short cuts a text that goes into a message.
func short(s string) string {
	const long = 64
	if len(s) <= long {
		return s
	}
	return strings.ToValidUTF8(s[:long], "") + "…"
}
