package exact

import "testing"

func TestCount(t *testing.T) {
	for text, want := range map[string]int{"": 0, "hello": 1, "hello world": 2, `{"type":"object"}`: 5, "日本語": 2} {
		if got := Count(text); got != want {
			t.Errorf("Count(%q) = %d, want %d", text, got, want)
		}
	}
}
