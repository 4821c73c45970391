package e2e

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// runnableCommands need no network and end by themselves.
var runnableCommands = []string{"check", "completion", "config", "exec", "import", "inspect", "man", "tokens", "--help", "--version"}

// docsCommand is an mcpx command on a page of the docs.
type docsCommand struct {
	where     string // page and line
	program   string // mcpx or mcpx-sse
	args      []string
	inBlock   bool   // in a block of shell commands, not inside a sentence
	wantError string // the line "error: …" that the page shows below it
}

// TestDocsCommands: every mcpx command in the docs exists and has the flags shown. Those
// that need no network also run.
func TestDocsCommands(t *testing.T) {
	t.Parallel()
	total := 0
	for _, page := range docsPages(t) {
		commands := docsCommands(page, readFile(t, page))
		total += len(commands)
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			folder := docsFolder(t)
			for _, c := range commands {
				if c.wantError == "" {
					c.checkParses(t, folder)
				}
				if c.isRunnable() {
					c.checkRuns(t, folder)
				}
			}
		})
	}
	if total < 80 {
		t.Errorf("only %d commands were found in the docs", total)
	}
}

// TestDocsConfigs: every config in the docs is valid.
func TestDocsConfigs(t *testing.T) {
	t.Parallel()
	block := regexp.MustCompile("(?s)\n *```jsonc\n(.*?)```")
	variable := regexp.MustCompile(`\$\{(\w+)`)
	secret := regexp.MustCompile(`\$\{file:([\w./~-]+)`)
	folder := t.TempDir()
	file := filepath.Join(folder, "mcpx.json")
	for _, page := range docsPages(t) {
		for _, found := range block.FindAllStringSubmatch(readFile(t, page), -1) {
			if err := os.WriteFile(file, []byte(found[1]), 0o600); err != nil {
				t.Fatal(err)
			}
			check := exec.Command(binary, "config", "check", file)
			for _, name := range variable.FindAllStringSubmatch(found[1], -1) {
				value := "set-" + name[1] // two tokens must differ
				if strings.HasSuffix(name[1], "_KEY") {
					sum := sha256.Sum256([]byte(value))
					value = base64.StdEncoding.EncodeToString(sum[:])
				}
				check.Env = append(check.Env, name[1]+"="+value)
			}
			check.Env = append(check.Env, "HOME="+folder, "MCPX_SESSION_KEY="+sessionKey(1))
			for _, name := range secret.FindAllStringSubmatch(found[1], -1) {
				path := filepath.Join(folder, strings.TrimPrefix(name[1], "~/"))
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			out, err := check.CombinedOutput()
			if err != nil || strings.Contains(string(out), "warning:") {
				t.Errorf("%s: %v\n%s\n%s", page, err, found[1], out)
			}
		}
	}
}

// checkParses runs the command with --help, to check only its words.
func (c docsCommand) checkParses(t *testing.T, folder string) {
	t.Helper()
	if len(c.args) > 0 && (c.args[0] == "COMMAND") {
		return
	}
	args := slices.Clone(c.args)
	if i := slices.Index(args, "--"); i >= 0 {
		args = args[:i]
	}
	if i := slices.Index(args, "CONFIG"); i >= 0 {
		args[i] = "mcpx.json"
	}
	cmd := exec.Command(c.path(), append(args, "--help")...)
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s shows a command that mcpx does not know: %s\n%s", c.where, c, out)
	}
}

// placeholder matches a word that the reader replaces.
var placeholder = regexp.MustCompile(`^[A-Z_]+$|…|^https?://`)

// isRunnable reports whether the test can run the command.
func (c docsCommand) isRunnable() bool {
	if !c.inBlock || len(c.args) == 0 || slices.Contains(c.args, "--") || slices.ContainsFunc(c.args, placeholder.MatchString) {
		return false
	}
	return c.wantError != "" || slices.Contains(runnableCommands, c.args[0])
}

// checkRuns runs the command. It may fail only if the page shows the error.
func (c docsCommand) checkRuns(t *testing.T, folder string) {
	t.Helper()
	args := slices.Clone(c.args)
	for i, arg := range args {
		if rest, ok := strings.CutPrefix(arg, "~/"); ok {
			args[i] = filepath.Join(folder, rest)
		}
	}
	cmd := exec.Command(c.path(), args...)
	cmd.Dir = folder
	cmd.Env = []string{"HOME=" + folder, "PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0"}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	switch {
	case err == nil:
	case c.wantError == "":
		t.Errorf("%s: %s: %v\n%s%s", c.where, c, err, stdout, stderr.String())
	case !strings.Contains("\n"+stderr.String(), "\n"+c.wantError+"\n"):
		t.Errorf("%s: %s: the page shows %q, and it is\n%s", c.where, c, c.wantError, stderr.String())
	}
}

// path returns the built program.
func (c docsCommand) path() string {
	if c.program == "mcpx-sse" {
		return binaryHTTP
	}
	return binary
}

func (c docsCommand) String() string { return c.program + " " + strings.Join(c.args, " ") }

// docsFolder returns a folder for the commands of the docs: the home of a Cursor user,
// with a config that has the server "time".
func docsFolder(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	answers := filepath.Join(folder, "answers.json")
	server := mcptest.Upstream(t, "-answers", answers)
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"time": server}})
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"mcpx.json":        string(config),
		".cursor/mcp.json": string(config),
		"answers.json": `{"tools/list": {"result": {"tools": [{"name": "get_current_time", "description": "Get the current time",
			"inputSchema": {"type": "object", "properties": {"timezone": {"type": "string"}}, "required": ["timezone"]}}]}}}`,
	}
	for name, content := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// inlineCode matches a command inside a sentence.
var inlineCode = regexp.MustCompile("`(mcpx(?:-sse)? [^`]+)`")

// docsCommands finds the mcpx commands of a page in its blocks and sentences. In a block
// with output, a command starts with "$ ".
func docsCommands(page, text string) []docsCommand {
	var all []docsCommand
	inFence, language := false, ""
	for i, line := range strings.Split(text, "\n") {
		where := fmt.Sprintf("%s:%d", filepath.Base(page), i+1)
		if after, ok := strings.CutPrefix(strings.TrimSpace(line), "```"); ok {
			inFence, language = !inFence, after
			continue
		}
		if !inFence {
			for _, code := range inlineCode.FindAllStringSubmatch(line, -1) {
				all = append(all, shellCommands(where, strings.NewReplacer("[", "", "]", "").Replace(code[1]))...)
			}
			continue
		}
		command, isPrompt := strings.CutPrefix(strings.TrimSpace(line), "$ ")
		switch {
		case language == "sh", language == "console" && isPrompt:
			found := shellCommands(where, command)
			for j := range found {
				found[j].inBlock = true
			}
			all = append(all, found...)
		case language == "console" && strings.HasPrefix(line, "error: ") && len(all) > 0:
			all[len(all)-1].wantError = line
		case language == "": // an explanation may follow after some spaces
			usage, _, _ := strings.Cut(command, "  ")
			all = append(all, shellCommands(where, strings.NewReplacer("[", "", "]", "").Replace(usage))...)
		}
	}
	return all
}

// shellWord matches a shell word, quoted or not, or the end of a command.
var shellWord = regexp.MustCompile(`\s+#.*$|^#.*$|&&|[|;()<>]|(?:'[^']*'|"[^"]*"|[^\s'"|;()<>])+`)

var shellQuoted = regexp.MustCompile(`'([^']*)'|"([^"]*)"`)

// shellCommands finds the mcpx commands in a line of shell.
func shellCommands(where, line string) []docsCommand {
	var all []docsCommand
	var words []string
	end := func() {
		if c, ok := mcpxCommand(words); ok {
			c.where = where
			all = append(all, c)
		}
		words = nil
	}
	for _, word := range shellWord.FindAllString(line, -1) {
		if strings.Contains("&&|;()<>", word) || strings.HasPrefix(strings.TrimSpace(word), "#") {
			end()
			continue
		}
		words = append(words, shellQuoted.ReplaceAllString(word, "$1$2"))
	}
	end()
	return all
}

// mcpxCommand reads an mcpx command: by name, by path or with go run, after any variables.
func mcpxCommand(words []string) (docsCommand, bool) {
	assignment := regexp.MustCompile(`^(env|-i|[A-Z_]+=.*)$`)
	for len(words) > 0 && assignment.MatchString(words[0]) {
		words = words[1:]
	}
	if len(words) > 2 && words[0] == "go" && words[1] == "run" {
		words = words[2:]
	}
	if len(words) == 0 {
		return docsCommand{}, false
	}
	program := filepath.Base(words[0])
	return docsCommand{program: program, args: words[1:]}, program == "mcpx" || program == "mcpx-sse"
}

// docsPages returns the pages of the docs and the README.
func docsPages(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join("..", "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	return append(pages, filepath.Join("..", "README.md"))
}

// readFile returns a file.
func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
