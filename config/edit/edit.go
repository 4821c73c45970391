// Package edit changes the servers in a config file, and keeps its comments and its layout.
package edit

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"mcpx/config"
	"mcpx/internal/atomicfile"
	"mcpx/internal/jsonc"
	"mcpx/internal/rawjson"
)

// File changes the servers of a config file. The result is checked whole before it replaces
// the file; a config with an error is not written. create has the permissions of a file that
// does not exist yet; 0: it must exist. Several processes may edit one file at the same time.
func File(hooks config.Hooks, path string, create fs.FileMode, change func(e *Editor) error) (atomicfile.Result, error) {
	options := atomicfile.Options{Limit: config.MaxBytes, Create: create}
	return atomicfile.Edit(path, options, func(old []byte) ([]byte, error) { return Text(hooks, path, old, change) })
}

// Text is [File] for the text of a file. An empty text stands for a new file.
func Text(hooks config.Hooks, path string, old []byte, change func(e *Editor) error) ([]byte, error) {
	text := old
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{\n  \"mcpServers\": {}\n}\n")
	}
	file := jsonc.New(path, text)
	if file.Parse(); file.Err() != nil {
		return nil, file.Err()
	}
	doc, err := jsonc.Parse(text)
	if err != nil {
		return nil, err
	}
	editor := &Editor{doc: doc}
	if len(editor.profileKeys()) > 1 {
		return nil, hooks.Check(path, text)
	}
	if err := change(editor); err != nil {
		return nil, err
	}
	changed := doc.Bytes()
	if err := check(hooks, path, text, changed); err != nil {
		return nil, err
	}
	return changed, nil
}

// check returns the problems of a text after a change: those of the old text if it had any,
// otherwise a ChangeError.
func check(hooks config.Hooks, path string, old, changed []byte) error {
	var problems *jsonc.Error
	if err := hooks.Check(path, changed); !errors.As(err, &problems) {
		return err
	}
	if err := hooks.Check(path, old); err != nil {
		return err
	}
	return &ChangeError{problems.Problems}
}

// ChangeError reports that a change would make the config invalid.
type ChangeError struct{ Problems []jsonc.Problem }

// Error returns the problems, one per line, without positions: nobody has seen the text.
func (e *ChangeError) Error() string {
	texts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		texts[i] = strings.TrimPrefix(p.Path+": "+p.Text, ": ")
	}
	return strings.Join(texts, "\n")
}

// Editor changes the servers in the text of a config file. An empty profile name means
// "default". It is not safe for concurrent use.
type Editor struct{ doc *jsonc.Document }

// ExistsError reports that a server cannot be added because its name is used.
type ExistsError struct{ Profile, Name string }

func (e *ExistsError) Error() string { return fmt.Sprintf("server %q exists already", e.Name) }

// UnknownServerError reports that a profile has no server of that name.
type UnknownServerError struct {
	Profile, Name string
	Known         []string // the servers of the profile
	Elsewhere     []string // other profiles that have a server of that name
}

func (e *UnknownServerError) Error() string { return fmt.Sprintf("unknown server %q", e.Name) }

// UnknownProfileError reports that the file has no profile of that name.
type UnknownProfileError struct {
	Name  string
	Known []string
	Only  bool // the file has its servers at the top level, so it can have no other profile
}

func (e *UnknownProfileError) Error() string { return fmt.Sprintf("unknown profile %q", e.Name) }

// Profiles returns the names of the file's profiles.
func (e *Editor) Profiles() []string {
	if keys := e.profileKeys(); keys != nil {
		return e.doc.Keys(keys[0])
	}
	return []string{"default"}
}

// profileKeys returns the keys of the file that hold profiles: none if the servers are at
// the top level, and more than one only in a file that is wrong.
func (e *Editor) profileKeys() (keys []string) {
	for _, key := range config.ProfileKeys {
		if e.doc.Get(key) != nil {
			keys = append(keys, key)
		}
	}
	return keys
}

// AddProfile adds an empty profile, unless the file has it.
func (e *Editor) AddProfile(name string) error {
	_, err := e.list(name)
	if unknown := new(UnknownProfileError); !errors.As(err, &unknown) || unknown.Only {
		return err
	}
	return e.doc.Set([]byte(`{"mcpServers": {}}`), e.profileKeys()[0], name)
}

// Add adds a server, a JSON object without a name, to the end of a profile.
func (e *Editor) Add(profile, name string, server []byte) error {
	list, err := e.list(profile)
	switch {
	case err != nil:
		return err
	case list.server(name) != nil:
		return &ExistsError{Profile: profileName(profile), Name: name}
	case list.isArray:
		return e.doc.Append(named(name, server), list.path...)
	}
	if e.doc.Get(list.path...) == nil {
		if err := e.doc.Set([]byte(`{}`), list.path...); err != nil {
			return err
		}
	}
	return e.doc.Set(server, append(list.path, name)...)
}

// Replace replaces a server.
func (e *Editor) Replace(profile, name string, server []byte) error {
	path, list, err := e.find(profile, name)
	if err != nil {
		return err
	}
	if list.isArray {
		server = named(name, server)
	}
	return e.doc.Set(server, path...)
}

// Remove removes a server.
func (e *Editor) Remove(profile, name string) error {
	path, _, err := e.find(profile, name)
	if err != nil {
		return err
	}
	return e.doc.Remove(path...)
}

// Enable enables a server.
func (e *Editor) Enable(profile, name string) error {
	err := e.Set(profile, name, "disabled", nil)
	if e.has(profile, name, "enabled") {
		err = cmp.Or(err, e.Set(profile, name, "enabled", []byte("true")))
	}
	return err
}

// Disable disables a server, with the key that it has for that, or with "disabled".
func (e *Editor) Disable(profile, name string) error {
	if !e.has(profile, name, "enabled") {
		return e.Set(profile, name, "disabled", []byte("true"))
	}
	return cmp.Or(e.Set(profile, name, "enabled", []byte("false")), e.Set(profile, name, "disabled", nil))
}

// has reports whether a server has a key.
func (e *Editor) has(profile, name, key string) bool {
	path, _, err := e.find(profile, name)
	return err == nil && e.doc.Get(append(path, key)...) != nil
}

// Set sets a key of a server. No value, or null, removes the key.
func (e *Editor) Set(profile, name, key string, value []byte) error {
	path, _, err := e.find(profile, name)
	if err != nil {
		return err
	}
	path = append(path, key)
	switch {
	case !rawjson.IsNull(value):
		return e.doc.Set(value, path...)
	case e.doc.Get(path...) != nil:
		return e.doc.Remove(path...)
	}
	return nil
}

// Servers returns the names of a profile's servers, and each as plain JSON without its
// name.
func (e *Editor) Servers(profile string) (names []string, servers map[string][]byte, err error) {
	list, err := e.list(profile)
	if err != nil {
		return nil, nil, err
	}
	servers = map[string][]byte{}
	for _, name := range list.names {
		servers[name] = e.doc.Get(list.server(name)...)
		if list.isArray {
			servers[name] = rawjson.With(servers[name], "name", nil)
		}
	}
	return list.names, servers, nil
}

// serverSet is the object or array with the servers of a profile.
type serverSet struct {
	path    []string
	isArray bool
	names   []string
}

// server returns the path of a server; nil if there is none.
func (s serverSet) server(name string) []string {
	i := slices.Index(s.names, name)
	switch {
	case i < 0:
		return nil
	case s.isArray:
		name = strconv.Itoa(i)
	}
	return append(slices.Clone(s.path), name)
}

// find returns the path of a server.
func (e *Editor) find(profile, name string) (path []string, list serverSet, err error) {
	list, err = e.list(profile)
	if err != nil {
		return nil, list, err
	}
	if path = list.server(name); path != nil {
		return path, list, nil
	}
	unknown := &UnknownServerError{Profile: profileName(profile), Name: name, Known: list.names}
	for _, other := range e.Profiles() {
		if l, err := e.list(other); err == nil && l.server(name) != nil {
			unknown.Elsewhere = append(unknown.Elsewhere, other)
		}
	}
	return nil, list, unknown
}

// list returns the servers of a profile, or where they would be.
func (e *Editor) list(profile string) (serverSet, error) {
	profile = profileName(profile)
	var parent []string
	if keys := e.profileKeys(); keys != nil {
		parent = []string{keys[0], profile}
	}
	if !slices.Contains(e.Profiles(), profile) {
		return serverSet{}, &UnknownProfileError{Name: profile, Known: e.Profiles(), Only: parent == nil}
	}
	for _, key := range config.ServerKeys {
		path := append(slices.Clone(parent), key)
		value := e.doc.Get(path...)
		switch rawjson.Kind(value) {
		case 0:
			continue
		case '[':
			list := serverSet{path: path, isArray: true}
			for server := range rawjson.Elements(value) {
				name, _ := rawjson.String(rawjson.Get(server, "name"))
				list.names = append(list.names, name)
			}
			return list, nil
		}
		return serverSet{path: path, names: e.doc.Keys(path...)}, nil
	}
	return serverSet{path: append(slices.Clone(parent), config.ServerKeys[0])}, nil
}

func profileName(name string) string { return cmp.Or(name, "default") }

// named returns a server with its name as the first member, for an array.
func named(name string, server []byte) []byte {
	b := rawjson.AppendMember([]byte("{"), "name", rawjson.AppendString(nil, name))
	for key, value := range rawjson.Members(server) {
		b = rawjson.AppendMember(b, key, value)
	}
	return append(b, '}')
}
