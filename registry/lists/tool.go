package lists

import (
	"bytes"
	"encoding/json"
	"sync"

	"mcpx/config"
	"mcpx/internal/lockfile"
	"mcpx/internal/rawjson"
	"mcpx/internal/schema"
	"mcpx/internal/signature"
)

// Item is an item of a list: a tool, a prompt, a resource or a template.
type Item struct {
	Key string          // its name or URI
	Raw json.RawMessage // the whole definition, every member, redacted

	sent json.RawMessage // the definition as the upstream sent it; nil: the same as Raw
	pin  string          // what the lock file compares; empty: not known yet
}

// pinned returns the canonical form of what a person approves about an item.
func (i Item) pinned(kind lockfile.Kind) string {
	if i.pin != "" {
		return i.pin
	}
	return lockfile.Pin(kind, i.Raw)
}

// NewItem returns an item as an upstream sent it.
func NewItem(c *config.Upstream, k Kind, key string, raw []byte) Item {
	item := Item{Key: key, Raw: Redact(c.Redact, raw), sent: raw}
	if k.Pinned != "" && c.Trust.Approved != nil {
		item.pin = lockfile.Pin(k.Pinned, item.Raw) // here, because Set runs under a mutex
	}
	return item
}

func (i Item) asSent() json.RawMessage {
	if i.sent == nil {
		return i.Raw
	}
	return i.sent
}

// Tool is one tool as its upstream described it.
type Tool struct {
	Name        string
	Description string          // redacted
	Input       *schema.Schema  // the input schema as the upstream sent it: arguments are checked against it
	Raw         json.RawMessage // the definition as it is shown: every member that the lock allows, redacted

	shown     *schema.Schema  // the input schema, redacted
	sent      json.RawMessage // the definition as the upstream sent it
	derive    sync.Once
	derived   any
	signature func() string
}

// newTool reads a tool's definition. It accepts members of any type.
func newTool(item Item) *Tool {
	t := &Tool{Name: item.Key, Raw: item.Raw, sent: item.asSent()}
	t.Description, _ = rawjson.String(rawjson.Get(t.Raw, "description"))
	t.Input = schema.New(t.SentSchema())
	t.shown = t.Input
	if string(t.SentSchema()) != string(t.ShownSchema()) {
		t.shown = schema.New(t.ShownSchema())
	}
	t.signature = sync.OnceValue(func() string { return signature.Of(t.shown) })
	return t
}

// Derived returns the value that a user of the registry derives from the tool. It is
// made once and lives as long as the tool.
func (t *Tool) Derived(from func(t *Tool) any) any {
	t.derive.Do(func() { t.derived = from(t) })
	return t.derived
}

func inputSchema(definition []byte) json.RawMessage {
	if schema := rawjson.Get(definition, "inputSchema"); !rawjson.IsNull(schema) {
		return schema
	}
	return json.RawMessage(`{"type":"object"}`)
}

// SentSchema returns the input schema as the upstream sent it.
func (t *Tool) SentSchema() json.RawMessage { return inputSchema(t.sent) }

// ShownSchema returns the input schema, redacted.
func (t *Tool) ShownSchema() json.RawMessage { return inputSchema(t.Raw) }

// Signature returns the tool's parameters in the style of TypeScript.
func (t *Tool) Signature() string { return t.signature() }

// TypedParameters returns the required parameters with their types.
func (t *Tool) TypedParameters() string { return signature.Typed(t.shown) }

// OptionalParameters returns the optional parameters, each as the signature writes it.
func (t *Tool) OptionalParameters() []signature.Parameter { return signature.Optional(t.shown) }

// SignatureWithout is Signature without optional parameters that are shown elsewhere.
func (t *Tool) SignatureWithout(names []string) string { return signature.Without(t.shown, names) }

// TypedWithout is TypedParameters likewise.
func (t *Tool) TypedWithout(names []string) string { return signature.TypedWithout(t.shown, names) }

// RequiredParameters returns the names of the required parameters.
func (t *Tool) RequiredParameters() string { return signature.Required(t.shown) }

// Returns returns the type of the tool's results, in at most limit bytes, or "" if the
// upstream does not describe them.
func (t *Tool) Returns(limit int) string {
	output := rawjson.Get(t.Raw, "outputSchema")
	if rawjson.IsNull(output) {
		return ""
	}
	return signature.Returns(schema.New(output), limit)
}

// isReadOnly reports whether the upstream says that the tool changes nothing.
func (t *Tool) isReadOnly() bool {
	return string(rawjson.Get(rawjson.Get(t.Raw, "annotations"), "readOnlyHint")) == "true"
}

func toolList(tools []*Tool) []byte {
	if len(tools) == 0 {
		return nil
	}
	size := len(`{"tools":[]}`)
	for _, t := range tools {
		size += len(t.Raw) + 1
	}
	list := bytes.NewBuffer(make([]byte, 0, size))
	list.WriteString(`{"tools":[`)
	for i, t := range tools {
		if i > 0 {
			list.WriteByte(',')
		}
		if json.Compact(list, t.Raw) != nil { // it is valid, or it would not be in a list
			list.Write(t.Raw)
		}
	}
	list.WriteString("]}")
	return list.Bytes()
}
