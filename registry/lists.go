package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/lockfile"
	"mcpx/internal/rawjson"
	"mcpx/internal/tasks"
	"mcpx/internal/tokens"
)

// kind is a kind of list that upstreams have.
type kind struct {
	capability string // an upstream without it has no such list
	method     string
	member     string        // of the result
	key        string        // the member that identifies an item
	pinned     lockfile.Kind // in the lock file; empty: not in it
	set        func(u *Upstream, items []Item) (changed bool)
}

// kinds is the table of lists. A notifications/CAPABILITY/list_changed is about all
// kinds of that capability.
var kinds = []kind{
	{"tools", "tools/list", "tools", "name", lockfile.Tools, setTools},
	{"prompts", "prompts/list", "prompts", "name", lockfile.Prompts, func(u *Upstream, items []Item) bool { return setItems(&u.Prompts, items) }},
	{"resources", "resources/list", "resources", "uri", "", func(u *Upstream, items []Item) bool { return setItems(&u.Resources, items) }},
	{"resources", "resources/templates/list", "resourceTemplates", "uriTemplate", lockfile.Templates, func(u *Upstream, items []Item) bool { return setItems(&u.Templates, items) }},
}

// Limits of a list.
const (
	maxPages = 100
	maxItems = 10_000
)

// setList sets one kind of list, of which only approved items are shown. It reports
// whether clients see a change.
func (u *Upstream) setList(k kind, items []Item) (changed bool) {
	listed := maps.Clone(u.listed)
	if listed == nil {
		listed = map[string][]Item{}
	}
	listed[k.method] = items
	u.listed = listed
	return k.set(u, u.approved(k, items))
}

// setTools keeps the old value of each unchanged tool, with everything derived from
// it.
func setTools(u *Upstream, items []Item) (changed bool) {
	tools := make([]*Tool, 0, len(items))
	index := make(map[string]*Tool, len(items))
	for _, item := range items {
		if u.config != nil && !u.config.Tools.Allows(item.Key) {
			continue
		}
		t := u.tools[item.Key]
		if t == nil || string(t.sent) != string(item.asSent()) {
			t = newTool(item)
		}
		tools = append(tools, t)
		index[item.Key] = t
	}
	changed = !slices.Equal(u.Tools, tools)
	u.Tools, u.tools = tools, index
	if changed {
		u.tokens = sync.OnceValue(func() int { return tokens.CountBytes(toolList(tools)) })
	}
	return changed
}

func setItems(list *[]Item, items []Item) (changed bool) {
	changed = !slices.EqualFunc(*list, items, func(a, b Item) bool { return string(a.Raw) == string(b.Raw) })
	*list = items
	return changed
}

// list reads every page of a list and returns its items, redacted. It skips invalid
// items.
func (s *Session) list(ctx context.Context, k kind) ([]Item, error) {
	var items []Item
	var params []byte
	keys, cursors := map[string]bool{}, map[string]bool{}
	warn := func(text string) { s.Log.Warn().Str("method", k.method).Msg(text) }
	for range maxPages {
		result, err := s.Request(ctx, k.method, params)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k.method, err)
		}
		for raw := range rawjson.Elements(rawjson.Get(result, k.member)) {
			key, _ := rawjson.String(rawjson.Get(raw, k.key))
			switch {
			case key == "":
				warn("skipped an item without a " + k.key)
			case keys[key]:
				warn("skipped a second item with the same " + k.key)
			case !s.hasValidHeaders(raw):
				warn("skipped a tool with an invalid x-mcp-header")
			case len(items) == maxItems:
				warn(fmt.Sprintf("the list has more than %d items; the rest is left out", maxItems))
				return items, nil
			default:
				keys[key] = true
				item := newItem(s.supervisor.config(), k, key, raw)
				item.Raw = redactDefinition(s.Redact, item.Raw)
				items = append(items, item)
			}
		}
		cursor := rawjson.Get(result, "nextCursor")
		if text, ok := rawjson.String(cursor); !ok || text == "" {
			return items, nil
		}
		if cursors[string(cursor)] {
			warn("the upstream repeats a page cursor; the list ends there")
			return items, nil
		}
		cursors[string(cursor)] = true
		params = append(append([]byte(`{"cursor":`), cursor...), '}')
	}
	warn(fmt.Sprintf("the list has more than %d pages; the rest is left out", maxPages))
	return items, nil
}

// hasValidHeaders reports whether mcpx can repeat the arguments of a tool in headers, as the
// tool wants (x-mcp-header). Only 2026-07-28 over HTTP has such headers.
func (s *Session) hasValidHeaders(definition []byte) bool {
	if !s.IsModern() || s.Config.URL == "" || !bytes.Contains(definition, []byte(`"x-mcp-header"`)) {
		return true
	}
	return mcp.ValidateParamHeaderAnnotations(&mcp.Tool{RawInputSchema: rawjson.Get(definition, "inputSchema")}) == nil
}

// changes collects the names of changed lists until wait returns them. The methods may be
// called concurrently.
type changes struct {
	signal tasks.Signal

	mu    sync.Mutex
	names map[string]bool
	count int64 // of calls of note
	taken int64 // those that wait has returned
}

func newChanges() changes { return changes{signal: tasks.NewSignal(), names: map[string]bool{}} }

// note adds names. It never waits.
func (c *changes) note(names ...string) {
	if len(names) == 0 {
		return
	}
	c.mu.Lock()
	for _, name := range names {
		c.names[name] = true
	}
	c.count++
	c.mu.Unlock()
	c.signal.Notify()
}

// noted returns how often note was called.
func (c *changes) noted() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count
}

// returned is noted for the names that wait has returned.
func (c *changes) returned() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.taken
}

// errDone is returned by wait when done was closed.
var errDone = errors.New("done")

// wait returns the changed names, once there are any.
func (c *changes) wait(ctx context.Context, done <-chan struct{}) (map[string]bool, error) {
	select {
	case <-c.signal:
	case <-done:
		return nil, errDone
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	names := c.names
	c.names, c.taken = map[string]bool{}, c.count
	return names, nil
}

// redactDefinition returns the definition of a tool, a prompt, a resource or a
// template as it is shown: redacted, except for the texts that a caller has to repeat
// and those that give a schema its structure.
func redactDefinition(redact func(text string) string, definition []byte) []byte {
	if text := string(definition); redact(text) == text {
		return definition
	}
	return rawjson.Rewrite(definition, nil, func(path []string, text string) string {
		if isStructure(path) {
			return text
		}
		return redact(text)
	})
}

// structure are the members whose text stays. Property names stay too.
var structure = []string{
	"name", "uri", "uriTemplate", "mimeType",
	"type", "enum", "const", "pattern", "format", "required",
	"$schema", "$id", "$ref", "$anchor", "$dynamicRef", "$dynamicAnchor",
}

// examples are the members that may hold any JSON. All text below them is redacted.
var examples = []string{"default", "examples", "_meta"}

// isStructure reports whether the text at that path of a definition stays.
func isStructure(path []string) bool {
	return len(path) > 0 && slices.Contains(structure, path[len(path)-1]) &&
		!slices.ContainsFunc(path, func(key string) bool { return slices.Contains(examples, key) })
}
