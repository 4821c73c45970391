package cli

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"mcpx/internal/nearest"
)

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
