package rawjson

import (
	"context"
	"encoding/binary"
	"iter"
	"math/bits"

	"mcpx/internal/work"
)

// cursor reads a JSON text from front to back. It accepts exactly what
// encoding/json accepts, except that it allows less nesting.
type cursor struct {
	b     []byte
	i     int
	watch *work.Watch // nil: nothing stops it
}

// Child is a member of an object or an element of an array, by its place in the
// text.
type Child struct {
	Key        []byte // as written, with its quotes; nil in an array
	Start, End int    // the whole member or element
	Value      int    // where its value starts
}

// Children returns the members or elements of the value at an offset of b, which must
// be valid JSON. Other values have none.
func Children(b []byte, at int) iter.Seq[Child] {
	return func(yield func(Child) bool) {
		c := cursor{b: b, i: at}
		c.space()
		if c.peek() != '{' && c.peek() != '[' {
			return
		}
		for in := c.open(0); c.next(&in); {
			child := Child{Key: in.key, Start: in.start, Value: c.i}
			in.err = c.value(1)
			child.End = c.i
			if in.err != nil || !yield(child) {
				return
			}
		}
	}
}

// peek returns the byte at the cursor, 0 at the end.
func (c *cursor) peek() byte {
	if c.i < len(c.b) {
		return c.b[c.i]
	}
	return 0
}

// space moves past white space.
func (c *cursor) space() {
	for c.i < len(c.b) {
		switch c.b[c.i] {
		case ' ', '\t', '\r', '\n':
			c.i++
		default:
			return
		}
	}
}

// end fails if anything but white space follows.
func (c *cursor) end() error {
	c.space()
	if c.i < len(c.b) {
		return ErrSyntax
	}
	return nil
}

// value moves past one value.
func (c *cursor) value(depth int) error {
	c.space()
	switch c.peek() {
	case '"':
		return c.text()
	case '{', '[':
		return c.skip(depth)
	case 't':
		return c.word("true")
	case 'f':
		return c.word("false")
	case 'n':
		return c.word("null")
	}
	return c.number()
}

// container is an object or array that the cursor is in.
type container struct {
	closing byte
	begun   bool   // the cursor was moved to the first value
	start   int    // of the current member or element
	key     []byte // of the current member, with its quotes; nil in an array
	err     error
}

// open moves into the object or array at the cursor.
func (c *cursor) open(depth int) (in container) {
	if depth >= MaxDepth {
		in.err = ErrDepth
		return in
	}
	in.closing = c.b[c.i] + 2 // '}' is '{'+2, and ']' is '['+2
	c.i++
	return in
}

// next moves to the next value in a container. The caller moves past the value. next
// returns false after the last value, or on an error.
func (c *cursor) next(in *container) bool {
	if in.err == nil && c.watch != nil && c.watch.IsOver() {
		in.err = c.watch.Err()
	}
	if in.err != nil {
		return false
	}
	c.space()
	switch first := c.peek(); {
	case first == in.closing:
		c.i++
		return false
	case in.begun && first != ',':
		in.err = ErrSyntax
		return false
	case in.begun:
		c.i++
		c.space()
	}
	in.begun, in.start = true, c.i
	if in.closing == '}' {
		in.key, in.err = c.key()
	}
	return in.err == nil
}

// skip moves past an object or array. Unlike children it takes no callback, which
// would escape to the heap, since skip calls itself.
func (c *cursor) skip(depth int) error {
	in := c.open(depth)
	for c.next(&in) {
		in.err = c.value(depth + 1)
	}
	return in.err
}

// key moves past a key, its colon and white space, and returns the key with its
// quotes.
func (c *cursor) key() ([]byte, error) {
	start := c.i
	if c.peek() != '"' {
		return nil, ErrSyntax
	}
	if err := c.text(); err != nil {
		return nil, err
	}
	key := c.b[start:c.i]
	c.space()
	if c.peek() != ':' {
		return nil, ErrSyntax
	}
	c.i++
	c.space()
	return key, nil
}

// text moves past a string.
func (c *cursor) text() error {
	b, i := c.b, c.i+1
	for {
		i += plainRun(b[i:])
		if i >= len(b) {
			return ErrSyntax
		}
		switch b[i] {
		case '"':
			c.i = i + 1
			return nil
		case '\\':
			n := escape(b[i:])
			if n == 0 {
				return ErrSyntax
			}
			i += n
		default:
			return ErrSyntax
		}
	}
}

// plainRun counts the bytes at the start of b before the first quote, backslash or
// control character. Most bytes of a large result are plain, so it looks at many
// at a time.
func plainRun(b []byte) int {
	i := 0
	for ; i < 16 && i+8 <= len(b); i += 8 { // most keys are short: BenchmarkObject
		if found := special(b[i:]); found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for i+32 <= len(b) {
		w := b[i : i+32 : i+32]
		if special(w)|special(w[8:])|special(w[16:])|special(w[24:]) != 0 {
			break
		}
		i += 32
	}
	for ; i+8 <= len(b); i += 8 {
		if found := special(b[i:]); found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c == '"' || c == '\\' || c < 0x20 {
			return i
		}
	}
	return i
}

// special returns a word with a bit set in the first of eight bytes that is a
// quote, a backslash or below 0x20. Bits of later bytes mean nothing.
func special(b []byte) uint64 {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	w := binary.LittleEndian.Uint64(b)
	quote := w ^ ones*'"'
	slash := w ^ ones*'\\'
	return ((quote-ones)&^quote | (slash-ones)&^slash | (w-ones*0x20)&^w) & highs
}

// escape returns the length of the escape sequence at the start of b, 0 if there is
// none.
func escape(b []byte) int {
	if len(b) < 2 || b[0] != '\\' {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(b) < 6 {
			return 0
		}
		for _, c := range b[2:6] {
			if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'f') {
				return 0
			}
		}
		return 6
	}
	return 0
}

// number moves past a number.
func (c *cursor) number() error {
	if c.peek() == '-' {
		c.i++
	}
	switch first := c.peek(); {
	case first == '0':
		c.i++
	case first >= '1' && first <= '9':
		c.digits()
	default:
		return ErrSyntax
	}
	if c.peek() == '.' {
		c.i++
		if !c.digits() {
			return ErrSyntax
		}
	}
	if e := c.peek(); e == 'e' || e == 'E' {
		c.i++
		if sign := c.peek(); sign == '+' || sign == '-' {
			c.i++
		}
		if !c.digits() {
			return ErrSyntax
		}
	}
	return nil
}

// digits moves past digits and reports whether there are any.
func (c *cursor) digits() bool {
	start := c.i
	for d := c.peek(); d >= '0' && d <= '9'; d = c.peek() {
		c.i++
	}
	return c.i > start
}

// word moves past a word such as true.
func (c *cursor) word(word string) error {
	if len(c.b)-c.i < len(word) || string(c.b[c.i:c.i+len(word)]) != word {
		return ErrSyntax
	}
	c.i += len(word)
	return nil
}

// Walk visits the values of a valid JSON text in their order. enter gets each value: how
// deep it is, its key as written (nil in an array), and its first character. If it returns
// false, what is in the value is not visited. leave gets the number of members or elements
// of each object or array that was visited. Walk fails soon after the context ends.
func Walk(ctx context.Context, text []byte, enter func(depth int, key []byte, kind byte) bool, leave func(depth, count int)) error {
	w := walker{cursor{b: text, watch: work.NewWatch(ctx)}, enter, leave}
	return w.value(0, nil)
}

type walker struct {
	cursor
	enter func(depth int, key []byte, kind byte) bool
	leave func(depth, count int)
}

// value visits the value at the cursor.
func (w *walker) value(depth int, key []byte) error {
	w.space()
	kind := w.peek()
	if !w.enter(depth, key, kind) || kind != '{' && kind != '[' {
		return w.cursor.value(depth)
	}
	count := 0
	in := w.open(depth)
	for w.next(&in) {
		count++
		in.err = w.value(depth+1, in.key)
	}
	w.leave(depth, count)
	return in.err
}
