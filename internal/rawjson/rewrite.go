package rawjson

// Rewrite returns the value with each key replaced by what key returns, and each
// string and number by what text returns; a number that changes becomes a
// string. Without a function for keys they stay. The path has the keys that lead
// to the text and is valid only during the call. Everything that does not change
// keeps its bytes. Rewrite returns nil if the value is not valid JSON.
func Rewrite(value []byte, key func(key string) string, text func(path []string, text string) string) []byte {
	if Check(value) != nil {
		return nil
	}
	r := rewriter{scanner: scanner{b: value}, replaceKey: key, replaceText: text}
	r.value()
	return append(r.out, value[r.done:]...)
}

// rewriter walks over a text that was checked before.
type rewriter struct {
	scanner
	replaceKey  func(key string) string
	replaceText func(path []string, text string) string
	path        []string
	out         []byte
	done        int // how much of the text is in out
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
		r.put(start, old, r.replaceText(r.path, old))
	case 't', 'f', 'n':
		_ = r.scanner.value(0)
	default:
		_ = r.number()
		old := string(r.b[start:r.i])
		r.put(start, old, r.replaceText(r.path, old))
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
	_ = r.text()
	key, _ := String(r.b[start:r.i])
	if r.replaceKey != nil {
		r.put(start, key, r.replaceKey(key))
	}
	r.space()
	r.i++ // the colon
	r.path = append(r.path, key)
	r.value()
	r.path = r.path[:len(r.path)-1]
}

// put replaces what was read since start, unless it stays the same.
func (r *rewriter) put(start int, old, changed string) {
	if changed != old {
		r.out = AppendString(append(r.out, r.b[r.done:start]...), changed)
		r.done = r.i
	}
}
