package tokens

import "unicode/utf8"

const (
	// windowSize is the number of bytes that are encoded at a time. Encoding takes time
	// quadratic in it. It must hold two tokens.
	windowSize = 2 * longestToken

	// groupSize is the number of keys whose lowest one is remembered, so that a search for
	// the lowest of all is short (BenchmarkLongPiece).
	groupSize = 16

	// overlap is the number of bytes at the end of a window that the next one encodes
	// again, because the bytes after them can change how they are encoded.
	overlap = longestToken / 2

	// borders is the number of places where a window may end that are tried.
	borders = 8

	// repairSize is the number of bytes that are repaired at a time.
	repairSize = 16 << 10
)

// encoder splits pieces into tokens. Its memory does not depend on their length.
type encoder struct {
	windows [2]window
}

// piece returns how many tokens the last piece of the scanner has, at most limit, and how
// many of its bytes they have.
func (c *counter) piece(piece string, limit int) (tokens, size int) {
	if !c.invalid {
		return c.encode(piece, limit)
	}
	for size < len(piece) {
		part := piece[size:]
		if len(part) > repairSize {
			part = part[:runeStart(part, 0, repairSize)]
		}
		repaired := string([]rune(part))
		n, end := c.encode(repaired, limit-tokens)
		tokens += n
		if end < len(repaired) {
			return tokens, size + sizeBefore(part, end)
		}
		size += len(part)
	}
	return tokens, size
}

// sizeBefore returns how many bytes of text are in the first n bytes of repaired text.
func sizeBefore(text string, n int) (size int) {
	for i, r := range text {
		if n -= utf8.RuneLen(r); n < 0 {
			return i
		}
	}
	return len(text)
}

// encode returns how many tokens the piece has, at most limit, and how many of its bytes
// they have.
func (e *encoder) encode(piece string, limit int) (tokens, size int) {
	switch {
	case limit <= 0:
		return 0, 0
	case rank(piece) != noRank:
		return 1, len(piece)
	}
	current, next := &e.windows[0], &e.windows[1]
	current.encode(piece)
	for size+windowSize < len(piece) {
		n := current.advance(next, piece[size:])
		if tokens+n > limit {
			break
		}
		tokens += n
		size += int(current.starts[n])
		current, next = next, current
	}
	if n := current.tokens; tokens+n <= limit {
		return tokens + n, len(piece)
	}
	return limit, size + int(current.starts[limit-tokens])
}

// window is the start of a text, split into tokens.
type window struct {
	tokens int
	starts [windowSize + 1]uint16 // of each token; the last one is the end of the window

	// While it is split, these describe the token that starts at an index: the starts of its
	// neighbors, and its key.
	previous, next [windowSize + 1]uint16
	keys           [windowSize]uint32
	lowest         [windowSize / groupSize]uint32 // key of each group of tokens
}

// advance encodes the next window of a text, and returns the number of tokens of this one
// that are before it. The tokens of a text are those of its two parts if the last token of
// the first and the first token of the second do not merge when they are encoded together.
// So the result is the same as if the whole piece had been encoded at once. Should none of
// the last borders be like this, the count could be a token too high. No such text is known.
func (w *window) advance(next *window, text string) (tokens int) {
	last := w.tokens
	for w.starts[last] > windowSize-overlap {
		last--
	}
	for n := last; n > max(0, last-borders); n-- {
		if next.encode(text[w.starts[n]:]); w.separate(next, text, n) {
			return n
		}
	}
	next.encode(text[w.starts[last]:])
	return last
}

// separate reports whether the token before the next window and its first token stay two
// tokens.
func (w *window) separate(next *window, text string, n int) bool {
	from, border := w.starts[n-1], w.starts[n]
	to := border + next.starts[1]
	if to == w.starts[n+1] {
		return true // they are neighbors in this window
	}
	var both window
	both.encode(text[from:to])
	return both.tokens == 2 && both.starts[1] == border-from
}

// encode splits the first bytes of text. It begins with single bytes and merges two
// neighbors into the token of the lowest rank, the leftmost first, until none merge.
func (w *window) encode(text string) {
	text = text[:min(len(text), windowSize)]
	groups := w.start(text)
	for {
		key := lowest(w.lowest[:groups])
		if key == noKey {
			break
		}
		at := int(key % windowSize)
		middle := int(w.next[at])
		end := w.next[middle]
		w.next[at], w.previous[end] = end, uint16(at)
		w.tokens--
		w.set(middle, noKey)
		w.set(at, w.key(text, at))
		if at > 0 {
			before := int(w.previous[at])
			w.set(before, w.key(text, before))
		}
	}
	at := uint16(0)
	for i := range w.tokens {
		w.starts[i] = at
		at = w.next[at]
	}
	w.starts[w.tokens] = at
}

// start makes a token of each byte, and returns the number of groups they have.
func (w *window) start(text string) (groups int) {
	w.tokens = len(text)
	for i := range len(text) {
		w.previous[i], w.next[i] = uint16(max(i-1, 0)), uint16(i+1)
	}
	groups = (len(text) + groupSize - 1) / groupSize
	for i := range groups * groupSize {
		w.keys[i] = w.key(text, i)
	}
	for i := range groups {
		w.lowest[i] = lowest(w.group(i))
	}
	return groups
}

// group returns the keys of a group.
func (w *window) group(i int) []uint32 { return w.keys[i*groupSize : (i+1)*groupSize] }

// set changes a key, and the lowest one of its group.
func (w *window) set(at int, key uint32) {
	group := at / groupSize
	old := w.keys[at]
	w.keys[at] = key
	switch {
	case key < w.lowest[group]:
		w.lowest[group] = key
	case old == w.lowest[group]:
		w.lowest[group] = lowest(w.group(group))
	}
}

// noKey is the key of a token that does not merge with the next one.
const noKey = 1<<32 - 1

// key returns the rank of the token that starts at an index merged with the next one,
// and the index: the lowest key is the leftmost of the lowest ranks.
func (w *window) key(text string, at int) uint32 {
	if at+1 >= len(text) || int(w.next[at]) >= len(text) {
		return noKey
	}
	rank := rank(text[at:w.next[w.next[at]]])
	if rank == noRank {
		return noKey
	}
	return rank*windowSize + uint32(at)
}

func lowest(keys []uint32) uint32 {
	low := uint32(noKey)
	for _, key := range keys {
		low = min(low, key)
	}
	return low
}
