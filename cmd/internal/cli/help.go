package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"mcpx/internal/nearest"
)

// printHelp prints --help. For the program that is its serving flags and all commands;
// for a command it is what kong prints.
func printHelp(options kong.HelpOptions, ctx *kong.Context) error {
	if ctx.Selected() == nil || ctx.Selected() == ctx.Model.DefaultCmd && !slices.Contains(ctx.Args, ctx.Model.DefaultCmd.Name) {
		return printProgram(ctx)
	}
	var text bytes.Buffer
	out := ctx.Stdout
	ctx.Stdout = &text
	err := kong.DefaultHelpPrinter(options, ctx)
	ctx.Stdout = out
	if err != nil {
		return err
	}
	command := ctx.Selected()
	_, err = fmt.Fprint(out, strings.Replace(text.String(), command.Summary(), usageOf(command), 1))
	return err
}

const programHelp = `Usage: %[1]s [CONFIG] [flags]      serve
       %[1]s COMMAND [CONFIG] …    anything else

%[2]s

CONFIG is a file such as mcpx.json. Without it: $MCPX_CONFIG, ./mcpx.json, then ~/.config/mcpx/config.json.

Commands:
%[3]s
Flags for serving:
%[4]s
Other flags:
%[5]s
%[6]s

Run %[1]s COMMAND --help for more about a command.
`

// printProgram prints the help of the program itself.
func printProgram(ctx *kong.Context) error {
	var commands strings.Builder
	for _, command := range ctx.Model.Children {
		if !command.Hidden || command.Name == "man" {
			fmt.Fprintf(&commands, "  %-12s%s\n", command.Name, command.Help)
		}
	}
	_, err := fmt.Fprintf(ctx.Stdout, programHelp, ctx.Model.Name, description, &commands, flagLines(ctx.Model.DefaultCmd.Flags), flagLines(ctx.Model.Flags), examples)
	return err
}

// flagLines returns a line for each flag.
func flagLines(flags []*kong.Flag) string {
	var lines strings.Builder
	for _, flag := range flags {
		fmt.Fprintf(&lines, "  %-26s%s\n", flagText(flag), flag.Help)
	}
	return lines.String()
}

// flagText returns a flag as it is written.
func flagText(flag *kong.Flag) string {
	text := "--" + flag.Name
	if flag.Short != 0 {
		text = "-" + string(flag.Short) + ", " + text
	}
	if !flag.IsBool() {
		text += "=" + flag.FormatPlaceHolder()
	}
	return text
}

// misused adds the usage of the command to an error of kong.
func misused(err error) error {
	// The empty choice means that the flag is not given.
	text := strings.Replace(err.Error(), `,"" but got`, ` but got`, 1)
	parse, ok := errors.AsType[*kong.ParseError](err)
	if !ok {
		return usageError{errors.New(text)}
	}
	node := parse.Context.Model.Node
	for _, step := range parse.Context.Path {
		if step.Command != nil {
			node = step.Command
		}
	}
	return misuse(parse.Context.Model, commandOf(node), text)
}

// misuse returns an error about the words of a command, with its usage.
func misuse(model *kong.Application, command *kong.Node, text string) error {
	name := model.Name
	help, usage := name+" "+command.Path(), name+" "+usageOf(command)
	if command == model.DefaultCmd { // its name can be left out
		help, usage = name, name+strings.TrimPrefix(usageOf(command), command.Name)
	}
	text += "\nusage: " + usage
	if example := cmp.Or(exampleOf(command, name), exampleOf(command, "mcpx")); example != "" {
		text += "\nexample: " + example
	}
	return usageError{withHint(errors.New(text), "run %s --help", help)}
}

// usageOf returns the usage of a command, with the config that may be its first argument.
func usageOf(command *kong.Node) string {
	usage, path := command.Summary(), command.Path()
	if takesConfig(command) {
		usage = path + " [<config>]" + strings.TrimPrefix(usage, path)
	}
	return usage
}

// exampleOf returns the first example of a command that starts with the program.
func exampleOf(node *kong.Node, program string) string {
	for line := range strings.Lines(node.Detail) {
		if strings.HasPrefix(line, "  "+program+" ") {
			example, _, _ := strings.Cut(strings.TrimSpace(line), "   ") // its explanation follows
			return example
		}
	}
	return ""
}

// hinted is an error with advice. It is printed as two lines: what happened, and
// what to do.
type hinted struct {
	error
	hint string
}

func (e hinted) Unwrap() error { return e.error }

// withHint adds advice to an error.
func withHint(err error, format string, args ...any) error {
	return hinted{err, fmt.Sprintf(format, args...)}
}

// unknownName is the error of a name that is none of those that are known. kind is the
// word for them.
func unknownName(kind, name string, names []string) error {
	hint := kind + "s: " + strings.Join(names, ", ")
	if near := nearest.Word(name, names); near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	return usageError{withHint(fmt.Errorf("unknown %s %q", kind, name), "%s", hint)}
}

// manCmd prints the manual page. Like --help it is generated from the commands.
type manCmd struct{}

func (manCmd) Run(t *invocation, k *kong.Context) error {
	return t.Printf("%s", manual(k.Model.Node))
}

// manual returns the manual page in roff.
func manual(program *kong.Node) string {
	var page strings.Builder
	line := func(format string, values ...any) { fmt.Fprintf(&page, format+"\n", values...) }
	line(`.TH MCPX 1 "" "mcpx" "User Commands"`)
	line(".SH NAME\n%s", roff("mcpx, mcpx-sse - connect an agent to many MCP servers through two tools"))
	line(".SH SYNOPSIS\n.B mcpx\n%s\n.br\n.B mcpx-sse\n%s", roff("[COMMAND] [CONFIG] [flags]"), roff("[CONFIG] [flags]"))
	line(".SH DESCRIPTION\n%s", roff(description))
	line(".SH COMMANDS")
	for _, command := range program.Leaves(true) {
		line(".SS %s", roff(program.Name+" "+usageOf(command)))
		line("%s", roff(command.Help))
		for _, flag := range flagsOf(command) {
			if flag.Name != "help" && flag.Name != "version" { // every command has them
				line(".TP\n.B %s\n%s", roff(flag.String()), roff(flag.Help))
			}
		}
		if command.Detail != "" {
			line(".PP\n.nf\n%s\n.fi", roff(command.Detail))
		}
	}
	line(".SH ENVIRONMENT\n%s", roff("The command line overrides these variables, and they override the config file."))
	for _, v := range variables(program) {
		line(".TP\n.B %s\n%s", roff(v.name), roff(v.help))
	}
	line(".SH FILES\n%s", roff("Without CONFIG: $MCPX_CONFIG, ./mcpx.json, then $XDG_CONFIG_HOME/mcpx/config.json (~/.config/mcpx/config.json)."))
	line(".SH EXIT STATUS\n%s", roff("0: success. 1: failure. 2: the command line or the config is wrong."))
	line(".SH EXAMPLES\n.nf\n%s\n.fi", roff(examples))
	return page.String()
}

// variable is an environment variable.
type variable struct{ name, help string }

// variables returns the environment variables that mcpx reads, sorted by name: those of
// flags, and three others.
func variables(program *kong.Node) []variable {
	found := []variable{
		{"MCPX_CONFIG", "The config file, if none is given."},
		{"MCPX_TOKEN", "The bearer token that clients of the HTTP front must send. A token file overrides it."},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "The OpenTelemetry collector that gets spans of requests while mcpx serves, such as http://127.0.0.1:4318."},
	}
	for _, command := range program.Leaves(true) {
		for _, flag := range command.Flags {
			for _, name := range flag.Envs {
				if !slices.ContainsFunc(found, func(v variable) bool { return v.name == name }) {
					found = append(found, variable{name, flag.Help})
				}
			}
		}
	}
	slices.SortFunc(found, func(a, b variable) int { return cmp.Compare(a.name, b.name) })
	return found
}

// roff escapes a text for a manual page.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
