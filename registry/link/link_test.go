package link

import (
	"strings"
	"testing"
)

// TestExcerptRedactsBeforeItCuts: no part of a long secret is left.
func TestExcerptRedactsBeforeItCuts(t *testing.T) {
	secret := strings.Repeat("abc123", 5000)
	redact := func(text string) string { return strings.ReplaceAll(text, secret, "***") }
	if got := Excerpt(redact, []byte("a stray "+secret+" line")); got != "a stray *** line" {
		t.Errorf("an excerpt is %q", got)
	}
}
