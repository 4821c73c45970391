package results

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
	"mcpx/internal/tokens"
)

// leastKept is the number of tokens above which a result is kept, so that later calls can
// refer to it.
const leastKept = 300

// keptTokens is more than the text costs that is added to a kept result. A result that has
// no room for it within the limit is not kept; if structuredContent has to be left out, it
// is cut.
const keptTokens = 50

// IsSmall reports, at a glance, whether Fit surely leaves a result as it is and Remember
// takes no time.
func (t *Table) IsSmall(result []byte) bool {
	return t.Tokens <= 0 || len(result) <= min(leastKept, t.Tokens) // a token has at least one byte
}

// Fit returns the result for the client: what the query selects, or else the whole result.
// A result with more than the allowed tokens is cut. Any other result that is long enough to
// refer to is kept, and gets a further text with its id. Only texts and structuredContent
// count and are cut: everything else keeps its bytes. Most servers send structuredContent as
// a text too; where both would exceed the limit, the text is enough. Fit fails if the context
// ends.
func (r *Result) Fit() ([]byte, error) {
	if r.query != nil {
		return r.selected()
	}
	return r.whole()
}

// whole is Fit without a query.
func (r *Result) whole() ([]byte, error) {
	p, limit := r.parts, r.table.Tokens
	switch {
	case p == nil || r.table.IsSmall(r.raw):
		return r.raw, nil
	case p.exceeds(limit):
		return r.cut()
	}
	hasRoom := !p.exceeds(limit - keptTokens)
	isDouble := p.repeats && p.exceeds(limit-tokens.Count(p.data))
	switch {
	case isDouble && !hasRoom:
		return r.cut()
	case !hasRoom, !isDouble && !p.exceeds(leastKept):
		return r.raw, nil
	}
	r.kept = p.kept()
	h := r.save()
	if isDouble {
		return AppendText(rawjson.Splice(p.raw, p.removeStructured()), "[structuredContent left out: the same JSON as the text; kept as "+h.id+h.place+"]"), nil
	}
	use := `{"$r": "` + h.id + `/…"} or select`
	if r.data == "" {
		use = `{"$r": "` + h.id + `", "lines": "5-9"} (or match, replace) or select "/RE2/"`
	}
	return AppendText(p.raw, "kept as "+h.id+h.place+"; use "+use), nil
}

// Cut cuts a result with more than the allowed tokens. It returns any other result as it
// is. It fails if the context ends.
func (r *Result) Cut() ([]byte, error) {
	if p := r.parts; p != nil && !r.table.IsSmall(r.raw) && p.exceeds(r.table.Tokens) {
		return r.cut()
	}
	return r.raw, nil
}

// save keeps the result. A shelf may take time for that, so it is
// called when all other work is done.
func (r *Result) save() handle {
	r.lease.Idle()
	return r.table.save(r.client, r.kept)
}

// exceeds reports whether all texts have more tokens. It reads no more of them than it
// must.
func (p *parts) exceeds(limit int) bool {
	left := limit
	for _, text := range p.all() {
		if tokens.Exceeds(text, left) {
			return true
		}
		left -= tokens.Count(text)
	}
	return false
}

// cut keeps a result, and shows texts up to the size of the head, and a note. Later texts
// are only in the table, and so is structuredContent.
func (r *Result) cut() ([]byte, error) {
	p := r.parts
	r.kept = p.kept()
	n, err := r.newNote()
	if err != nil {
		return nil, err
	}
	h := r.save()
	left, at := min(r.table.Head, r.table.Tokens), 0 // at: where the text starts in the kept text
	if p.repeats {
		left = min(left, r.table.Tokens-keptTokens) // less than all texts, so that one is cut
	}
	edits := p.removeStructured()
	cutText := ""
	for _, t := range p.texts {
		shown := tokens.Cut(t.text, left)
		switch {
		case cutText != "":
			edits = append(edits, without(p.items, t.item))
		case shown < len(t.text):
			cutText = t.text[:shown] + n.text(h, at+shown)
			edits = append(edits, rawjson.Edit{Start: t.value.Value, End: t.value.End, With: rawjson.AppendString(nil, cutText)})
		}
		left -= tokens.Count(t.text[:shown])
		at += len(t.text) + len(separator)
	}
	result := rawjson.Splice(p.raw, edits)
	if cutText != "" {
		return result, nil
	}
	shown := tokens.Cut(p.data, left) // it was structuredContent that exceeded the limit
	return AppendText(result, p.data[:shown]+n.text(h, at+shown)), nil
}

// AppendText returns a result with one more text at the end of its content. All other
// bytes stay as they are. A result that is not an object, or whose content is not an
// array, is returned unchanged.
func AppendText(result []byte, text string) []byte {
	object := bytes.TrimSpace(result)
	if rawjson.Kind(object) != '{' {
		return result
	}
	item := contentItem(text)
	content, ok := member(object, rawjson.Child{}, "content")
	switch {
	case !ok:
		return insertLast(object, len(object)-1, slices.Concat([]byte(`"content":[`), item, []byte("]")))
	case object[content.Value] == '[':
		return insertLast(object, content.End-1, item)
	}
	return result
}

// insertLast adds item as the last member or element of the object or array whose closing
// bracket is at closing.
func insertLast(text []byte, closing int, item []byte) []byte {
	before := bytes.TrimRight(text[:closing], " \t\r\n")
	if !bytes.ContainsAny(before[len(before)-1:], "[{") {
		item = append([]byte(","), item...)
	}
	return rawjson.Splice(text, []rawjson.Edit{{Start: closing, End: closing, With: item}})
}

// note is the end of a cut text: size and shape of the result, and ways to read it. It has at
// most 1,200 characters.
type note struct {
	size    string
	outline string
	example string // of a select; empty if the result is not JSON
}

func (r *Result) newNote() (n note, err error) {
	n.size = fmt.Sprintf("%s bytes, %s in all", plain.Number(len(r.text)), size(r.text))
	if r.data == "" {
		n.outline, err = lines(r.ctx, r.text, maxOutline)
		return n, err
	}
	s, err := r.shapeOfData()
	if err != nil {
		return n, err
	}
	n.outline = s.outline(maxOutline)
	n.example = "field, field where field = value"
	if names := slices.DeleteFunc(s.rowFields(), isUnusual); len(names) > 0 {
		n.example = strings.Join(names[:min(len(names), 2)], ", ") + " limit 20"
	}
	return n, nil
}

// text returns the note after so many bytes of the result.
func (n note) text(h handle, shown int) string {
	start, part := "", "none shown"
	if shown > 0 {
		start, part = "\n…", "first "+plain.Number(shown)+" bytes shown"
	}
	return fmt.Sprintf(`%s[cut: %s; %s. Shape: %s. Kept as %s%s: %s]`, start, n.size, part, n.outline, h.id, h.place, n.ways(h.id, shown))
}

// ways names the ways to read the kept result.
func (n note) ways(id string, shown int) string {
	if n.example == "" {
		return fmt.Sprintf(`exec("mcpx","read_result",{"id":"%s","offset":%d}), or limit, grep (RE2), select "/RE2/"; {"$r":"%s"} passes the whole text to another call, with "lines":"5-9" a part`, id, shown, id)
	}
	return fmt.Sprintf(`exec("mcpx","read_result",{"id":"%s","select":%s}), or path (JSON Pointer, * = every), grep (RE2), offset %d; {"$r":"%s/…"} passes a part to another call`,
		id, quote(n.example), shown, id)
}

// isUnusual reports whether a name is too long for an example, or needs quotes in a select.
func isUnusual(name string) bool { return len(name) > maxKey || !plainKey.MatchString(name) }

// countedBytes is the length up to which tokens are counted, not guessed from the start
// of the text.
const countedBytes = 1 << 20

// size returns the number of tokens of a text, in words.
func size(text string) string {
	if len(text) <= countedBytes {
		return plain.Number(tokens.Count(text)) + " tokens"
	}
	start := tokens.Count(text[:countedBytes])
	return "~" + plain.Number(start*(len(text)>>10)/(countedBytes>>10)) + " tokens"
}
