package results

import (
	"encoding/json"
	"slices"
	"strings"

	"mcpx/internal/rawjson"
	"mcpx/internal/tokens"
)

// Fit cuts a result, as an upstream sent it, to a budget of tokens; 0 is no
// limit. Only texts and structuredContent count and are cut: everything else
// stays as it came, byte for byte. What was cut is kept for the client, and a
// note in its place says how to read it.
func (s *Store) Fit(client string, result []byte, budget int) []byte {
	if Fits(result, budget) {
		return result
	}
	if rawjson.Kind(result) != '{' || !json.Valid(result) {
		return result
	}
	raw := string(once(result))
	top := skipSpace(raw, 0)
	c := cutter{store: s, client: client, raw: raw, left: budget}
	members := slices.Collect(children(raw, top))
	for _, m := range members {
		if unquote(m.key) != "content" {
			continue
		}
		if raw[m.value] != '[' {
			return result
		}
		c.content(m)
	}
	for i, m := range members {
		if unquote(m.key) == "structuredContent" {
			c.structured(members, i)
		}
	}
	if len(c.edits) == 0 {
		return result
	}
	return splice(raw, c.edits)
}

// Fits reports whether a result is within its budget at a glance.
func Fits(result []byte, budget int) bool {
	return budget <= 0 || len(result) <= budget // a token has at least one byte
}

// once is an object without members that stand in it twice: the last counts, as
// for any decoder.
func once(object []byte) []byte {
	last := map[string][]byte{}
	n := 0
	for key, value := range rawjson.Members(object) {
		last[key] = value
		n++
	}
	if n == len(last) {
		return object
	}
	b := []byte("{")
	for key := range rawjson.Members(object) {
		b = rawjson.AppendMember(b, key, last[key])
		delete(last, key)
	}
	return append(b, '}')
}

// cutter collects the edits that bring one result within its budget.
type cutter struct {
	store  *Store
	client string
	raw    string
	left   int // tokens of the budget
	edits  []edit
	seen   []piece // the texts that the reader can find whole
	end    int     // where a further content item would go; 0 without content
}

// piece is a text of the result.
type piece struct {
	text      string
	value     child  // the JSON string
	removable bool   // its item is nothing but this text
	item      int    // index of its item
	where     string // what the reader finds it under
}

// content gives the budget to the texts in their order. The text in which it
// ends keeps its head; the texts after that one, of which there may be
// thousands, share one id and one note.
func (c *cutter) content(member child) {
	items := slices.Collect(children(c.raw, member.value))
	c.end = member.value + 1
	var rest []piece
	for i, item := range items {
		c.end = item.end
		p, ok := pieceOf(c.raw, item)
		if !ok {
			continue
		}
		p.item = i
		switch {
		case c.affords(p.text):
			p.where = "the text above"
			c.seen = append(c.seen, p)
		case c.left > 0:
			c.cutPiece(p, p.text, "")
		default:
			rest = append(rest, p)
		}
	}
	c.rest(items, rest)
}

// noteCost is about what a note costs: a text that is over the budget by less is
// better shown.
const noteCost = 80

// affords pays for a text if it is within the budget. It reads no more of the
// text than that takes.
func (c *cutter) affords(text string) bool {
	if tokens.Cut(text, c.left+noteCost) < len(text) {
		return false
	}
	c.left -= tokens.Estimate(text)
	return true
}

// pieceOf finds the text of a text item or of an embedded resource.
func pieceOf(raw string, item child) (p piece, ok bool) {
	kind, _ := member(raw, item, "type")
	switch raw[kind.value:kind.end] {
	case `"text"`:
		p.removable = true
		p.value, ok = member(raw, item, "text")
	case `"resource"`:
		var resource child
		if resource, ok = member(raw, item, "resource"); ok {
			p.value, ok = member(raw, resource, "text")
		}
	}
	if !ok || raw[p.value.value] != '"' {
		return piece{}, false
	}
	p.text = unquote(raw[p.value.value:p.value.end])
	return p, true
}

// rest cuts the texts for which nothing of the budget is left.
func (c *cutter) rest(items []child, rest []piece) {
	switch len(rest) {
	case 0:
		return
	case 1:
		c.cutPiece(rest[0], rest[0].text, "")
		return
	}
	var texts []string
	for _, p := range rest {
		texts = append(texts, p.text)
	}
	id := c.cutPiece(rest[0], strings.Join(texts, "\n"), grouped(len(rest))+" texts, ")
	for _, p := range rest[1:] {
		if p.removable && p.item > 0 {
			c.edits = append(c.edits, without(items, p.item))
			continue
		}
		c.edits = append(c.edits, edit{p.value.value, p.value.end, quote("[cut: in " + id + "]")})
	}
}

// cutPiece puts the head of a text and a note in the place of a piece.
func (c *cutter) cutPiece(p piece, text, what string) (id string) {
	short, id := c.cut(text, what)
	c.edits = append(c.edits, edit{p.value.value, p.value.end, quote(short)})
	p.text, p.where = text, id
	c.seen = append(c.seen, p)
	return id
}

// cut keeps a text and returns what of it is left with a note, and its id.
func (c *cutter) cut(text, what string) (short, id string) {
	shown := tokens.Cut(text, c.left)
	c.left = 0
	id = c.store.save(c.client, strings.Clone(text)) // not the whole raw result with it
	return text[:shown] + note(text, shown, id, what), id
}

// structured turns a structuredContent that is over what is left of the budget
// into a text. Most servers send the same JSON as a text anyway, which is then
// enough.
func (c *cutter) structured(members []child, i int) {
	m := members[i]
	value := strings.ToValidUTF8(c.raw[m.value:m.end], "\uFFFD")
	if c.affords(value) {
		return
	}
	var text string
	compacted := compact(value)
	same := slices.IndexFunc(c.seen, func(p piece) bool { return isJSON(p.text) && compact(p.text) == compacted })
	if same >= 0 {
		text = "[structuredContent left out: the same JSON as " + c.seen[same].where + "]"
	} else {
		text, _ = c.cut(value, "structuredContent, ")
	}
	item := `{"type":"text","text":` + quote(text) + `}`
	switch {
	case c.end == 0:
		c.edits = append(c.edits, edit{m.start, m.end, `"content":[` + item + `]`})
		return
	case c.raw[c.end-1] != '[':
		item = "," + item
	}
	c.edits = append(c.edits, edit{c.end, c.end, item}, without(members, i))
}
