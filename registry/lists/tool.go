package lists

import (
	"bytes"
	"encoding/json"
	"sync"

	"mcpx/internal/rawjson"
	"mcpx/internal/schema"
	"mcpx/internal/signature"
)

// Item is an item of a list: a tool, a prompt, a resource or a template.
type Item struct {
	Key string          // its name or URI
	Raw json.RawMessage // the whole definition, every member, redacted

	sent    json.RawMessage // the definition as the upstream sent it; nil: the same as Raw
	derived *derived        // copies share it; nil: nothing is kept
}

// NewItem returns an item of a list. sent is its definition as the upstream sent it, and raw
// the same without secrets.
func (l *Lists) NewItem(k Kind, key string, sent, raw []byte) Item {
	item := Item{Key: key, Raw: raw, sent: sent}
	if len(l.views.All) > 0 {
		item.derived = &derived{listed: raw}
	}
	for _, view := range l.views.All {
		view.Item(k, item) // it keeps what takes long in the item: SetLists must not take long
	}
	return item
}

// derived has what views derive from an item.
type derived struct {
	listed []byte
	values sync.Map
}

// Derived returns a value that a view derives from the definition as it was listed, without
// secrets, whatever other views have changed. It is made once for an item and its key, or
// twice if two ask for it at the same time.
func (i Item) Derived(key any, from func(listed []byte) any) any {
	if i.derived == nil {
		return from(i.Raw)
	}
	if value, ok := i.derived.values.Load(key); ok {
		return value
	}
	value, _ := i.derived.values.LoadOrStore(key, from(i.derived.listed))
	return value
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
	Raw         json.RawMessage // the definition as it is shown: every member that the views show, redacted

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
