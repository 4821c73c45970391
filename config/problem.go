package config

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Error is a file that cannot be used.
type Error struct {
	Problems []Problem // what must be mended, by position
	Warnings []Problem // what is odd besides, by position
}

// Error returns the problems, one a line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Problem is one thing in the file that is wrong or odd, and where it is.
type Problem struct {
	File   string `json:"file"`           // as it was given
	Line   int    `json:"line"`           // from 1
	Column int    `json:"column"`         // from 1, in characters
	Path   string `json:"path,omitempty"` // mcp_servers[1].command; empty for the file as a whole
	Text   string `json:"text"`           // what is wrong and what to do; one line
}

// String returns FILE:LINE:COLUMN: PATH: TEXT, which editors and terminals
// make a link of.
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

// position finds the line and the column, in characters, of a byte offset.
func position(src []byte, offset int) (line, column int) {
	before := src[:min(offset, len(src))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return 1 + bytes.Count(before, []byte("\n")), 1 + utf8.RuneCount(before[start:])
}
