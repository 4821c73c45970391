package results

import (
	"context"
	"fmt"
	"math"
	"strings"

	"mcpx/internal/rawjson"
	"mcpx/internal/selection"
	"mcpx/internal/tokens"
)

// selected returns the result with the texts and structuredContent replaced by what the
// query selects. The whole result is kept, unless the store keeps nothing. A result that
// reports an error, or is not JSON, is returned as if there were no query.
func (r *Result) selected() ([]byte, error) {
	p := r.parts
	if p == nil || p.isError || len(p.items) == 0 && p.structured < 0 {
		return r.whole()
	}
	r.kept = p.kept()
	if r.data == "" && !r.query.IsForText() || r.text == "" {
		return r.notSelected()
	}
	text, err := r.table.selectIn(&r.reading, "", r.query)
	switch {
	case canceled(r.ctx) != nil:
		return nil, canceled(r.ctx)
	case err != nil:
		return r.withNote("note: select ignored: " + err.Error())
	}
	return p.withText(withLine(text, r.handleLine())), nil
}

// handleLine keeps the result, and returns a line with its handle; "" if nothing is kept.
func (r *Result) handleLine() string {
	if r.table.Tokens <= 0 {
		return ""
	}
	full := size(r.text)
	h := r.save()
	return fmt.Sprintf("full result: %s (%s)%s", h.id, full, h.place)
}

// notJSON is the note about a select of fields of a text.
const notJSON = `note: select ignored, because the result is not JSON; /pattern/ selects the lines that match, /(\d+) (\S+)/ as a, b makes rows of them`

// shownLines are the lines that are shown of a long text that has no fields to select.
const shownLines = 5

// notSelected returns a text from which no fields can be selected. Of a long text it shows
// only the first lines.
func (r *Result) notSelected() ([]byte, error) {
	if r.table.Tokens <= 0 || !tokens.Exceeds(r.text, leastKept) {
		return r.withNote(notJSON)
	}
	text, number := notJSON, 0
	for l := range strings.Lines(r.text) {
		if number++; number <= shownLines {
			text += "\n" + around(strings.TrimRight(l, "\r\n"), []int{0, 0})
		}
	}
	if number > shownLines {
		text += fmt.Sprintf("\n[lines 1-%d of %d]", shownLines, number)
	}
	return r.parts.withText(withLine(text, r.handleLine())), nil
}

// withNote returns the result as if there were no query, and a note.
func (r *Result) withNote(note string) ([]byte, error) {
	result, err := r.whole()
	if err != nil {
		return nil, err
	}
	return AppendText(result, note), nil
}

// selectIn returns the text of a selection from the values at a path of a result.
func (t *Table) selectIn(r *reading, path string, q *selection.Query) (string, error) {
	f, err := r.at(path)
	if err != nil {
		return "", err
	}
	if q.Pattern != "" {
		return t.selectPattern(r.ctx, r.searched(f), q.Pattern)
	}
	selected, err := r.apply(f, q)
	if err != nil {
		return "", err
	}
	text, err := t.answer(selected)
	if q.IsForText() && selected.IsEmpty() {
		text = withLine(text, "[no line matches the pattern]")
	}
	return text, err
}

// apply selects from JSON, or from the captures in the lines of a text.
func (r *reading) apply(f *found, q *selection.Query) (*selection.Selection, error) {
	switch {
	case q.IsForText():
		return selectCaptures(r.ctx, r.searched(f), q)
	case f.isText:
		return nil, errNotJSON
	case f.several:
		return q.ApplyEach(r.ctx, f.each(), len(f.root.Raw()))
	}
	return q.Apply(r.ctx, f.one)
}

// selectPattern selects the lines or values that match. If they are too long, as many as the
// head has room for are shown.
func (t *Table) selectPattern(ctx context.Context, in searched, pattern string) (string, error) {
	q := Query{Grep: pattern}
	text, err := t.grep(ctx, in, q, t.budget()-handleCost)
	if err != nil || t.Tokens <= 0 || !strings.Contains(text[strings.LastIndexByte(text, '\n')+1:], "next offset") {
		return text, err
	}
	return t.grep(ctx, in, q, t.head())
}

// head returns the tokens that are shown of a selection that is too long.
func (t *Table) head() int {
	if t.Tokens <= 0 {
		return math.MaxInt32
	}
	return max(min(t.Head, t.Tokens-handleCost), minBudget)
}

// handleCost is more than the line with the handle costs.
const handleCost = 30

// answer returns the text of a selection, and a note about its fields.
func (t *Table) answer(selected *selection.Selection) (string, error) {
	limit, head := t.budget()-handleCost, t.head()
	note := selected.Note()
	if note == "" {
		return selected.Text(limit, head)
	}
	note = tokens.Shorten("note: "+note, limit/2)
	cost := tokens.Count(note) + handleCost
	text, err := selected.Text(limit-cost, max(head-cost, min(minBudget, limit-cost)))
	return withLine(text, note), err
}

// withLine adds a line to a text.
func withLine(text, line string) string {
	if text == "" || line == "" {
		return text + line
	}
	return text + "\n" + line
}

// withText replaces all texts and structuredContent by one text. Other items, such as
// images, stay.
func (p *parts) withText(text string) []byte {
	edits := p.removeStructured()
	if len(p.texts) == 0 {
		return AppendText(rawjson.Splice(p.raw, edits), text)
	}
	for i, t := range p.texts {
		if i > 0 {
			edits = append(edits, without(p.items, t.item))
			continue
		}
		item := p.items[t.item]
		edits = append(edits, rawjson.Edit{Start: item.Start, End: item.End, With: contentItem(text)})
	}
	return rawjson.Splice(p.raw, edits)
}
