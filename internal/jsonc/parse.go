package jsonc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// maxDepth limits nesting, far above any config: the parser recurses, and a stack
// overflow cannot be recovered from.
const maxDepth = 200

// CheckDepth returns an error for JSON that is nested too deeply to be parsed.
func CheckDepth(src []byte) error {
	if tooDeep(src) < 0 {
		return nil
	}
	return fmt.Errorf("nested deeper than %d levels", maxDepth)
}

// tooDeep returns the offset where JSON with comments is nested too deeply, or -1.
func tooDeep(src []byte) int {
	depth := 0
	for i := 0; i < len(src); i++ {
		switch c := src[i]; {
		case c == '"':
			for i++; i < len(src) && src[i] != '"'; i++ {
				if src[i] == '\\' {
					i++
				}
			}
		case c == '/' && bytes.HasPrefix(src[i:], []byte("//")):
			i = indexFrom(src, i, "\n")
		case c == '/' && bytes.HasPrefix(src[i:], []byte("/*")):
			i = indexFrom(src, i+2, "*/") + 1
		case c == '[' || c == '{':
			if depth++; depth > maxDepth {
				return i
			}
		case c == ']' || c == '}':
			depth--
		}
	}
	return -1
}

// indexFrom returns the next offset of a text, or the end of src.
func indexFrom(src []byte, from int, text string) int {
	if i := bytes.Index(src[from:], []byte(text)); i >= 0 {
		return from + i
	}
	return len(src)
}

// invalidUTF8 returns the offset of the first byte that is not UTF-8, or -1.
func invalidUTF8(src []byte) int {
	for at := 0; at < len(src); {
		c, size := utf8.DecodeRune(src[at:])
		if c == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
	return -1
}

// Parse returns the root of the file, which is an object.
func (f *File) Parse() (Node, bool) {
	if at := invalidUTF8(f.src); at >= 0 {
		f.Fail(nodeAt(at), "not UTF-8; save the file as UTF-8")
		return Node{}, false
	}
	if at := tooDeep(f.src); at >= 0 {
		f.Fail(nodeAt(at), "%v", CheckDepth(f.src))
		return Node{}, false
	}
	// The parser needs a line break after a line comment, even at the end of the file.
	padded := append(slices.Clip(f.src), '\n')
	value, err := hujson.Parse(padded)
	if err != nil {
		f.syntax(padded, value, err)
		return Node{}, false
	}
	root := Node{value: value}
	if root.Kind() != '{' {
		f.Fail(root, `expected an object such as {"mcpServers": {}}, got %s`, root.Describe())
		return Node{}, false
	}
	f.duplicates(value, func() Node { return root })
	return root, true
}

// syntax reports a syntax error. The parser gives its line and its column, in bytes,
// only as text.
func (f *File) syntax(src []byte, value hujson.Value, err error) {
	var line, column int
	_, _ = fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &line, &column)
	at := column - 1
	for _, l := range bytes.SplitAfterN(src, []byte("\n"), max(line, 1))[:max(line-1, 0)] {
		at += len(l)
	}
	text := errors.Unwrap(err).Error()
	switch {
	case value.Value == nil && len(value.BeforeExtra) > len(f.src):
		at, text = 0, `the file is empty; write at least {"mcpServers": {}}`
	case errors.Is(err, io.ErrUnexpectedEOF):
		text = "the file ends too early; a closing quote, bracket or */ is missing"
	case strings.HasPrefix(text, `invalid literal: "`):
		// Without the literal, which may be a secret.
		text = `invalid string: a line break or tab in it, an unknown \ escape, or no closing quote`
	case strings.HasPrefix(text, "invalid literal: "):
		text = `not a JSON value; write texts and keys in double quotes` // the literal may be a secret
	case strings.HasPrefix(text, `invalid character '\''`):
		text = "a single quote; write texts and keys in double quotes"
	}
	f.Fail(nodeAt(at), "%s", text)
}

// duplicates reports keys that occur twice in one object: parsers disagree on which of
// the two counts. node returns the value with its path, which few values need.
func (f *File) duplicates(v hujson.Value, node func() Node) {
	switch v := v.Value.(type) {
	case *hujson.Object:
		node = sync.OnceValue(node)
		first := make(map[string]int, len(v.Members)) // offsets
		for i := range v.Members {
			m := &v.Members[i]
			if offset, ok := first[keyOf(*m)]; ok && len(f.problems) > maxProblems {
				return // no more are reported
			} else if ok {
				f.Fail(node().member(*m).Name, "duplicate key; first on line %d", f.Line(nodeAt(offset)))
			} else {
				first[keyOf(*m)] = m.Name.StartOffset
			}
			f.duplicates(m.Value, func() Node { return node().member(*m).Value })
		}
	case *hujson.Array:
		for i := range v.Elements {
			f.duplicates(v.Elements[i], func() Node { return node().element(i, v.Elements[i]) })
		}
	}
}

// DuplicateKeys returns the keys that occur twice in one object. A file that cannot be
// parsed has none.
func DuplicateKeys(name string, data []byte) []Problem {
	f := New(name, data)
	if _, ok := f.Parse(); !ok {
		return nil
	}
	return f.problems
}
