package config

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mcpx/internal/editfile"
	"mcpx/internal/jsonedit"
	"mcpx/internal/rawjson"
)

// Edit changes the servers of a config file and keeps its comments and its layout. The
// result is checked whole before it replaces the file; a config with an error is not
// written. Several processes may edit one file at the same time.
func Edit(path string, o EditOptions, change func(e *Editor) error) (editfile.Result, error) {
	options := editfile.Options{Limit: MaxBytes}
	if o.Create {
		options.Create = 0o600
	}
	return editfile.Edit(path, options, func(old []byte) ([]byte, error) {
		return EditText(path, old, change)
	})
}

// EditOptions says how a config may be edited.
type EditOptions struct {
	Create bool // create the file, readable by its owner alone, if it does not exist
}

// EditText is [Edit] for the text of a file. An empty text stands for a new file.
func EditText(path string, old []byte, change func(e *Editor) error) ([]byte, error) {
	text := old
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{\n  \"mcpServers\": {}\n}\n")
	}
	if err := parsable(path, text); err != nil {
		return nil, err
	}
	doc, err := jsonedit.Parse(text)
	if err != nil {
		return nil, err
	}
	if err := change(&Editor{doc: doc}); err != nil {
		return nil, err
	}
	changed := doc.Bytes()
	if err := checkEdited(path, text, changed); err != nil {
		return nil, err
	}
	return changed, nil
}

// parsable returns the problems of a text that is not JSON, or not an object.
func parsable(path string, text []byte) error {
	r := &reader{file: path, src: withoutMark(text)}
	if r.parse(); len(r.problems) > 0 {
		return &Error{Problems: r.problems}
	}
	return nil
}

// checkEdited returns the problems of a text after a change. Those that were there
// before have their places in the file; new ones are in text that nobody has seen.
func checkEdited(path string, old, changed []byte) error {
	anyValue := func(string) (string, bool) { return "", true } // a missing variable is not the file's fault
	var problems *Error
	if _, err := Parse(path, changed, anyValue); !errors.As(err, &problems) {
		return err
	}
	if _, err := Parse(path, old, anyValue); err != nil {
		return err
	}
	return &ChangeError{problems.Problems}
}

// ChangeError reports that a change would make the config invalid.
type ChangeError struct{ Problems []Problem }

// Error returns the problems, one a line, without their places: nobody has seen the
// text.
func (e *ChangeError) Error() string {
	texts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		texts[i] = strings.TrimPrefix(p.Path+": "+p.Text, ": ")
	}
	return strings.Join(texts, "\n")
}

// Editor changes the servers in the text of a config file. An empty schema name means
// "default". It is not safe for concurrent use.
type Editor struct{ doc *jsonedit.Document }

// ExistsError reports that a server cannot be added because its name is taken.
type ExistsError struct{ Schema, Name string }

func (e *ExistsError) Error() string { return fmt.Sprintf("server %q exists already", e.Name) }

// UnknownServerError reports that a schema has no server of that name.
type UnknownServerError struct {
	Schema, Name string
	Known        []string // the servers of the schema
	Elsewhere    []string // other schemas that have a server of that name
}

func (e *UnknownServerError) Error() string { return fmt.Sprintf("unknown server %q", e.Name) }

// UnknownSchemaError reports that the file has no schema of that name.
type UnknownSchemaError struct {
	Name  string
	Known []string
	Only  bool // the file lists its servers directly, so it can have no other schema
}

func (e *UnknownSchemaError) Error() string { return fmt.Sprintf("unknown schema %q", e.Name) }

// Schemas returns the names of the file's schemas.
func (e *Editor) Schemas() []string {
	if e.doc.Get("schemas") != nil {
		return e.doc.Keys("schemas")
	}
	return []string{"default"}
}

// AddSchema adds an empty schema, unless the file has it.
func (e *Editor) AddSchema(name string) error {
	_, err := e.schema(name)
	if unknown := new(UnknownSchemaError); !errors.As(err, &unknown) || unknown.Only {
		return err
	}
	if err := e.doc.Set([]byte(`{}`), "schemas", name); err != nil {
		return err
	}
	return e.doc.Set([]byte(`{}`), "schemas", name, "mcpServers")
}

// Add adds a server, a JSON object without a name, to the end of a schema.
func (e *Editor) Add(schema, name string, server []byte) error {
	place, err := e.find(schema, name)
	if err == nil {
		return &ExistsError{Schema: schemaName(schema), Name: name}
	}
	if unknown := new(UnknownServerError); !errors.As(err, &unknown) {
		return err
	}
	list := place.list
	if e.doc.Get(list...) == nil {
		if err := e.doc.Set([]byte(`{}`), list...); err != nil {
			return err
		}
	}
	if place.isArray {
		return e.doc.Append(named(name, server), list...)
	}
	return e.doc.Set(server, append(list, name)...)
}

// Replace puts another server in the place of one.
func (e *Editor) Replace(schema, name string, server []byte) error {
	place, err := e.find(schema, name)
	if err != nil {
		return err
	}
	if place.isArray {
		server = named(name, server)
	}
	return e.doc.Set(server, place.server...)
}

// Remove removes a server.
func (e *Editor) Remove(schema, name string) error {
	place, err := e.find(schema, name)
	if err != nil {
		return err
	}
	return e.doc.Remove(place.server...)
}

// Enable switches a server on.
func (e *Editor) Enable(schema, name string) error {
	place, err := e.find(schema, name)
	if err != nil {
		return err
	}
	if e.doc.Get(append(place.server, "disabled")...) != nil {
		if err := e.doc.Remove(append(place.server, "disabled")...); err != nil {
			return err
		}
	}
	if string(e.doc.Get(append(place.server, "enabled")...)) == "false" {
		return e.doc.Set([]byte("true"), append(place.server, "enabled")...)
	}
	return nil
}

// Disable switches a server off: with the key it has for that, else with "disabled".
func (e *Editor) Disable(schema, name string) error {
	place, err := e.find(schema, name)
	if err != nil {
		return err
	}
	hasEnabled := e.doc.Get(append(place.server, "enabled")...) != nil
	if hasEnabled {
		if err := e.doc.Set([]byte("false"), append(place.server, "enabled")...); err != nil {
			return err
		}
	}
	if hasEnabled && e.doc.Get(append(place.server, "disabled")...) == nil {
		return nil
	}
	return e.doc.Set([]byte("true"), append(place.server, "disabled")...)
}

// Servers returns the names of a schema's servers, and each as plain JSON without its
// name.
func (e *Editor) Servers(schema string) (names []string, servers map[string][]byte, err error) {
	place, err := e.find(schema, "")
	if unknown := new(UnknownServerError); !errors.As(err, &unknown) {
		return nil, nil, err
	}
	servers = map[string][]byte{}
	list := e.doc.Get(place.list...)
	for name, server := range rawjson.Members(list) {
		names, servers[name] = append(names, name), server
	}
	for server := range rawjson.Elements(list) {
		name, _ := rawjson.String(rawjson.Get(server, "name"))
		names, servers[name] = append(names, name), rawjson.With(server, "name", nil)
	}
	return names, servers, nil
}

// place is where a server is in the file.
type place struct {
	list    []string // path of the object or array of servers
	isArray bool
	server  []string // path of the server
}

// find returns where a server is. For an unknown server the place has the list that it
// would be in.
func (e *Editor) find(schema, name string) (place, error) {
	parent, err := e.schema(schema)
	if err != nil {
		return place{}, err
	}
	p := e.list(parent)
	names := e.names(p)
	i := slices.Index(names, name)
	if i < 0 {
		return p, &UnknownServerError{Schema: schemaName(schema), Name: name, Known: names, Elsewhere: e.elsewhere(schema, name)}
	}
	p.server = append(slices.Clone(p.list), name)
	if p.isArray {
		p.server[len(p.server)-1] = fmt.Sprint(i)
	}
	return p, nil
}

// schema returns the path of the object that has the servers of a schema.
func (e *Editor) schema(name string) ([]string, error) {
	name = schemaName(name)
	hasSchemas := e.doc.Get("schemas") != nil
	switch {
	case !hasSchemas && name == "default":
		return []string{}, nil
	case hasSchemas && slices.Contains(e.doc.Keys("schemas"), name):
		return []string{"schemas", name}, nil
	}
	return nil, &UnknownSchemaError{Name: name, Known: e.Schemas(), Only: !hasSchemas}
}

// list returns the place of the servers in a schema.
func (e *Editor) list(schema []string) place {
	for _, key := range serverKeys {
		path := append(slices.Clone(schema), key)
		if value := e.doc.Get(path...); value != nil {
			return place{list: path, isArray: rawjson.Kind(value) == '['}
		}
	}
	return place{list: append(slices.Clone(schema), serverKeys[0])}
}

func (e *Editor) names(p place) []string {
	if !p.isArray {
		return e.doc.Keys(p.list...)
	}
	var names []string
	for server := range rawjson.Elements(e.doc.Get(p.list...)) {
		name, _ := rawjson.String(rawjson.Get(server, "name"))
		names = append(names, name)
	}
	return names
}

// elsewhere returns the other schemas that have a server of that name.
func (e *Editor) elsewhere(schema, name string) (found []string) {
	for _, other := range e.Schemas() {
		parent, err := e.schema(other)
		if err == nil && other != schemaName(schema) && slices.Contains(e.names(e.list(parent)), name) {
			found = append(found, other)
		}
	}
	return found
}

func schemaName(name string) string {
	if name == "" {
		return "default"
	}
	return name
}

// named returns a server with its name in front, as an array has it.
func named(name string, server []byte) []byte {
	b := rawjson.AppendMember([]byte("{"), "name", rawjson.AppendString(nil, name))
	for key, value := range rawjson.Members(server) {
		b = rawjson.AppendMember(b, key, value)
	}
	return append(b, '}')
}
