package cli

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// TestOrdered: the config becomes a flag after the command's name, whether it is named or
// found. Flags come before arguments; within both, the order stays.
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
		{"ends in .json", "remove new.json a", "remove --config=new.json a"},
		{"ends in .jsonc", "remove new.jsonc a", "remove --config=new.jsonc a"},
		{"is a file", "remove time a", "remove --config=time a"},
		{"is a folder", "remove folder a", "remove --config=mcpx.json folder a"},
		{"is no file", "remove a b", "remove --config=mcpx.json a b"},
		{"a server may have the name of a file", "remove time", "remove --config=mcpx.json time"},
		{"flag", "remove --config x a", "remove --config=x a"},
		{"flag before the command", "--config=x remove a", "remove --config=x a"},
		{"flag at the end", "exec a b --config x", "exec --config=x a b"},
		{"no server", "remove", "remove --config=mcpx.json"},
		{"other flags keep their order", "--log-level debug exec --select x new.json a --json b c=1", "exec --config=new.json --log-level=debug --select=x --json a b c=1"},
		{"a command in a group", "auth login new.json a --scope x", "auth login --config=new.json --scope=x a"},
		{"a command without arguments", "check folder", "check --config=folder"},
		{"no command", "--port 0 new.json", "--config=new.json --port=0"},
		{"add a URL", "add new.json a https://x", "add --config=new.json a https://x"},
		{"add a server with the name of a file", "add time https://x", "add --config=mcpx.json time https://x"},
		{"add a command", "add time -- npx -y x", "add --config=mcpx.json time"},
		{"add a command to a file", "add time a -- npx -y x", "add --config=time a"},
		{"a command that only reads", "inspect time a", "inspect --config=time a"},
		{"a command needs no server", "check", "check"},
		{"a URL", "exec --json https://a.example/mcp b c=1", "exec --schema=default --json a.example b c=1"},
		{"a flag after the command of a server", "exec a -- x --config y", "exec --schema=default x a"},
		{"all servers are one", "check --json -- x", "check --schema=default --json"},
		{"help", "inspect new.json a --help", "inspect --help"},
		{"no config is needed", "completion bash", "completion bash"},
		{"words to complete", "__complete list --config=", "__complete list --config="},
		{"a config that is only a flag", "install x.json --config x", "install x.json --config x"},
	} {
		t.Run(row.name, func(t *testing.T) {
			words, err := order(t, strings.Fields(row.words)...)
			if got := strings.Join(words, " "); err != nil || got != row.want {
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
	for _, words := range [][]string{{"--config="}, {"list", "--config", ""}, {"exec", "a", "b", "--config="}, {"install", "cursor", "--config", ""}} {
		if words, err := order(t, words...); !errors.As(err, &usageError{}) || err.Error() != "--config is empty" {
			t.Errorf("an empty config: %q, %v", words, err)
		}
	}
}

// order orders the words of a command line.
func order(t *testing.T, words ...string) ([]string, error) {
	t.Helper()
	parser, err := kong.New(&cli{}, kong.Vars{"version": ""})
	if err != nil {
		t.Fatal(err)
	}
	return (&invocation{}).ordered(parser.Model, words)
}
