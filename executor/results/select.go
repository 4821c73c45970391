package results

import (
	"fmt"

	"mcpx/internal/rawjson"
	"mcpx/internal/selection"
	"mcpx/internal/tokens"
)

// selected returns the result with the texts and structuredContent replaced by what the
// query selects. The whole result is kept, unless the table keeps nothing. A result that
// reports an error, or is not JSON, is returned as if there were no query.
func (r *Result) selected() ([]byte, error) {
	p := r.parts
	if p == nil || p.isError || len(p.items) == 0 && p.structured < 0 {
		return r.whole()
	}
	r.kept = p.kept()
	if r.query.Pattern == "" && r.data == "" || r.text == "" {
		return r.withNote("note: select ignored, because the result is not JSON; /pattern/ selects the lines that match")
	}
	text, err := r.selectedText()
	switch {
	case canceled(r.ctx) != nil:
		return nil, canceled(r.ctx)
	case err != nil:
		return r.withNote("note: select ignored: " + err.Error())
	}
	if r.table.Tokens > 0 {
		full := size(r.text)
		h := r.save()
		text = withLine(text, fmt.Sprintf("full result: %s (%s)%s", h.id, full, h.place))
	}
	return p.withText(text), nil
}

// withNote returns the result as if there were no query, and a note.
func (r *Result) withNote(note string) ([]byte, error) {
	result, err := r.whole()
	if err != nil {
		return nil, err
	}
	return AppendText(result, note), nil
}

// selectedText returns the text of the selection.
func (r *Result) selectedText() (string, error) {
	if r.query.Pattern != "" {
		return r.table.grepAll(&r.reading, Query{Grep: r.query.Pattern})
	}
	root, err := r.root()
	if err != nil {
		return "", err
	}
	selected, err := r.query.Apply(r.ctx, root)
	if err != nil {
		return "", err
	}
	return answer(selected, r.table.budget()-handleCost)
}

// handleCost is more than the line with the handle costs.
const handleCost = 30

// answer returns the text of a selection, and a note about its fields.
func answer(s *selection.Selection, budget int) (string, error) {
	note := s.Note()
	if note == "" {
		return s.Text(budget)
	}
	note = tokens.Shorten("note: "+note, budget/2)
	text, err := s.Text(budget - tokens.Count(note) - handleCost)
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
