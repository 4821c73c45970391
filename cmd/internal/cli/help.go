package cli

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// printHelp prints --help: of the program, its serving flags and every command; of
// a command, what kong makes of it.
func printHelp(options kong.HelpOptions, ctx *kong.Context) error {
	if ctx.Selected() == nil || ctx.Selected() == ctx.Model.DefaultCmd && !namesServe(ctx) {
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

// namesServe reports whether the command line has the word serve.
func namesServe(ctx *kong.Context) bool {
	for _, word := range ctx.Args {
		if word == ctx.Model.DefaultCmd.Name {
			return true
		}
	}
	return false
}

// printProgram prints the help of the program itself.
func printProgram(ctx *kong.Context) error {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	name := ctx.Model.Name
	line("Usage: %s [CONFIG] [flags]      serve", name)
	line("       %s COMMAND [CONFIG] …    anything else", name)
	line("")
	line("%s", wrapped(description))
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
	line("%s COMMAND --help says more about a command.", name)
	_, err := fmt.Fprint(ctx.Stdout, b.String())
	return err
}

// flagText is a flag as it is written.
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

// wrapped breaks a text into lines of at most 100 characters.
func wrapped(text string) string {
	var lines []string
	for paragraph := range strings.SplitSeq(text, "\n") {
		line := ""
		for _, word := range strings.Fields(paragraph) {
			if line != "" && len(line)+1+len(word) > 100 {
				lines = append(lines, line)
				line = ""
			}
			if line != "" {
				line += " "
			}
			line += word
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
