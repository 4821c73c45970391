package clients

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"strings"

	"mcpx/internal/jsonc"
	"mcpx/internal/rawjson"
)

// Entry is the server that a client gets: mcpx.
type Entry struct {
	Name    string   `json:"-"`
	Type    string   `json:"type,omitempty"` // set by Install
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

// Change is an edit of a client's config that is not written yet.
type Change struct {
	Place  Place
	Before []byte // the text of the file; nil: it does not exist
	After  []byte
	Lines  []string // the difference, for people; without secrets
	Next   string   // what to do for the client to notice

	Args    []string // of the mcpx that Uninstall removes
	Servers []string // that the client has after Uninstall
}

// IsEmpty reports whether nothing changes.
func (c *Change) IsEmpty() bool { return len(c.Lines) == 0 }

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
	c := &Change{Place: p, Before: before, Next: clientOf(p).next}
	e.Type = clientOf(p).kind
	wanted := rawjson.Encode(e)
	switch old := rawjson.Get(f.servers(), e.Name); {
	case old == nil:
		c.add("+", f.show(e.Name, wanted))
		err = f.add(e.Name, wanted)
	case !isMcpx(old) && programOf(old) != e.Command:
		return nil, &NotMcpxError{e.Name}
	case canonical(commandOf(old)) != canonical(commandOf(wanted)):
		c.add("-", f.show(e.Name, commandOf(old)))
		c.add("+", f.show(e.Name, commandOf(wanted)))
		for _, key := range commandKeys {
			if value := rawjson.Get(wanted, key); err == nil && canonical(rawjson.Get(old, key)) != canonical(value) {
				err = f.set(e.Name, key, value)
			}
		}
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
	c := &Change{Place: p, Before: before, After: before, Next: "restart " + p.Title}
	old := rawjson.Get(f.servers(), name)
	switch {
	case old == nil:
		return c, nil
	case !isMcpx(old):
		return nil, &NotMcpxError{name}
	}
	c.add("-", f.show(name, commandOf(old)))
	err = f.remove(name)
	c.After, c.Args = f.text(), stringsIn(rawjson.Get(old, "args"))
	for other := range rawjson.Members(f.servers()) {
		c.Servers = append(c.Servers, other)
	}
	return c, err
}

func (c *Change) add(sign, text string) {
	for line := range strings.Lines(text) {
		c.Lines = append(c.Lines, sign+" "+strings.TrimRight(line, "\n"))
	}
}

// commandKeys are the keys of an entry that Install updates.
var commandKeys = []string{"command", "args"}

// commandOf returns the command and the arguments of a server, without the rest, which
// may hold secrets.
func commandOf(server []byte) []byte {
	b := []byte("{")
	for _, key := range commandKeys {
		b = rawjson.AppendMember(b, key, rawjson.Get(server, key))
	}
	return append(b, '}')
}

// isMcpx reports whether a server is mcpx itself.
func isMcpx(server []byte) bool {
	name := strings.TrimSuffix(strings.ToLower(path.Base(slashed(programOf(server)))), ".exe")
	return name == "mcpx" || name == "mcpx-sse"
}

// programOf returns the command of a server as text.
func programOf(server []byte) string {
	text, _ := rawjson.String(rawjson.Get(server, "command"))
	return text
}

// clientFile is the text of a client's config. Servers and values are plain JSON.
type clientFile interface {
	servers() []byte // an object; nil if there is none
	add(name string, server []byte) error
	set(name, key string, value []byte) error // changes one value of a server
	remove(name string) error
	show(name string, server []byte) string // the server in the file's format
	text() []byte
}

func openClientFile(p Place, text []byte) (clientFile, error) {
	key := clientOf(p).key
	if key == "" {
		return newTOMLFile(text)
	}
	return newJSONFile(text, p, key)
}

// jsonFile is a client's config in JSON, maybe with comments.
type jsonFile struct {
	doc *jsonc.Document
	key string // of the servers
}

func newJSONFile(text []byte, p Place, key string) (*jsonFile, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}\n")
	}
	if err := jsonc.CheckDepth(text); err != nil {
		return nil, fmt.Errorf("not valid JSON: %w", err)
	}
	doc, err := jsonc.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("not valid JSON: %s", reason(err))
	}
	if duplicates := jsonc.DuplicateKeys(p.Path, text); len(duplicates) > 0 {
		return nil, errors.New(duplicates[0].String())
	}
	servers := doc.Get(key)
	if rawjson.Kind(doc.Get()) != '{' || servers != nil && rawjson.Kind(servers) != '{' {
		return nil, fmt.Errorf("expected an object with servers below %q", key)
	}
	return &jsonFile{doc, key}, nil
}

func (f *jsonFile) servers() []byte          { return f.doc.Get(f.key) }
func (f *jsonFile) text() []byte             { return f.doc.Bytes() }
func (f *jsonFile) remove(name string) error { return f.doc.Remove(f.key, name) }
func (f *jsonFile) set(name, key string, value []byte) error {
	return f.doc.Set(value, f.key, name, key)
}

func (f *jsonFile) add(name string, server []byte) error {
	if f.doc.Get(f.key) == nil {
		if err := f.doc.Set([]byte("{}"), f.key); err != nil {
			return err
		}
	}
	return f.doc.Set(server, f.key, name)
}

func (f *jsonFile) show(name string, server []byte) string {
	return string(rawjson.Encode(name)) + ": " + string(jsonc.Line(server))
}
