package clients

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"mcpx/config"
	"mcpx/internal/jsonedit"
	"mcpx/internal/rawjson"
)

// Entry is mcpx as a client starts it.
type Entry struct {
	Name    string
	Command string
	Args    []string
}

// Change is an edit of a client's own config. It is not written yet.
type Change struct {
	Place  Place
	Before []byte // the text of the file; nil: it does not exist
	After  []byte
	Lines  []string // what changes, for people; without secrets
	Next   string   // what to do so that the client sees it
}

// IsEmpty reports whether nothing changes.
func (c *Change) IsEmpty() bool { return len(c.Lines) == 0 }

// target is how a client's own config has servers.
type target struct {
	key  string // of the object of servers in a JSON file; empty: the file is TOML
	kind string // the "type" that an entry must have; empty: none
	next string
}

// targets are the formats of the known clients.
var targets = map[string]target{
	"claude-desktop": {"mcpServers", "", "quit Claude Desktop and start it again"},
	"claude-code":    {"mcpServers", "stdio", "start a new session of claude; /mcp shows the servers"},
	"cursor":         {"mcpServers", "", "restart Cursor; Settings > MCP shows the servers"},
	"vscode":         {"servers", "stdio", `run "MCP: List Servers" in the Command Palette of VS Code and start it`},
	"windsurf":       {"mcpServers", "", "restart Windsurf, or refresh its list of MCP servers"},
	"codex":          {"", "", codexNext},
}

// codexNext also says what Codex needs to show the two tools to its newest models at
// once. mcpx does not write it: older versions of Codex do not know the key.
const codexNext = `start a new session of codex; /mcp shows the servers
note: newer models of Codex see MCP tools only after a search. To show the tools of mcpx at once, add this to the same file:
  [features.code_mode]
  direct_only_tool_namespaces = ["mcp__mcpx"]`

// UserFile returns the file in which a client keeps the user's servers: one that
// exists, or the one that it would create. The client must be known.
func (s System) UserFile(client string) Place {
	var files []Place
	for _, p := range s.Places(client) {
		if p.Project == "" && !strings.HasSuffix(p.Path, "settings.json") {
			files = append(files, p)
		}
	}
	exists := s.Exists
	if exists == nil {
		exists = func(string) bool { return false }
	}
	for _, found := range []func(p Place) bool{
		func(p Place) bool { return exists(p.Path) },
		func(p Place) bool { return exists(s.folder(p.Path)) },
	} {
		if i := slices.IndexFunc(files, found); i >= 0 {
			return files[i]
		}
	}
	return files[0]
}

// folder returns the folder of a file on that system.
func (s System) folder(file string) string {
	if s.OS == "windows" {
		return file[:max(0, strings.LastIndexAny(file, `\/`))]
	}
	return path.Dir(file)
}

// NotMcpxError reports that a client's server is not mcpx, although it has the name.
type NotMcpxError struct{ Name string }

func (e *NotMcpxError) Error() string { return fmt.Sprintf("server %q is not mcpx", e.Name) }

// Install adds mcpx to the text of a client's config, or updates its command and its
// arguments. The servers in moved are removed; into names the config that they move to.
func Install(p Place, before []byte, e Entry, moved []string, into string) (*Change, error) {
	f, err := openClientFile(p, before)
	if err != nil {
		return nil, err
	}
	c := &Change{Place: p, Before: before, Next: targets[p.Client].next}
	wanted := e.object(targets[p.Client].kind)
	switch old := f.server(e.Name); {
	case old == nil:
		c.add("+", f.show(e.Name, wanted))
		err = f.add(e.Name, wanted)
	case !isMcpx(old) && programOf(old) != e.Command:
		return nil, &NotMcpxError{e.Name}
	case canonical(commandOf(old)) != canonical(commandOf(wanted)):
		c.add("-", f.show(e.Name, commandOf(old)))
		c.add("+", f.show(e.Name, commandOf(wanted)))
		err = f.update(e.Name, wanted)
	}
	for _, name := range moved {
		if err == nil {
			c.Lines = append(c.Lines, fmt.Sprintf("- %q (moved to %s)", name, into))
			err = f.remove(name)
		}
	}
	c.After = f.text()
	return c, err
}

// Uninstall removes mcpx from the text of a client's config.
func Uninstall(p Place, before []byte, name string) (*Change, error) {
	f, err := openClientFile(p, before)
	if err != nil {
		return nil, err
	}
	c := &Change{Place: p, Before: before, After: before, Next: targets[p.Client].next}
	old := f.server(name)
	switch {
	case old == nil:
		return c, nil
	case !isMcpx(old):
		return nil, &NotMcpxError{name}
	}
	c.add("-", f.show(name, commandOf(old)))
	err = f.remove(name)
	c.After = f.text()
	return c, err
}

func (c *Change) add(sign, text string) {
	for line := range strings.Lines(text) {
		c.Lines = append(c.Lines, sign+" "+strings.TrimRight(line, "\n"))
	}
}

// object returns the entry as JSON.
func (e Entry) object(kind string) []byte {
	b := []byte("{")
	if kind != "" {
		b = rawjson.AppendMember(b, "type", rawjson.AppendString(nil, kind))
	}
	args := []byte("[")
	for _, arg := range e.Args {
		args = appendElement(args, rawjson.AppendString(nil, arg))
	}
	b = rawjson.AppendMember(b, "command", rawjson.AppendString(nil, e.Command))
	return append(rawjson.AppendMember(b, "args", append(args, ']')), '}')
}

// commandOf returns the command and the arguments of a server, without the rest, which
// may hold secrets.
func commandOf(server []byte) []byte {
	b := []byte("{")
	for _, key := range []string{"command", "args"} {
		b = rawjson.AppendMember(b, key, rawjson.Get(server, key))
	}
	return append(b, '}')
}

// programOf returns the command of a server as text.
func programOf(server []byte) string {
	text, _ := rawjson.String(rawjson.Get(server, "command"))
	return text
}

// clientFile is the text of a client's config. Servers are plain JSON.
type clientFile interface {
	names() []string
	server(name string) []byte // nil if there is none
	add(name string, server []byte) error
	update(name string, server []byte) error // its command and its arguments
	remove(name string) error
	show(name string, server []byte) string // the server in the file's format
	text() []byte
}

func openClientFile(p Place, text []byte) (clientFile, error) {
	key := targets[p.Client].key
	if key == "" {
		return newTOMLFile(text)
	}
	return newJSONFile(text, p, key)
}

// jsonFile is a client's config in JSON, maybe with comments.
type jsonFile struct {
	doc *jsonedit.Document
	key string // of the servers
}

func newJSONFile(text []byte, p Place, key string) (*jsonFile, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}\n")
	}
	if err := config.CheckDepth(text); err != nil {
		return nil, fmt.Errorf("not valid JSON: %w", err)
	}
	doc, err := jsonedit.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("not valid JSON: %s", reason(err))
	}
	if duplicates := config.DuplicateKeys(p.Path, text); len(duplicates) > 0 {
		return nil, errors.New(duplicates[0].String())
	}
	servers := doc.Get(key)
	if rawjson.Kind(doc.Get()) != '{' || servers != nil && rawjson.Kind(servers) != '{' {
		return nil, fmt.Errorf("expected an object with servers below %q", key)
	}
	return &jsonFile{doc, key}, nil
}

func (f *jsonFile) names() []string           { return f.doc.Keys(f.key) }
func (f *jsonFile) server(name string) []byte { return f.doc.Get(f.key, name) }
func (f *jsonFile) text() []byte              { return f.doc.Bytes() }
func (f *jsonFile) remove(name string) error  { return f.doc.Remove(f.key, name) }

func (f *jsonFile) add(name string, server []byte) error {
	if f.doc.Get(f.key) == nil {
		if err := f.doc.Set([]byte("{}"), f.key); err != nil {
			return err
		}
	}
	return f.doc.Set(server, f.key, name)
}

func (f *jsonFile) update(name string, server []byte) error {
	for _, key := range []string{"command", "args"} {
		value := rawjson.Get(server, key)
		if canonical(f.doc.Get(f.key, name, key)) == canonical(value) {
			continue
		}
		if err := f.doc.Set(value, f.key, name, key); err != nil {
			return err
		}
	}
	return nil
}

func (f *jsonFile) show(name string, server []byte) string {
	return string(appendSpaced(append(rawjson.AppendString(nil, name), ": "...), server))
}
