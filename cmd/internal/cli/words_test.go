package cli

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// TestOrdered: the config always comes first, whether it is named or found.
func TestOrdered(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("time", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir("folder", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("mcpx.json", []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("MCPX_CONFIG", "")
	for _, row := range []struct{ name, words, want string }{
		{"ends in .json", "remove new.json a", "remove new.json a"},
		{"ends in .jsonc", "remove new.jsonc a", "remove new.jsonc a"},
		{"is a file", "remove time a", "remove time a"},
		{"is a folder", "remove folder a", "remove mcpx.json folder a"},
		{"is no file", "remove a b", "remove mcpx.json a b"},
		{"a server may have the name of a file", "remove time", "remove mcpx.json time"},
		{"flag", "remove --config x a", "remove x a"},
		{"flag before the command", "--config=x remove a", "remove x a"},
		{"no server", "remove", "remove mcpx.json"},
		{"add a URL", "add new.json a https://x", "add new.json a https://x"},
		{"add a server with the name of a file", "add time https://x", "add mcpx.json time https://x"},
		{"add a command", "add time -- npx -y x", "add mcpx.json time"},
		{"add a command to a file", "add time a -- npx -y x", "add time a"},
		{"a command that only reads", "inspect time a", "inspect time a"},
		{"a flag after the command of a server", "exec a -- x --config y", "exec x --config y x a"},
		{"no config is needed", "completion bash", "completion bash"},
	} {
		t.Run(row.name, func(t *testing.T) {
			words, err := order(t, strings.Fields(row.words)...)
			if got := strings.Join(words, " "); err != nil || !strings.HasPrefix(got, row.want) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	_, err := order(t, "remove", "--config", "x", "new.json", "a")
	var advice hinted
	if !errors.As(err, &usageError{}) || !errors.As(err, &advice) || advice.hint != "leave one of them out" {
		t.Errorf("got %v", err)
	}
	if words, err := order(t, "check", ""); !errors.As(err, &usageError{}) || err.Error() != "the first argument is empty" {
		t.Errorf("an empty config: %q, %v", words, err)
	}
}

// order orders the words of a command line.
func order(t *testing.T, words ...string) ([]string, error) {
	t.Helper()
	parser, err := kong.New(&cli{}, kong.Vars{"version": ""})
	if err != nil {
		t.Fatal(err)
	}
	return (&terminal{}).ordered(parser.Model, words)
}
