package server

import (
	"context"

	"mcpx/config"
	"mcpx/executor/listing"
	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
	"mcpx/registry/upstream"
)

// granted returns the upstreams that a client may use. It depends only on the config and on the
// rules of the caller. So what a client learns in lazy mode before it uses a server has the same
// bytes whatever upstreams do.
func (s *Server) granted(c upstream.Client) (upstreams []*config.Upstream) {
	caller := upstream.CallerOf(c)
	for i := range s.profile.Upstreams {
		if u := &s.profile.Upstreams[i]; caller.HasServer(s.profile.Name, u.Name) {
			upstreams = append(upstreams, u)
		}
	}
	return upstreams
}

// The schemas of the two tools. The one of arguments names the types of its values: of all
// ways to say "any object", this is the only one with which no agent framework loses the
// arguments, and no constrained decoder allows only {}.
const (
	inspectSchema = `{"type":"object","properties":{"server_name":{"type":"string"},"tool_name":{"type":"string"}},"required":["server_name"]}`
	execSchema    = `{"type":"object","properties":{"server_name":{"type":"string"},"tool_name":{"type":"string"},` +
		`"arguments":{"type":"object","additionalProperties":{"type":["string","number","boolean","object","array","null"]}},"select":{"type":"string"}},"required":["server_name","tool_name"]}`
)

// execDescription is the description of exec. Models that read only this know how to select.
const execDescription = `Call a tool whose signature you know. select returns only some fields and rows: "id, user.login where state = open limit 20", "count where …", "/regex/".`

// alwaysLoad is a member of a tool's definition. Clients that defer tools then show this
// tool to the model from the start. The model does not see the member itself.
const alwaysLoad = `,"_meta":{"anthropic/alwaysLoad":true}`

// lazyTools returns the list of inspect and exec, which never changes while mcpx runs.
// meta is a further member of both, or "". mcp-go's Tool is not used, since it always has
// annotations, which cost tokens.
func lazyTools(upstreams []*config.Upstream, meta string) []byte {
	directory, _ := listing.Directory(upstreams)
	b := rawjson.AppendString([]byte(`{"tools":[{"name":"inspect","description":`), directory)
	b = append(b, `,"inputSchema":`+inspectSchema+`,"annotations":{"readOnlyHint":true}`+meta+`},`...)
	b = rawjson.AppendString(append(b, `{"name":"exec","description":`...), execDescription)
	return append(b, `,"inputSchema":`+execSchema+meta+`}]}`...)
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

// FirstTexts returns what a client's model reads in lazy mode before its first call: the result
// of tools/list, and the instructions.
func (s *Server) FirstTexts(c upstream.Client) []byte {
	return append(lazyTools(s.granted(c), ""), shortInstructions...)
}
