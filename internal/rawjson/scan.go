package rawjson

import (
	"encoding/binary"
	"math/bits"
)

// scanner walks over a JSON text once. It accepts exactly what encoding/json
// accepts, but for a lower bound on depth.
type scanner struct {
	b []byte
	i int
}

func (s *scanner) peek() byte {
	if s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\r', '\n':
			s.i++
		default:
			return
		}
	}
}

// end fails if anything but white space follows.
func (s *scanner) end() error {
	s.space()
	if s.i < len(s.b) {
		return ErrSyntax
	}
	return nil
}

// value moves past one value.
func (s *scanner) value(depth int) error {
	s.space()
	switch c := s.peek(); {
	case c == '"':
		return s.text()
	case c == '{':
		return s.object(depth)
	case c == '[':
		return s.array(depth)
	case c == '-' || c >= '0' && c <= '9':
		return s.number()
	case c == 't':
		return s.word("true")
	case c == 'f':
		return s.word("false")
	case c == 'n':
		return s.word("null")
	}
	return ErrSyntax
}

// object moves past an object. members does the same and shows what it passes: it
// is apart because what a function that calls itself is given goes to the heap.
func (s *scanner) object(depth int) error {
	last, err := s.open(depth, '}')
	for !last && err == nil {
		if _, _, err = s.member(depth); err == nil {
			last, err = s.next('}')
		}
	}
	return err
}

// members moves past an object that is in no other value, or stops where visit
// wants no more.
func (s *scanner) members(visit func(key string, value []byte) (more bool)) (stopped bool, err error) {
	last, err := s.open(0, '}')
	for !last && err == nil {
		key, value, err := s.member(0)
		if err != nil {
			return false, err
		}
		name, ok := View(key)
		switch {
		case !ok:
			return false, ErrSyntax
		case !visit(name, value):
			return true, nil
		}
		if last, err = s.next('}'); err != nil {
			return false, err
		}
	}
	return false, err
}

// member moves past a key and its value.
func (s *scanner) member(depth int) (key, value []byte, err error) {
	s.space()
	start := s.i
	if s.peek() != '"' {
		return nil, nil, ErrSyntax
	}
	if err := s.text(); err != nil {
		return nil, nil, err
	}
	key = s.b[start:s.i]
	s.space()
	if s.peek() != ':' {
		return nil, nil, ErrSyntax
	}
	s.i++
	s.space()
	start = s.i
	err = s.value(depth + 1)
	return key, s.b[start:s.i:s.i], err
}

// array moves past an array; elements also shows what it passes.
func (s *scanner) array(depth int) error {
	last, err := s.open(depth, ']')
	for !last && err == nil {
		if err = s.value(depth + 1); err == nil {
			last, err = s.next(']')
		}
	}
	return err
}

func (s *scanner) elements(visit func(value []byte) (more bool)) error {
	last, err := s.open(0, ']')
	for !last && err == nil {
		s.space()
		start := s.i
		if err = s.value(1); err != nil || !visit(s.b[start:s.i:s.i]) {
			return err
		}
		last, err = s.next(']')
	}
	return err
}

// open moves past an opening bracket, and past the closing one if nothing is
// between them.
func (s *scanner) open(depth int, closing byte) (empty bool, err error) {
	if depth >= MaxDepth {
		return false, ErrDepth
	}
	s.i++
	s.space()
	if s.peek() != closing {
		return false, nil
	}
	s.i++
	return true, nil
}

// next moves past a comma, or past the closing bracket, which is the last.
func (s *scanner) next(closing byte) (last bool, err error) {
	s.space()
	switch s.peek() {
	case ',':
		s.i++
		return false, nil
	case closing:
		s.i++
		return true, nil
	}
	return false, ErrSyntax
}

// text moves past a string.
func (s *scanner) text() error {
	b, i := s.b, s.i+1
	for {
		i += plainRun(b[i:])
		if i >= len(b) {
			return ErrSyntax
		}
		switch b[i] {
		case '"':
			s.i = i + 1
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

// plainRun is how many bytes from the start of b are neither a quote, a backslash
// nor a control character. Most of a large result is such bytes: it looks at
// many at a time.
func plainRun(b []byte) int {
	i := 0
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

// special has a bit set in the first of eight bytes that is a quote, a backslash
// or below 0x20, and perhaps in others after it.
func special(b []byte) uint64 {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	w := binary.LittleEndian.Uint64(b)
	quote := w ^ ones*'"'
	slash := w ^ ones*'\\'
	return ((quote-ones)&^quote | (slash-ones)&^slash | (w-ones*0x20)&^w) & highs
}

// escape is the length of the escape sequence at the start of b, 0 if it is none.
func escape(b []byte) int {
	if len(b) < 2 {
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

func (s *scanner) number() error {
	if s.peek() == '-' {
		s.i++
	}
	switch c := s.peek(); {
	case c == '0':
		s.i++
	case c >= '1' && c <= '9':
		s.digits()
	default:
		return ErrSyntax
	}
	if s.peek() == '.' {
		s.i++
		if !s.digits() {
			return ErrSyntax
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.i++
		if c := s.peek(); c == '+' || c == '-' {
			s.i++
		}
		if !s.digits() {
			return ErrSyntax
		}
	}
	return nil
}

func (s *scanner) digits() bool {
	start := s.i
	for c := s.peek(); c >= '0' && c <= '9'; c = s.peek() {
		s.i++
	}
	return s.i > start
}

func (s *scanner) word(word string) error {
	if len(s.b)-s.i < len(word) || string(s.b[s.i:s.i+len(word)]) != word {
		return ErrSyntax
	}
	s.i += len(word)
	return nil
}
