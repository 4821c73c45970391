package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"

	"mcpx/internal/nearest"
)

// reader walks the file and keeps every problem it meets.
type reader struct {
	file     string
	src      []byte
	lookup   Lookup
	problems []Problem
	warnings []Problem
}

func (r *reader) fail(n node, format string, args ...any) {
	r.problems = append(r.problems, r.problem(n, fmt.Sprintf(format, args...)))
}

func (r *reader) warn(n node, format string, args ...any) {
	r.warnings = append(r.warnings, r.problem(n, fmt.Sprintf(format, args...)))
}

func (r *reader) problem(n node, text string) Problem {
	line, column := position(r.src, n.value.StartOffset)
	return Problem{File: r.file, Line: line, Column: column, Path: n.path, Text: text}
}

func (r *reader) line(n node) int {
	line, _ := position(r.src, n.value.StartOffset)
	return line
}

// maxDepth is far above any config: the parser recurses, and a stack that
// overflows cannot be recovered from.
const maxDepth = 200

// bracket finds what opens or closes a level, stepping over strings and comments.
var bracket = regexp.MustCompile(`(?s)"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/|[\[\]{}]`)

// parse returns the file's root, which is an object.
func (r *reader) parse() (node, bool) {
	if at := invalidUTF8(r.src); at >= 0 {
		r.fail(nodeAt(at), "not UTF-8; save the file as UTF-8")
		return node{}, false
	}
	depth := 0
	for _, span := range bracket.FindAllIndex(r.src, -1) {
		switch r.src[span[0]] {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		}
		if depth > maxDepth {
			r.fail(nodeAt(span[0]), "nested deeper than %d levels", maxDepth)
			return node{}, false
		}
	}
	// The parser wants a line comment to end in a line break, even the last one.
	padded := append(slices.Clip(r.src), '\n')
	value, err := hujson.Parse(padded)
	if err != nil {
		r.syntax(padded, value, err)
		return node{}, false
	}
	root := node{value: value}
	if root.kind() != '{' {
		r.fail(root, `expected an object such as {"mcpServers": {}}, got %s`, root.describe())
		return node{}, false
	}
	r.duplicates(root)
	return root, true
}

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

// syntax reports why the parser refused src. It tells the line and the column,
// in bytes, in its text alone.
func (r *reader) syntax(src []byte, value hujson.Value, err error) {
	var line, column int
	_, _ = fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &line, &column)
	at := column - 1
	for ; line > 1; line-- {
		_, rest, _ := bytes.Cut(src, []byte("\n"))
		at += len(src) - len(rest)
		src = rest
	}
	text := errors.Unwrap(err).Error()
	switch {
	case value.Value == nil && len(value.BeforeExtra) > len(r.src):
		at, text = 0, `the file is empty; write at least {"mcpServers": {}}`
	case errors.Is(err, io.ErrUnexpectedEOF):
		text = "the file ends too early; a closing quote, bracket or */ is missing"
	case strings.HasPrefix(text, `invalid literal: "`):
		// Not the literal itself, which may be a secret.
		text = `invalid string: a line break or tab in it, an unknown \ escape, or no closing quote`
	}
	r.fail(nodeAt(at), "%s", text)
}

// duplicates reports keys given twice in one object, in the whole file:
// parsers do not agree on which of the two counts.
func (r *reader) duplicates(n node) {
	first := map[string]node{}
	for _, m := range n.members() {
		if f, ok := first[m.key]; ok {
			r.fail(m.name, "duplicate key; first on line %d", r.line(f))
		} else {
			first[m.key] = m.name
		}
		r.duplicates(m.value)
	}
	for _, e := range n.elements() {
		r.duplicates(e)
	}
}

// object reads the members of an object into the fields declared for it.
func (r *reader) object(n node, fields []field) {
	if !r.is(n, '{', "object") {
		return
	}
	for _, m := range n.members() {
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == m.key })
		if i >= 0 {
			fields[i].kind.read(r, m.value)
			continue
		}
		names := make([]string, len(fields))
		for i, f := range fields {
			names[i] = f.name
		}
		if near := nearest.Word(m.key, names); near != "" {
			r.warn(m.name, "unknown key; did you mean %q?", near)
		} else {
			r.warn(m.name, "unknown key; ignored")
		}
	}
}

// is reports whether a value has the kind it should have; if not, it fails.
func (r *reader) is(n node, kind hujson.Kind, want string) bool {
	if n.kind() == kind {
		return true
	}
	r.fail(n, "expected %s, got %s", want, n.describe())
	return false
}

// text returns a string that passes the checks.
func (r *reader) text(n node, checks ...check) (string, bool) {
	switch n.kind() {
	case '"':
	case '0', 't', 'f':
		r.fail(n, "expected string, got %s; write %q", n.describe(), n.literal())
		return "", false
	default:
		r.fail(n, "expected string, got %s", n.describe())
		return "", false
	}
	s := n.literal().String()
	for _, check := range checks {
		if err := check(s); err != nil {
			r.fail(n, "%v", err)
			return "", false
		}
	}
	return s, true
}
