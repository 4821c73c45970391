package executor

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"mcpx/executor/listing"
	"mcpx/executor/results"
	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
	"mcpx/internal/selection"
	"mcpx/registry/lists"
	"mcpx/registry/live"
	"mcpx/registry/upstream"
)

// Builtin is the name of the built-in server. Clients use it with inspect and exec, like
// any other server.
const Builtin = listing.Builtin

// BuiltinTool is a tool of the built-in server.
type BuiltinTool struct {
	Name, Description string
	Schema            string // of its arguments, which Call gets only if they fit
	NeedsUpstreams    bool   // its result depends on the other servers, so they must be started first
	IsFlat            bool   // flat mode lists it too

	// Call returns the text of the result.
	Call func(ctx context.Context, e *Executor, c Call, arguments []byte) (string, error)
}

// NeedsUpstreams reports whether a built-in tool needs the other servers. parts are the tools
// of Options.
func NeedsUpstreams(tool string, parts []BuiltinTool) bool {
	for _, separator := range listing.Separators { // find accepts these names too
		tool = strings.TrimPrefix(tool, Builtin+separator)
	}
	return slices.ContainsFunc(slices.Concat(parts, coreTools()), func(t BuiltinTool) bool { return t.Name == tool && t.NeedsUpstreams })
}

// builtin is the built-in server.
type builtin struct {
	upstream *live.Upstream
	flat     *live.Upstream // with the tools that flat mode lists
	tools    map[string]BuiltinTool
}

func newBuiltin(tools []BuiltinTool) builtin {
	b := builtin{tools: map[string]BuiltinTool{}}
	var all, flat []lists.Item
	for _, t := range tools {
		definition, _ := json.Marshal(map[string]any{"name": t.Name, "description": t.Description, "inputSchema": json.RawMessage(t.Schema)})
		item := lists.Item{Key: t.Name, Raw: definition}
		all = append(all, item)
		if t.IsFlat {
			flat = append(flat, item)
		}
		b.tools[t.Name] = t
	}
	b.upstream, b.flat = live.NewUpstream(Builtin, all), live.NewUpstream(Builtin, flat)
	return b
}

const readResultName = "read_result"

// readResultHelp also teaches select and references, since models read it only when they
// have a kept result. Each form has a line.
const readResultHelp = `Read part of a kept result; select (also in exec) is "id, user.login where n > 5 limit 9"; {"$r": "r7/items/0/id"} in any arguments stands for that part.
offset, limit: bytes; a negative offset counts from the end
path: a JSON Pointer (* = every), or items[3].title
grep: RE2; before, after or context: lines around a match; offset and limit count matches, a negative offset from the end
select: number, user.login as who, labels[].name where state = open and (n > 5 or city in (Rome, "New York")) order by n desc limit 20
select: * where name ~ part; count where …; sum amount, min day, max day, avg amount by stage
select: /RE2/ for matching lines or values; count by status from /(\d+) (\S+)/ as status, path makes rows of lines
{"$r": "r7", "select": "email where id in {\"$r\": \"r3\", \"select\": \"id\"}"}: an array of these values
{"$r": "r3", "lines": "5-9"}, {"$r": "r3", "match": "/RE2/"}, {"$r": "r3", "replace": ["old", "new", 1]}: part of a text`

// coreTools are the tools that do not belong to a part. Flat mode does not list those for long
// results and for tools: its clients see all tools and get all results in full.
func coreTools() []BuiltinTool {
	return []BuiltinTool{
		{
			Name: readResultName, Description: readResultHelp,
			Schema: `{"type":"object","properties":{"id":{"type":"string"},"offset":{"type":"integer","default":0},"limit":{"type":"integer","minimum":1},"path":{"type":"string"},"grep":{"type":"string"},"context":{"type":"integer","minimum":0,"maximum":20},"before":{"type":"integer","minimum":0,"maximum":20},"after":{"type":"integer","minimum":0,"maximum":20},"select":{"type":"string"}},"required":["id"]}`,
			Call:   readResult,
		},
		{
			Name: "schema", Description: "The full definition of a tool, as its server sent it, with its output schema.",
			Schema:         `{"type":"object","properties":{"server":{"type":"string"},"tool":{"type":"string"}},"required":["server","tool"]}`,
			NeedsUpstreams: true,
			Call:           showSchema,
		},
		{
			Name: "servers", Description: "State, number of tools and token cost of every server.",
			Schema:         `{"type":"object","properties":{}}`,
			NeedsUpstreams: true, IsFlat: true,
			Call: listServers,
		},
		{
			Name: "show_config", Description: "The configuration in use, secrets hidden.",
			Schema: `{"type":"object","properties":{}}`,
			IsFlat: true,
			Call: func(_ context.Context, e *Executor, c Call, _ []byte) (string, error) {
				return string(e.settings.Load().config.ShowTo(upstream.CallerOf(c.Client).Rules)), nil
			},
		},
	}
}

// callBuiltin runs a built-in tool.
func (e *Executor) callBuiltin(ctx context.Context, c Call, arguments []byte) ([]byte, error) {
	text, err := e.builtin.tools[c.Tool].Call(ctx, e, c, arguments)
	if err != nil {
		return nil, err
	}
	return TextResult(text), nil
}

// text returns a string in an object, "" if there is none.
func text(object []byte, key string) string {
	s, _ := rawjson.String(rawjson.Get(object, key))
	return s
}

// Integer returns an integer argument, which may be written as 6 or 6.0.
func Integer(arguments []byte, key string, fallback int) int {
	f, err := strconv.ParseFloat(string(rawjson.Get(arguments, key)), 64)
	if err != nil {
		return fallback
	}
	return int(min(max(f, -1<<50), 1<<50))
}

// TextResult returns a tool result that contains a text, and notes as further texts.
func TextResult(text string, notes ...string) []byte {
	b := rawjson.AppendString([]byte(`{"content":[{"type":"text","text":`), text)
	for _, note := range notes {
		b = rawjson.AppendString(append(b, `},{"type":"text","text":`...), note)
	}
	return append(b, "}]}"...)
}

func readResult(ctx context.Context, e *Executor, c Call, arguments []byte) (string, error) {
	q := results.Query{
		ID:     text(arguments, "id"),
		Offset: Integer(arguments, "offset", 0),
		Limit:  Integer(arguments, "limit", 0),
		Path:   text(arguments, "path"),
		Grep:   text(arguments, "grep"),
		Before: Integer(arguments, "before", Integer(arguments, "context", 0)),
		After:  Integer(arguments, "after", Integer(arguments, "context", 0)),
		Select: c.selection, // next to "arguments"
	}
	if fields := text(arguments, "select"); strings.TrimSpace(fields) != "" {
		var err error
		if q.Select, err = selection.Parse(fields); err != nil {
			return "", &badCall{err.Error()}
		}
		if q.Select, err = e.bind(ctx, &c, q.Select); err != nil {
			return "", err
		}
	}
	return e.results.Read(ctx, ownerOf(c.Client), q)
}

// Settle waits until no upstream that the client sees is in its first start, or until the
// timeout.
func (e *Executor) Settle(ctx context.Context, c upstream.Client, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	seen := e.registry.For(c)
	for _, u := range seen.Catalog().Upstreams {
		if u.InFirstStart() {
			seen.Settled(ctx, u.Name)
		}
	}
}

// showSchema returns a tool's definition with all members. Secrets are hidden. If the views are
// strict, so are the members that are for programs.
func showSchema(ctx context.Context, e *Executor, c Call, arguments []byte) (string, error) {
	u, t, err := e.find(ctx, &Call{Client: c.Client, Server: text(arguments, "server"), Tool: text(arguments, "tool")})
	if err != nil {
		return "", err
	}
	if u.IsStrict() {
		return string(rawjson.With(rawjson.With(t.Raw, "icons", nil), "_meta", nil)), nil
	}
	return string(t.Raw), nil
}

func listServers(_ context.Context, e *Executor, c Call, _ []byte) (string, error) {
	var b strings.Builder
	if problem := e.settings.Load().problem; problem != "" && upstream.CallerOf(c.Client).Rules == nil {
		fmt.Fprintf(&b, "the config file has changed, but is not in use: %s\n", problem)
	}
	for _, u := range e.registry.For(c.Client).Catalog().Upstreams {
		if u = u.Shown(); u.NeedsPerson() {
			fmt.Fprintf(&b, "%s %s\n", u.Name, u.Reason)
			continue
		}
		fmt.Fprintf(&b, "%s: %s, %s, %d tokens in full", u.Name, u.State, plain.Count(len(u.Tools), "tool"), u.Tokens())
		if u.State == live.Idle && !u.ListedAt.IsZero() {
			fmt.Fprintf(&b, ", listed %s ago", listing.Age(time.Since(u.ListedAt)))
		}
		if u.State == live.Ready {
			fmt.Fprintf(&b, ", started in %s", u.StartupTime.Round(time.Millisecond))
		}
		if note := u.Note(); note != "" {
			fmt.Fprintf(&b, "; %s", note)
		}
		if trouble := u.Trouble(); trouble != "" {
			fmt.Fprintf(&b, "; %s", trouble)
		}
		for _, t := range u.Tools {
			if reason := validatorOf(t).Unjudged(); reason != "" {
				fmt.Fprintf(&b, "; %s is not checked: %s", plain.Line(t.Name), plain.Line(reason))
			}
		}
		if u.Description != "" {
			fmt.Fprintf(&b, "; %s", plain.Line(u.Description))
		}
		b.WriteByte('\n')
	}
	return b.String() + Builtin + ": built in", nil
}
