package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"mcpx/config"
	"mcpx/internal/nearest"
)

// Kong reads the command line. This file only puts the words in an order that kong can read,
// since kong has
//   - no optional argument, the config, before required ones;
//   - no flags of a command before its name, or between the values of its last argument;
//   - no arguments that depend on a "--": after it comes the command of a server, which gets
//     its name from it.

// ordered returns the words of a command line as kong reads them. It stores a server that
// is not in a config in t.
func (t *invocation) ordered(model *kong.Application, args []string) ([]string, error) {
	if err := unknownCommand(model, args); err != nil {
		return nil, err
	}
	line := readWords(model, args)
	line.node = commandOf(line.node)
	switch {
	case line.flag != nil:
		return nil, misuse(model, line.node, fmt.Sprintf("--%s needs a value", line.flag.Name))
	case hasFlag(line.node, "config") && slices.Contains(line.flags, "--config="):
		return nil, usageError{withHint(errors.New("--config is empty"), "name a config file, or leave --config out; if the name comes from a variable, set the variable")}
	case !takesConfig(line.node):
		return args, nil
	case line.wantsHelp:
		return append(line.path, "--help"), nil
	case len(line.args) > 0 && line.first() == "":
		return nil, usageError{withHint(errors.New("the first argument is empty"), "if it comes from a variable, set the variable")}
	}
	if line.hasConfig() {
		file := line.pop()
		if len(line.node.Positional) == 0 && len(line.args) > 0 { // kong would take it for a command
			return nil, misuse(model, line.node, "unexpected argument "+line.first())
		}
		if line.config != "" {
			return nil, usageError{withHint(fmt.Errorf("two configs are given: %s and --config %s", file, line.config), "leave one of them out")}
		}
		line.config = file
	}
	var err error
	switch {
	case line.node.Name == "add":
		t.command, line.after = line.after, nil
		if line.config == "" {
			line.config, err = configToAdd()
		}
	case !isEdit(line.node) && (line.after != nil || isURL(line.first())):
		err = t.adHoc(line)
	case line.config == "" && line.isAboutServer():
		line.config, err = findConfig()
	}
	return line.join(), err
}

// adHoc prepares a command about a server that is not in a config.
func (t *invocation) adHoc(line *commandLine) error {
	switch {
	case !isAuth(line.node) && !hasFlag(line.node, "header"):
		return usageError{withHint(errors.New("this command needs a config file, not a url or a command"), `mcpx add NAME URL, or mcpx add NAME -- COMMAND, puts a server into your config`)}
	case line.config != "", line.after != nil && isURL(line.first()):
		return usageError{withHint(errors.New("a config, a url and a command exclude each other"), "give one of them")}
	case len(line.after) > 0:
		t.adhoc = config.ForCommand(line.after)
	case line.after != nil:
		return usageError{withHint(errors.New(`no command after "--"`), "example: mcpx inspect -- npx -y @modelcontextprotocol/server-memory")}
	default:
		t.adhoc = config.ForURL(line.pop())
	}
	line.after = nil
	if line.isAboutServer() {
		line.args = slices.Insert(line.args, 0, t.adhoc.Profiles[0].Upstreams[0].Name)
	}
	line.flags = slices.Insert(line.flags, 0, "--schema=default") // $MCPX_SCHEMA is for a config
	return nil
}

// commandLine is a command line in its parts.
type commandLine struct {
	path      []string // the names that lead to the command
	config    string   // the value of --config, which may also come before the command
	flags     []string // the other flags, each with its value
	args      []string // the positional arguments
	after     []string // the words after "--"; nil if there is no "--"
	node      *kong.Node
	flag      *kong.Flag // set if its value comes next
	wantsHelp bool
}

// readWords finds the command, its flags and its positional arguments.
func readWords(model *kong.Application, args []string) *commandLine {
	l := &commandLine{node: model.Node}
	if i := slices.Index(args, "--"); i >= 0 {
		args, l.after = args[:i], append([]string{}, args[i+1:]...)
	}
	for _, word := range args {
		switch {
		case l.flag != nil:
			l.set(l.flag, word)
		case strings.HasPrefix(word, "-") && word != "-":
			l.readFlag(word)
		default:
			l.readArgument(word)
		}
	}
	return l
}

// readFlag reads a flag. Its value may be the next word.
func (l *commandLine) readFlag(word string) {
	l.wantsHelp = l.wantsHelp || word == "--help" || word == "-h"
	name, value, hasValue := strings.Cut(strings.TrimLeft(word, "-"), "=")
	all := flagsOf(l.node)
	i := slices.IndexFunc(all, func(f *kong.Flag) bool { return f.Name == name || len(name) == 1 && string(f.Short) == name })
	switch {
	case i < 0 || all[i].IsBool():
		l.flags = append(l.flags, word)
	case hasValue:
		l.set(all[i], value)
	default:
		l.flag = all[i]
	}
}

// set adds a flag with its value.
func (l *commandLine) set(flag *kong.Flag, value string) {
	l.flag = nil
	if flag.Name == "config" && value != "" {
		l.config = value
		return
	}
	l.flags = append(l.flags, "--"+flag.Name+"="+value)
}

// readArgument reads a word that belongs to no flag: the name of a command, or a positional
// argument.
func (l *commandLine) readArgument(word string) {
	i := slices.IndexFunc(l.node.Children, func(child *kong.Node) bool { return child.Name == word })
	if i < 0 || len(l.args) > 0 {
		l.args = append(l.args, word)
		return
	}
	l.node, l.path = l.node.Children[i], append(l.path, word)
}

// commandOf returns the command of a node: the program has a default command.
func commandOf(node *kong.Node) *kong.Node { return cmp.Or(node.DefaultCmd, node) }

// flagsOf returns the flags of a command.
func flagsOf(node *kong.Node) []*kong.Flag {
	return slices.Concat(commandOf(node).AllFlags(true)...)
}

// hasFlag reports whether a command itself has a flag.
func hasFlag(command *kong.Node, name string) bool {
	return slices.ContainsFunc(command.Flags, func(f *kong.Flag) bool { return f.Name == name })
}

// takesConfig reports whether the first argument of a command may be a config. For install
// there is only the flag.
func takesConfig(command *kong.Node) bool {
	return command.Name != "install" && hasFlag(command, "config")
}

// isAboutServer reports whether the command takes a server.
func (l *commandLine) isAboutServer() bool {
	return len(l.node.Positional) > 0 && l.node.Positional[0].Name == "server"
}

// join puts the parts together again.
func (l *commandLine) join() []string {
	words := l.path
	if l.config != "" {
		words = append(words, "--config="+l.config)
	}
	words = slices.Concat(words, l.flags, l.args)
	if l.after != nil {
		words = slices.Concat(words, []string{"--"}, l.after)
	}
	return words
}

// first returns the first positional argument, "" if there is none.
func (l *commandLine) first() string {
	if len(l.args) == 0 {
		return ""
	}
	return l.args[0]
}

// pop removes and returns the first positional argument.
func (l *commandLine) pop() string {
	word := l.first()
	l.args = l.args[1:]
	return word
}

// isAuth reports whether a command is about signing in.
func isAuth(command *kong.Node) bool { return command.Parent != nil && command.Parent.Name == "auth" }

// isEdit reports whether a command changes a server of the config.
func isEdit(command *kong.Node) bool {
	return slices.Contains([]string{"add", "remove", "enable", "disable"}, command.Name)
}

// hasConfig reports whether the first positional argument is a config. The commands that
// change a server need their last ones for something else, and those without arguments have
// no other use for it.
func (l *commandLine) hasConfig() bool {
	needed := 0
	switch {
	case len(l.node.Positional) == 0:
		return l.first() != "" && !isURL(l.first())
	case l.node.Name == "add" && l.after == nil: // a name and a URL
		needed = 2
	case isEdit(l.node):
		needed = 1
	}
	return len(l.args) > needed && isConfig(l.first())
}

// isConfig reports whether a word names a config file: an existing file, or any name that
// ends in .json or .jsonc.
func isConfig(word string) bool {
	if word == "" || isURL(word) {
		return false
	}
	info, err := os.Stat(word)
	return strings.HasSuffix(word, ".json") || strings.HasSuffix(word, ".jsonc") ||
		err == nil && (info.Mode().IsRegular() || info.Mode()&(os.ModeNamedPipe|os.ModeCharDevice) != 0)
}

func isURL(word string) bool {
	return strings.HasPrefix(word, "http://") || strings.HasPrefix(word, "https://")
}

// unknownCommand returns an error if the first word is neither a command nor a config.
func unknownCommand(model *kong.Application, args []string) error {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") || isConfig(args[0]) {
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
	if info, err := os.Stat(args[0]); err == nil && info.IsDir() {
		return nil // reading it reports that it is a folder
	}
	if isURL(args[0]) {
		return usageError{withHint(errors.New("a url is not a command"), "mcpx inspect %s lists the server's tools; mcpx add NAME %[1]s puts it into your config", args[0])}
	}
	err := fmt.Errorf("unknown command \"%s\"", args[0])
	if near := nearest.Word(args[0], commands); near != "" {
		return usageError{withHint(err, "did you mean %s?", near)}
	}
	return usageError{withHint(err, "mcpx --help lists the commands; a config file is named like mcpx.json")}
}
