package search

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// wordTerms returns the terms of a word: in lower case and stemmed, an identifier also
// in its parts, so that both "one drive" and "onedrive" find OneDrive.
func wordTerms(word string) []string {
	if r, _ := utf8.DecodeRuneInString(word); unspaced(r) {
		return grams(word)
	}
	var terms []string
	for rest := word; rest != ""; {
		n := partLength(rest)
		if n == len(word) {
			break
		}
		terms = append(terms, stem(strings.ToLower(rest[:n])))
		rest = rest[n:]
	}
	return append(terms, stem(strings.ToLower(word)))
}

// grams returns the characters and the pairs of adjacent characters of a text that is
// written without spaces.
func grams(text string) (terms []string) {
	before := 0
	for i, r := range text {
		end := i + utf8.RuneLen(r)
		terms = append(terms, text[i:end])
		if i > 0 {
			terms = append(terms, text[before:end])
		}
		before = i
	}
	return terms
}

// words returns the runs of letters and digits in a text. Scripts without spaces form
// their own runs.
func words(text string) (found []string) {
	start, startBare := -1, false
	for i, r := range text {
		inWord := unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
		bare := inWord && unspaced(r)
		if start >= 0 && (!inWord || bare != startBare) {
			found = append(found, text[start:i])
			start = -1
		}
		if start < 0 && inWord {
			start, startBare = i, bare
		}
	}
	if start >= 0 {
		found = append(found, text[start:])
	}
	return found
}

// partLength returns the length of the first part of an identifier. A part ends between
// letters and digits, between "x" and "Y", and before the last capital of "XYz".
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

// unspaced reports whether a script does not separate words with spaces. Korean has
// spaces, but its words include particles.
func unspaced(r rune) bool {
	return r >= 0x2e80 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

// stem removes common English endings: files, creating, created. Queries and documents
// are both stemmed, so that the stem need not be a word.
func stem(word string) string {
	word = singular(word)
	for _, ending := range []string{"ing", "ed"} {
		if root, ok := strings.CutSuffix(word, ending); ok && len(root) >= 3 && strings.ContainsAny(root, "aeiouy") {
			word = infinitive(root)
			break
		}
	}
	if len(word) > 4 {
		word = strings.TrimSuffix(word, "e")
	}
	return word
}

func singular(word string) string {
	ends := func(in string) bool { return strings.HasSuffix(word, in) }
	if len(word) < 4 || !ends("s") || slices.ContainsFunc([]string{"ss", "us", "is"}, ends) {
		return word
	}
	if root, ok := strings.CutSuffix(word, "ies"); ok && len(root) > 1 {
		return root + "y"
	}
	if slices.ContainsFunc([]string{"sses", "xes", "zes", "ches", "shes"}, ends) {
		return word[:len(word)-2]
	}
	return word[:len(word)-1]
}

// infinitive turns "stopp" into "stop" and "mov" into "move", and leaves "fill" and "add".
func infinitive(root string) string {
	n := len(root)
	if n == 3 && strings.ContainsRune("aeiouy", rune(root[1])) && !strings.ContainsRune("aeiouwxy", rune(root[2])) {
		return root + "e"
	}
	if n > 3 && root[n-1] == root[n-2] && !strings.ContainsRune("aeioulsz", rune(root[n-1])) {
		return root[:n-1]
	}
	return root
}

// stopWords are too common to distinguish tools.
var stopWords = stemSet(`
		a about after again all also am an and any anybody anyone anything are as at be because been before being
		between but by can could did do does during each even every everybody everyone everything few for from give
		had has have he her him his how i if in into is it its just let like many may maybe me might more most much
		must my need no not of on one only or other our out over please quite s several she should so some somebody
		someone something t than that the their them then there these they this those through to too under up us use
		used using very want was we were what when where whether which while who whom whose why will with without
		would you your`)

// emptyWords say nothing in the name of a server, where they are common, and little in a query:
// "server: files, tool: read a sheet".
var emptyWords = stemSet(`api mcp server tool`)

func stemSet(words string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(words) {
		set[stem(word)] = true
	}
	return set
}

// isNumber reports whether a term has only digits. Numbers in a query are data.
func isNumber(term string) bool {
	return term != "" && strings.Trim(term, "0123456789") == ""
}
