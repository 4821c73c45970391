// Package jsonedit changes single values in JSON with comments and trailing commas.
// Every byte outside the change stays as it is, and new values are laid out like
// their neighbors.
package jsonedit

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"
)

// Document is the text of a JSON file. It is not safe for concurrent use.
//
// A path names a value by the keys of objects and the indexes of arrays that lead
// to it, starting at the root.
type Document struct {
	mark []byte // the byte order mark, if there is one
	src  []byte // the text after it
	root hujson.Value
}

// ErrNotFound reports that a path leads to no value.
var ErrNotFound = errors.New("no such value")

var byteOrderMark = []byte("\ufeff")

// Parse reads a document. The caller limits its size and its depth.
func Parse(src []byte) (*Document, error) {
	d := &Document{src: bytes.TrimPrefix(src, byteOrderMark)}
	d.mark = src[:len(src)-len(d.src)]
	return d, d.parse()
}

func (d *Document) parse() (err error) {
	// The parser needs a line break after a line comment, even at the end of the file.
	d.root, err = hujson.Parse(append(slices.Clip(d.src), '\n'))
	return err
}

// Bytes returns the text of the document.
func (d *Document) Bytes() []byte { return append(slices.Clip(d.mark), d.src...) }

// Get returns the value at the path as plain JSON, or nil if there is none.
func (d *Document) Get(path ...string) []byte {
	v := d.find(path)
	if v == nil {
		return nil
	}
	plain := v.Clone()
	plain.BeforeExtra, plain.AfterExtra = nil, nil
	plain.Minimize()
	return plain.Pack()
}

// Text returns the value at the path as it is written, or nil if there is none.
func (d *Document) Text(path ...string) []byte {
	if v := d.find(path); v != nil {
		return d.src[v.StartOffset:v.EndOffset]
	}
	return nil
}

// Keys returns the keys of the object at the path, in their order.
func (d *Document) Keys(path ...string) (keys []string) {
	if v := d.find(path); v != nil {
		if object, ok := v.Value.(*hujson.Object); ok {
			for _, m := range object.Members {
				keys = append(keys, m.Name.Value.(hujson.Literal).String())
			}
		}
	}
	return keys
}

// Set replaces the value at the path, or adds it to the end of its object. value is
// plain JSON. The object itself must exist.
func (d *Document) Set(value []byte, path ...string) error {
	if len(path) == 0 {
		return errors.New("the root cannot be replaced")
	}
	key := path[len(path)-1]
	c, err := d.container(path[:len(path)-1])
	if err != nil {
		return err
	}
	if i := c.index(key); i >= 0 {
		return d.replace(c, i, value)
	}
	if !c.isObject {
		return ErrNotFound
	}
	return d.insert(c, &key, value)
}

// Append adds a value to the end of the array at the path. value is plain JSON.
func (d *Document) Append(value []byte, path ...string) error {
	c, err := d.container(path)
	if err != nil {
		return err
	}
	if c.isObject {
		return fmt.Errorf("%s is not an array", strings.Join(path, "."))
	}
	return d.insert(c, nil, value)
}

// Remove removes the value at the path. A comment on the value's last line goes with
// it; comments on other lines stay.
func (d *Document) Remove(path ...string) error {
	if len(path) == 0 {
		return errors.New("the root cannot be removed")
	}
	c, err := d.container(path[:len(path)-1])
	if err != nil {
		return err
	}
	i := c.index(path[len(path)-1])
	if i < 0 {
		return ErrNotFound
	}
	return d.remove(c, i)
}

func (d *Document) find(path []string) *hujson.Value {
	v := &d.root
	for _, key := range path {
		c, ok := newContainer(v)
		if !ok {
			return nil
		}
		i := c.index(key)
		if i < 0 {
			return nil
		}
		v = c.items[i].value
	}
	return v
}

// container is an object or an array. Offsets are into the source.
type container struct {
	isObject bool
	start    int // of the opening bracket
	inside   int // past the opening bracket
	close    int // of the closing bracket
	items    []item
	keys     []string // of an object
}

// item is a member of an object or an element of an array.
type item struct {
	start int // of the key, or of the element
	end   int // past the value
	value *hujson.Value
}

func (d *Document) container(path []string) (container, error) {
	v := d.find(path)
	if v == nil {
		return container{}, ErrNotFound
	}
	c, ok := newContainer(v)
	if !ok {
		return container{}, fmt.Errorf("%s is neither an object nor an array", strings.Join(path, "."))
	}
	return c, nil
}

func newContainer(v *hujson.Value) (c container, ok bool) {
	c = container{start: v.StartOffset, inside: v.StartOffset + 1, close: v.EndOffset - 1}
	switch value := v.Value.(type) {
	case *hujson.Object:
		c.isObject = true
		for i := range value.Members {
			m := &value.Members[i]
			c.keys = append(c.keys, m.Name.Value.(hujson.Literal).String())
			c.items = append(c.items, item{m.Name.StartOffset, m.Value.EndOffset, &m.Value})
		}
	case *hujson.Array:
		for i := range value.Elements {
			e := &value.Elements[i]
			c.items = append(c.items, item{e.StartOffset, e.EndOffset, e})
		}
	default:
		return c, false
	}
	return c, true
}

// index returns the place of a key or of a written index, -1 if there is none.
func (c container) index(key string) int {
	if c.isObject {
		return slices.Index(c.keys, key)
	}
	if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(c.items) {
		return i
	}
	return -1
}
