package server

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/config"
	"mcpx/executor"
	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
)

// initialize handles initialize: it negotiates the revision.
func (s *Server) initialize(_ context.Context, c *Client, m rpc.Message) ([]byte, error) {
	version, ok := rawjson.String(rawjson.Get(m.Params, "protocolVersion"))
	if !ok {
		return nil, invalidParams(`"protocolVersion" must be a string`)
	}
	params := exactly(m.Params, "protocolVersion", "capabilities", "clientInfo")
	if err := json.Unmarshal(params, &mcp.InitializeParams{}); err != nil {
		return nil, invalidParams("the params of initialize are not as MCP defines them")
	}
	if version < mcp.ProtocolVersion20241105 {
		return nil, rpc.Errorf(rpc.CodeServer, "Unsupported protocol version: %s", version)
	}
	version = mcp.NegotiateLegacyVersion(version)
	c.SetInitialized(version, rawjson.Get(m.Params, "capabilities"))
	c.SetProgram(rawjson.Get(m.Params, "clientInfo"))
	return json.Marshal(mcp.InitializeResult{ProtocolVersion: version, Capabilities: capabilities, ServerInfo: mcp.Implementation{Name: "mcpx", Version: s.Version}, Instructions: s.instructions(c)})
}

// exactly returns an object with only the members that have these keys. encoding/json
// would ignore the case of keys, so that "CAPABILITIES" could replace "capabilities".
func exactly(object []byte, keys ...string) []byte {
	b := []byte("{")
	for key, value := range rawjson.Members(object) {
		if slices.Contains(keys, key) {
			b = rawjson.AppendMember(b, key, value)
		}
	}
	return append(b, '}')
}

// capabilities are the same for every client, whatever the upstreams can do.
var capabilities = mcp.ServerCapabilities{
	Tools: &struct {
		ListChanged bool `json:"listChanged,omitempty"`
	}{true},
	Resources: &struct {
		Subscribe   bool `json:"subscribe,omitempty"`
		ListChanged bool `json:"listChanged,omitempty"`
	}{true, true},
	Prompts: &struct {
		ListChanged bool `json:"listChanged,omitempty"`
	}{true},
	Logging:     &struct{}{},
	Completions: &struct{}{},
}

// Revisions returns the MCP revisions that clients may speak, the oldest first.
func Revisions() []string {
	revisions := slices.Clone(mcp.ValidProtocolVersions)
	slices.Sort(revisions)
	return revisions
}

// instructionsLimit bounds the characters of the instructions, for any number of servers.
const instructionsLimit = 1024

// instructions returns the instructions for clients. Clients that defer tools show the
// model only these and the names of the tools at first.
func (s *Server) instructions(c *Client) string {
	switch {
	case s.lazy:
		return lazyInstructions(s.granted(c))
	case s.bare:
		for _, only := range s.Upstreams(c) {
			return only.Instructions
		}
		return ""
	}
	return s.flatInstructions(c)
}

// lazyInstructions names all servers and explains inspect and exec. If it is too long, it
// omits the last names.
func lazyInstructions(upstreams []*config.Upstream) string {
	const use = "inspect(server_name) lists a server's tools, exec calls one. " +
		`exec("` + executor.Builtin + `", "search", {"query": …}) searches the tools of all servers.`
	var names []string
	for _, u := range upstreams {
		names = append(names, u.Name)
	}
	text := func(names []string, more string) string {
		return "MCP servers behind two tools: " + strings.Join(names, ", ") + more + ". " + use
	}
	if len(names) == 0 {
		return use
	}
	whole := text(names, "")
	if utf8.RuneCountInString(whole) <= instructionsLimit {
		return whole
	}
	more := func(n int) string { return fmt.Sprintf(` and %d more, which inspect("%s") lists`, n, executor.Builtin) }
	room := instructionsLimit - utf8.RuneCountInString(text(nil, more(len(names))))
	fit := 0
	for ; room >= 0; fit++ {
		room -= utf8.RuneCountInString(names[fit]) + len(", ")
	}
	fit-- // the last one did not
	return text(names[:fit], more(len(names)-fit))
}

// flatInstructions names each server, with the start of its own instructions if they are
// known. Each server may use the same number of characters.
func (s *Server) flatInstructions(c *Client) string {
	upstreams := s.Upstreams(c)
	if len(upstreams) == 0 {
		return ""
	}
	share := instructionsLimit / len(upstreams)
	var lines []string
	for _, u := range upstreams {
		line := u.Name
		if own := plain.Joined(u.Instructions); own != "" {
			line += ": " + own
		}
		lines = append(lines, cutRunes(line, share-1)) // 1: the line break
	}
	return cutRunes(strings.Join(lines, "\n"), instructionsLimit)
}

// cutRunes returns the start of a text, at most limit characters.
func cutRunes(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return strings.TrimSpace(string([]rune(text)[:max(limit-1, 0)])) + "…"
}
