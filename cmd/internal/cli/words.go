package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"mcpx/config"
	"mcpx/internal/nearest"
)

// Every command takes an optional config as its first argument, which kong cannot
// express. So the words are ordered before kong reads them: the config always comes
// first, and a server given as a URL, or as a command after "--", gets a name.

// ordered returns the words of a command line with the config in its place. It stores a
// server that is not in a config in t.
func (t *terminal) ordered(model *kong.Application, args []string) ([]string, error) {
	if err := unknownCommand(model, args); err != nil {
		return nil, err
	}
	line := readWords(model, args)
	if err := line.missingValue(model); err != nil {
		return nil, err
	}
	arguments := line.node.Positional
	switch {
	case len(arguments) == 0 || arguments[0].Name != "config" || line.wantsHelp:
		return args, nil
	case len(line.free) > 0 && line.free[0] == "":
		return nil, usageError{withHint(errors.New("the first argument is empty"), "if it comes from a variable, set the variable")}
	}
	file := line.config
	if isConfig(line.first()) && line.mayTake() {
		if file = line.take(); line.config != "" {
			return nil, usageError{withHint(fmt.Errorf("two configs are given: %s and --config %s", file, line.config), "leave one of them out")}
		}
	}
	switch {
	case line.node.Name == "add":
		t.command, line.after = line.after, nil
	case isEdit(line.node):
	case line.after != nil || isURL(line.first()):
		return t.adHoc(line, file)
	}
	var err error
	switch {
	case file != "":
	case line.node.Name == "add":
		file, err = configToAdd()
	case line.isAboutServer():
		file, err = findConfig()
	}
	if err != nil {
		return nil, err
	}
	if file != "" {
		line.insert(file)
	}
	return line.join(), nil
}

// adHoc orders the words of a command about a server that is not in a config.
func (t *terminal) adHoc(line *argumentLine, file string) ([]string, error) {
	switch {
	case line.node.Name == "serve" || !line.startsServers():
		return nil, usageError{withHint(errors.New("this command needs a config file, not a url or a command"), `mcpx add NAME URL, or mcpx add NAME -- COMMAND, puts a server into your config`)}
	case file != "", line.after != nil && isURL(line.first()):
		return nil, usageError{withHint(errors.New("a config, a url and a command exclude each other"), "give one of them")}
	case len(line.after) > 0:
		t.adhoc = config.ForCommand(line.after)
	case line.after != nil:
		return nil, usageError{withHint(errors.New(`no command after "--"`), "example: mcpx inspect -- npx -y @modelcontextprotocol/server-memory")}
	default:
		t.adhoc = config.ForURL(line.take())
	}
	if line.isAboutServer() {
		line.insert(t.adhoc.Profiles[0].Upstreams[0].Name)
	}
	line.insert(t.adhoc.File)
	line.after = nil
	return line.join(), nil
}

// argumentLine is a command line in its parts.
type argumentLine struct {
	node      *kong.Node
	before    []string   // up to the command's name
	config    string     // the value of --config, which may also come before the command
	flags     []string   // the others, with their values
	free      []string   // positional arguments
	after     []string   // the words after "--"; nil if there is no "--"
	last      *kong.Flag // set if the line ends with a flag whose value is missing
	wantsHelp bool
}

// readWords finds the command, its flags and its positional arguments.
func readWords(model *kong.Application, args []string) *argumentLine {
	w := &argumentLine{node: model.Node}
	if i := slices.Index(args, "--"); i >= 0 {
		args, w.after = args[:i], append([]string{}, args[i+1:]...)
	}
	at := &position{node: model.Node}
	for _, word := range args {
		flag, parent := at.flag, at.node
		at.pass(word)
		w.wantsHelp = w.wantsHelp || word == "--help" || word == "-h"
		file, isConfig := strings.CutPrefix(word, "--config=")
		switch {
		case isConfig:
			w.config = file
		case flag != nil && flag.Name == "config":
			w.config = word
		case word == "--config":
		case at.node != parent:
			w.before, w.flags = append(slices.Concat(w.before, w.flags), word), nil
		case flag != nil || strings.HasPrefix(word, "-") && word != "-":
			w.flags = append(w.flags, word)
		default:
			w.free = append(w.free, word)
		}
	}
	w.node, w.last = at.node, at.flag
	if w.node.DefaultCmd != nil {
		w.node = w.node.DefaultCmd
	}
	return w
}

// missingValue returns an error if the line ends with a flag that needs a value. In
// another order, the flag would use the next word.
func (w *argumentLine) missingValue(model *kong.Application) error {
	if w.last == nil || w.wantsHelp {
		return nil
	}
	help := "mcpx --help"
	if w.node != model.DefaultCmd {
		help = "mcpx " + w.node.Path() + " --help"
	}
	return usageError{withHint(fmt.Errorf("--%s needs a value", w.last.Name), "run %s", help)}
}

// isAboutServer reports whether the command takes a server after its config.
func (w *argumentLine) isAboutServer() bool {
	return len(w.node.Positional) > 1 && w.node.Positional[1].Name == "server"
}

// join puts the parts together again.
func (w *argumentLine) join() []string {
	all := slices.Concat(w.before, w.flags, w.free)
	if w.after != nil {
		all = append(append(all, "--"), w.after...)
	}
	return all
}

// first returns the first positional argument, "" if there is none.
func (w *argumentLine) first() string {
	if len(w.free) == 0 {
		return ""
	}
	return w.free[0]
}

// take removes the first positional argument.
func (w *argumentLine) take() string {
	word := w.free[0]
	w.free = w.free[1:]
	return word
}

// insert puts a positional argument before the others.
func (w *argumentLine) insert(word string) { w.free = slices.Insert(w.free, 0, word) }

// startsServers reports whether the command connects to servers.
func (w *argumentLine) startsServers() bool {
	return isAuth(w.node) || slices.Contains([]string{"inspect", "exec", "prompts", "resources", "check", "tokens"}, w.node.Name) && w.node.Parent.Type == kong.ApplicationNode
}

// isAuth reports whether a command is about signing in.
func isAuth(command *kong.Node) bool { return command.Parent != nil && command.Parent.Name == "auth" }

// isEdit reports whether a command changes a server of the config.
func isEdit(command *kong.Node) bool {
	return slices.Contains([]string{"add", "remove", "enable", "disable"}, command.Name)
}

// mayTake reports whether the first positional argument may be a config. The commands
// that change a server need their last ones for something else.
func (w *argumentLine) mayTake() bool {
	needed := 0
	if isEdit(w.node) {
		needed = 1
	}
	if w.node.Name == "add" && w.after == nil { // a name and a URL
		needed = 2
	}
	return len(w.free) > needed
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
