package rawjson

import "slices"

// Edit replaces a part of a text.
type Edit struct {
	Start, End int
	With       []byte
}

// Splice applies edits to a text. They must not overlap; Splice sorts them. Without
// edits it returns the text itself.
func Splice(text []byte, edits []Edit) []byte {
	if len(edits) == 0 {
		return text
	}
	slices.SortStableFunc(edits, func(a, b Edit) int { return a.Start - b.Start })
	var out []byte
	done := 0
	for _, e := range edits {
		out = append(append(out, text[done:e.Start]...), e.With...)
		done = e.End
	}
	return append(out, text[done:]...)
}

// Rewrite replaces the keys, strings and numbers of a value by the results of key
// and text. A nil key keeps all keys; a number that changes becomes a string. The
// path has the keys that lead to the text and is valid only during the call.
// Everything else keeps its bytes. Rewrite returns the value itself if nothing changes,
// and nil if the value is not valid JSON.
func Rewrite(value []byte, key func(key string) string, text func(path []string, text string) string) []byte {
	root, err := Parse(value)
	if err != nil {
		return nil
	}
	r := rewriter{replaceKey: key, replaceText: text}
	r.node(root)
	return Splice(value, r.edits)
}

type rewriter struct {
	replaceKey  func(key string) string
	replaceText func(path []string, text string) string
	path        []string
	edits       []Edit
}

// node rewrites a value, its key, and everything in it.
func (r *rewriter) node(n Node) {
	span := n.tree.spans[n.i]
	if span.key != 0 {
		key := n.key()
		if r.replaceKey != nil {
			r.put(span.key, span.key+uint32(len(n.rawKey())), key, r.replaceKey(key))
		}
		r.path = append(r.path, key)
		defer func() { r.path = r.path[:len(r.path)-1] }()
	}
	if n.Kind() == '"' || n.IsNumber() {
		old := n.Text()
		r.put(span.start, span.end, old, r.replaceText(r.path, old))
	}
	for child := range n.children() {
		r.node(child)
	}
}

// put replaces a part of the value, unless it stays the same.
func (r *rewriter) put(start, end uint32, old, changed string) {
	if changed != old {
		r.edits = append(r.edits, Edit{int(start), int(end), AppendString(nil, changed)})
	}
}
