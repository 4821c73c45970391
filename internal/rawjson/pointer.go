package rawjson

import "strings"

// Tokens splits a JSON Pointer into its decoded reference tokens. The slash at its
// start may be missing.
func Tokens(pointer string) []string {
	tokens := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, token := range tokens {
		tokens[i] = pointerEscapes.Replace(token)
	}
	return tokens
}

var (
	pointerEscapes = strings.NewReplacer("~1", "/", "~0", "~")
	tokenEscapes   = strings.NewReplacer("/", "~1", "~", "~0")
)
