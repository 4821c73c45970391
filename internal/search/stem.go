package search

import "strings"

// stem takes the English endings off a word that most often stand between a
// need and a name: files, creating, created. Both sides are stemmed, so that
// the stem need not be a word.
func stem(word string) string {
	word = singular(word)
	for _, ending := range []string{"ing", "ed"} {
		if root, ok := strings.CutSuffix(word, ending); ok && len(root) >= 3 && strings.ContainsAny(root, "aeiouy") {
			word = undouble(root)
			break
		}
	}
	if len(word) > 4 {
		word = strings.TrimSuffix(word, "e")
	}
	return word
}

func singular(word string) string {
	if len(word) < 4 || !strings.HasSuffix(word, "s") {
		return word
	}
	for _, ending := range []string{"ss", "us", "is"} {
		if strings.HasSuffix(word, ending) {
			return word
		}
	}
	if root, ok := strings.CutSuffix(word, "ies"); ok && len(root) > 1 {
		return root + "y"
	}
	for _, ending := range []string{"sses", "xes", "zes", "ches", "shes"} {
		if strings.HasSuffix(word, ending) {
			return word[:len(word)-2]
		}
	}
	return word[:len(word)-1]
}

// undouble turns "stopp" into "stop", and leaves "fill" and "press".
func undouble(root string) string {
	n := len(root)
	if root[n-1] == root[n-2] && !strings.ContainsRune("aeioulsz", rune(root[n-1])) {
		return root[:n-1]
	}
	return root
}

// stopWords are in every other request and tell no tool from another.
var stopWords = func() map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(`a about all an and any are as at be by can could do does for from
		give has have how i if in into is it its let like many me much my need no not of on one or our out please
		s should some someone t that the their them there these they this those to us want was we what when
		where which who why will with would you your`) {
		set[stem(word)] = true
	}
	return set
}()
