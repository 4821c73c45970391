package rawjson

// Rewrite replaces the keys, strings and numbers of a value by the results of key
// and text. A nil key keeps all keys; a number that changes becomes a string. The
// path has the keys that lead to the text and is valid only during the call.
// Everything else keeps its bytes. Rewrite returns nil if the value is not valid
// JSON.
func Rewrite(value []byte, key func(key string) string, text func(path []string, text string) string) []byte {
	if Check(value) != nil {
		return nil
	}
	r := rewriter{cursor: cursor{b: value}, replaceKey: key, replaceText: text}
	r.value()
	return append(r.out, value[r.done:]...)
}

// rewriter walks over a text that was checked before.
type rewriter struct {
	cursor
	replaceKey  func(key string) string
	replaceText func(path []string, text string) string
	path        []string
	out         []byte
	done        int // out has the text up to here
}

func (r *rewriter) value() {
	r.space()
	start := r.i
	switch r.peek() {
	case '{':
		r.items('}', r.member)
	case '[':
		r.items(']', r.value)
	case '"':
		_ = r.text()
		old, _ := String(r.b[start:r.i])
		r.put(start, r.i, old, r.replaceText(r.path, old))
	case 't', 'f', 'n':
		_ = r.scalar()
	default:
		_ = r.number()
		old := string(r.b[start:r.i])
		r.put(start, r.i, old, r.replaceText(r.path, old))
	}
}

// items walks over the items of an object or an array.
func (r *rewriter) items(closing byte, item func()) {
	last, err := r.open(0, closing)
	for !last && err == nil {
		item()
		last, err = r.next(closing)
	}
}

func (r *rewriter) member() {
	r.space()
	start := r.i
	written, _ := r.key()
	key, _ := String(written)
	if r.replaceKey != nil {
		r.put(start, start+len(written), key, r.replaceKey(key))
	}
	r.path = append(r.path, key)
	r.value()
	r.path = r.path[:len(r.path)-1]
}

// put replaces a part of the text, unless it stays the same.
func (r *rewriter) put(start, end int, old, changed string) {
	if changed != old {
		r.out = AppendString(append(r.out, r.b[r.done:start]...), changed)
		r.done = end
	}
}
