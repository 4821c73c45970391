package cli

import (
	"testing"
	"time"

	"mcpx/cmd/internal/terminal"
)

// TestUnknownSignIn: a server without a sign-in has the same mark in every column.
func TestUnknownSignIn(t *testing.T) {
	for i, c := range (authStatus{Server: "s", State: stateNotSignedIn}).row(time.Now())[2:] {
		if c.Text != terminal.None {
			t.Errorf("column %d: %q", i+2, c.Text)
		}
	}
}
