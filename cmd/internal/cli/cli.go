// Package cli is the command line. Each command, or group of commands, has a file. The two
// programs differ only in their name and in their default front.
//
// A command is a struct with its flags and arguments. Kong fills it in and calls its Run.
// The text of its Help is shown below the flags.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"mcpx/cmd/internal/terminal"
	"mcpx/config"
	"mcpx/internal/app"
	"mcpx/internal/jsonc"
	"mcpx/internal/plain"
	"mcpx/registry/child"
	"mcpx/server"
)

// cli is the command line.
type cli struct {
	Serve      serveCmd      `cmd:"" default:"withargs" help:"Serve on stdin and stdout, or over HTTP (the default command)."`
	Demo       demoCmd       `cmd:"" help:"Take a short tour with built-in servers, or serve one of them."`
	Inspect    inspectCmd    `cmd:"" help:"Print the output of the inspect tool."`
	Exec       execCmd       `cmd:"" help:"Call a tool and print its result."`
	Check      checkCmd      `cmd:"" help:"Connect to every server and explain what fails."`
	Tokens     tokensCmd     `cmd:"" help:"Show what the tools cost a client's context, without mcpx and with it."`
	Prompts    promptsCmd    `cmd:"" help:"List the prompts of a server, or get one."`
	Resources  resourcesCmd  `cmd:"" help:"List the resources of a server, or read one."`
	Auth       authCmd       `cmd:"" help:"Sign in to servers that use OAuth."`
	List       listCmd       `cmd:"" help:"List the servers of the config."`
	Add        addCmd        `cmd:"" help:"Add a server to the config."`
	Remove     removeCmd     `cmd:"" help:"Remove a server from the config."`
	Enable     enableCmd     `cmd:"" help:"Enable a server in the config."`
	Disable    disableCmd    `cmd:"" help:"Disable a server in the config."`
	Import     importCmd     `cmd:"" help:"Create a config from your MCP clients' configs."`
	Install    installCmd    `cmd:"" help:"Add mcpx to the config of an MCP client."`
	Pin        pinCmd        `cmd:"" help:"Approve the tools of your servers: write them to mcpx.lock."`
	Secret     secretCmd     `cmd:"" help:"Store secrets in the keyring, for references in the config."`
	Config     configCmd     `cmd:"" help:"Check, show or describe the config file."`
	Completion completionCmd `cmd:"" help:"Print a completion script for a shell."`
	Complete   completeCmd   `cmd:"" name:"__complete" hidden:"" passthrough:"" help:"Answer the script of completion."`
	Man        manCmd        `cmd:"" hidden:"" help:"Print the manual page."`

	Version kong.VersionFlag `help:"Print the version and the MCP revisions, and exit."`
}

// invocation is one run of the program: its terminal, and what kong does not pass to the
// command.
type invocation struct {
	terminal.Terminal
	release func()   // makes the next signal end the process at once
	isHTTP  bool     // serve over HTTP by default
	command []string // of mcpx add, after "--"

	adhoc *config.Config // of a server given by url or command; nil if it is in a config
}

// usageError is a mistake on the command line or in the config.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// nameHTTP is the program that serves over HTTP by default.
const nameHTTP = "mcpx-sse"

// Main runs the program with that name, mcpx or mcpx-sse, and ends the process. A link with
// the name mcpx-sse makes mcpx mcpx-sse.
func Main(name string) {
	if strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe") == nameHTTP {
		name = nameHTTP
	}
	child.WatchIfAsked()
	child.SandboxIfAsked()
	// Writing to a client that is gone must return an error, not end the process.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(name, os.Args[1:], &invocation{
		Terminal: terminal.Terminal{Ctx: ctx, Stdin: os.Stdin, Stdout: &terminal.Output{File: os.Stdout}, Stderr: os.Stderr},
		release:  stop, isHTTP: name == nameHTTP,
	})
	stop()
	os.Exit(code)
}

// Exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130 // as shells expect it after Ctrl-C
)

// run is the whole program; it returns the exit code.
func run(name string, args []string, t *invocation) (code int) {
	var c cli
	exited := -1
	parser, err := kong.New(&c,
		kong.Name(name),
		kong.Description(description),
		kong.Vars{"version": versionText()},
		kong.Writers(t.Stdout, t.Stderr),
		kong.Exit(func(code int) { exited = code }), // after --help and --version
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 100}),
		kong.UsageOnError(),
		kong.Help(printHelp),
	)
	if err != nil {
		panic(err) // the types above are wrong
	}
	parser.Model.HelpFlag.Help = "Print this help, and exit."
	if args, err = t.ordered(parser.Model, args); err != nil {
		return complain(t.Stderr, err)
	}
	for _, v := range variables(parser.Model.Node) {
		isToken := strings.HasPrefix(v.name, "MCPX_TOKEN") // an empty one must not open the front
		if os.Getenv(v.name) == "" && !isToken {           // a compose file with MCPX_PORT=${PORT} may leave it empty
			_ = os.Unsetenv(v.name)
		}
	}
	k, err := parser.Parse(args)
	switch {
	case exited >= 0:
		return exited
	case err != nil:
		return complain(t.Stderr, misused(err))
	}
	err = k.Run(t)
	return complain(t.Stderr, cmp.Or(t.Stdout.Err(), err))
}

// complain prints an error, if any, and returns the exit code.
func complain(stderr io.Writer, err error) int {
	if err == nil {
		return exitOK
	}
	if readerGone(err) {
		return exitFailed
	}
	if file, ok := errors.AsType[*jsonc.Error](err); ok {
		warn(stderr, file.Warnings) // the cause may be among them
	}
	fmt.Fprintf(stderr, "error: %s\n", plain.Text(err.Error())) // it may quote a server
	if advice, ok := errors.AsType[hinted](err); ok {
		fmt.Fprintf(stderr, "hint: %s\n", plain.Text(advice.hint))
	}
	switch {
	case errors.Is(err, terminal.ErrInterrupted):
		return exitInterrupted
	case errors.As(err, &usageError{}):
		return exitUsage
	}
	return exitFailed
}

// readerGone reports whether the reader of stdout has closed it, as head does. That is
// not worth a message.
func readerGone(err error) bool {
	write, ok := errors.AsType[*fs.PathError](err)
	return ok && write.Path == os.Stdout.Name() && errors.Is(err, syscall.EPIPE)
}

func warn(stderr io.Writer, warnings []jsonc.Problem) {
	for _, w := range warnings {
		fmt.Fprintf(stderr, "warning: %s\n", w)
	}
}

const description = `mcpx sits between an agent and many MCP servers. The agent sees two tools, inspect and exec, however
many servers there are.

A profile is a named group of servers ("schemas" or "profiles" in the config file). A file that lists
servers directly has one, "default".`

const examples = `Examples:
  mcpx                                        serve your default config on stdin and stdout
  mcpx config.json --schema work              serve one profile of a file on stdin and stdout
  mcpx config.json --port 8000                serve every profile over HTTP: http://127.0.0.1:8000/mcp
  mcpx import --output config.json            create a config from your MCP clients' configs
  mcpx check config.json                      show which servers work, and how to fix the others
  mcpx inspect time                           show the tools of the server "time"
  mcpx exec time get_current_time timezone=UTC
  mcpx inspect https://example.com/mcp        a server that is not in the config
  mcpx exec echo message=hi -- npx -y @modelcontextprotocol/server-everything
  mcpx auth login github                      sign in to a server that uses OAuth
  mcpx tokens                                 count what the tools cost, without mcpx and with it`

func (cli) Help() string { return examples }

func versionText() string {
	return fmt.Sprintf("mcpx %s\nMCP revisions: %s", app.Version(), strings.Join(server.Revisions(), ", "))
}

// load reads the named config file, or the default one.
func (t *invocation) load(path string) (*config.Config, error) {
	if t.adhoc != nil {
		return t.adhoc, nil
	}
	named := path != ""
	if !named {
		found, err := findConfig()
		if err != nil {
			return nil, err
		}
		path = found
	}
	c, err := app.LoadConfig(path)
	if err != nil && !named && path == os.Getenv("MCPX_CONFIG") {
		return nil, usageError{fmt.Errorf("$MCPX_CONFIG is %s:\n%w", path, err)}
	}
	if err != nil {
		return nil, usageError{err}
	}
	return c, nil
}

// configToAdd returns the config file that a server is added to when none is named. It
// may not exist yet.
func configToAdd() (string, error) {
	if file, err := config.Find(os.LookupEnv); err == nil {
		return file, nil
	}
	if file := config.UserFile(os.LookupEnv); file != "" {
		return file, nil
	}
	return "", usageError{withHint(errors.New("there is no config, and no home folder to create one in"), "name a file: --config mcpx.json")}
}

// findConfig returns the config file to use when none is named.
func findConfig() (string, error) {
	file, err := config.Find(os.LookupEnv)
	if err != nil {
		return "", usageError{withHint(err, "mcpx add NAME -- COMMAND creates one; mcpx import --output mcpx.json takes over the servers of your MCP clients; or save this as mcpx.json:\n\n%s", config.Sample)}
	}
	return file, nil
}
