package clients

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"strings"

	"mcpx/internal/jsonedit"
	"mcpx/internal/jsonfile"
	"mcpx/internal/rawjson"
)

// Entry is the server that a client gets: mcpx.
type Entry struct {
	Name    string
	Command string
	Args    []string
}

// Change is an edit of a client's config that is not written yet.
type Change struct {
	Place  Place
	Before []byte // the text of the file; nil: it does not exist
	After  []byte
	Lines  []string // the difference, for people; without secrets
	Next   string   // what to do for the client to notice
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
	wanted := e.object(clientOf(p).kind)
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
	c := &Change{Place: p, Before: before, After: before, Next: "restart " + p.Title}
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
		b = rawjson.AppendMember(b, "type", encode(kind))
	}
	b = rawjson.AppendMember(b, "command", encode(e.Command))
	return append(rawjson.AppendMember(b, "args", encode(append([]string{}, e.Args...))), '}')
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
	key := clientOf(p).key
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
	if err := jsonfile.CheckDepth(text); err != nil {
		return nil, fmt.Errorf("not valid JSON: %w", err)
	}
	doc, err := jsonedit.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("not valid JSON: %s", reason(err))
	}
	if duplicates := jsonfile.DuplicateKeys(p.Path, text); len(duplicates) > 0 {
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
	return string(encode(name)) + ": " + string(jsonedit.Line(server))
}
