package child

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"mcpx/config"
)

// TestLongLinesOfStderr: a line is redacted before it is cut, even if it is much
// longer than what is kept.
func TestLongLinesOfStderr(t *testing.T) {
	secret := strings.Repeat("abc123", 5000)
	c, err := config.Parse("x.json", []byte(`{"mcpServers":{"a":{"command":"x","env":{"API_KEY":"`+secret+`"}}}}`), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	tail := NewStderr(r, c.Profiles[0].Upstreams[0].Redact, zerolog.Nop())
	go tail.Drain()
	for _, text := range []string{"bad key: ", secret, ".\nnext\n", strings.Repeat("x", 1<<20), "\nlast"} {
		if _, err := w.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	<-tail.drained
	want := []string{"bad key: ***.", "next", strings.Repeat("x", stderrLineBytes-len("…")) + "…", "last"}
	if got := tail.Lines(); !slices.Equal(got, want) {
		t.Errorf("kept %q, want %q", got, want)
	}
}
