package hub

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// document is a text from a Secret that is being read, with what was refused so
// far. No message repeats a value: any of them may be a credential.
type document struct {
	origin string
	faults []error
}

func (d *document) refuse(at, format string, args ...any) {
	d.faults = append(d.faults, fmt.Errorf("%s: %s: %s", d.origin, at, fmt.Sprintf(format, args...)))
}

func (d *document) err() error { return errors.Join(d.faults...) }

var yamlLine = regexp.MustCompile(`\bline (\d+)`)

// parse returns the only YAML document of a text, nil when there is none.
func (d *document) parse(at string, data []byte) *yaml.Node {
	if len(bytes.TrimSpace(data)) == 0 {
		d.refuse(at, "it is missing or empty")
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var first, more yaml.Node
	if err := dec.Decode(&first); err != nil || len(first.Content) != 1 {
		line := ""
		if err != nil {
			if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
				line = " at line " + m[1]
			}
		}
		d.refuse(at, "it is no YAML%s", line) // the error may quote a value
		return nil
	}
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		d.refuse(at, "more than one document is in it")
		return nil
	}
	return first.Content[0]
}

// table is a mapping that was read: its values by their keys.
type table struct {
	d     *document
	at    string
	nodes map[string]*yaml.Node
}

// table reads a mapping whose keys are known. Those in ignored change nothing
// and are dropped; every other is refused by its name.
func (d *document) table(n *yaml.Node, at string, known, ignored []string) table {
	t := table{d, at, map[string]*yaml.Node{}}
	if n == nil || isNull(n) {
		return t
	}
	if n.Kind != yaml.MappingNode || n.Anchor != "" {
		d.refuse(at, "must be a plain mapping")
		return t
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch _, twice := t.nodes[key.Value]; {
		case key.Kind != yaml.ScalarNode || key.Anchor != "" || key.ShortTag() != "!!str":
			d.refuse(at, "has a key that is not plain text")
		case twice:
			d.refuse(at+"."+path(key.Value), "is there twice")
		case slices.Contains(ignored, key.Value):
		case !slices.Contains(known, key.Value):
			d.refuse(at, "field %s is not taken from a Secret", shown(key.Value))
		case value.Kind == yaml.AliasNode || value.Anchor != "":
			d.refuse(at+"."+path(key.Value), "anchors and aliases are not accepted")
		case !isNull(value):
			t.nodes[key.Value] = value
		}
	}
	return t
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

func (t table) path(key string) string { return t.at + "." + key }

func (t table) has(key string) bool { return t.nodes[key] != nil }

// text returns a value that must be text in one line.
func (t table) text(key string) string {
	n := t.nodes[key]
	if n == nil {
		return ""
	}
	return t.d.text(n, t.path(key))
}

func (d *document) text(n *yaml.Node, at string) string {
	if n.Kind != yaml.ScalarNode || n.Anchor != "" || n.ShortTag() != "!!str" {
		d.refuse(at, "must be text")
		return ""
	}
	if strings.ContainsFunc(n.Value, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		d.refuse(at, "must be text in one line, without control characters")
		return ""
	}
	return n.Value
}

// truth returns a value that must be true or false.
func (t table) truth(key string) bool {
	n := t.nodes[key]
	if n == nil {
		return false
	}
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" {
		t.d.refuse(t.path(key), "must be true or false")
		return true // the careful reading: what it would switch on is refused
	}
	return strings.EqualFold(n.Value, "true")
}

// data returns a value that must be base64.
func (t table) data(key string) []byte {
	n := t.nodes[key]
	if n == nil {
		return nil
	}
	if n.Kind == yaml.ScalarNode {
		if raw, err := base64.StdEncoding.DecodeString(n.Value); err == nil {
			return raw
		}
	}
	t.d.refuse(t.path(key), "must be base64")
	return nil
}

// items returns the values of a list.
func (t table) items(key string) []*yaml.Node {
	n := t.nodes[key]
	if n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		t.d.refuse(t.path(key), "must be a list")
		return nil
	}
	return n.Content
}

func (t table) texts(key string) []string {
	var out []string
	for i, n := range t.items(key) {
		out = append(out, t.d.text(n, fmt.Sprintf("%s[%d]", t.path(key), i)))
	}
	return out
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

// path is a key as it stands in a path.
func path(key string) string {
	if plainWord.MatchString(key) {
		return key
	}
	return shown(key)
}

// shown makes a name from a Secret fit for one line of a message.
func shown(name string) string {
	const long = 64
	if len(name) > long {
		return strconv.QuoteToASCII(name[:long]) + "…"
	}
	return strconv.QuoteToASCII(name)
}
