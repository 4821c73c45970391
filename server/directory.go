package server

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"mcpx/config"
	"mcpx/executor"
	"mcpx/internal/plain"
	"mcpx/internal/policy"
	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
	"mcpx/internal/upstream"
)

// lazyDirectory is what a client learns about the servers before it uses any, in lazy
// mode. It depends only on the config and on what the caller may use, so its bytes stay
// the same whatever upstreams do.
type lazyDirectory struct {
	tools        []byte // the result of tools/list
	instructions string
}

// directories caches directories.
type directories struct {
	mu      sync.Mutex
	byRules map[*policy.Rules]*lazyDirectory // by the rules of callers; nil is the key of callers without rules
}

// maxDirectories bounds the directories that are cached.
const maxDirectories = 256

// directory returns the directory for a client.
func (s *Server) directory(c *Client) *lazyDirectory {
	rules := upstream.CallerOf(c).Rules
	s.directories.mu.Lock()
	defer s.directories.mu.Unlock()
	if d := s.directories.byRules[rules]; d != nil {
		return d
	}
	if s.directories.byRules == nil || len(s.directories.byRules) >= maxDirectories {
		s.directories.byRules = map[*policy.Rules]*lazyDirectory{}
	}
	meta := ""
	if s.AlwaysLoad {
		meta = alwaysLoad
	}
	p := s.granted(rules)
	d := &lazyDirectory{lazyTools(p, meta), lazyInstructions(p)}
	s.directories.byRules[rules] = d
	return d
}

// granted returns the profile with the upstreams that the rules grant.
func (s *Server) granted(rules *policy.Rules) *config.Profile {
	p := *s.profile
	p.Upstreams = nil
	for _, u := range s.profile.Upstreams {
		if rules.HasServer(p.Name, u.Name) {
			p.Upstreams = append(p.Upstreams, u)
		}
	}
	return &p
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
func lazyTools(p *config.Profile, meta string) []byte {
	b := rawjson.AppendString([]byte(`{"tools":[{"name":"inspect","description":`), directory(p))
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
	return s.directory(c).tools, nil
}

// directory returns the description of inspect, with the names and descriptions of all
// servers. If it is too long, it omits the descriptions, and then the last names.
func directory(p *config.Profile) string {
	const (
		use    = "List a server's tools, or get one's schema. Servers: "
		search = executor.Builtin + " (searches all tools"
	)
	var full, names []string
	for _, u := range p.Upstreams {
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
	return lazyTools(s.granted(upstream.CallerOf(c).Rules), "")
}
