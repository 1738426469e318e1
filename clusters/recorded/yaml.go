package recorded

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// lines reads a YAML stream line by line.
type lines struct {
	r      *bufio.Reader
	number int    // of the line that was read last
	back   []byte // a line that was put back
}

// read returns the next line with its end, io.EOF after the last one.
func (l *lines) read() ([]byte, error) {
	if line := l.back; line != nil {
		l.back = nil
		return line, nil
	}
	line, err := l.r.ReadBytes('\n')
	if len(line) == 0 {
		return nil, err
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	l.number++
	return line, nil
}

// unread puts the line that was read last back.
func (l *lines) unread(line []byte) { l.back = line }

// yaml collects YAML documents. The items of a list in block style, which is
// how kubectl prints, are cut out by their indentation and read one by one;
// any other document is read as a whole.
func (c *collector) yaml(r *bufio.Reader) error {
	in := &lines{r: r}
	for {
		more, err := c.yamlDocument(in)
		if err != nil {
			return explain(err)
		}
		if !more {
			return nil
		}
	}
}

// yamlDocument collects the document up to the next marker.
func (c *collector) yamlDocument(in *lines) (more bool, err error) {
	doc := document{c: c}
	c.load.begin()
	var head chunk // all but the items
	for {
		line, err := in.read()
		if errors.Is(err, io.EOF) {
			return false, c.yamlRest(&doc, &head)
		}
		if err != nil {
			return false, err
		}
		if marker(line) {
			return true, c.yamlRest(&doc, &head)
		}
		head.add(in.number, line)
		if itemsKey.Match(line) {
			if err := yamlItems(in, &doc, &head); err != nil {
				return false, err
			}
		}
	}
}

var (
	itemsKey = regexp.MustCompile(`^items:\s*(#.*)?\r?\n?$`)
	comment  = regexp.MustCompile(`^\s*(#.*)?\r?\n?$`)
)

// marker tells whether a line ends a document: that is so even inside of text.
func marker(line []byte) bool {
	line = bytes.TrimRight(line, "\r\n")
	for _, m := range []string{"---", "..."} {
		if rest, ok := bytes.CutPrefix(line, []byte(m)); ok && (len(rest) == 0 || rest[0] == ' ' || rest[0] == '\t') {
			return true
		}
	}
	return false
}

// yamlItems collects the items that follow the key of a list. When no list in
// block style follows, the lines are left to the rest of the document.
func yamlItems(in *lines, doc *document, head *chunk) error {
	var item chunk
	indent := -1
	for n := 0; ; {
		line, err := in.read()
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		end := err != nil || marker(line)
		depth := len(line) - len(bytes.TrimLeft(line, " "))
		blank := !end && comment.Match(line)
		dash := !end && bytes.HasPrefix(line[depth:], []byte("-")) && (len(line) == depth+1 || bytes.IndexByte([]byte(" \r\n"), line[depth+1]) >= 0)
		switch {
		case indent < 0 && blank:
		case indent < 0 && dash:
			indent, doc.items = depth, true
		case end, indent < 0, !blank && depth <= indent && !(dash && depth == indent):
			in.unread(line)
			return item.collect(doc, n)
		}
		if dash && depth == indent && len(item.text) > 0 {
			if err := item.collect(doc, n); err != nil {
				return err
			}
			item, n = chunk{}, n+1
		}
		if indent >= 0 {
			item.add(in.number, line)
		} else {
			head.add(in.number, line)
		}
	}
}

// chunk is a part of a stream: some lines of it, not always adjacent ones.
type chunk struct {
	numbers []int // of its lines in the stream
	text    []byte
}

func (k *chunk) add(line int, text []byte) {
	k.numbers = append(k.numbers, line)
	k.text = append(k.text, text...)
}

// fault is an error on a line of the chunk, which is counted from 1.
func (k *chunk) fault(line int, format string, args ...any) error {
	line = min(max(line, 1), len(k.numbers))
	return fmt.Errorf("line %d: "+format, append([]any{k.numbers[line-1]}, args...)...)
}

// collect reads one item, which is a list of one as it was cut out.
func (k *chunk) collect(doc *document, n int) error {
	if len(k.text) == 0 {
		return nil
	}
	node, err := k.parse()
	if err != nil {
		return err
	}
	if node == nil || node.Kind != yaml.SequenceNode || len(node.Content) != 1 {
		return k.fault(1, "items[%d]: want an object", n)
	}
	item, err := k.json(node.Content[0])
	if err != nil {
		return err
	}
	if err := doc.item(item); err != nil {
		return k.fault(1, "items[%d]: %w", n, err)
	}
	return nil
}

// yamlRest collects what is left of a document when its items are gone.
func (c *collector) yamlRest(doc *document, head *chunk) error {
	node, err := head.parse()
	if err != nil || node == nil {
		return err
	}
	if node.Kind != yaml.MappingNode {
		return head.fault(node.Line, "want an object, as kubectl get -o yaml prints it")
	}
	var items *yaml.Node
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		switch {
		case key.Value == "apiVersion" && value.Kind == yaml.ScalarNode:
			doc.apiVersion = value.Value
		case key.Value == "kind" && value.Kind == yaml.ScalarNode:
			doc.kind = value.Value
		case key.Value == "items" && !doc.items:
			items = value
		}
	}
	if items != nil {
		return c.yamlFlow(doc, head, items)
	}
	if doc.items {
		return head.located(doc.close())
	}
	whole, err := head.json(node)
	if err != nil {
		return err
	}
	return head.located(c.object(whole, "", ""))
}

// yamlFlow collects the items of a list that is not in block style, such as
// items: [] of an empty one.
func (c *collector) yamlFlow(doc *document, head *chunk, items *yaml.Node) error {
	doc.items = true
	if items.Kind != yaml.SequenceNode && items.ShortTag() != "!!null" {
		return head.fault(items.Line, "items: want a list")
	}
	for i, n := range items.Content {
		item, err := head.json(n)
		if err != nil {
			return err
		}
		if err := doc.item(item); err != nil {
			return head.fault(n.Line, "items[%d]: %w", i, err)
		}
	}
	return head.located(doc.close())
}

func (k *chunk) located(err error) error {
	if err == nil {
		return nil
	}
	return k.fault(1, "%w", err)
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// parse returns a chunk's node, nil when it holds none.
func (k *chunk) parse() (*yaml.Node, error) {
	var doc yaml.Node
	err := yaml.NewDecoder(bytes.NewReader(k.text)).Decode(&doc)
	if errors.Is(err, io.EOF) || err == nil && doc.Content[0].ShortTag() == "!!null" {
		return nil, nil
	}
	if err != nil {
		text, line := err.Error(), 1
		if m := yamlLine.FindStringSubmatch(text); m != nil {
			text = text[len(m[0]):]
			if n, err := strconv.Atoi(m[1]); err == nil {
				line = n
			}
		}
		return nil, k.fault(line, "not YAML: %s", text)
	}
	return doc.Content[0], nil
}

// json returns a node as JSON.
func (k *chunk) json(n *yaml.Node) (json.RawMessage, error) {
	v, err := k.value(n)
	if err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// value returns a node as JSON would hold it. Aliases are refused, for a few
// lines of them expand without end and kubectl prints none.
func (k *chunk) value(n *yaml.Node) (any, error) {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return nil, k.fault(n.Line, "anchors and aliases are refused: kubectl prints none")
	case n.Kind == yaml.MappingNode:
		return k.mapping(n)
	case n.Kind == yaml.SequenceNode:
		all := make([]any, 0, len(n.Content))
		for _, item := range n.Content {
			v, err := k.value(item)
			if err != nil {
				return nil, err
			}
			all = append(all, v)
		}
		return all, nil
	}
	return k.scalar(n)
}

func (k *chunk) mapping(n *yaml.Node) (any, error) {
	all := make(map[string]any, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode || key.Anchor != "" || key.ShortTag() == "!!merge" {
			return nil, k.fault(key.Line, "want a key of plain text")
		}
		if _, again := all[key.Value]; again {
			return nil, k.fault(key.Line, "duplicate key %q", key.Value)
		}
		v, err := k.value(n.Content[i+1])
		if err != nil {
			return nil, err
		}
		all[key.Value] = v
	}
	return all, nil
}

func (k *chunk) scalar(n *yaml.Node) (any, error) {
	var err error
	switch n.ShortTag() {
	case "!!null":
		return nil, nil
	case "!!bool":
		var v bool
		err = n.Decode(&v)
		return v, err
	case "!!int":
		var v int64
		err = n.Decode(&v)
		if err == nil {
			return v, nil
		}
		fallthrough
	case "!!float":
		var v float64
		if err = n.Decode(&v); err == nil {
			_, err = json.Marshal(v)
		}
		if err != nil {
			return nil, k.fault(n.Line, "want a number that JSON has, too")
		}
		return v, nil
	}
	return n.Value, nil
}
