package results

import (
	"bytes"
	"slices"
	"strings"

	"mcpx/internal/rawjson"
	"mcpx/internal/tokens"
)

// Fit cuts a result, as an upstream sent it, to a budget of tokens; 0 is no limit.
// Only texts and structuredContent count and are cut: everything else keeps its
// bytes. The cut texts are kept for the client, and a note in their place says how
// to read them.
func (s *Store) Fit(client string, result []byte, budget int) []byte {
	if Fits(result, budget) {
		return result
	}
	if rawjson.Kind(result) != '{' || rawjson.Check(result) != nil {
		return result
	}
	raw := bytes.TrimSpace(withoutDuplicates(result))
	c := cutter{store: s, client: client, raw: raw, left: budget}
	members := slices.Collect(rawjson.Children(raw, 0))
	for _, m := range members {
		if keyOf(m) != "content" {
			continue
		}
		if raw[m.Value] != '[' {
			return result
		}
		c.content(m)
	}
	for i, m := range members {
		if keyOf(m) == "structuredContent" {
			c.structured(members, i)
		}
	}
	if len(c.edits) == 0 {
		return result
	}
	return splice(raw, c.edits)
}

// Fits reports whether a result is surely within its budget, at a glance.
func Fits(result []byte, budget int) bool {
	return budget <= 0 || len(result) <= budget // a token has at least one byte
}

// withoutDuplicates returns an object in which every key occurs once, with its last
// value, as any decoder would read it.
func withoutDuplicates(object []byte) []byte {
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
	raw    []byte
	left   int // tokens left of the budget
	edits  []edit
	seen   []piece // the texts that the reader can find in full
	end    int     // where a further content item would go; 0 without content
}

// piece is a text of the result.
type piece struct {
	text      string
	value     rawjson.Child // the JSON string
	removable bool          // its item is nothing but this text
	item      int           // index of its item
	where     string        // where the reader finds it
}

// content spends the budget on the texts in their order. The text that exceeds it
// keeps its head; the texts after that one, perhaps thousands, share one id and one
// note.
func (c *cutter) content(member rawjson.Child) {
	items := slices.Collect(rawjson.Children(c.raw, member.Value))
	c.end = member.Value + 1
	var rest []piece
	for i, item := range items {
		c.end = item.End
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

// noteCost is about what a note costs. A text that exceeds the budget by less is
// shown whole.
const noteCost = 80

// affords pays for a text if it is within the budget. It reads no more of the text
// than it must.
func (c *cutter) affords(text string) bool {
	if tokens.Exceeds(text, c.left+noteCost) {
		return false
	}
	c.left -= tokens.Count(text)
	return true
}

// pieceOf finds the text of a text item or of an embedded resource.
func pieceOf(raw []byte, item rawjson.Child) (p piece, ok bool) {
	kind, _ := member(raw, item, "type")
	switch string(raw[kind.Value:kind.End]) {
	case `"text"`:
		p.removable = true
		p.value, ok = member(raw, item, "text")
	case `"resource"`:
		var resource rawjson.Child
		if resource, ok = member(raw, item, "resource"); ok {
			p.value, ok = member(raw, resource, "text")
		}
	}
	if !ok {
		return piece{}, false
	}
	p.text, ok = rawjson.View(raw[p.value.Value:p.value.End])
	return p, ok
}

// rest cuts the texts after the one that used the budget up.
func (c *cutter) rest(items []rawjson.Child, rest []piece) {
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
		c.edits = append(c.edits, edit{p.value.Value, p.value.End, quote("[cut: in " + id + "]")})
	}
}

// cutPiece replaces a piece by the head of a text and a note.
func (c *cutter) cutPiece(p piece, text, what string) (id string) {
	short, id := c.cut(text, what)
	c.edits = append(c.edits, edit{p.value.Value, p.value.End, quote(short)})
	p.text, p.where = text, id
	c.seen = append(c.seen, p)
	return id
}

// cut keeps a text and returns its head with a note, and its id.
func (c *cutter) cut(text, what string) (short, id string) {
	shown := tokens.Cut(text, c.left)
	c.left = 0
	id = c.store.save(c.client, strings.Clone(text)) // not the whole raw result with it
	return text[:shown] + note(text, shown, id, what), id
}

// structured turns a structuredContent that exceeds the budget into a text. Most
// servers send the same JSON as a text too, which is then enough.
func (c *cutter) structured(members []rawjson.Child, i int) {
	m := members[i]
	value := strings.ToValidUTF8(string(c.raw[m.Value:m.End]), "\uFFFD")
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
		c.edits = append(c.edits, edit{m.Start, m.End, `"content":[` + item + `]`})
		return
	case c.raw[c.end-1] != '[':
		item = "," + item
	}
	c.edits = append(c.edits, edit{c.end, c.end, item}, without(members, i))
}
