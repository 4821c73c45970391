package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"mcpx/internal/nearest"
)

// misspelt is for a first word that is neither a command nor a file, but nearly
// a command; nil for anything else.
func misspelt(model *kong.Application, args []string) error {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return nil
	}
	var commands []string
	for _, command := range model.Children {
		if command.Name == args[0] {
			return nil
		}
		if !command.Hidden {
			commands = append(commands, command.Name)
		}
	}
	near := nearest.Word(args[0], commands)
	if _, err := os.Stat(args[0]); err == nil || near == "" {
		return nil
	}
	return usageError{fmt.Errorf("%q is neither a command nor a file; did you mean %q?", args[0], near)}
}

// misused is a command line that cannot be read, with how the command it names
// is used.
func misused(err error) error {
	// An empty choice stands for a flag that is not given.
	text := strings.Replace(err.Error(), `,"" but got`, ` but got`, 1)
	var parse *kong.ParseError
	if !errors.As(err, &parse) {
		return usageError{errors.New(text)}
	}
	node, name := parse.Context.Model.Node, parse.Context.Model.Name
	for _, step := range parse.Context.Path {
		if step.Command != nil {
			node = step.Command
		}
	}
	if node.DefaultCmd != nil {
		node = node.DefaultCmd
	}
	help, usage := name+" "+node.Path(), name+" "+node.Summary()
	if parse.Context.Model.DefaultCmd == node { // its name need not be written
		help, usage = name, name+strings.TrimPrefix(node.Summary(), node.Name)
	}
	text += "\nusage: " + usage
	if example := cmp.Or(exampleOf(node, name), exampleOf(node, "mcpx")); example != "" {
		text += "\nexample: " + example
	}
	return usageError{fmt.Errorf("%s\n%s --help has more", text, help)}
}

// exampleOf is the first of a command's examples that begins with that program.
func exampleOf(node *kong.Node, program string) string {
	for line := range strings.Lines(node.Detail) {
		if strings.HasPrefix(line, "  "+program+" ") {
			example, _, _ := strings.Cut(strings.TrimSpace(line), "   ") // what it does comes after it
			return example
		}
	}
	return ""
}
