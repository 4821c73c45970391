package config

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mcpx/internal/atomicfile"
	"mcpx/internal/jsonc"
	"mcpx/internal/redact"
)

// Lookup finds a variable of the environment, like os.LookupEnv.
type Lookup = func(name string) (value string, ok bool)

// Load reads a config file of at most [MaxBytes] and expands references from the
// environment. If the file was read but cannot be used, the error is a [*jsonc.Error].
func (h Hooks) Load(path string) (*Config, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a folder; name the config file in it", path)
	}
	data, err := ReadFile(path, MaxBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w\nhint: check the path, or save this there to start:\n\n%s", err, Sample)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the config: %w", err)
	}
	return h.Parse(path, data, os.LookupEnv)
}

// Parse is [Hooks.Load] for bytes. The name of the file is used in messages and for relative
// paths.
func (h Hooks) Parse(file string, data []byte, lookup Lookup) (*Config, error) {
	if h.Secrets == nil {
		h.Secrets = noSecrets{}
	}
	return parse(file, data, environment{Hooks: h, lookup: lookup})
}

// Parse is [Hooks.Parse] without hooks.
func Parse(file string, data []byte, lookup Lookup) (*Config, error) {
	return Hooks{}.Parse(file, data, lookup)
}

// Check returns the problems of a file, as Parse does. A variable or a secret that is missing
// is not the file's fault.
func (h Hooks) Check(file string, data []byte) error {
	noVariables := func(string) (string, bool) { return "", true }
	_, err := parse(file, data, environment{Hooks: Hooks{Sections: h.Sections, Checks: h.Checks}, lookup: noVariables, isDry: true})
	return err
}

// parse is Parse with an environment, whose folder it sets.
func parse(file string, data []byte, e environment) (*Config, error) {
	abs, err := filepath.Abs(file)
	if err != nil {
		return nil, fmt.Errorf("config file %s: %w", file, err)
	}
	e.folder = filepath.Dir(abs)
	r := &reader{File: jsonc.New(file, data), environment: e}
	c := e.defaults()
	c.File = abs
	if root, ok := r.Parse(); ok {
		r.config(root, c)
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	c.Warnings = r.Warnings()
	c.resolve(e)
	return c, nil
}

// MaxBytes is the size of the largest config that mcpx reads.
const MaxBytes = 4 << 20

// readTime limits the time to read a file that is not regular: a FIFO may have no
// writer, and a device may never end.
const readTime = 8 * time.Second

// ReadFile reads a file of at most limit bytes. Unlike os.ReadFile it always returns,
// with bounded memory, even for a device or a FIFO.
func ReadFile(path string, limit int) ([]byte, error) {
	return readFile(path, limit, readTime)
}

func readFile(path string, limit int, within time.Duration) ([]byte, error) {
	if info, err := os.Stat(path); err != nil || info.Mode().IsRegular() {
		return atomicfile.ReadAtMost(path, int64(limit))
	}
	var data []byte
	done := make(chan error, 1)
	// Opening a FIFO cannot be canceled. After a timeout the goroutine stays until
	// there is a writer; mcpx exits without its config anyway.
	go func() {
		read, err := atomicfile.ReadAtMost(path, int64(limit))
		data = read
		done <- err
	}()
	select {
	case err := <-done:
		return data, err
	case <-time.After(within):
		return nil, fmt.Errorf("%s: could not be read within %s; name a regular file, or check that a program writes to it", path, within)
	}
}

// Find returns the config file to use when none is named: $MCPX_CONFIG, ./mcpx.json,
// then mcpx/config.json in the user's config folder.
func Find(lookup Lookup) (string, error) {
	if file, _ := lookup("MCPX_CONFIG"); file != "" {
		return file, nil
	}
	places := []string{"mcpx.json"}
	if file := UserFile(lookup); file != "" {
		places = append(places, file)
	}
	for _, file := range places {
		if info, err := os.Stat(file); err == nil && !info.IsDir() {
			return file, nil
		}
	}
	return "", fmt.Errorf("no config file: $MCPX_CONFIG is not set, and there is no %s", strings.Join(places, " and no "))
}

// UserFile returns the path of the user's own config, which may not exist; empty if the
// user has no home folder.
func UserFile(lookup Lookup) string {
	folder, _ := lookup("XDG_CONFIG_HOME")
	if home := homeFolder(lookup); folder == "" && home != "" {
		folder = filepath.Join(home, ".config")
	}
	if folder == "" {
		return ""
	}
	return filepath.Join(folder, "mcpx", "config.json")
}

func homeFolder(lookup Lookup) string {
	if home, _ := lookup("HOME"); home != "" {
		return home
	}
	home, _ := lookup("USERPROFILE") // Windows
	return home
}

// Sample is a small config to start with.
const Sample = `{
  "mcpServers": {
    "time": {"command": "uvx", "args": ["mcp-server-time"]}
  }
}
`

// ForCommand returns a config with one server, which is started with this command line.
// The server gets the whole environment of mcpx, as if a person had started it.
func ForCommand(words []string) *Config {
	u := defaultUpstream()
	u.Name, u.Transport, u.Command, u.Args, u.InheritAll = nameOf(words), TransportStdio, words[0], words[1:], true
	return withoutFile(strings.Join(words, " "), u)
}

// ForURL returns a config with one server at that address.
func ForURL(address string) *Config {
	u := defaultUpstream()
	u.Name, u.Transport, u.URL = "server", TransportRemote, address
	if parsed, err := url.Parse(address); err == nil && parsed.Hostname() != "" {
		u.Name = ValidName(parsed.Hostname())
	}
	return withoutFile(address, u)
}

func withoutFile(source string, u Upstream) *Config {
	written := u
	u.written = &written
	u.SetHeaders(nil)
	c := defaults()
	u.inherit(c)
	p := defaultProfile("default")
	p.Upstreams = []Upstream{u}
	c.File = source
	c.Profiles = []Profile{p}
	return c
}

// SetHeaders sets the headers of a server that is in no config file.
func (u *Upstream) SetHeaders(headers map[string]string) {
	u.Headers = headers
	u.Err = unusable(u)
	u.secrets = redact.NewSet(secrets(u, nil))
}

// launchers are programs that run another program, which gives the server its name.
var launchers = []string{"npx", "bunx", "uvx", "pipx", "node", "deno", "bun", "python", "python3", "uv", "docker", "go"}

// nameOf returns a name for a server from its command line.
func nameOf(words []string) string {
	name := filepath.Base(words[0])
	if slices.Contains(launchers, strings.TrimSuffix(name, ".exe")) {
		for _, word := range words[1:] {
			if !strings.HasPrefix(word, "-") && word != "run" && word != "exec" && word != "x" {
				name = path.Base(filepath.ToSlash(word))
				break
			}
		}
	}
	if i := strings.LastIndexByte(name, '@'); i > 0 { // a version
		name = name[:i]
	}
	if name == "mcpx" {
		name = "server"
	}
	return ValidName(name)
}
