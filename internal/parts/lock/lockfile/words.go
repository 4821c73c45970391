package lockfile

import (
	"strings"
	"unicode"
)

// edit is a part of a word diff.
type edit struct {
	text  string
	state byte // ' ' in both texts, '-' only in the old one, '+' only in the new one
}

// maxTable bounds the work for a word diff: the product of the numbers of words.
const maxTable = 4 << 20

// wordDiff returns the difference of two texts, word by word.
func wordDiff(old, now string) []edit {
	a, b := words(old), words(now)
	var edits, end []edit
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		edits, a, b = append(edits, edit{a[0], ' '}), a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		end, a, b = append(end, edit{a[len(a)-1], ' '}), a[:len(a)-1], b[:len(b)-1]
	}
	edits = append(edits, middle(a, b)...)
	for i := len(end) - 1; i >= 0; i-- {
		edits = append(edits, end[i])
	}
	return join(edits)
}

// words splits a text into words, and the characters between them.
func words(text string) (all []string) {
	start, wasWord := 0, false
	for i, r := range text {
		isWord := unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_'
		if i > 0 && (!isWord || !wasWord) {
			all = append(all, text[start:i])
			start = i
		}
		wasWord = isWord
	}
	if start < len(text) {
		all = append(all, text[start:])
	}
	return all
}

// middle compares words by their longest common subsequence. If there are too many, all
// words are different.
func middle(a, b []string) (edits []edit) {
	if len(a)*len(b) > maxTable {
		return []edit{{strings.Join(a, ""), '-'}, {strings.Join(b, ""), '+'}}
	}
	width := len(b) + 1
	length := make([]int32, (len(a)+1)*width) // of the common subsequence of a[i:] and b[j:]
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				length[i*width+j] = length[(i+1)*width+j+1] + 1
			} else {
				length[i*width+j] = max(length[(i+1)*width+j], length[i*width+j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] == b[j]:
			edits = append(edits, edit{a[i], ' '})
			i, j = i+1, j+1
		case length[(i+1)*width+j] >= length[i*width+j+1]:
			edits = append(edits, edit{a[i], '-'})
			i++
		default:
			edits = append(edits, edit{b[j], '+'})
			j++
		}
	}
	edits = append(edits, edit{strings.Join(a[i:], ""), '-'}, edit{strings.Join(b[j:], ""), '+'})
	return edits
}

// join joins neighbors of the same state. Between two changes, removed text comes before
// added text.
func join(edits []edit) (joined []edit) {
	var removed, added strings.Builder
	flush := func() {
		for _, part := range []edit{{removed.String(), '-'}, {added.String(), '+'}} {
			if part.text != "" {
				joined = append(joined, part)
			}
		}
		removed.Reset()
		added.Reset()
	}
	for i, e := range edits {
		switch {
		case e.state == '-':
			removed.WriteString(e.text)
		case e.state == '+':
			added.WriteString(e.text)
		case e.text == " " && i+1 < len(edits) && edits[i+1].state != ' ' && removed.Len() > 0 && added.Len() > 0:
			removed.WriteString(e.text) // one change of two words reads better than two
			added.WriteString(e.text)
		default:
			flush()
			if n := len(joined); n > 0 && joined[n-1].state == ' ' {
				joined[n-1].text += e.text
			} else {
				joined = append(joined, e)
			}
		}
	}
	flush()
	return joined
}
