package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"

	"mcpx/internal/nearest"
)

// Error reports a file that cannot be used.
type Error struct {
	Problems []Problem // errors, by position
	Warnings []Problem // by position
}

// Error returns the errors, one per line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Problem is an error or a warning, and its position in the file.
type Problem struct {
	File   string `json:"file"`           // as it was given
	Line   int    `json:"line"`           // from 1
	Column int    `json:"column"`         // from 1, in characters
	Path   string `json:"path,omitempty"` // mcp_servers[1].command; empty for the whole file
	Text   string `json:"text"`           // what is wrong and what to do; one line
}

// String returns FILE:LINE:COLUMN: PATH: TEXT. Editors and terminals turn that into a
// link.
func (p Problem) String() string {
	if p.Path == "" {
		return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Text)
	}
	return fmt.Sprintf("%s:%d:%d: %s: %s", p.File, p.Line, p.Column, p.Path, p.Text)
}

func sortProblems(problems []Problem) {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// reader reads the file and collects its problems.
type reader struct {
	file        string
	src         []byte
	environment environment
	secrets     *secretReader
	problems    []Problem
	warnings    []Problem
}

// maxProblems limits the problems and the warnings. A file can have a problem every few
// bytes, and finding the line of each takes time.
const maxProblems = 200

func (r *reader) fail(n node, format string, args ...any) {
	r.problems = r.add(r.problems, n, format, args)
}

func (r *reader) warn(n node, format string, args ...any) {
	r.warnings = r.add(r.warnings, n, format, args)
}

func (r *reader) add(list []Problem, n node, format string, args []any) []Problem {
	if len(list) > maxProblems {
		return list
	}
	text := fmt.Sprintf(format, args...)
	if len(list) == maxProblems {
		text = "there are more problems than are shown; fix these first"
	}
	line, column := position(r.src, n.value.StartOffset)
	return append(list, Problem{File: r.file, Line: line, Column: column, Path: n.path, Text: text})
}

// line returns the line of a node, for the text of a problem.
func (r *reader) line(n node) int {
	if len(r.problems) > maxProblems {
		return 0 // the problem is dropped
	}
	line, _ := position(r.src, n.value.StartOffset)
	return line
}

// position returns the line and the column, in characters, of a byte offset.
func position(src []byte, offset int) (line, column int) {
	before := src[:min(offset, len(src))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return 1 + bytes.Count(before, []byte("\n")), 1 + utf8.RuneCount(before[start:])
}

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

// parse returns the root of the file, which is an object.
func (r *reader) parse() (node, bool) {
	if at := invalidUTF8(r.src); at >= 0 {
		r.fail(nodeAt(at), "not UTF-8; save the file as UTF-8")
		return node{}, false
	}
	if at := tooDeep(r.src); at >= 0 {
		r.fail(nodeAt(at), "%v", CheckDepth(r.src))
		return node{}, false
	}
	// The parser needs a line break after a line comment, even at the end of the file.
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
	if hasDuplicates(value) { // few files do, and building the paths of all keys is slow (BenchmarkParse)
		r.duplicates(root)
	}
	return root, true
}

// hasDuplicates reports whether a key occurs twice in any object of the file.
func hasDuplicates(v hujson.Value) bool {
	switch v := v.Value.(type) {
	case *hujson.Object:
		seen := make(map[string]bool, len(v.Members))
		for _, m := range v.Members {
			key := keyOf(m)
			if seen[key] || hasDuplicates(m.Value) {
				return true
			}
			seen[key] = true
		}
	case *hujson.Array:
		return slices.ContainsFunc(v.Elements, hasDuplicates)
	}
	return false
}

// syntax reports a syntax error. The parser gives its line and its column, in bytes,
// only as text.
func (r *reader) syntax(src []byte, value hujson.Value, err error) {
	var line, column int
	_, _ = fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &line, &column)
	at := column - 1
	for _, l := range bytes.SplitAfterN(src, []byte("\n"), max(line, 1))[:max(line-1, 0)] {
		at += len(l)
	}
	text := errors.Unwrap(err).Error()
	switch {
	case value.Value == nil && len(value.BeforeExtra) > len(r.src):
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
	r.fail(nodeAt(at), "%s", text)
}

// duplicates reports keys that occur twice in one object: parsers disagree on which of
// the two counts.
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

// object reads the members of an object into its fields.
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
			continue // the warning is dropped
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

// is reports whether a value has the expected kind, and fails otherwise.
func (r *reader) is(n node, kind hujson.Kind, want string) bool {
	if n.kind() == kind {
		return true
	}
	r.fail(n, "expected %s, got %s", want, n.describe())
	return false
}

// text returns a string that passes the checks.
func (r *reader) text(n node, checks ...check) (string, bool) {
	if kind := n.kind(); kind == '0' || kind == 't' || kind == 'f' {
		r.fail(n, "expected string, got %s; write %q", n.describe(), n.literal())
		return "", false
	}
	if !r.is(n, '"', "string") {
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
