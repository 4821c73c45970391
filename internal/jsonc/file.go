// Package jsonc reads and changes JSON with comments and trailing commas: mcpx's config, or
// another file with MCP servers. The values of a File know where they are, so that problems
// name line, column and path. A Document changes single values: every byte outside the change
// stays as it is, and new values are laid out like their neighbors. Document does not use
// hujson's Patch: that removes comments with their neighbors and puts new values on the line
// of the last one, and hujson's Format would lay out the whole file.
package jsonc

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// File is a file that is being read, and its problems so far.
type File struct {
	name     string
	src      []byte
	problems []Problem
	warnings []Problem
}

// New returns a File. Its name is for problems.
func New(name string, data []byte) *File {
	return &File{name: name, src: bytes.TrimPrefix(data, []byte("\ufeff"))}
}

// Err returns an [*Error] with the problems by position, nil if there are none.
func (f *File) Err() error {
	if len(f.problems) == 0 {
		return nil
	}
	return &Error{Problems: byPosition(f.problems), Warnings: byPosition(f.warnings)}
}

// Warnings returns the warnings by position.
func (f *File) Warnings() []Problem { return byPosition(f.warnings) }

// ProblemCount returns the number of problems so far.
func (f *File) ProblemCount() int { return len(f.problems) }

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

// byPosition sorts problems in place.
func byPosition(problems []Problem) []Problem {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return problems
}

// maxProblems limits the problems and the warnings. A file can have a problem every few
// bytes, and finding the line of each takes time.
const maxProblems = 200

// Fail reports a problem of a node. It is dropped if there are too many.
func (f *File) Fail(n Node, format string, args ...any) {
	f.problems = f.add(f.problems, n, format, args)
}

// Warn reports a warning about a node. It is dropped if there are too many.
func (f *File) Warn(n Node, format string, args ...any) {
	f.warnings = f.add(f.warnings, n, format, args)
}

// MayWarn reports whether there is room for another warning.
func (f *File) MayWarn() bool { return len(f.warnings) <= maxProblems }

// Tolerate calls read. The problems that it reports become warnings, with a text added.
func (f *File) Tolerate(read func(), added string) {
	before := len(f.problems)
	read()
	for _, p := range f.problems[before:] {
		p.Text += added
		f.warnings = append(f.warnings, p)
	}
	f.problems = f.problems[:before]
}

func (f *File) add(list []Problem, n Node, format string, args []any) []Problem {
	if len(list) > maxProblems {
		return list
	}
	text := fmt.Sprintf(format, args...)
	if len(list) == maxProblems {
		text = "there are more problems than are shown; fix these first"
	}
	line, column := position(f.src, n.value.StartOffset)
	return append(list, Problem{File: f.name, Line: line, Column: column, Path: n.Path, Text: text})
}

// Line returns the line of a node, for the text of a problem.
func (f *File) Line(n Node) int {
	if len(f.problems) > maxProblems {
		return 0 // the problem is dropped
	}
	line, _ := position(f.src, n.value.StartOffset)
	return line
}

// position returns the line and the column, in characters, of a byte offset.
func position(src []byte, offset int) (line, column int) {
	before := src[:min(offset, len(src))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return 1 + bytes.Count(before, []byte("\n")), 1 + utf8.RuneCount(before[start:])
}
