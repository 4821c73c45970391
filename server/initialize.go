package server

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/executor/listing"
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

// instructions returns the instructions for clients. Clients that defer tools show the
// model only these and the names of the tools at first.
func (s *Server) instructions(c *Client) string {
	switch {
	case s.lazy:
		return s.lazyInstructions(c)
	case s.bare:
		for _, only := range s.Upstreams(c) {
			return only.Instructions
		}
		return ""
	}
	return s.flatInstructions(c)
}

// shortInstructions are for clients that show the model the descriptions of inspect and exec.
const shortInstructions = "MCP servers behind two tools, inspect and exec; inspect's description names them."

// The clients that defer tools: at first, their models see only the names of tools and the
// instructions. Those in the second table show tools with alwaysLoad.
var (
	deferring        = map[string]bool{"codex-mcp-client": true, "opencode": true}
	honorsAlwaysLoad = map[string]bool{"claude-code": true, "claude-ai": true}
)

// lazyInstructions returns the instructions in lazy mode. They depend only on the config, the
// rules of the caller and the name of the client, so that a client always gets the same bytes.
func (s *Server) lazyInstructions(c *Client) string {
	name := c.Program().Name
	if deferring[name] || honorsAlwaysLoad[name] && !s.AlwaysLoad {
		return listing.Instructions(s.granted(c))
	}
	return shortInstructions
}

// flatInstructions names each server, with the start of its own instructions if they are
// known. Each server may use the same number of characters.
func (s *Server) flatInstructions(c *Client) string {
	upstreams := s.Upstreams(c)
	if len(upstreams) == 0 {
		return ""
	}
	share := listing.InstructionsLimit / len(upstreams)
	var lines []string
	for _, u := range upstreams {
		line := u.Name
		if own := plain.Joined(u.Instructions); own != "" {
			line += ": " + own
		}
		lines = append(lines, cutRunes(line, share-1)) // 1: the line break
	}
	return cutRunes(strings.Join(lines, "\n"), listing.InstructionsLimit)
}

// cutRunes returns the start of a text, at most limit characters.
func cutRunes(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return strings.TrimSpace(string([]rune(text)[:max(limit-1, 0)])) + "…"
}
