package cli

import (
	"embed"
	"fmt"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"mcpx/cmd/internal/clients"
	"mcpx/config"
	"mcpx/executor"
	"mcpx/internal/app"
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

func (c *completionCmd) Run(t *invocation) error {
	script, err := completionScripts.ReadFile("completion/mcpx." + c.Shell)
	if err != nil {
		return err
	}
	return t.Printf("%s", script)
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

func (c *completeCmd) Run(t *invocation, k *kong.Kong) error {
	for _, s := range complete(k.Model, c.Words) {
		fmt.Fprintf(t.Stdout, "%s\t%s\n", s.text, s.help)
	}
	return nil
}

// suggestion is a possible word and its description.
type suggestion struct{ text, help string }

// complete returns the suggestions for the last word.
func complete(model *kong.Application, words []string) []suggestion {
	if len(words) == 0 {
		words = []string{""}
	}
	last := words[len(words)-1]
	if last == `""` { // PowerShell cannot always pass on an empty word
		last = ""
	}
	line := readWords(model, words[:len(words)-1])
	if isConfig(line.first()) {
		line.config = line.pop()
	}
	if line.config == "" {
		line.config, _ = config.Find(os.LookupEnv)
	}
	var found []suggestion
	for _, s := range line.next(last) {
		if strings.HasPrefix(s.text, last) {
			s.help, _, _ = strings.Cut(s.help, "\n")
			found = append(found, s)
		}
	}
	return found
}

// next returns all words that may follow. None means a file.
func (l *commandLine) next(word string) (found []suggestion) {
	switch {
	case l.after != nil:
		return nil
	case l.flag != nil && l.flag.Name == "schema":
		for _, p := range l.profiles() {
			found = append(found, suggestion{text: p.Name})
		}
		return found
	case l.flag != nil:
		return values(l.flag.Value)
	case strings.HasPrefix(word, "-"):
		for _, f := range flagsOf(l.node) {
			found = append(found, suggestion{"--" + f.Name, f.Help})
		}
		return found
	}
	if len(l.args) == 0 {
		for _, child := range l.node.Children {
			if !child.Hidden {
				found = append(found, suggestion{child.Name, child.Help})
			}
		}
	}
	if len(l.args) >= len(l.node.Positional) {
		return found
	}
	if arg := l.node.Positional[len(l.args)]; arg.Name != "server" {
		return append(found, values(arg)...)
	}
	for _, p := range l.profiles() {
		servers := p.Upstreams
		if isEdit(l.node) {
			servers = p.All()
		}
		for _, u := range servers {
			found = append(found, suggestion{u.Name, u.Description})
		}
	}
	if isEdit(l.node) || isAuth(l.node) {
		return found
	}
	return append(found, suggestion{executor.Builtin, "the built-in tools"})
}

// profiles returns the profiles of the config, none if it cannot be read. Nothing is started.
func (l *commandLine) profiles() []config.Profile {
	c, err := app.LoadConfig(l.config)
	if err != nil {
		return nil
	}
	return c.Profiles
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
