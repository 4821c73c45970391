package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"mcpx/config"
	"mcpx/config/edit"
	"mcpx/internal/app"
	"mcpx/internal/nearest"
	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
)

// addCmd adds a server to the config.
type addCmd struct {
	configFile
	Name        string   `arg:"" help:"Name of the new server."`
	Words       []string `arg:"" optional:"" name:"url" help:"URL of a remote server; or, after --, a command and its arguments."`
	Env         []string `sep:"none" placeholder:"K=V" help:"Variable for the command's environment. May be given several times."`
	Cwd         string   `placeholder:"DIR" help:"Folder to start the command in."`
	Header      []string `sep:"none" placeholder:"K: V" help:"HTTP header for the URL. May be given several times."`
	Type        string   `enum:"http,sse," default:"" placeholder:"HOW" help:"http or sse; without it, http is tried first."`
	Description string   `placeholder:"TEXT" help:"One line about the server, for the agent."`
	Profile     string   `name:"schema" env:"MCPX_SCHEMA" placeholder:"NAME" help:"The profile to add it to (default). A new one is created if the file has profiles."`
	Force       bool     `help:"Replace a server of the same name."`
	NoCheck     bool     `help:"Do not connect to the server."`
}

func (addCmd) Help() string {
	return `Comments and formatting of the file stay as they are. If there is no config, ~/.config/mcpx/config.json is created. mcpx then
connects to the server once and prints what "mcpx check" would say. If that fails, the server stays in the config.

Examples:
  mcpx add time -- uvx mcp-server-time
  mcpx add github --env 'GITHUB_TOKEN=${GITHUB_TOKEN}' -- npx -y @modelcontextprotocol/server-github
  mcpx add docs https://docs.example.com/mcp --header 'Authorization: Bearer ${DOCS_TOKEN}'
  mcpx add mcpx.json notes --description 'My notes' -- ./notes-server --dir ~/notes

In single quotes, ${TOKEN} is stored as it is and read from the environment when mcpx starts.`
}

func (c *addCmd) Run(t *invocation) error {
	makeServer := c.remote
	if len(t.command) > 0 && len(c.Words) == 0 {
		makeServer = c.local
	}
	server, err := makeServer(t.command)
	if err != nil {
		return err
	}
	if c.Path == config.UserFile(os.LookupEnv) {
		if _, err := makeFolder(c.Path); err != nil {
			return writeError(err)
		}
	}
	var profiles []string // of the file before the change
	result, err := edit.File(app.ConfigHooks(), c.Path, 0o600, func(e *edit.Editor) error {
		profiles = e.Profiles()
		return c.add(e, rawjson.Encode(server))
	})
	if err != nil {
		return c.failed(err)
	}
	if result.Created {
		fmt.Fprintf(t.Stderr, "created %s\n", c.Path)
	}
	done := "added %s to %s\n"
	if !result.Changed {
		done = "%s is already in %s\n"
	}
	fmt.Fprintf(t.Stderr, done, c.Name, c.Path)
	c.announceProfile(t, profiles)
	if server.Cwd != "" && c.Cwd == "" {
		fmt.Fprintf(t.Stderr, "note: it is started in %s, since its command line names files there\n", server.Cwd)
	}
	if err := c.warnOfSecrets(t); err != nil || c.NoCheck {
		return err
	}
	return (&serverEdit{c.configFile, c.Name, c.Profile}).connectOnce(t)
}

// announceProfile reports that the server's profile is new, and suggests an existing profile with a
// similar name. known are the profiles that the file had before.
func (c *addCmd) announceProfile(t *invocation, known []string) {
	if c.Profile == "" || slices.Contains(known, c.Profile) {
		return
	}
	fmt.Fprintf(t.Stderr, "note: profile %s is new\n", plain.Line(c.Profile))
	if near := nearest.Word(c.Profile, known); near != "" {
		fmt.Fprintf(t.Stderr, "hint: did you mean the existing profile %[1]s? Then remove the server, and add it again with --schema %[1]s\n", plain.Line(near))
	}
}

// failed explains why the server was not added.
func (c *addCmd) failed(err error) error {
	if profile, ok := errors.AsType[*edit.UnknownProfileError](err); ok && c.Profile == "" {
		return usageError{withHint(fmt.Errorf("%s has no profile %q", c.Path, profile.Name), "choose one with --schema: %s", strings.Join(profile.Known, ", "))}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return usageError{withHint(fmt.Errorf("%s cannot be created: its folder does not exist", c.Path), "check the path, or make the folder first")}
	}
	return editError(err, c.Path)
}

// add adds or replaces the server.
func (c *addCmd) add(e *edit.Editor, server []byte) error {
	if c.Profile != "" {
		if err := e.AddProfile(c.Profile); err != nil {
			return err
		}
	}
	err := e.Add(c.Profile, c.Name, server)
	if errors.As(err, new(*edit.ExistsError)) && c.Force {
		return e.Replace(c.Profile, c.Name, server)
	}
	return err
}

// newServer is a server for the config.
type newServer struct {
	Type        string            `json:"type,omitempty"`
	URL         string            `json:"url,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`
	Command     string            `json:"command,omitempty"`
	Args        []string          `json:"args,omitempty"`
	Env         map[string]string `json:"env,omitempty"`
	Cwd         string            `json:"cwd,omitempty"`
	Description string            `json:"description,omitempty"`
}

// remote returns a server that is reached by URL.
func (c *addCmd) remote(command []string) (s newServer, err error) {
	name, words := plain.Shell(c.Name), c.Words
	switch {
	case len(words) == 0 && isURL(c.Name):
		return s, usageError{withHint(errors.New("the server needs a name"), "mcpx add NAME %s", name)}
	case len(words) == 0:
		return s, usageError{withHint(fmt.Errorf("%s needs a command or a URL", c.Name), "mcpx add %s -- COMMAND, or mcpx add %[1]s https://…", name)}
	case len(command) > 0:
		return s, usageError{withHint(fmt.Errorf("unexpected argument %s", words[0]), "name one server and its command: mcpx add %s -- %s", name, plain.Shell(command[0]))}
	case !strings.Contains(words[0], "://") && hostAndPort.MatchString(words[0]):
		return s, usageError{withHint(fmt.Errorf("%s is not a URL", words[0]), "write it with its scheme: mcpx add %s %s", name, plain.Shell("http://"+words[0]))}
	case !strings.Contains(words[0], "://") && !strings.Contains(words[0], "${"):
		return s, usageError{withHint(fmt.Errorf("%s is not a URL", words[0]), "write -- before a command: mcpx add %s -- %s", name, plain.Shell(words...))}
	case len(words) > 1:
		return s, usageError{fmt.Errorf("unexpected argument %s", words[1])}
	case len(c.Env) > 0 || c.Cwd != "":
		return s, usageError{withHint(errors.New("--env and --cwd are for commands"), "a URL takes --header")}
	}
	headers, err := parseHeaders(c.Header)
	return newServer{Type: c.Type, URL: words[0], Headers: headers, Description: c.Description}, err
}

// hostAndPort matches an address that lacks only its scheme: localhost:3000/mcp.
var hostAndPort = regexp.MustCompile(`^[\w.-]+:[0-9]+(/.*)?$`)

// parseHeaders reads the HTTP headers of the command line.
func parseHeaders(lines []string) (map[string]string, error) {
	headers := map[string]string{}
	for _, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return nil, usageError{withHint(errors.New("--header needs a name and a value"), "--header 'NAME: VALUE'")}
		}
		headers[name] = strings.TrimSpace(value)
	}
	return headers, nil
}

// local returns a server that is started by a command.
func (c *addCmd) local(command []string) (s newServer, err error) {
	if len(c.Header) > 0 || c.Type != "" {
		return s, usageError{withHint(errors.New("--header and --type are for URLs"), "a command takes --env and --cwd")}
	}
	s = newServer{Command: command[0], Args: command[1:], Env: map[string]string{}, Description: c.Description}
	for _, pair := range c.Env {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return s, usageError{withHint(errors.New("--env needs a name and a value"), "--env NAME=VALUE, or --env 'NAME=${NAME}' to read it from the environment")}
		}
		s.Env[key] = value
	}
	s.Cwd = c.folder(rawjson.Encode(s))
	return s, nil
}

// folder returns the folder to start the command in: --cwd, or the current folder if the
// command line names files in it.
func (c *addCmd) folder(server []byte) string {
	system := thisSystem()
	folder := c.Cwd
	switch {
	case folder == "" && !system.NamesFiles(system.Dir, server):
		return ""
	case folder == "" || strings.HasPrefix(folder, "~") || strings.Contains(folder, "${"):
		return cmp.Or(folder, system.Dir)
	}
	if absolute, err := filepath.Abs(folder); err == nil {
		return absolute
	}
	return folder
}

// warnOfSecrets explains how to keep secrets out of the file.
func (c *addCmd) warnOfSecrets(t *invocation) error {
	file, err := t.load(c.Path)
	if err != nil {
		return err
	}
	for i := range file.Profiles {
		p := &file.Profiles[i]
		for _, u := range p.All() {
			isAdded := u.Name == c.Name && p.Name == cmp.Or(c.Profile, "default")
			if places := u.LiteralSecrets(); isAdded && len(places) > 0 {
				fmt.Fprintf(t.Stderr, "hint: the file now has what looks like a secret (%s); to keep it out, write a reference in single quotes: '${NAME}', or '${keyring:NAME}' after mcpx secret set NAME\n", strings.Join(places, ", "))
			}
		}
	}
	return nil
}
