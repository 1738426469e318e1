package clusters

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxFile bounds what is parsed of one file. A fleet of thousands of clusters
// with an exception each stays far below it.
const maxFile = 8 << 20

// Scalars that accept more than text. All others take strings only, so that a
// branch named 1.10 or a label value of true is not silently something else.
type (
	amount string // a number or a percentage: 3 or 10%
	day    string // a date, which YAML would make a time
	texts  []string
)

// document is a file being read: the line of every value by its path, and what
// was found wrong so far.
type document struct {
	file   string
	lines  map[string]int
	wrong  []string // paths whose value could not be read at all
	faults []fault
}

type fault struct {
	line int
	text string
}

func newDocument(file string) *document {
	return &document{file: file, lines: map[string]int{}}
}

// read decodes data into a wire struct. What it cannot decode becomes a fault.
func (d *document) read(data []byte, into any) {
	root := d.parse(data)
	if root == nil {
		return
	}
	d.lines[""] = root.Line
	d.decode(root, reflect.ValueOf(into).Elem(), nil)
}

// parse returns the only document of a file, nil when there is none to go on
// with.
func (d *document) parse(data []byte) *yaml.Node {
	if len(data) > maxFile {
		d.at(1, fmt.Sprintf("the file is larger than %d MiB", maxFile>>20))
		return nil
	}
	if line, ok := invalidUTF8(data); !ok {
		d.at(line, "the file is not UTF-8 text")
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var first yaml.Node
	if err := dec.Decode(&first); err != nil {
		d.syntax(err)
		return nil
	}
	var more yaml.Node
	switch err := dec.Decode(&more); {
	case err == nil && !isNull(more.Content[0]):
		d.at(more.Content[0].Line, "a second document: one file holds one")
	case err != nil && !errors.Is(err, io.EOF):
		d.syntax(err)
	}
	return first.Content[0]
}

func invalidUTF8(data []byte) (line int, ok bool) {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size <= 1 {
			return 1 + bytes.Count(data[:i], []byte("\n")), false
		}
		i += size
	}
	return 0, true
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

func (d *document) syntax(err error) {
	if errors.Is(err, io.EOF) {
		d.at(1, "the file is empty")
		return
	}
	text := err.Error()
	line := 1
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		text = text[len(m[0]):]
		if n, err := strconv.Atoi(m[1]); err == nil {
			line = n
		}
	}
	d.at(line, text)
}

func (d *document) at(line int, text string) {
	d.faults = append(d.faults, fault{line, text})
}

// add records a fault at the line of its field, or of the nearest field above
// it that is there. Faults below a value that could not be read are dropped:
// they would only repeat it.
func (d *document) add(err *field.Error) {
	below := func(p string) bool {
		rest, ok := strings.CutPrefix(err.Field, p)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	}
	if slices.ContainsFunc(d.wrong, below) {
		return
	}
	d.at(d.line(err.Field), err.Error())
}

func (d *document) line(path string) int {
	for path != "" {
		if n, ok := d.lines[path]; ok {
			return n
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return max(d.lines[""], 1)
}

// unreadable records a fault of a value's form. The value is not shown: it may
// be a secret in the wrong place.
func (d *document) unreadable(n *yaml.Node, at *field.Path, detail string) {
	if at == nil {
		d.at(n.Line, detail)
		clear(d.lines)
		return
	}
	d.at(d.line(at.String()), field.Invalid(at, field.OmitValueType{}, detail).Error())
	d.wrong = append(d.wrong, at.String())
}

// err returns all faults in the order of the file, nil when there is none.
func (d *document) err() error {
	slices.SortStableFunc(d.faults, func(a, b fault) int { return a.line - b.line })
	var all []error
	for _, f := range slices.Compact(d.faults) {
		all = append(all, fmt.Errorf("%s:%d: %s", d.file, f.line, f.text))
	}
	return errors.Join(all...)
}

// decode reads a node into a value whose type decides what is accepted. A null
// leaves it as it is: a key with nothing behind it counts as absent.
func (d *document) decode(n *yaml.Node, to reflect.Value, at *field.Path) {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		d.unreadable(n, at, "anchors and aliases are not accepted here: write the value out")
	case isNull(n):
	case to.Type() == reflect.TypeFor[yaml.Node]():
		to.Set(reflect.ValueOf(*n))
	case to.Kind() == reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		d.decode(n, to.Elem(), at)
	case to.Kind() == reflect.Struct:
		d.object(n, to, at)
	case to.Kind() == reflect.Map:
		d.table(n, to, at)
	case to.Kind() == reflect.Slice:
		d.list(n, to, at)
	case to.Kind() == reflect.Bool:
		d.truth(n, to, at)
	default:
		d.text(n, to, at)
	}
}

func (d *document) object(n *yaml.Node, to reflect.Value, at *field.Path) {
	if n.Kind != yaml.MappingNode {
		d.unreadable(n, at, "must be a mapping, is "+form(n))
		return
	}
	fields := map[string]reflect.Value{}
	fieldsOf(to, fields)
	d.pairs(n, at, func(key, value *yaml.Node) {
		child := at.Child(shown(key.Value))
		if f, ok := fields[key.Value]; ok {
			d.lines[child.String()] = key.Line
			d.decode(value, f, child)
			return
		}
		d.at(key.Line, field.Forbidden(child, unknown(child.String(), key.Value, fields)).Error())
	})
}

// pairs calls fn for each entry of a mapping whose key is a plain one that was
// not there before.
func (d *document) pairs(n *yaml.Node, at *field.Path, fn func(key, value *yaml.Node)) {
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch line, again := first[key.Value]; {
		case key.Kind != yaml.ScalarNode || key.Anchor != "" || key.ShortTag() != "!!str" && key.ShortTag() != "!!merge":
			d.at(key.Line, where(at)+": Invalid value: has a key that is not text, but "+form(key))
		case again:
			child := at.Child(shown(key.Value))
			d.at(key.Line, field.Forbidden(child, fmt.Sprintf("duplicate key, first on line %d", line)).Error())
		default:
			first[key.Value] = key.Line
			fn(key, value)
		}
	}
}

func where(at *field.Path) string {
	if at == nil {
		return "the file"
	}
	return at.String()
}

func (d *document) table(n *yaml.Node, to reflect.Value, at *field.Path) {
	if n.Kind != yaml.MappingNode {
		d.unreadable(n, at, "must be a mapping, is "+form(n))
		return
	}
	to.Set(reflect.MakeMap(to.Type()))
	d.pairs(n, at, func(key, value *yaml.Node) {
		v, child := reflect.New(to.Type().Elem()).Elem(), at.Key(shown(key.Value))
		d.lines[child.String()] = key.Line
		d.decode(value, v, child)
		to.SetMapIndex(reflect.ValueOf(key.Value), v)
	})
}

func (d *document) list(n *yaml.Node, to reflect.Value, at *field.Path) {
	if n.Kind == yaml.ScalarNode && to.Type() == reflect.TypeFor[texts]() {
		n = &yaml.Node{Kind: yaml.SequenceNode, Line: n.Line, Content: []*yaml.Node{n}}
	}
	if n.Kind != yaml.SequenceNode {
		d.unreadable(n, at, "must be a list, is "+form(n))
		return
	}
	to.Set(reflect.MakeSlice(to.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		d.lines[at.Index(i).String()] = item.Line
		if isNull(item) {
			d.unreadable(item, at.Index(i), "must not be empty")
			continue
		}
		d.decode(item, to.Index(i), at.Index(i))
	}
}

func (d *document) text(n *yaml.Node, to reflect.Value, at *field.Path) {
	accepted := []string{"!!str"}
	switch to.Type() {
	case reflect.TypeFor[amount]():
		accepted = append(accepted, "!!int")
	case reflect.TypeFor[day]():
		accepted = append(accepted, "!!timestamp")
	}
	if n.Kind != yaml.ScalarNode || !slices.Contains(accepted, n.ShortTag()) {
		detail := "must be text, is " + form(n)
		if n.Kind == yaml.ScalarNode {
			detail += ": put it in quotes"
		}
		d.unreadable(n, at, detail)
		return
	}
	to.SetString(n.Value)
}

func (d *document) truth(n *yaml.Node, to reflect.Value, at *field.Path) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" {
		d.unreadable(n, at, "must be true or false, is "+form(n))
		return
	}
	to.SetBool(strings.EqualFold(n.Value, "true"))
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// form names what a node is, never its value.
func form(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	names := map[string]string{
		"!!str": "text", "!!int": "a number", "!!float": "a number", "!!bool": "true or false",
		"!!null": "empty", "!!timestamp": "a time", "!!binary": "binary data",
	}
	if name, ok := names[n.ShortTag()]; ok {
		return name
	}
	return "of a tag of its own"
}

// fieldsOf collects the fields of a wire struct by their JSON names.
func fieldsOf(v reflect.Value, into map[string]reflect.Value) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous {
			fieldsOf(v.Field(i), into)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		into[name] = v.Field(i)
	}
}

// shown makes a key fit for one line of a message.
func shown(key string) string {
	const long = 64
	if len(key) > long || strings.ContainsFunc(key, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(key[:min(len(key), long)])
	}
	return key
}
