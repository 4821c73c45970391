package results

import (
	"fmt"
	"strings"

	"mcpx/internal/rawjson"
	"mcpx/internal/selection"
	"mcpx/internal/tokens"
)

// Select returns a result in which the texts and structuredContent are replaced by what
// the query selects. The whole result is kept, unless the store keeps nothing. For a
// result that reports an error, or is not JSON, Select is like Fit.
func (s *Store) Select(client string, result *Result, q *selection.Query) []byte {
	p := result.parts()
	if p == nil || result.isError() || len(p.items) == 0 && p.structured < 0 {
		return s.Fit(client, result)
	}
	k := p.kept()
	if q.Pattern == "" && k.data == "" || k.text == "" {
		return AppendText(s.Fit(client, result), "note: select ignored, because the result is not JSON; /pattern/ selects the lines that match")
	}
	text, err := s.selectFrom(k, q)
	if err != nil {
		return AppendText(s.Fit(client, result), "note: select ignored: "+err.Error())
	}
	if s.Tokens > 0 {
		h := s.save(client, k)
		text = withLine(text, fmt.Sprintf("full result: %s (%s)%s", h.id, size(k.text), h.place))
	}
	return p.withText(text)
}

// selectFrom returns the text of a selection.
func (s *Store) selectFrom(k kept, q *selection.Query) (string, error) {
	if q.Pattern != "" {
		return s.grepAll(k, Query{Grep: q.Pattern})
	}
	root, err := k.parse()
	if err != nil {
		return "", err
	}
	return answer(q.Apply(root), s.budget()-handleCost), nil
}

// handleCost is more than the line with the handle costs.
const handleCost = 30

// answer returns the text of a selection, and a note about its fields.
func answer(s *selection.Selection, budget int) string {
	note := s.Note()
	if note == "" {
		return s.Text(budget)
	}
	note = tokens.Shorten("note: "+note, budget/2)
	return withLine(s.Text(budget-tokens.Count(note)-handleCost), note)
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

// Values are the parts of a client's kept results that one call refers to. Each result is
// parsed once.
type Values struct {
	store  *Store
	client string
	parsed map[string]rawjson.Node
}

// Values returns the values for the references of one call.
func (s *Store) Values(client string) *Values {
	return &Values{store: s, client: client, parsed: map[string]rawjson.Node{}}
}

// Get returns the part of a kept result that a reference names, as JSON. The reference is
// an id and a JSON Pointer, like r7/items/0/id. A query, if there is one, selects from that
// part. The id alone of a result that is not JSON names its text. The caller must not change
// what Get returns.
func (v *Values) Get(reference string, q *selection.Query) ([]byte, error) {
	id, path := splitReference(reference)
	root, ok := v.parsed[id]
	if !ok {
		k, err := v.store.load(v.client, id)
		if err != nil {
			return nil, err
		}
		if k.data == "" && path == "" && q == nil {
			return []byte(quote(k.text)), nil
		}
		if root, err = k.parse(); err != nil {
			return nil, fmt.Errorf("%s is not JSON; {\"$r\": %q} is its whole text", id, id)
		}
		v.parsed[id] = root
	}
	found, several, err := find(root, path)
	if err != nil {
		return nil, err
	}
	if q == nil {
		return join(found, several), nil
	}
	selected := q.Apply(joined(found, several))
	if !selected.IsKnown() {
		return nil, fmt.Errorf("select: %s", selected.Note())
	}
	return selected.JSON(), nil
}

// splitReference splits r7/items/0 or r7.items[0] into id and path.
func splitReference(reference string) (id, path string) {
	end := strings.IndexAny(reference, "/.[")
	if end < 0 {
		return reference, ""
	}
	return reference[:end], strings.TrimPrefix(reference[end:], ".")
}
