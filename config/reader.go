package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
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

// maxProblems bounds the problems and the warnings that are kept. A file can have
// a problem every few bytes, and finding the line of each takes time.
const maxProblems = 200

func (r *reader) fail(n node, format string, args ...any) {
	r.problems = r.add(r.problems, n, format, args)
}

func (r *reader) warn(n node, format string, args ...any) {
	r.warnings = r.add(r.warnings, n, format, args)
}

func (r *reader) add(list []Problem, n node, format string, args []any) []Problem {
	switch {
	case len(list) < maxProblems:
		return append(list, r.problem(n, fmt.Sprintf(format, args...)))
	case len(list) == maxProblems:
		return append(list, r.problem(n, "there are more problems than are shown; fix these first"))
	}
	return list
}

func (r *reader) problem(n node, text string) Problem {
	line, column := position(r.src, n.value.StartOffset)
	return Problem{File: r.file, Line: line, Column: column, Path: n.path, Text: text}
}

// line returns the line of a node, for the text of a problem.
func (r *reader) line(n node) int {
	if len(r.problems) > maxProblems {
		return 0 // the problem is not kept
	}
	line, _ := position(r.src, n.value.StartOffset)
	return line
}

// maxDepth is far above any config: the parser recurses, and a stack that
// overflows cannot be recovered from.
const maxDepth = 200

// CheckDepth returns an error for JSON that is nested too deeply to be parsed.
func CheckDepth(src []byte) error {
	if tooDeep(src) < 0 {
		return nil
	}
	return fmt.Errorf("nested deeper than %d levels", maxDepth)
}

// tooDeep finds where the file nests deeper than that, stepping over strings and
// comments; -1 if it does not.
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
			i = past(src, i, "\n")
		case c == '/' && bytes.HasPrefix(src[i:], []byte("/*")):
			i = past(src, i+2, "*/") + 1
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

// past is where the next of these begins, or the end.
func past(src []byte, from int, what string) int {
	if i := bytes.Index(src[from:], []byte(what)); i >= 0 {
		return from + i
	}
	return len(src)
}

// parse returns the file's root, which is an object.
func (r *reader) parse() (node, bool) {
	if at := invalidUTF8(r.src); at >= 0 {
		r.fail(nodeAt(at), "not UTF-8; save the file as UTF-8")
		return node{}, false
	}
	if at := tooDeep(r.src); at >= 0 {
		r.fail(nodeAt(at), "%v", CheckDepth(r.src))
		return node{}, false
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
	if anyTwice(value) {
		r.duplicates(root)
	}
	return root, true
}

// anyTwice reports whether any object of the file may give a key twice. Nearly none
// does, and to name the places of all keys takes longer than to read the file.
func anyTwice(v hujson.Value) bool {
	switch v := v.Value.(type) {
	case *hujson.Object:
		seen := make(map[string]bool, len(v.Members))
		for _, m := range v.Members {
			key := keyOf(m)
			if seen[key] || anyTwice(m.Value) {
				return true
			}
			seen[key] = true
		}
	case *hujson.Array:
		return slices.ContainsFunc(v.Elements, anyTwice)
	}
	return false
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
		if len(r.warnings) > maxProblems {
			continue // the warning would not be kept
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
	s := decoded(n.literal())
	for _, check := range checks {
		if err := check(s); err != nil {
			r.fail(n, "%v", err)
			return "", false
		}
	}
	return s, true
}
