package cli

import (
	"embed"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"mcpx/cmd/internal/clients"
	"mcpx/config"
	"mcpx/executor"
	"mcpx/internal/demo"
)

// completionCmd prints the script of a shell.
type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish,powershell" help:"bash, zsh, fish or powershell."`
}

func (completionCmd) Help() string {
	return `Examples:
  source <(mcpx completion bash)                                  in ~/.bashrc
  source <(mcpx completion zsh)                                   in ~/.zshrc, after compinit
  mcpx completion fish > ~/.config/fish/completions/mcpx.fish
  mcpx completion powershell | Out-String | Invoke-Expression     in $PROFILE`
}

func (c *completionCmd) Run(t *terminal) error {
	script, err := completionScripts.ReadFile("completion/mcpx." + c.Shell)
	if err != nil {
		return err
	}
	return t.printf("%s", script)
}

// completionScripts run "mcpx __complete" with the words so far; the last one is to be
// completed. Without suggestions they offer files.
//
//go:embed completion
var completionScripts embed.FS

// completeCmd prints suggestions for the last word.
type completeCmd struct {
	Words []string `arg:"" optional:"" help:"The words after the program's name; the last is completed."`
}

func (c *completeCmd) Run(t *terminal, k *kong.Kong) error {
	for _, s := range complete(k.Model.Node, c.Words) {
		if err := t.printf("%s\t%s\n", s.text, s.help); err != nil {
			return err
		}
	}
	return nil
}

// suggestion is a possible word and its description.
type suggestion struct{ text, help string }

// complete returns the suggestions for the last word.
func complete(root *kong.Node, words []string) []suggestion {
	if len(words) == 0 {
		words = []string{""}
	}
	last := words[len(words)-1]
	if last == `""` { // PowerShell cannot always pass on an empty word
		last = ""
	}
	at := &position{node: root}
	for _, word := range words[:len(words)-1] {
		at.pass(word)
	}
	var found []suggestion
	for _, s := range at.next(last) {
		if strings.HasPrefix(s.text, last) {
			s.help, _, _ = strings.Cut(s.help, "\n")
			found = append(found, s)
		}
	}
	return found
}

// position is the state of reading a command line word by word.
type position struct {
	node *kong.Node
	args []string   // positional arguments so far
	flag *kong.Flag // its value comes next
}

// pass reads a word.
func (p *position) pass(word string) {
	switch {
	case p.flag != nil:
		p.flag = nil
	case strings.HasPrefix(word, "-") && word != "-":
		if f := p.find(word); f != nil && !f.IsBool() && !strings.Contains(word, "=") {
			p.flag = f
		}
	default:
		for _, child := range p.node.Children {
			if child.Name == word && len(p.args) == 0 {
				p.node = child
				return
			}
		}
		p.args = append(p.args, word)
	}
}

// find returns the flag that a word names.
func (p *position) find(word string) *kong.Flag {
	name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	for _, f := range p.flags() {
		if f.Name == name || len(name) == 1 && string(f.Short) == name {
			return f
		}
	}
	return nil
}

// flags returns the flags of the command, or of its default command.
func (p *position) flags() []*kong.Flag {
	node := p.node
	if node.DefaultCmd != nil {
		node = node.DefaultCmd
	}
	var flags []*kong.Flag
	for _, group := range node.AllFlags(true) {
		flags = append(flags, group...)
	}
	return flags
}

// next returns all words that may follow. None means a file.
func (p *position) next(word string) (found []suggestion) {
	switch {
	case p.flag != nil && p.flag.Name == "schema":
		file, _ := p.config()
		return suggestions(file, func(p *config.Profile) []suggestion { return []suggestion{{text: p.Name}} })
	case p.flag != nil:
		return values(p.flag.Value)
	}
	if strings.HasPrefix(word, "-") {
		for _, f := range p.flags() {
			found = append(found, suggestion{"--" + f.Name, f.Help})
		}
		return found
	}
	if len(p.args) == 0 {
		for _, child := range p.node.Children {
			if !child.Hidden {
				found = append(found, suggestion{child.Name, child.Help})
			}
		}
	}
	file, args := p.config()
	if len(args) >= len(p.node.Positional) {
		return found
	}
	arg := p.node.Positional[len(args)]
	switch {
	case arg.Name == "server" && isEdit(p.node):
		return append(found, serversOf(file, (*config.Profile).All)...)
	case arg.Name != "server":
		return append(found, values(arg)...)
	}
	servers := serversOf(file, func(p *config.Profile) []config.Upstream { return p.Upstreams })
	if isAuth(p.node) {
		return append(found, servers...)
	}
	return append(servers, suggestion{executor.Builtin, "the built-in tools"})
}

// config returns the config file that the command will use, and the positional arguments
// including the config.
func (p *position) config() (file string, args []string) {
	if len(p.args) > 0 && isConfig(p.args[0]) {
		return p.args[0], p.args
	}
	file, _ = config.Find(os.LookupEnv)
	if len(p.node.Positional) > 1 && p.node.Positional[1].Name == "server" && p.node.Positional[0].Name == "config" {
		return file, append([]string{file}, p.args...)
	}
	return file, p.args
}

// names are the values of flags and arguments that are not written in their tags.
var names = map[string]func() []string{"from": clients.Names, "client": clients.Names, "demo": demo.Names}

// values returns the values that a flag or an argument may have, if they are few.
func values(v *kong.Value) (found []suggestion) {
	words := v.EnumSlice()
	if list, ok := names[v.Name]; ok {
		words = list()
	}
	for _, word := range words {
		if word != "" {
			found = append(found, suggestion{text: word})
		}
	}
	return found
}

// serversOf returns some servers of each schema of a config file.
func serversOf(file string, list func(p *config.Profile) []config.Upstream) []suggestion {
	return suggestions(file, func(p *config.Profile) (found []suggestion) {
		for _, u := range list(p) {
			found = append(found, suggestion{u.Name, u.Description})
		}
		return found
	})
}

// suggestions returns what find finds in each schema of a config file. Nothing is
// started.
func suggestions(file string, find func(p *config.Profile) []suggestion) (found []suggestion) {
	c, err := config.Load(file)
	if err != nil {
		return nil
	}
	for i := range c.Profiles {
		found = append(found, find(&c.Profiles[i])...)
	}
	return found
}
