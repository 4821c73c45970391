package results

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"mcpx/internal/tokens"
)

// maxLine limits a line in an answer, in bytes; the part around the match is shown.
const maxLine = 300

// grep returns the lines of a text that match. JSON is indented first, because it is
// often one line. Offset and limit count lines: the one to start at, and how many
// to show.
func (s *Store) grep(text string, q Query) (string, error) {
	pattern, err := regexp.Compile(q.Grep)
	if err != nil {
		return "", fmt.Errorf("grep: not an RE2 pattern: %w", err)
	}
	if isJSON(text) {
		var indented bytes.Buffer
		_ = json.Indent(&indented, []byte(text), "", "  ") // text is valid
		text = indented.String()
	}

	var b strings.Builder
	left := s.budget - positionCost
	number, matched, shown, next := 0, 0, 0, 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimRight(line, "\r\n")
		at := pattern.FindStringIndex(line)
		if at == nil {
			continue
		}
		matched++
		if number < q.Offset || next > 0 {
			continue
		}
		entry := fmt.Sprintf("%d: %s", number, around(line, at))
		if shown == 0 { // show at least a part, or the reader would be stuck
			entry = entry[:tokens.Cut(entry, left-1)]
		}
		left -= tokens.Count(entry) + 1
		if left < 0 || q.Limit > 0 && shown == q.Limit {
			next = number
			continue
		}
		b.WriteString(entry + "\n")
		shown++
	}

	fmt.Fprintf(&b, "[%d of %d matching lines, %d lines in all; ", shown, matched, number)
	if next > 0 {
		fmt.Fprintf(&b, "next offset %d]", next)
	} else {
		b.WriteString("end]")
	}
	return b.String(), nil
}

// around shortens a line to the part around a match.
func around(line string, match []int) string {
	if len(line) <= maxLine {
		return line
	}
	// A third of the room is for the text before the match.
	start := runeStart(line, max(0, min(match[0]-maxLine/3, len(line)-maxLine)))
	end := runeStart(line, min(start+maxLine, len(line)))
	short := line[start:end]
	if start > 0 {
		short = "…" + short
	}
	if end < len(line) {
		short += "…"
	}
	return short
}
