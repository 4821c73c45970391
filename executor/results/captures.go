package results

import (
	"context"
	"iter"
	"strings"

	"mcpx/internal/rawjson"
	"mcpx/internal/selection"
	"mcpx/internal/work"
)

// selectCaptures selects from rows that are the captures of a pattern: one row for each line
// that matches.
func selectCaptures(ctx context.Context, in searched, q *selection.Query) (*selection.Selection, error) {
	text, names := q.Captures()
	pattern, err := compile(text, in.bytes)
	if err != nil {
		return nil, err
	}
	watch := work.NewWatch(ctx)
	rows := func(yield func(rawjson.Node) bool) {
		for l := range in.lines {
			for line := range linesIn(l.text) {
				at := pattern.captures(watch, line)
				if watch.IsOver() {
					return
				}
				if at != nil && !yield(captureRow(names, line, at)) {
					return
				}
			}
		}
	}
	return q.ApplyCaptures(ctx, rows, in.bytes)
}

// linesIn returns the lines of a value, without their ends.
func linesIn(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if text == "" {
			yield(text)
			return
		}
		for line := range strings.Lines(text) {
			if !yield(strings.TrimRight(line, "\r\n")) {
				return
			}
		}
	}
}

// captureRow returns an object with the captures of a line. A pattern without groups captures
// all that it matches. A group that is not part of the match is null.
func captureRow(names []string, line string, at []int) rawjson.Node {
	row := []byte("{")
	first := len(at)/2 - len(names)
	for i, name := range names {
		value := []byte("null")
		if start, end := at[2*(first+i)], at[2*(first+i)+1]; start >= 0 {
			value = rawjson.AppendString(nil, line[start:end])
		}
		row = rawjson.AppendMember(row, name, value)
	}
	n, _ := rawjson.Parse(append(row, '}'))
	return n
}
