package clients

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"mcpx/config"
	"mcpx/config/edit"
	"mcpx/internal/jsonc"
	"mcpx/internal/rawjson"
)

// Collection has the servers of several files, each server once.
type Collection struct {
	System System
	Files  []File   // the files that exist
	Notes  []string // what the user must know about the servers

	servers []entry // as mcpx's config has them
	known   int     // how many servers were added by Know
}

// File is a config file that was found.
type File struct {
	Place
	Servers []string // their names
	Err     error    // why the file could not be read
}

// Know adds a server that mcpx's config has already, before any others are added.
func (c *Collection) Know(name string, raw []byte) {
	c.servers = append(c.servers, entry{name: name, raw: raw})
	c.known = len(c.servers)
}

// AddTo adds the servers to a profile of mcpx's config, without those that it has already.
func (c *Collection) AddTo(e *edit.Editor, profile string) error {
	for _, s := range c.servers[c.known:] {
		if err := e.Add(profile, s.name, s.raw); err != nil {
			return err
		}
	}
	return nil
}

// Len returns the number of servers.
func (c *Collection) Len() int { return len(c.servers) }

// Take adds the user's servers from a client's own config. It returns the names of those
// that mcpx can use, as that file has them. It skips mcpx itself, which may also be there
// as the command own.
func (c *Collection) Take(p Place, text []byte, own string) (taken []string, err error) {
	f, err := openClientFile(p, text)
	if err != nil {
		return nil, err
	}
	found, _ := read(p.Path, text, "") // for the inputs; an empty file has none
	for name, raw := range rawjson.Members(f.servers()) {
		if !isMcpx(raw) && programOf(raw) != own && c.add(p, entry{name: name, raw: raw}, found) {
			taken = append(taken, name)
		}
	}
	return taken, nil
}

// Add reads the files at the places. It skips files that do not exist.
func (c *Collection) Add(places []Place, readFile func(path string) ([]byte, error)) {
	for _, p := range places {
		data, err := readFile(p.Path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		file := File{Place: p, Err: err}
		if err == nil {
			file.Servers, file.Err = c.addFile(p, data, readFile)
		}
		if isSettings(p.Path) && len(file.Servers) == 0 {
			continue // an editor's settings without servers
		}
		c.Files = append(c.Files, file)
	}
}

// addFile adds the servers of one file and returns their names.
func (c *Collection) addFile(p Place, data []byte, readFile func(path string) ([]byte, error)) (names []string, err error) {
	found, err := read(p.Path, data, p.Project)
	if err != nil {
		return nil, err
	}
	for _, duplicate := range jsonc.DuplicateKeys(p.Path, data) {
		c.Notes = append(c.Notes, fmt.Sprintf("%s: %s; remove one of them", p.Title, duplicate))
	}
	if isShared(p.Path) {
		found.switchOffShared(c.System, p.Project, readFile)
	}
	for _, e := range found.servers {
		names = append(names, e.name)
		c.add(p, e, found)
	}
	return names, nil
}

// add adds one server. It reports whether mcpx can use it.
func (c *Collection) add(p Place, e entry, found contents) bool {
	note := func(format string, args ...any) {
		text := fmt.Sprintf("%s, %q: %s", p.Title, e.name, fmt.Sprintf(format, args...))
		if !slices.Contains(c.Notes, text) {
			c.Notes = append(c.Notes, text)
		}
	}
	if isMcpx(e.raw) {
		note("this is mcpx itself; left out")
		return false
	}
	convert := conversion{system: c.System, project: e.project, inputs: found.inputs}
	raw := convert.server(e.raw)
	if problem := check(raw); problem != "" {
		note("left out: %s", problem) // the notes of the conversion do not matter then
		return false
	}
	for _, text := range convert.notes {
		note("%s", text)
	}
	// The user's own servers are used in the current folder.
	if found.isOff(cmp.Or(e.project, c.System.Dir), e.name) && rawjson.Get(raw, "disabled") == nil {
		raw = rawjson.With(raw, "disabled", []byte("true"))
		note("disabled in Claude Code, and stays disabled")
	}
	name := config.ValidName(e.name)
	if name != e.name {
		note("called %q here: %v", name, config.CheckName(e.name))
	}
	free, isKnown := c.freeName(name, p.Client, raw)
	if isKnown {
		return true
	}
	if free != name {
		note("another server has this name; called %q here", free)
	}
	c.servers = append(c.servers, entry{name: free, raw: raw})
	return true
}

// freeName returns a name for a server: its own, or one with the client's name added
// if another server has it. isKnown reports whether the same server is there already.
func (c *Collection) freeName(name, client string, raw []byte) (free string, isKnown bool) {
	for n := 0; ; n++ {
		suffix := ""
		switch {
		case n == 1:
			suffix = "-" + client
		case n > 1:
			suffix = fmt.Sprintf("-%s-%d", client, n)
		}
		runes := []rune(name)
		free = string(runes[:min(len(runes), config.MaxName-len(suffix))]) + suffix
		at := slices.IndexFunc(c.servers, func(s entry) bool { return s.name == free })
		if at < 0 {
			return free, false
		}
		if canonical(c.servers[at].raw) == canonical(raw) {
			return free, true
		}
	}
}

// canonical returns a server with its members in a fixed order.
func canonical(raw []byte) string { return string(rawjson.Encode(decode(raw))) }

// check returns why mcpx cannot use a server; empty if it can.
func check(raw []byte) string {
	file := fmt.Appendf(nil, `{"mcpServers":{"s":%s}}`, raw)
	_, err := config.Parse("server", file, func(string) (string, bool) { return "", true })
	problems, ok := errors.AsType[*jsonc.Error](err)
	if !ok {
		return ""
	}
	var texts []string
	for _, p := range problems.Problems {
		texts = append(texts, strings.TrimPrefix(strings.TrimPrefix(p.Path, "mcpServers.s"), ".")+" "+p.Text)
	}
	return strings.TrimSpace(strings.Join(texts, "; "))
}
