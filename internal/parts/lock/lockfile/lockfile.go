// Package lockfile keeps what a person has approved about MCP servers: mcpx.lock, a file
// beside the config, made for git. For each server it has its command or URL, its
// instructions, and each tool, prompt and resource template with everything that an agent
// reads. It compares that with what a server sends now, and shows the difference for a
// review.
package lockfile

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"

	"mcpx/internal/rawjson"
)

// Lock is the content of a lock file: its servers by Key. It is nil if there is no file.
type Lock map[string]*Server

// Server is what is approved about one server, or what it sends now.
type Server struct {
	Origin       Origin
	Instructions string
	Items        map[Kind]map[string]string // canonical definitions, by kind and name
}

// Origin is where a server comes from: a command or a URL, as the config has it.
type Origin struct {
	Command []string `json:"command,omitempty"`
	URL     string   `json:"url,omitempty"`
}

// Key returns the name of a server in a lock. Servers of the profile "default" have their
// own name, others have that of their profile before it.
func Key(profile, server string) string {
	if profile == "default" {
		return server
	}
	return profile + "/" + server
}

// Kind is a kind of definition.
type Kind string

// The kinds.
const (
	Tools     Kind = "tools"
	Prompts   Kind = "prompts"
	Templates Kind = "templates" // of resources
)

// instructions is the kind of a server's instructions, for hashes and messages.
const instructions Kind = "instructions"

// kinds are the kinds of definitions, in the order of the file.
var kinds = []Kind{Tools, Prompts, Templates}

// members has the members of definitions that are in the lock: everything that an agent reads. The
// first one identifies the definition.
var members = map[Kind][]string{
	Tools:     {"name", "title", "description", "inputSchema", "outputSchema", "annotations"},
	Prompts:   {"name", "title", "description", "arguments"},
	Templates: {"uriTemplate", "name", "title", "description", "mimeType", "annotations"},
}

// Pin returns the canonical form of what counts in a definition.
func Pin(kind Kind, definition []byte) string {
	pinned := []byte("{")
	for _, member := range members[kind] {
		if value := rawjson.Get(definition, member); !rawjson.IsNull(value) {
			pinned = rawjson.AppendMember(pinned, member, value)
		}
	}
	return string(Canonical(append(pinned, '}')))
}

// Shown returns a definition without the members that are not in the lock, since nobody has
// approved them. If a member occurs twice, only the last one stays. icons and
// _meta stay, although they may change: programs read them, and agents do not.
func Shown(kind Kind, definition []byte) []byte {
	known := append(slices.Clip(members[kind]), "icons", "_meta")
	has, isWhole := make([]bool, len(known)), true
	for name := range rawjson.Members(definition) {
		i := slices.Index(known, name)
		if isWhole = isWhole && i >= 0 && !has[i]; i >= 0 {
			has[i] = true
		}
	}
	if isWhole {
		return definition
	}
	shown := []byte("{")
	for _, name := range known {
		shown = rawjson.AppendMember(shown, name, rawjson.Get(definition, name))
	}
	return append(shown, '}')
}

// hash returns the hash of a pinned text. Texts of different kinds have different hashes.
func hash(kind Kind, pinned string) string {
	sum := sha256.Sum256([]byte("mcpx-" + string(kind) + "-v1\x00" + pinned))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Add adds a definition to what the server sends.
func (s *Server) Add(kind Kind, name string, definition []byte) {
	if s.Items == nil {
		s.Items = map[Kind]map[string]string{}
	}
	if s.Items[kind] == nil {
		s.Items[kind] = map[string]string{}
	}
	s.Items[kind][name] = Pin(kind, definition)
}

// Change is a difference between what is approved and what a server sends now.
type Change struct {
	Server string // its Key
	Kind   Kind   // "origin" for the command or URL, "instructions", or a kind of definition
	Name   string // of the definition; empty for the others
	Old    string // the approved value; empty if there is none
	New    string // the value now; empty if it is gone
}

// origin is the kind of a changed command or URL.
const origin Kind = "origin"

// IsNotice reports whether the change needs no review: something is gone.
func (c Change) IsNotice() bool { return c.New == "" && c.Kind != origin }

// verb says what happened.
func (c Change) verb() string {
	switch {
	case c.Old == "":
		return "new"
	case c.New == "":
		return "gone"
	}
	return "changed"
}

// Title names the change in a few words: changed tool "create_issue".
func (c Change) Title() string {
	if c.Name == "" {
		return c.verb() + " " + nouns[c.Kind]
	}
	return c.verb() + " " + nouns[c.Kind] + " \"" + visible(c.Name) + "\""
}

// nouns are the names of the kinds in messages.
var nouns = map[Kind]string{origin: "command or url", instructions: "instructions", Tools: "tool", Prompts: "prompt", Templates: "template"}

// Equal reports whether two origins are the same.
func (o Origin) Equal(other Origin) bool { return o.text() == other.text() }

// Compare returns the differences of one server: its origin, its instructions, then its
// definitions by kind and name. old is nil for a server that is not in the lock.
func Compare(name string, old, now *Server) []Change {
	if old == nil {
		old = &Server{}
	}
	var changes []Change
	add := func(kind Kind, item, before, after string) {
		if before != after {
			changes = append(changes, Change{Server: name, Kind: kind, Name: item, Old: before, New: after})
		}
	}
	add(origin, "", old.Origin.text(), now.Origin.text())
	add(instructions, "", pinText(old.Instructions), pinText(now.Instructions))
	for _, kind := range kinds {
		before, after := old.Items[kind], now.Items[kind]
		for _, item := range allKeys(before, after) {
			add(kind, item, before[item], after[item])
		}
	}
	return changes
}

// allKeys returns the keys of two maps, sorted.
func allKeys[T any](a, b map[string]T) []string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(keys)
	return slices.Compact(keys)
}

// text returns the origin as JSON, "" if there is none.
func (o Origin) text() string {
	switch {
	case o.URL != "":
		return quote(o.URL)
	case len(o.Command) == 0:
		return ""
	}
	return quoteAll(o.Command)
}

// pinText returns a text as canonical JSON, "" for no text.
func pinText(text string) string {
	if text == "" {
		return ""
	}
	return string(Canonical([]byte(quote(text))))
}
