//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// rest is a cut result, joined from its head and the answers of read_result.
type rest struct {
	text  string // head and parts
	reads int    // calls to read_result
	err   error  // why it could not be read to its end
}

var (
	cutNote  = regexp.MustCompile(`(?s)^(.*)\n…\[cut: ([0-9,]+) bytes, ~?[0-9,]+ tokens in all; first ([0-9,]+) bytes shown\. Shape: .+\. Kept as (r[0-9]+): exec\("mcpx","read_result",\{"id":"r[0-9]+","offset":([0-9]+)\}\), or limit, [^\]]*\]$`)
	readPart = regexp.MustCompile(`(?s)^(.*)\n\[bytes ([0-9]+)-([0-9]+) of ([0-9]+); (?:next offset ([0-9]+)|end)\]$`)
)

// keptNote is the text that mcpx adds to a result that it keeps.
var keptNote = regexp.MustCompile(`,\{"type":"text","text":"kept as r[0-9]+; use \{\\"\$r\\": \\"r[0-9]+(?:/…)?\\"(?:, \\"lines\\": \\"5-9\\")?\}(?: \(or match, replace\))? or select(?: \\"/RE2/\\")?"\}`)

// mayCut reports whether a result of this length may be cut: a token has at least one
// byte.
func (c call) mayCut() bool { return c.part.resultTokens > 0 && len(c.Result()) > c.part.resultTokens }

// mustCut reports whether a result must be cut: no token of the payloads has more than
// ten bytes.
func (c call) mustCut() bool {
	return c.part.resultTokens > 0 && c.How != "error" && len(c.Text()) > 10*c.part.resultTokens
}

// readOn reads a cut result to its end in the same session. It returns nil for a result
// that was not cut.
func readOn(a answer, exec func(server, tool, arguments string, cancel time.Duration) (answer, error)) *rest {
	head := textOf(a)
	note := cutNote.FindStringSubmatch(head)
	if note == nil {
		return nil
	}
	text, total, id, offset := note[1], strings.ReplaceAll(note[2], ",", ""), note[4], note[5]
	r := &rest{}
	if shown := strings.ReplaceAll(note[3], ",", ""); shown != offset || shown != strconv.Itoa(len(text)) {
		r.err = fmt.Errorf("the note says that %s bytes are shown and to read on at %s, but there are %d", shown, offset, len(text))
		return r
	}
	for offset != "" {
		part, err := exec("mcpx", "read_result", fmt.Sprintf(`{"id":%q,"offset":%s}`, id, offset), 0)
		if r.reads++; err != nil {
			r.err = fmt.Errorf("read_result of %s at %s: %w", id, offset, err)
			return r
		}
		found := readPart.FindStringSubmatch(textOf(part))
		if found == nil || found[2] != offset || found[4] != total || found[3] == offset {
			r.err = fmt.Errorf("read_result of %s at %s answered %.300q", id, offset, part.Result)
			return r
		}
		text += found[1]
		if found[3] != strconv.Itoa(len(text)) {
			r.err = fmt.Errorf("read_result of %s at %s has %d bytes, but says that it ends at %s", id, offset, len(found[1]), found[3])
			return r
		}
		offset = found[5]
	}
	r.text = text
	if strconv.Itoa(len(text)) != total {
		r.err = fmt.Errorf("the result has %d bytes, but the note says %s", len(text), total)
	}
	return r
}

// isCutFrom reports whether a result equals want except for its text.
func isCutFrom(result, want, text string) bool {
	quoted, _ := json.Marshal(text) // cannot fail for a string
	before, after, found := strings.Cut(want, string(quoted))
	return found && strings.HasPrefix(result, before+`"`) && strings.HasSuffix(result, `"`+after)
}

// textOf returns the text of a result with one text.
func textOf(a answer) string {
	var r struct{ Content []struct{ Text string } }
	if json.Unmarshal(a.Result, &r) != nil || len(r.Content) != 1 {
		return ""
	}
	return r.Content[0].Text
}
