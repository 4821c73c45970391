package validate

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"mcpx/internal/tokens"
)

// TestAllowedListIsBounded: a list of allowed values has at most 300 tokens, shows the
// nearest value of all, and says how many there are.
func TestAllowedListIsBounded(t *testing.T) {
	for name, value := range map[string]func(i int) any{
		"words":   func(i int) any { return fmt.Sprintf("region-%d-zone", i) },
		"uuids":   func(i int) any { return fmt.Sprintf("%08x-9c41-4e7b-8d2f-%012x", i*7919, i*104729) },
		"numbers": func(i int) any { return json.Number(fmt.Sprint(1e15 + float64(i*7919))) },
		"kanji":   func(i int) any { return fmt.Sprintf("東京都新宿区西新宿%d丁目", i) },
		"rare":    func(i int) any { return fmt.Sprintf("鬱龍麤%d驫讖", i) },
		"objects": func(i int) any { return map[string]any{"id": json.Number(fmt.Sprint(i)), "k": "\x00\u202e"} },
		"huge":    func(i int) any { return strings.Repeat(fmt.Sprint(i), 1000) },
		"hostile": func(i int) any { return strings.Repeat("\U000e0001", 500) + fmt.Sprint(i) },
	} {
		t.Run(name, func(t *testing.T) {
			var values []any
			for i := range 1500 {
				values = append(values, value(i))
			}
			text := report([]finding{wrongValue(values, "region-1429-zoen", nil)})[0].Text
			if n := tokens.Count(allowedList(values)); n > 300 {
				t.Errorf("%d tokens: %s", n, text)
			}
			if name == "words" && !strings.HasPrefix(text, `expected "region-1429-zone", `) || !strings.Contains(text, "…") {
				t.Errorf("the list is %.200s", text)
			}
			if strings.ContainsAny(text, "\x00\n\u202e") || len(text) > 10_000 {
				t.Errorf("%d bytes: %q", len(text), text)
			}
		})
	}
}
