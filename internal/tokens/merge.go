package tokens

import "slices"

const (
	// windowSize is the number of bytes that are encoded at a time. Encoding takes time
	// quadratic in it. It must hold two tokens.
	windowSize = 2 * longestToken

	// overlap is the number of bytes at the end of a window that the next one encodes
	// again, because the bytes after them can change how they are encoded.
	overlap = longestToken / 2

	// borders is the number of places where a window may end that are tried.
	borders = 8
)

// encode returns how many tokens the piece has, at most limit, and how many of its bytes
// they have.
func (c *counter) encode(piece string, limit int) (tokens, size int) {
	switch {
	case limit <= 0:
		return 0, 0
	case rank(piece) != noRank:
		return 1, len(piece)
	}
	current, next := &c.windows[0], &c.windows[1]
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
	ranks  [windowSize]uint32     // of each token merged with the next one
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
	w.tokens = min(len(text), windowSize)
	for i := range w.tokens + 1 {
		w.starts[i] = uint16(i)
	}
	for i := range w.tokens {
		w.ranks[i] = w.merged(text, i)
	}
	for {
		low := slices.Min(w.ranks[:w.tokens])
		if low == noRank {
			return
		}
		at := slices.Index(w.ranks[:w.tokens], low)
		copy(w.starts[at+1:w.tokens], w.starts[at+2:w.tokens+1])
		copy(w.ranks[at+1:w.tokens-1], w.ranks[at+2:w.tokens])
		w.tokens--
		w.ranks[at] = w.merged(text, at)
		if at > 0 {
			w.ranks[at-1] = w.merged(text, at-1)
		}
	}
}

// merged returns the rank of a token merged with the next one, or noRank if they do not
// merge.
func (w *window) merged(text string, token int) uint32 {
	if token+1 >= w.tokens {
		return noRank
	}
	return rank(text[w.starts[token]:w.starts[token+2]])
}
