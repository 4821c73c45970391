package clients

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"mcpx/config"
	"mcpx/internal/rawjson"
)

// Collection is the servers of several files, each once.
type Collection struct {
	System System
	Files  []File   // those that there are
	Notes  []string // what could not be kept as it was

	servers []server
	known   int // how many of the servers were there before
}

// Know tells the collection of a server that there is already. It is not added again.
func (c *Collection) Know(name string, raw []byte) {
	c.servers = slices.Insert(c.servers, c.known, server{name, raw})
	c.known++
}

// Each calls use for every server that was added, in order.
func (c *Collection) Each(use func(name string, raw []byte) error) error {
	for _, s := range c.servers[c.known:] {
		if err := use(s.name, s.raw); err != nil {
			return err
		}
	}
	return nil
}

// Take adds the servers that the user has in a client's own config. It returns the
// names, in that file, of those that mcpx can use. mcpx itself, which may have another
// name as the command own, is none of them.
func (c *Collection) Take(p Place, text []byte, own string) (taken []string, err error) {
	f, err := openClientFile(p, text)
	if err != nil {
		return nil, err
	}
	inputs := map[string]string{}
	if found, err := read(p.Path, text, ""); err == nil {
		inputs = found.inputs
	}
	for _, name := range f.names() {
		raw := f.server(name)
		if !isMcpx(raw) && programOf(raw) != own && c.add(p, entry{name: name, raw: raw}, inputs) {
			taken = append(taken, name)
		}
	}
	return taken, nil
}

// File is a config file that was found.
type File struct {
	Place
	Servers []string // the names it has
	Err     error    // why it could not be read
}

// server is one as mcpx's config has it.
type server struct {
	name string
	raw  []byte
}

// Add reads the files at the places. Where there is none is no error.
func (c *Collection) Add(places []Place, readFile func(path string) ([]byte, error)) {
	for _, p := range places {
		data, err := readFile(p.Path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		file := File{Place: p, Err: err}
		if err == nil {
			file.Servers, file.Err = c.file(p, data, readFile)
		}
		if strings.HasSuffix(p.Path, "settings.json") && len(file.Servers) == 0 {
			continue // every editor has one, for other things
		}
		c.Files = append(c.Files, file)
	}
}

// Len is how many servers there are.
func (c *Collection) Len() int { return len(c.servers) }

// Config is an mcpx config of all the servers, laid out for people who edit it.
func (c *Collection) Config() []byte {
	b := []byte("{\n  \"mcpServers\": {")
	for i, s := range c.servers {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(rawjson.AppendString(append(b, "\n    "...), s.name), ": {"...)
		first := true
		for key, value := range rawjson.Members(s.raw) {
			if !first {
				b = append(b, ',')
			}
			first = false
			b = append(rawjson.AppendString(append(b, "\n      "...), key), ": "...)
			b = appendSpaced(b, value)
		}
		b = append(b, "\n    }"...)
	}
	return append(b, "\n  }\n}\n"...)
}

// appendSpaced appends a value on one line, with spaces where people put them.
func appendSpaced(b, value []byte) []byte {
	comma := ""
	switch rawjson.Kind(value) {
	case '{':
		b = append(b, '{')
		for key, inner := range rawjson.Members(value) {
			b = append(rawjson.AppendString(append(b, comma...), key), ": "...)
			b, comma = appendSpaced(b, inner), ", "
		}
		return append(b, '}')
	case '[':
		b = append(b, '[')
		for inner := range rawjson.Elements(value) {
			b, comma = appendSpaced(append(b, comma...), inner), ", "
		}
		return append(b, ']')
	}
	return append(b, value...)
}

// file takes the servers of one file and returns their names.
func (c *Collection) file(p Place, data []byte, readFile func(path string) ([]byte, error)) ([]string, error) {
	found, err := read(p.Path, data, p.Project)
	if err != nil {
		return nil, err
	}
	for _, duplicate := range config.DuplicateKeys(p.Path, data) {
		c.Notes = append(c.Notes, fmt.Sprintf("%s: %s; remove one of them", p.Title, duplicate))
	}
	if path.Base(slashed(p.Path)) == ".mcp.json" {
		found.off[slashed(p.Project)] = c.System.offInShared(p.Project, readFile)
	}
	var names []string
	for _, e := range found.servers {
		names = append(names, e.name)
		folder := cmp.Or(e.project, c.System.Dir) // a server of the user's is used here
		e.off = slices.Contains(found.off[slashed(folder)], e.name)
		c.add(p, e, found.inputs)
	}
	return names, nil
}

// add takes one server, and reports whether it is among the servers now.
func (c *Collection) add(p Place, e entry, inputs map[string]string) bool {
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
	var changes []string
	convert := conversion{system: c.System, project: e.project, inputs: inputs, note: func(format string, args ...any) {
		changes = append(changes, fmt.Sprintf(format, args...))
	}}
	raw := convert.server(e.raw)
	if problem := check(raw); problem != "" {
		note("left out: %s", problem) // what was changed does not matter then
		return false
	}
	for _, text := range changes {
		note("%s", text)
	}
	if e.off && rawjson.Get(raw, "disabled") == nil {
		raw = rawjson.With(raw, "disabled", []byte("true"))
		note("it is switched off in Claude Code, and stays so")
	}
	name := validName(e.name)
	if name != e.name {
		note("called %q here: %v", name, config.CheckName(e.name))
	}
	free, known := c.place(name, p.Client, raw)
	if known {
		return true
	}
	if free != name {
		note("another server has this name; called %q here", free)
	}
	c.servers = append(c.servers, server{free, raw})
	return true
}

// place finds the name for a server: its own, or one that tells it from another
// of that name. It is known if the same server is there already.
func (c *Collection) place(name, client string, raw []byte) (free string, known bool) {
	for n := 0; ; n++ {
		suffix := ""
		switch {
		case n == 1:
			suffix = "-" + client
		case n > 1:
			suffix = fmt.Sprintf("-%s-%d", client, n)
		}
		free = cut(name, longestName-len(suffix)) + suffix
		at := slices.IndexFunc(c.servers, func(s server) bool { return s.name == free })
		if at < 0 {
			return free, false
		}
		if canonical(c.servers[at].raw) == canonical(raw) {
			return free, true
		}
	}
}

// canonical is a server without the order of its members.
func canonical(raw []byte) string {
	var value any
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	_ = d.Decode(&value)
	text, _ := json.Marshal(value)
	return string(text)
}

// check says why mcpx would not take a server, empty if it would.
func check(raw []byte) string {
	file := rawjson.AppendMember([]byte("{"), "s", raw)
	file = rawjson.AppendMember([]byte("{"), "mcpServers", append(file, '}'))
	_, err := config.Parse("server", append(file, '}'), func(string) (string, bool) { return "", true })
	var problems *config.Error
	if !errors.As(err, &problems) {
		return ""
	}
	var texts []string
	for _, p := range problems.Problems {
		texts = append(texts, strings.TrimPrefix(strings.TrimPrefix(p.Path, "mcpServers.s"), ".")+" "+p.Text)
	}
	return strings.TrimSpace(strings.Join(texts, "; "))
}

// longestName is what mcpx allows.
const longestName = 64

// validName is the nearest name that mcpx takes.
func validName(name string) string {
	if config.CheckName(name) == nil {
		return name
	}
	name = strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.L, unicode.M, unicode.Nd) || strings.ContainsRune("_-. ", r) {
			return r
		}
		return '-'
	}, name)
	for strings.Contains(name, "__") {
		name = strings.ReplaceAll(name, "__", "_")
	}
	name = strings.TrimSpace(cut(strings.TrimSpace(name), longestName))
	if config.CheckName(name) != nil { // empty, or mcpx
		name = strings.TrimSpace(name + " server")
	}
	return name
}

// cut shortens a name to that many characters.
func cut(name string, characters int) string {
	if utf8.RuneCountInString(name) <= characters {
		return name
	}
	return string([]rune(name)[:characters])
}
