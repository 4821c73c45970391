package cli

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
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
