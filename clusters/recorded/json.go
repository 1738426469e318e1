package recorded

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// json collects JSON documents that follow each other. Lists are read item by
// item, so that no more than one object of a dump is held in its long form.
func (c *collector) json(r io.Reader) error {
	dec := json.NewDecoder(r)
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && token != json.Delim('{') {
			err = errors.New("want an object, as kubectl get -o json prints it")
		}
		if err == nil {
			err = c.jsonDocument(dec)
		}
		if err != nil {
			return jsonFault(dec, err)
		}
	}
}

// jsonFault adds to an error where it is: the end of what was understood.
func jsonFault(dec *json.Decoder, err error) error {
	at := dec.InputOffset()
	if errors.Is(err, errNUL) {
		return err
	}
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("after byte %d: not JSON: %w", at, err)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("after byte %d: the JSON ends in the middle: record it again", at)
	}
	return fmt.Errorf("before byte %d: %w", at, err)
}

// jsonDocument collects the document whose opening brace was read. Its items
// may come before its kind, which names theirs.
func (c *collector) jsonDocument(dec *json.Decoder) error {
	doc := document{c: c}
	c.load.begin()
	rest := map[string]json.RawMessage{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		if key == "items" {
			if err := jsonItems(dec, &doc); err != nil {
				return err
			}
			continue
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return err
		}
		name, _ := key.(string)
		rest[name] = value
		if err := doc.learn(name, value); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil {
		return err
	}
	if doc.items {
		return doc.close()
	}
	whole, err := json.Marshal(rest)
	if err != nil {
		return err
	}
	return c.object(whole, "", "")
}

func jsonItems(dec *json.Decoder, doc *document) error {
	token, err := dec.Token()
	if err != nil {
		return err
	}
	doc.items = true
	if token == nil {
		return nil
	}
	if token != json.Delim('[') {
		return errors.New("items: want a list")
	}
	for i := 0; dec.More(); i++ {
		var item json.RawMessage
		if err := dec.Decode(&item); err != nil {
			return err
		}
		if err := doc.item(item); err != nil {
			return fmt.Errorf("items[%d]: %w", i, err)
		}
	}
	_, err = dec.Token()
	return err
}

// document is a list that is being read.
type document struct {
	c          *collector
	items      bool // it is a list
	apiVersion string
	kind       string
	waiting    []json.RawMessage // items without a kind of a list whose kind is not known yet
}

// learn takes what a list says of itself.
func (d *document) learn(key string, value json.RawMessage) error {
	into := map[string]*string{"apiVersion": &d.apiVersion, "kind": &d.kind}[key]
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(value, into); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// item collects an item, or keeps it until its kind is known.
func (d *document) item(item json.RawMessage) error {
	kind, err := kindOf(item)
	if err != nil {
		return err
	}
	if kind.Kind == "" && d.kind == "" {
		d.waiting = append(d.waiting, item)
		return nil
	}
	return d.c.object(item, d.apiVersion, strings.TrimSuffix(d.kind, "List"))
}

// close collects the items that waited, now that the list was read to its end.
func (d *document) close() error {
	of, isList := strings.CutSuffix(d.kind, "List")
	switch {
	case d.kind == "":
		return errors.New("the list has no kind, which follows its items: the file ends too early, record it again")
	case !isList && len(d.waiting) > 0:
		return fmt.Errorf("items of kind %q: want a list", d.kind)
	}
	d.c.sawList(d.apiVersion, of)
	for i, item := range d.waiting {
		if err := d.c.object(item, d.apiVersion, of); err != nil {
			return fmt.Errorf("items[%d]: %w", i, err)
		}
	}
	d.c.load.end()
	return nil
}
