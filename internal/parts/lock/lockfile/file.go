package lockfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mcpx/internal/atomicfile"
	"mcpx/internal/jsonc"
	"mcpx/internal/rawjson"
)

// Name is the name of a lock file.
const Name = "mcpx.lock"

// MaxBytes is the size of the largest lock file.
const MaxBytes = 64 << 20

// version is the form of the file.
const version = 1

// Path returns the lock file of a config.
func Path(config string) string { return filepath.Join(filepath.Dir(config), Name) }

// stored is the form of the file.
type stored struct {
	Version int                      `json:"version"`
	Servers map[string]*storedServer `json:"servers"`
}

type storedServer struct {
	Origin
	Instructions *storedItem           `json:"instructions,omitempty"`
	Tools        map[string]storedItem `json:"tools,omitempty"`
	Prompts      map[string]storedItem `json:"prompts,omitempty"`
	Templates    map[string]storedItem `json:"templates,omitempty"`
}

// storedItem is a line of the file: a pinned value and its hash. The hash finds edits by
// hand, and damage.
type storedItem struct {
	Hash   string          `json:"hash"`
	Pinned json.RawMessage `json:"pinned"`
}

func (s *storedServer) lists() map[Kind]map[string]storedItem {
	return map[Kind]map[string]storedItem{Tools: s.Tools, Prompts: s.Prompts, Templates: s.Templates}
}

// Read reads a lock file. The error is fs.ErrNotExist if there is none; any other error
// means that nothing in the file can be trusted.
func Read(path string) (Lock, error) {
	data, err := atomicfile.Read(path, MaxBytes)
	if errors.Is(err, fs.ErrNotExist) {
		if target, link := os.Readlink(path); link == nil {
			return nil, fmt.Errorf("%s is a link to %s, which does not exist", path, target)
		}
	}
	if err != nil {
		return nil, err
	}
	l, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return l, nil
}

func parse(data []byte) (Lock, error) {
	var file stored
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		return nil, fmt.Errorf("not a lock file: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("not a lock file: text after its end")
	}
	if file.Version != version {
		return nil, fmt.Errorf("has version %d, and this mcpx knows version %d", file.Version, version)
	}
	if twice := rawjson.DuplicateKey(data); twice != nil {
		return nil, fmt.Errorf("has %q twice", twice[len(twice)-1])
	}
	l := Lock{}
	for _, name := range slices.Sorted(maps.Keys(file.Servers)) {
		server, err := file.Servers[name].load()
		if err != nil {
			return nil, fmt.Errorf("server %q: %w", name, err)
		}
		l[name] = server
	}
	return l, nil
}

// load returns the server, if its hashes are right.
func (s *storedServer) load() (*Server, error) {
	if s == nil {
		return nil, errors.New("is null")
	}
	loaded := &Server{Origin: s.Origin, Items: map[Kind]map[string]string{}}
	if s.Instructions != nil {
		if err := s.Instructions.check(instructions); err != nil {
			return nil, fmt.Errorf("instructions: %w", err)
		}
		text, ok := rawjson.String(s.Instructions.Pinned)
		if !ok {
			return nil, errors.New("instructions: not a text")
		}
		loaded.Instructions = text
	}
	lists := s.lists()
	for _, kind := range kinds {
		loaded.Items[kind] = map[string]string{}
		for _, name := range slices.Sorted(maps.Keys(lists[kind])) {
			item := lists[kind][name]
			if err := item.check(kind); err != nil {
				return nil, fmt.Errorf("%s %q: %w", kind, name, err)
			}
			if own, _ := rawjson.String(rawjson.Get(item.Pinned, members[kind][0])); own != name {
				return nil, fmt.Errorf("%s %q: the line is of %q", kind, name, own)
			}
			loaded.Items[kind][name] = string(Canonical(item.Pinned))
		}
	}
	return loaded, nil
}

func (i storedItem) check(kind Kind) error {
	if i.Hash != hash(kind, string(Canonical(i.Pinned))) {
		return errors.New("the hash is not that of the line, which was edited or damaged")
	}
	return nil
}

// Write writes a lock file: sorted, with one line for each definition. The file is
// replaced whole.
func (l Lock) Write(path string) error {
	text := l.encode()
	if len(text) > MaxBytes {
		return fmt.Errorf("the lock would have more than %d MiB", MaxBytes>>20)
	}
	_, err := atomicfile.Edit(path, atomicfile.Options{Limit: MaxBytes, Create: 0o644}, func([]byte) ([]byte, error) { return text, nil })
	return err
}

func (l Lock) encode() []byte {
	return fmt.Appendf(nil, "{\n\"version\": %d,\n\"servers\": %s\n}\n", version, object(l, (*Server).encode))
}

// encode returns the server as JSON, with a line for each definition.
func (s *Server) encode() string {
	var lines []string
	add := func(key, value string) { lines = append(lines, fmt.Sprintf("\n%q: %s", key, value)) }
	if s.Origin.URL != "" {
		add("url", quote(s.Origin.URL))
	}
	if len(s.Origin.Command) > 0 {
		add("command", quoteAll(s.Origin.Command))
	}
	if s.Instructions != "" {
		add(string(instructions), item(instructions, pinText(s.Instructions)))
	}
	for _, kind := range kinds {
		if items := s.Items[kind]; len(items) > 0 {
			add(string(kind), object(items, func(pinned string) string { return item(kind, pinned) }))
		}
	}
	return "{" + strings.Join(lines, ",") + "\n}"
}

// item returns a line. The pinned value is canonical, so it has no line break.
func item(kind Kind, pinned string) string {
	return fmt.Sprintf(`{"hash": %q, "pinned": %s}`, hash(kind, pinned), pinned)
}

// object returns a JSON object with a line for each member, in the order of their keys.
func object[T any](members map[string]T, value func(v T) string) string {
	if len(members) == 0 {
		return "{}"
	}
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(members)) {
		lines = append(lines, "\n"+quote(key)+": "+value(members[key]))
	}
	return "{" + strings.Join(lines, ",") + "\n}"
}

func quote(text string) string { return string(rawjson.AppendString(nil, text)) }

func quoteAll(texts []string) string { return string(jsonc.Line(rawjson.Encode(texts))) }
