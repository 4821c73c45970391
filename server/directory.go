package server

import (
	"context"
	"fmt"
	"strings"

	"mcpx/config"
	"mcpx/executor"
	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
	"mcpx/registry/upstream"
)

// granted returns the upstreams that a client may use. It depends only on the config and on the
// rules of the caller. So what a client learns in lazy mode before it uses a server has the same
// bytes whatever upstreams do.
func (s *Server) granted(c upstream.Client) (upstreams []*config.Upstream) {
	rules := upstream.CallerOf(c).Rules
	for i := range s.profile.Upstreams {
		if u := &s.profile.Upstreams[i]; rules.HasServer(s.profile.Name, u.Name) {
			upstreams = append(upstreams, u)
		}
	}
	return upstreams
}

// directoryLimit is the longest description of inspect, in bytes, however many
// servers there are.
const directoryLimit = 2048

// The schemas of the two tools. arguments has an empty "properties": without it,
// models under constrained decoding send {}.
const (
	inspectSchema = `{"type":"object","properties":{"server_name":{"type":"string"},"tool_name":{"type":"string"}},"required":["server_name"]}`
	execSchema    = `{"type":"object","properties":{"server_name":{"type":"string"},"tool_name":{"type":"string"},"arguments":{"type":"object","properties":{},"additionalProperties":true},"select":{"type":"string"}},"required":["server_name","tool_name"]}`
)

// alwaysLoad is a member of a tool's definition. Clients that defer tools then show this
// tool to the model from the start. The model does not see the member itself.
const alwaysLoad = `,"_meta":{"anthropic/alwaysLoad":true}`

// lazyTools returns the list of inspect and exec, which never changes while mcpx runs.
// meta is a further member of both, or "". mcp-go's Tool is not used, since it always has
// annotations, which cost tokens.
func lazyTools(upstreams []*config.Upstream, meta string) []byte {
	b := rawjson.AppendString([]byte(`{"tools":[{"name":"inspect","description":`), directory(upstreams))
	b = append(b, `,"inputSchema":`+inspectSchema+`,"annotations":{"readOnlyHint":true}`+meta+`},`...)
	b = append(b, `{"name":"exec","description":"Call a tool. Inspect it first.","inputSchema":`+execSchema+meta+`}]}`...)
	return b
}

// listTools handles tools/list. In lazy mode the list has one page.
func (s *Server) listTools(ctx context.Context, c *Client, m rpc.Message) ([]byte, error) {
	if !s.lazy {
		return s.list(ctx, c, m)
	}
	if !rawjson.IsNull(rawjson.Get(m.Params, "cursor")) {
		return nil, invalidParams(invalidCursor)
	}
	meta := ""
	if s.AlwaysLoad {
		meta = alwaysLoad
	}
	return lazyTools(s.granted(c), meta), nil
}

// directory returns the description of inspect, with the names and descriptions of all
// servers. If it is too long, it omits the descriptions, and then the last names.
func directory(upstreams []*config.Upstream) string {
	const (
		use    = "List a server's tools, or get one's schema. Servers: "
		search = executor.Builtin + " (searches all tools"
	)
	var full, names []string
	for _, u := range upstreams {
		name := u.Name
		names = append(names, name)
		if u.Description != "" {
			name += " (" + plain.Line(u.Description) + ")"
		}
		full = append(full, name)
	}
	for _, list := range [][]string{full, names} {
		if text := use + strings.Join(append(list, search+")"), ", "); len(text) <= directoryLimit {
			return text
		}
	}
	last := func(missing int) string {
		return fmt.Sprintf(`%s; inspect("%s") lists %d more servers)`, search, executor.Builtin, missing)
	}
	room := directoryLimit - len(use+last(len(names)))
	shown := 0
	for ; shown < len(names); shown++ {
		if room -= len(names[shown]) + len(", "); room < 0 {
			break
		}
	}
	return use + strings.Join(append(names[:shown], last(len(names)-shown)), ", ")
}

// LazyTools returns the result of tools/list in lazy mode, as a client's model sees it.
func (s *Server) LazyTools(c upstream.Client) []byte {
	return lazyTools(s.granted(c), "")
}
