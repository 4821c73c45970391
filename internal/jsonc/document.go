package jsonc

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"

	"mcpx/internal/rawjson"
)

// Document is the text of a JSON file. It is not safe for concurrent use.
//
// A path names a value by the keys of objects and the indexes of arrays that lead
// to it, starting at the root. The root itself can neither be set nor removed.
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

// update writes the changed root to the text, and parses it for new offsets.
func (d *Document) update() error {
	d.src = bytes.TrimSuffix(d.root.Pack(), []byte("\n"))
	return d.parse()
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

// Keys returns the keys of the object at the path, in their order.
func (d *Document) Keys(path ...string) []string {
	c, err := d.container(path)
	if err != nil {
		return nil
	}
	return c.keys
}

// Set replaces the value at the path, or adds it to the end of its object. value is
// plain JSON. The object itself must exist.
func (d *Document) Set(value []byte, path ...string) error {
	key := path[len(path)-1]
	c, err := d.container(path[:len(path)-1])
	if err != nil {
		return err
	}
	if i := c.index(key); i >= 0 {
		d.replace(c, i, value)
		return d.update()
	}
	if !c.isObject {
		return ErrNotFound
	}
	d.insert(c, key, value)
	return d.update()
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
	d.insert(c, "", value)
	return d.update()
}

// Remove removes the value at the path. A comment on the value's last line goes with
// it; comments on other lines stay.
func (d *Document) Remove(path ...string) error {
	c, err := d.container(path[:len(path)-1])
	if err != nil {
		return err
	}
	i := c.index(path[len(path)-1])
	if i < 0 {
		return ErrNotFound
	}
	c.remove(i)
	return d.update()
}

func (d *Document) find(path []string) *hujson.Value {
	pointer := ""
	for _, key := range path {
		pointer += "/" + inPointer.Replace(key)
	}
	return d.root.Find(pointer)
}

// inPointer escapes a key for a JSON Pointer.
var inPointer = strings.NewReplacer("~", "~0", "/", "~1")

// container is an object or an array.
type container struct {
	value    *hujson.Value
	isObject bool
	keys     []string // of an object
	items    []item
	end      *hujson.Extra // the space and comments before the closing bracket
}

// item is a member of an object or an element of an array.
type item struct {
	before *hujson.Extra // the space and comments before it
	start  int           // the offset of its key, or of the element
	// value is followed by a comma if its AfterExtra is not nil, or another item follows.
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
	c.value = v
	switch value := v.Value.(type) {
	case *hujson.Object:
		c.isObject, c.end = true, &value.AfterExtra
		for i := range value.Members {
			m := &value.Members[i]
			c.keys = append(c.keys, m.Name.Value.(hujson.Literal).String())
			c.items = append(c.items, item{&m.Name.BeforeExtra, m.Name.StartOffset, &m.Value})
		}
	case *hujson.Array:
		c.end = &value.AfterExtra
		for i := range value.Elements {
			e := &value.Elements[i]
			c.items = append(c.items, item{&e.BeforeExtra, e.StartOffset, e})
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

// replace replaces a value. The new one is spread over lines like the old one.
func (d *Document) replace(c container, i int, value []byte) {
	old := c.items[i]
	levels := d.levels(old.value)
	if rawjson.Kind(d.src[old.value.StartOffset:]) != rawjson.Kind(value) {
		levels = d.neighborLevels(c, value)
	}
	old.value.Value = hujson.Literal(d.style().append(nil, value, d.lineIndent(old.start), levels))
}

// insert adds an item to the end of a container.
func (d *Document) insert(c container, key string, value []byte) {
	s := d.style()
	comments, space, isLine := splitExtra(*c.end)
	outer := d.lineIndent(c.value.StartOffset)
	separator, indent := "", outer
	var after hujson.Extra // nil: no trailing comma
	switch {
	case len(c.items) > 0:
		last := c.items[len(c.items)-1]
		separator, indent = s.space, d.lineIndent(last.start)
		if isLine && !d.startsLine(last.start) {
			indent = d.lineIndent(c.value.EndOffset-1) + s.unit
		}
		if isLine || d.startsLine(last.start) {
			separator = s.newline + indent
		}
		if last.value.AfterExtra != nil {
			after = hujson.Extra{}
		}
	case len(comments) > 0 && !bytes.ContainsRune(*c.end, '\n'):
		separator = s.space
	case len(comments) > 0:
		indent = outer + s.unit
		separator = s.newline + indent
	case s.lines || c.value.StartOffset == d.root.StartOffset:
		indent = outer + s.unit
		separator, space = s.newline+indent, hujson.Extra(s.newline+outer)
	default:
		space = nil
	}
	before := append(slices.Clip(comments), separator...)
	*c.end = space
	text := hujson.Literal(s.append(nil, value, indent, d.neighborLevels(c, value)))
	switch list := c.value.Value.(type) {
	case *hujson.Object:
		name := hujson.Value{BeforeExtra: before, Value: hujson.Literal(rawjson.AppendString(nil, key))}
		list.Members = append(list.Members, hujson.ObjectMember{Name: name, Value: hujson.Value{BeforeExtra: hujson.Extra(s.space), Value: text, AfterExtra: after}})
	case *hujson.Array:
		list.Elements = append(list.Elements, hujson.Value{BeforeExtra: before, Value: text, AfterExtra: after})
	}
}

// remove removes an item with its comma.
func (c container) remove(i int) {
	before, isLast := *c.items[i].before, i == len(c.items)-1
	next := c.end
	if !isLast {
		next = c.items[i+1].before
	}
	after := *next
	line, rest := startOfLine.FindIndex(before), restOfLine.FindIndex(after)
	switch {
	case line != nil && rest != nil: // whole lines
		before, after = before[:line[0]+1], after[rest[1]:]
	case !isLast:
		after = bytes.TrimLeft(after, " \t")
	default:
		before = withoutSpace(before)
	}
	*next = slices.Concat(before, after)
	if isLast && i > 0 { // the comma before it goes too, unless there is one after it
		previous := c.items[i-1].value
		switch hasComma := c.items[i].value.AfterExtra != nil; {
		case !hasComma:
			*next = slices.Concat(previous.AfterExtra, *next)
			previous.AfterExtra = nil
		case previous.AfterExtra == nil:
			previous.AfterExtra = hujson.Extra{}
		}
	}
	if len(c.items) == 1 && len(bytes.TrimSpace(*next)) == 0 {
		*next = nil
	}
	switch list := c.value.Value.(type) {
	case *hujson.Object:
		list.Members = slices.Delete(list.Members, i, i+1)
	case *hujson.Array:
		list.Elements = slices.Delete(list.Elements, i, i+1)
	}
}
