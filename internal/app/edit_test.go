package app

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"mcpx/config"
	"mcpx/internal/parts/signin/signintest"
)

// TestCheckServer: the check of a server that is not saved returns its last state. For a server
// that uses OAuth it says that a sign-in is needed, and does not advise a header.
func TestCheckServer(t *testing.T) {
	remote := signintest.New(t)
	file := filepath.Join(t.TempDir(), "mcpx.json")
	text := []byte(`{"auth":{"store":"file"},"mcpServers":{}}`)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	c, err := config.Parse(file, text, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(c, "", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	a.Load = func() (*config.Config, error) { return c, nil }
	err = a.Run(t.Context(), func(ctx context.Context) error {
		for _, row := range []struct{ name, entry, state, reason string }{
			{"OAuth", `{"url":"` + remote.URL + `"}`, "needs sign-in", "needs sign-in: add the server, then run mcpx auth login " + file + " s"},
			{"no such command", `{"command":"mcpx-no-such-program"}`, "failed", "mcpx-no-such-program"},
			{"ends at once", `{"command":` + strconv.Quote(os.Args[0]) + `,"args":["-test.run=^$"]}`, "failed", "exited"},
		} {
			u, _, err := a.checkServer(ctx, "default", "s", []byte(row.entry))
			if err != nil {
				t.Errorf("%s: %v", row.name, err)
				continue
			}
			if string(u.State) != row.state || !strings.Contains(u.Reason, row.reason) || strings.Contains(u.Reason+u.Advice(), "Bearer") {
				t.Errorf("%s: got %s, %q, advice %q", row.name, u.State, u.Reason, u.Advice())
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
