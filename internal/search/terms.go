package search

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// wordTerms are a word as the index knows it: lower-cased, stemmed, an identifier
// also in its parts, so that both "one drive" and "onedrive" find OneDrive.
func wordTerms(word string) iter.Seq[string] {
	if r, _ := utf8.DecodeRuneInString(word); unspaced(r) {
		return grams(word)
	}
	return func(yield func(string) bool) {
		for rest := word; rest != ""; {
			n := partLength(rest)
			if n == len(word) {
				break
			}
			if !yield(stem(strings.ToLower(rest[:n]))) {
				return
			}
			rest = rest[n:]
		}
		yield(stem(strings.ToLower(word)))
	}
}

// grams are the characters and the pairs of neighbours in a text that is
// written without spaces.
func grams(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		before := 0
		for i, r := range text {
			end := i + utf8.RuneLen(r)
			if !yield(text[i:end]) || i > 0 && !yield(text[before:end]) {
				return
			}
			before = i
		}
	}
}

// words are the runs of letters and digits in a text; scripts without spaces
// are runs of their own.
func words(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		start, startBare := -1, false
		for i, r := range text {
			inWord := unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
			bare := inWord && unspaced(r)
			if start >= 0 && (!inWord || bare != startBare) {
				if !yield(text[start:i]) {
					return
				}
				start = -1
			}
			if start < 0 && inWord {
				start, startBare = i, bare
			}
		}
		if start >= 0 {
			yield(text[start:])
		}
	}
}

// partLength is the length of the first part of an identifier: it ends where
// letters meet digits, at "xY" and before the last capital of "XYz".
func partLength(word string) int {
	before, size := utf8.DecodeRuneInString(word)
	for i := size; i < len(word); {
		r, size := utf8.DecodeRuneInString(word[i:])
		next, _ := utf8.DecodeRuneInString(word[i+size:])
		switch {
		case unicode.IsDigit(before) != unicode.IsDigit(r):
			return i
		case unicode.IsUpper(r) && unicode.IsLower(before):
			return i
		case unicode.IsUpper(r) && unicode.IsUpper(before) && unicode.IsLower(next):
			return i
		}
		before = r
		i += size
	}
	return len(word)
}

// unspaced tells the scripts in which spaces do not part words. Korean has
// spaces, but its words carry their particles.
func unspaced(r rune) bool {
	return r >= 0x2e80 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}
