package app

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpx/config"
	"mcpx/executor"
)

// TestProfileInLog: if several profiles are served, the lines about servers and calls name
// theirs.
func TestProfileInLog(t *testing.T) {
	const one = `{"mcpServers":{"a":{"command":"mcpx-no-such-program"}}}`
	const two = `{"logging":{"level":"info","format":"json"},"schemas":{"default":` + one + `,"work":` + one + `}}`
	for _, row := range []struct {
		name, profile string
		want          []string // the field in the lines of each profile
	}{
		{"all", "", []string{`"schema":"default"`, `"schema":"work"`}},
		{"one of them", "work", []string{""}},
	} {
		t.Run(row.name, func(t *testing.T) {
			c, err := config.Parse(filepath.Join(t.TempDir(), "mcpx.json"), []byte(two), os.LookupEnv)
			if err != nil {
				t.Fatal(err)
			}
			var stderr bytes.Buffer
			a, err := New(c, row.profile, &stderr)
			if err != nil {
				t.Fatal(err)
			}
			err = a.Run(t.Context(), func(ctx context.Context) error {
				for _, p := range a.Profiles() {
					p.Registry.Settled(ctx, "a")
					_, _ = p.Executor.Call(ctx, executor.Call{Server: "a", Tool: "echo"})
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, message := range []string{"upstream down", "call"} {
				lines := linesWith(stderr.String(), `"message":"`+message+`"`)
				for _, field := range row.want {
					if len(linesWith(lines, field)) == 0 {
						t.Errorf("%s: no line with %s in\n%s", message, field, lines)
					}
				}
				if named := linesWith(lines, `"schema"`); row.profile != "" && named != "" {
					t.Errorf("%s: one profile is served, and a line names it: %s", message, named)
				}
			}
		})
	}
}

// linesWith returns the lines of a text that contain part.
func linesWith(text, part string) (found string) {
	for line := range strings.Lines(text) {
		if strings.Contains(line, part) {
			found += line
		}
	}
	return found
}
