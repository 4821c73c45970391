package redact

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

var secretWords = []string{"key", "token", "secret", "pass", "pwd", "auth", "credential", "cookie"}

// IsSecretName reports whether a value with this name is likely a secret.
func IsSecretName(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(secretWords, func(w string) bool { return strings.Contains(name, w) })
}

var (
	tokenPrefix = regexp.MustCompile(`^(sk-|gh[a-z]_|github_pat_|glpat-|xox|AKIA|eyJ)\S{6,}$`)
	tokenText   = regexp.MustCompile(`^[A-Za-z0-9]{20,}$`)
)

// LooksLikeToken reports whether a text is likely a secret, whatever its name is.
func LooksLikeToken(text string) bool {
	return tokenPrefix.MatchString(text) ||
		tokenText.MatchString(text) && strings.ContainsAny(text, "0123456789") && strings.Trim(text, "0123456789") != ""
}

var ordinary = []string{
	"production", "development", "staging", "testing", "default", "enabled", "disabled",
	"warning", "verbose", "latest", "localhost", "bearer", "oauth2",
}

// shortest is the length of the shortest secret, in bytes.
const shortest = 6

func isShort(value string) bool { return len(value) < shortest }

// IsTrivial reports whether hiding a value would only remove ordinary text: the value is
// short, a common word, or a path that exists.
func IsTrivial(value string) bool {
	if isShort(value) || slices.Contains(ordinary, strings.ToLower(value)) {
		return true
	}
	for _, path := range filepath.SplitList(value) {
		if !filepath.IsAbs(path) {
			return false
		}
		if _, err := os.Stat(path); err != nil {
			return false
		}
	}
	return true
}

// WithLines returns a value and each of its lines, because programs print them
// separately. Line breaks may be written as \n.
func WithLines(value string) []string {
	texts := []string{value}
	if IsTrivial(value) {
		return texts
	}
	for _, text := range []string{value, backslashes.decode(value)} {
		texts = append(texts, text, strings.TrimSpace(text))
		for line := range strings.Lines(text) {
			if line != text && strings.ContainsFunc(line, isLetterOrDigit) { // not a separator line
				texts = append(texts, strings.TrimSpace(line))
			}
		}
	}
	return texts
}

func isLetterOrDigit(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
