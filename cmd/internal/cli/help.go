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
	_, err = fmt.Fprint(out, strings.Replace(text.String(), "<config> ", "[<config>] ", 1))
	return err
}

// printProgram prints the help of the program itself.
func printProgram(ctx *kong.Context) error {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	name := ctx.Model.Name
	line("Usage: %s [CONFIG] [flags]      serve", name)
	line("       %s COMMAND [CONFIG] …    anything else", name)
	line("")
	line("%s", description)
	line("")
	line("CONFIG is a file such as mcpx.json. Without it: $MCPX_CONFIG, ./mcpx.json, then ~/.config/mcpx/config.json.")
	line("")
	line("Commands:")
	for _, command := range ctx.Model.Children {
		if command.Hidden && command.Name != "man" {
			continue
		}
		line("  %-12s%s", command.Name, command.Help)
	}
	line("")
	line("Flags for serving:")
	for _, flag := range ctx.Model.DefaultCmd.Flags {
		if flag.Hidden || flag.Name == "help" {
			continue
		}
		line("  %-26s%s", flagText(flag), flag.Help)
	}
	line("")
	line("Other flags:")
	for _, flag := range ctx.Model.Flags {
		line("  %-26s%s", flagText(flag), flag.Help)
	}
	line("")
	line("%s", examples)
	line("")
	line("Run %s COMMAND --help for more about a command.", name)
	_, err := fmt.Fprint(ctx.Stdout, b.String())
	return err
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
