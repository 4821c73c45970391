package config

import (
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// ForCommand returns a config with one server that is started with these words. It
// gets the whole environment of mcpx, as if a person had started it.
func ForCommand(words []string) *Config {
	return adHoc(strings.Join(words, " "), Upstream{
		Name: nameOf(words), Transport: TransportStdio, Command: words[0], Args: words[1:], InheritAll: true,
	})
}

// ForURL returns a config with one server at that address.
func ForURL(address string) *Config {
	name := "server"
	if u, err := url.Parse(address); err == nil && u.Hostname() != "" {
		name = u.Hostname()
	}
	return adHoc(address, Upstream{Name: ValidName(name), Transport: TransportRemote, URL: address})
}

func adHoc(source string, own Upstream) *Config {
	u := defaultUpstream()
	u.Name, u.Transport, u.Command, u.Args, u.URL, u.InheritAll = own.Name, own.Transport, own.Command, own.Args, own.URL, own.InheritAll
	written := u
	u.written = &written
	u.Err = unusable(&u)
	u.redactor = newRedactor(secrets(&u, nil))
	p := defaultProfile("default")
	p.Upstreams = []Upstream{u}
	c := defaults()
	c.File = source
	c.Profiles = []Profile{p}
	return c
}

// SetHeaders sets the headers of a server that is in no config.
func (u *Upstream) SetHeaders(headers map[string]string) {
	u.Headers = headers
	u.Err = unusable(u)
	u.redactor = newRedactor(secrets(u, nil))
}

// launchers run another program; the server is named after that program.
var launchers = []string{"npx", "bunx", "uvx", "pipx", "node", "deno", "bun", "python", "python3", "uv", "docker", "go"}

// nameOf makes a server's name from its command.
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
