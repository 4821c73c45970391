package executor

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"mcpx/executor/results"
	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
	"mcpx/internal/selection"
	"mcpx/internal/upstream"
	"mcpx/registry/lists"
	"mcpx/registry/live"
)

// Builtin is the name of the built-in server. Clients use it with inspect and exec, like
// any other server.
const Builtin = "mcpx"

// builtin is the built-in server.
type builtin struct {
	upstream *live.Upstream
	tools    map[string]builtinTool
}

type builtinTool func(ctx context.Context, c Call, arguments []byte) (string, error)

// NeedsUpstreams reports whether the result of a built-in tool depends on the other
// servers, so that they must be started first.
func NeedsUpstreams(tool string) bool {
	for _, separator := range separators { // find accepts these names too
		tool = strings.TrimPrefix(tool, Builtin+separator)
	}
	return tool == "search" || tool == "servers" || tool == "schema"
}

const readResultName = "read_result"

// readResultHelp also teaches select and references, since models read it only when they
// have a kept result.
const readResultHelp = `Read part of a kept result; select (also in exec) is "id, user.login where n > 5 limit 9"; {"$r": "r7/items/0/id"} in any arguments stands for that part. ` +
	`select picks fields and rows: "number, title, user.login where state = open and comments > 5 limit 20", "count where …", "* where …", "labels[].name", or /RE2/ for matching lines or values. ` +
	`path is a JSON Pointer (* = every) or items[3].title; grep is RE2, context adds lines around a match; offset and limit count bytes, with grep matches; a negative offset counts from the end. ` +
	`{"$r": "r7", "select": "email where city = Berlin"} stands for an array of these values.`

// flatTools are the built-in tools that flat mode lists. It does not list the others,
// because its clients see all tools and get all results in full.
var flatTools = []string{"servers", "show_config"}

func newBuiltin(e *Executor) builtin {
	var definitions []lists.Item
	run := map[string]builtinTool{}
	for _, t := range []struct {
		name, description, schema string
		run                       builtinTool
	}{
		{
			"search", "Find tools of all servers by what they do, best first.",
			`{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer","minimum":1,"maximum":50,"default":10}},"required":["query"]}`,
			e.searchTools,
		},
		{
			readResultName, readResultHelp,
			`{"type":"object","properties":{"id":{"type":"string"},"offset":{"type":"integer","default":0},"limit":{"type":"integer","minimum":1},"path":{"type":"string"},"grep":{"type":"string"},"context":{"type":"integer","minimum":0,"maximum":20},"select":{"type":"string"}},"required":["id"]}`,
			e.readResult,
		},
		{
			"schema", "The full definition of a tool, as its server sent it, with its output schema.",
			`{"type":"object","properties":{"server":{"type":"string"},"tool":{"type":"string"}},"required":["server","tool"]}`,
			e.showSchema,
		},
		{
			"servers", "State, number of tools and token cost of every server.",
			`{"type":"object","properties":{}}`,
			e.listServers,
		},
		{
			"show_config", "The configuration in use, secrets hidden.",
			`{"type":"object","properties":{}}`,
			func(_ context.Context, c Call, _ []byte) (string, error) {
				return string(e.settings.Load().config.ShowTo(upstream.CallerOf(c.Client).Rules)), nil
			},
		},
	} {
		definition, _ := json.Marshal(map[string]any{"name": t.name, "description": t.description, "inputSchema": json.RawMessage(t.schema)})
		definitions = append(definitions, lists.Item{Key: t.name, Raw: definition})
		run[t.name] = t.run
	}
	return builtin{upstream: live.NewUpstream(Builtin, definitions), tools: run}
}

// callBuiltin runs a built-in tool.
func (e *Executor) callBuiltin(ctx context.Context, c Call, arguments []byte) ([]byte, error) {
	text, err := e.builtin.tools[c.Tool](ctx, c, arguments)
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

// integer returns an integer argument, which may be written as 6 or 6.0.
func integer(arguments []byte, key string, fallback int) int {
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

func (e *Executor) readResult(ctx context.Context, c Call, arguments []byte) (string, error) {
	q := results.Query{
		ID:      text(arguments, "id"),
		Offset:  integer(arguments, "offset", 0),
		Limit:   integer(arguments, "limit", 0),
		Path:    text(arguments, "path"),
		Grep:    text(arguments, "grep"),
		Context: integer(arguments, "context", 0),
		Select:  c.selection, // next to "arguments"
	}
	if fields := text(arguments, "select"); strings.TrimSpace(fields) != "" {
		var err error
		if q.Select, err = selection.Parse(fields); err != nil {
			return "", &badCall{err.Error()}
		}
	}
	return e.results.Read(ctx, ownerOf(c.Client), q)
}

// settleTime is how long a search waits for upstreams in their first start.
const settleTime = 5 * time.Second

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

// withoutTools returns the names and states of the servers whose tools are not known.
func (e *Executor) withoutTools(c upstream.Client) (names []string) {
	for _, u := range e.registry.For(c).Catalog().Upstreams {
		if len(u.Tools) == 0 && u.State != live.Ready {
			names = append(names, fmt.Sprintf("%s (%s)", u.Name, u.State))
		}
	}
	return names
}

// showSchema returns a tool's definition with all members. Secrets are hidden. With a lock, so
// are the members that nobody has approved.
func (e *Executor) showSchema(ctx context.Context, c Call, arguments []byte) (string, error) {
	u, t, err := e.find(ctx, &Call{Client: c.Client, Server: text(arguments, "server"), Tool: text(arguments, "tool")})
	if err != nil {
		return "", err
	}
	if u.IsBlocking() {
		return string(rawjson.With(rawjson.With(t.Raw, "icons", nil), "_meta", nil)), nil
	}
	return string(t.Raw), nil
}

func (e *Executor) listServers(_ context.Context, c Call, _ []byte) (string, error) {
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
			fmt.Fprintf(&b, ", listed %s ago", age(time.Since(u.ListedAt)))
		}
		if u.State == live.Ready {
			fmt.Fprintf(&b, ", started in %s", u.StartupTime.Round(time.Millisecond))
		}
		if review := u.Review(); review != "" {
			fmt.Fprintf(&b, "; %s", review)
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
