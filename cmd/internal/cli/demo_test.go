package cli

import (
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTemporary(t *testing.T) {
	hash := strings.Repeat("0123456789abcdef", 4)
	for path, want := range map[string]bool{
		"/tmp/go-build4026602037/b001/exe/mcpx":             true,
		"/home/me/.cache/go-build/01/" + hash + "-d/mcpx":   true,
		"/ci/cache/01/" + hash + "-d/mcpx":                  true, // any GOCACHE
		"/home/me/go/bin/mcpx":                              false,
		"/home/me/go-build1/mcpx":                           false,
		"/usr/local/bin/mcpx":                               false,
		`C:\Users\me\AppData\Local\Programs\bin\mcpx`:       false,
		"/home/me/go-build4026602037/b001/exe/bin/mcpx":     false,
		"/home/me/.cache/go-build/01/" + hash + "-d/x/mcpx": false,
	} {
		if got := temporary(filepath.FromSlash(path)); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}

func TestShellLine(t *testing.T) {
	got := shellLine("go run ./cmd/mcpx", []string{"exec", "/a folder/mcpx.json", "mcpx", "search", "query=draw a chart", "--schema=default"})
	if want := "go run ./cmd/mcpx exec '/a folder/mcpx.json' mcpx search query='draw a chart' --schema=default"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestTourFits: the text of the tour fits into 80 columns.
func TestTourFits(t *testing.T) {
	for _, step := range tourSteps("mcpx.json") {
		for line := range strings.Lines("1. " + step.title) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Errorf("%d columns: %s", n, line)
			}
		}
	}
}

// TestTourConfig: without a usable cache folder the config is in a temporary one.
func TestTourConfig(t *testing.T) {
	t.Chdir(t.TempDir())
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	t.Setenv("XDG_CACHE_HOME", "/dev/null")
	t.Setenv("HOME", "/dev/null") // macOS
	path, err := tourConfig()
	if err != nil || !strings.HasPrefix(path, temp) {
		t.Errorf("%s, %v", path, err)
	}
}
