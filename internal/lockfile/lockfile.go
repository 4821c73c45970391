// Package lockfile keeps what a person has approved about MCP servers: mcpx.lock, a file
// beside the config, made for git. For each server it has its command or URL, its
// instructions, and each tool, prompt and resource template with everything that an agent
// reads. It compares that with what a server sends now, and shows the difference for a
// review.
package lockfile

import (
	"crypto/sha256"
	"encoding/hex"

	"mcpx/internal/rawjson"
)

// Lock is the content of a lock file.
type Lock struct {
	Servers map[string]*Server // by Key
}

// Server returns the server with that key, nil if there is none. The lock may be nil.
func (l *Lock) Server(key string) *Server {
	if l == nil {
		return nil
	}
	return l.Servers[key]
}

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

// Key returns the name of a server in a lock. Servers of the schema "default" have their
// own name, others have that of their schema before it.
func Key(schema, server string) string {
	if schema == "default" {
		return server
	}
	return schema + "/" + server
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

// members has the members of definitions that count. Icons and _meta do not. The first
// one identifies the definition.
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
