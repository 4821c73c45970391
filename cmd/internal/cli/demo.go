package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"mcpx/cmd/internal/terminal"
	example "mcpx/examples"
	"mcpx/internal/ansi"
	"mcpx/internal/app"
	"mcpx/internal/atomicfile"
	"mcpx/internal/demo"
	"mcpx/internal/plain"
)

// demoCmd serves one of the built-in MCP servers, or shows a tour of mcpx with all of
// them.
type demoCmd struct {
	Demo   string `arg:"" optional:"" help:"Serve this one on stdin and stdout: time, files or show. Without it: the tour."`
	Folder string `arg:"" optional:"" help:"For files: the folder to show; without it, the working directory."`
}

func (demoCmd) Help() string {
	return `The tour takes a few seconds. It starts the built-in servers, runs real commands, and shows each command so that you can repeat it.

Examples:
  mcpx demo                   the tour
  mcpx demo time              serve the server "time", as an MCP client starts it
  mcpx demo files ~/notes     serve the files of a folder, read-only

In a config, ${MCPX} is mcpx itself: {"mcpServers": {"time": {"command": "${MCPX}", "args": ["demo", "time"]}}}`
}

func (c *demoCmd) Run(t *invocation) error {
	switch {
	case c.Demo == "":
		return tour(t)
	case !slices.Contains(demo.Names(), c.Demo):
		return unknownName("demo", c.Demo, demo.Names())
	case c.Folder != "" && c.Demo != "files":
		return usageError{fmt.Errorf("the demo %s takes no folder; only files does", c.Demo)}
	}
	if ansi.IsTerminal(t.Stdin) {
		fmt.Fprintln(t.Stderr, "mcpx: waiting for JSON-RPC on stdin, as an MCP client sends it; \"mcpx demo\" is for people. Ctrl-D ends it.")
	}
	return demo.Serve(t.Ctx, c.Demo, demo.Options{Version: app.Version(), Folder: c.Folder}, t.Stdin, t.Stdout.File)
}

// tourStep is a command of the tour and its explanation. It runs exactly as a person
// would run it.
type tourStep struct {
	title string // lines of at most 77 columns; a number comes before the first
	args  []string
	code  int // the exit code it must have
}

// tourSteps returns the steps of the tour with a config.
func tourSteps(config string) []tourStep {
	return []tourStep{{
		title: "The agent's context, in tokens. Without mcpx it holds every tool of every\n" +
			"server. With mcpx it holds two tools, inspect and exec.",
		args: []string{"tokens", config},
	}, {
		title: `The agent lists a server's tools when it needs them: inspect("time").`,
		args:  []string{"inspect", config, "time"},
	}, {
		title: `It calls one: exec("time", "get_current_time", {"timezone": "Asia/Tokyo"}).`,
		args:  []string{"exec", config, "time", "get_current_time", "timezone=Asia/Tokyo"},
	}, {
		title: "A wrong call is stopped before it reaches the server. The error says what to\n" +
			"change, so that the next try works.",
		args: []string{"exec", config, "time", "get_current_time", "zone=Asia/Tokyo"},
		code: exitFailed,
	}, {
		title: "Not sure which server can do it? Search the tools of all servers.",
		args:  []string{"exec", config, "mcpx", "search", "query=draw a chart"},
	}}
}

// tour runs the steps, one after the other.
func tour(t *invocation) error {
	config, err := tourConfig()
	if err != nil {
		return fmt.Errorf("writing the config of the tour: %w", err)
	}
	paint := t.Paint().Text
	program := programName()
	steps := tourSteps(config)
	if os.Getenv("MCPX_SCHEMA") != "" { // it is meant for another config
		for i := range steps {
			steps[i].args = append(steps[i].args, "--schema=default")
		}
	}
	fmt.Fprintf(t.Stdout, "A tour of mcpx in %d steps, with three small MCP servers that are part of it.\nTheir config: %s\n",
		len(steps), paint(ansi.Cyan, config))
	for i, step := range steps {
		command := shellLine(program, step.args)
		fmt.Fprintf(t.Stdout, "\n%s\n%s %s\n", paint(ansi.Bold, fmt.Sprintf("%d. %s", i+1, step.title)),
			paint(ansi.Faint, "$"), paint(ansi.Cyan, command))
		code := step.run(t)
		switch {
		case t.Ctx.Err() != nil:
			return terminal.ErrInterrupted
		case t.Stdout.Err() != nil: // nobody reads the tour any more
			return t.Stdout.Err()
		case code != step.code:
			fmt.Fprintln(t.Stdout)
			return fmt.Errorf("the tour stops: this command ended with exit code %d instead of %d: %s", code, step.code, command)
		}
	}
	return t.Printf("\n%s\n%s\n%s\n", paint(ansi.Bold, "Next: your own servers."),
		"  "+program+" import --output mcpx.json   # from the configs of your MCP clients",
		"  "+program+" check mcpx.json             # which of them work")
}

// run runs the command and returns its exit code. Errors go to stdout too, to keep the
// order.
func (s tourStep) run(t *invocation) int {
	own := *t
	own.Stdin, own.Stderr = strings.NewReader(""), t.Stdout
	return run("mcpx", s.args, &own)
}

// tourConfig returns the path of a file with the example config: the one of the
// clone that mcpx was started in, or a copy in the user's cache.
func tourConfig() (string, error) {
	clone := filepath.Join("examples", "mcpx.json")
	if text, err := os.ReadFile(clone); err == nil && bytes.Equal(text, example.Config) {
		return clone, nil
	}
	if cache, err := os.UserCacheDir(); err == nil { // otherwise there is no home
		if path, err := tourConfigIn(filepath.Join(cache, "mcpx", "demo")); err == nil {
			return path, nil
		}
	}
	folder, err := os.MkdirTemp("", "mcpx-demo-")
	if err != nil {
		return "", err
	}
	return tourConfigIn(folder)
}

// tourConfigIn writes the config to a folder, unless it is there already.
func tourConfigIn(folder string) (string, error) {
	path := filepath.Join(folder, "mcpx.json")
	if text, err := os.ReadFile(path); err == nil && bytes.Equal(text, example.Config) {
		return path, nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	return path, atomicfile.Replace(path, example.Config, 0o600) // another tour never sees half of it
}

// shellLine returns a command as a person types it.
func shellLine(program string, args []string) string {
	line := program
	for _, arg := range args {
		if key, value, isPair := strings.Cut(arg, "="); isPair {
			line += " " + key + "=" + plain.Shell(value)
			continue
		}
		line += " " + plain.Shell(arg)
	}
	return line
}

// ownProgram returns the full path of mcpx as it was started: through a symbolic link
// if there is one, since that stays when mcpx is updated.
func ownProgram() (string, error) {
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	if temporary(program) {
		return "", usageError{withHint(errors.New("this mcpx is temporary: go run deletes it"), "run go install ./cmd/... first, then mcpx install")}
	}
	if started, err := exec.LookPath(os.Args[0]); err == nil {
		if started, err = filepath.Abs(started); err == nil && sameFile(started, program) {
			return started, nil
		}
	}
	return program, nil
}

// programName returns how a person starts this program.
func programName() string {
	self, err := os.Executable()
	if err != nil {
		return "mcpx"
	}
	name := strings.TrimSuffix(filepath.Base(self), ".exe")
	if temporary(self) {
		if _, err := os.Stat(filepath.Join("cmd", name)); err == nil {
			return "go run ./cmd/" + name
		}
		return "go run mcpx/cmd/" + name
	}
	if found, err := exec.LookPath(name); err == nil && sameFile(found, self) {
		return name
	}
	return plain.Shell(os.Args[0])
}

func sameFile(a, b string) bool {
	one, err1 := os.Stat(a)
	two, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(one, two)
}

// runFolder is the folder of a program that go run has built: a temporary one, or one
// in the build cache.
var runFolder = regexp.MustCompile(`[/\\](go-build[0-9]+[/\\]b[0-9]+[/\\]exe|[0-9a-f]{64}-d)$`)

// temporary reports whether go run started the program, whose path is then not worth
// keeping.
func temporary(program string) bool { return runFolder.MatchString(filepath.Dir(program)) }
