package cli

import (
	"cmp"
	"errors"
	"strings"

	"github.com/alecthomas/kong"
)

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
	help, usage := name+" "+node.Path(), name+" "+usageOf(node)
	if parse.Context.Model.DefaultCmd == node { // its name need not be written
		help, usage = name, name+strings.TrimPrefix(usageOf(node), node.Name)
	}
	text += "\nusage: " + usage
	if example := cmp.Or(exampleOf(node, name), exampleOf(node, "mcpx")); example != "" {
		text += "\nexample: " + example
	}
	return usageError{withHint(errors.New(text), "%s --help says more", help)}
}

// usageOf is how a command is used. The config may be left out everywhere.
func usageOf(node *kong.Node) string {
	return strings.Replace(node.Summary(), "<config> ", "[<config>] ", 1)
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
