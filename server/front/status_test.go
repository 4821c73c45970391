package front

import (
	"strings"
	"testing"
)

func TestStatus(t *testing.T) {
	s := serveHTTP(t, upstream(t, "one"))
	s.registry.Settled(t.Context(), "one")
	got := whole(t, s.do(t, "GET", "/status", ""))
	for _, want := range []string{
		`200 {"version":"1.2.3","sessions":0,"schemas":{"default":[{"name":"one","transport":"stdio","state":"ready","startup_ms":`,
		`"other":[{"name":"x","transport":"","state":"starting","tools":0,"prompts":0,"resources":0,"estimated_tokens":0}]},"context":{"default":{"estimated_without":`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("status has no %s: %s", want, got)
		}
	}
}
