package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// manCmd prints the manual page. Like --help it is generated from the commands.
type manCmd struct{}

func (manCmd) Run(t *terminal, k *kong.Context) error {
	return t.printf("%s", manual(k.Model.Node))
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
		for _, group := range command.AllFlags(true) {
			for _, flag := range group {
				if flag.Name == "help" || flag.Name == "version" { // every command has them
					continue
				}
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
