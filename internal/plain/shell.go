package plain

import "strings"

// ShellWord quotes a word for a shell, if needed.
func ShellWord(word string) string {
	if word != "" && !strings.ContainsFunc(word, isSpecial) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// ShellLine returns a command line for a shell.
func ShellLine(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = ShellWord(word)
	}
	return strings.Join(quoted, " ")
}

// isSpecial reports whether a character may mean something to a shell.
func isSpecial(r rune) bool {
	isAlphanumeric := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
	return !isAlphanumeric && !strings.ContainsRune("-_./:=@%+,", r)
}
