package validate

import (
	"fmt"
	"slices"
	"strings"

	"mcpx/internal/nearest"
	"mcpx/internal/tokens"
)

const (
	// maxAllowedTokens bounds the list of allowed values in a problem. The values are
	// counted one by one: together they may have a few tokens more, but never 300.
	maxAllowedTokens = 280

	// maxAllowedShown bounds the characters of one allowed value.
	maxAllowedShown = 4000

	// maxComparisons bounds the search for near values: characters of the value times
	// characters of all allowed ones.
	maxComparisons = 300_000
)

// wrongValue reports a value that an enum or const does not have, and the values that
// it has, the nearest first.
func wrongValue(allowed []any, value any, at []string) finding {
	f := finding{allowed: allowed}
	hint := ""
	if got, ok := value.(string); ok && len(allowed) > 1 {
		if near := suggest(got, onlyStrings(allowed)); near != "" {
			hint = fmt.Sprintf("; did you mean %s?", showUpTo(near, maxAllowedShown))
		}
		allowed = nearestFirst(got, allowed)
	}
	f.Problem = problem(at, "expected %s, got %s%s", allowedList(allowed), show(value), hint).Problem
	return f
}

func onlyStrings(values []any) (texts []string) {
	for _, v := range values {
		if text, ok := v.(string); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

// nearestFirst returns the values with those first that are like a text.
func nearestFirst(got string, values []any) []any {
	got, _ = cut(got, maxCompared)
	texts := onlyStrings(values)
	work := 0
	for i, text := range texts {
		if work += (1 + len(got)) * len(text); work > maxComparisons {
			texts = texts[:i]
			break
		}
	}
	var sorted []any
	near := map[string]bool{}
	for _, text := range nearest.Words(got, texts, len(texts)) {
		sorted = append(sorted, text)
		near[text] = true
	}
	return append(sorted, slices.DeleteFunc(slices.Clone(values), func(v any) bool {
		text, ok := v.(string)
		return ok && near[text]
	})...)
}

// allowedList returns `a, b or c`: whole values, as many as there is room for.
func allowedList(values []any) string {
	var shown []string
	room := maxAllowedTokens
	for _, v := range values {
		text := showUpTo(v, maxAllowedShown)
		if room -= tokens.Count(text) + 2; room < 0 {
			break
		}
		shown = append(shown, text)
	}
	switch {
	case len(shown) == 0:
		return tokens.Shorten(showUpTo(values[0], maxAllowedShown), maxAllowedTokens)
	case len(shown) < len(values):
		return fmt.Sprintf("%s, … (%d in all)", strings.Join(shown, ", "), len(values))
	}
	return orList(shown)
}
