package server

import (
	"context"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"mcpx/config"
	"mcpx/executor"
	"mcpx/internal/jsonrpc"
	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
)

// directoryLimit is how long the description of inspect may be, however many
// servers there are.
const directoryLimit = 2048

// The schemas of the two tools. arguments has properties, though none: models
// under constrained decoding send {} to a bare object.
const (
	inspectSchema = `{"type":"object","properties":{"server_name":{"type":"string"},"tool_name":{"type":"string"}},"required":["server_name"]}`
	execSchema    = `{"type":"object","properties":{"server_name":{"type":"string"},"tool_name":{"type":"string"},"arguments":{"type":"object","properties":{},"additionalProperties":true}},"required":["server_name","tool_name"]}`
)

// lazyTools are inspect and exec. Nothing in them changes while mcpx runs.
func lazyTools(p *config.Profile) []mcpserver.ServerTool {
	readOnly := true
	return []mcpserver.ServerTool{
		{Handler: unreachable, Tool: mcp.Tool{
			Name:           "inspect",
			Description:    directory(p),
			RawInputSchema: []byte(inspectSchema),
			Annotations:    mcp.ToolAnnotation{ReadOnlyHint: &readOnly},
		}},
		{Handler: unreachable, Tool: mcp.Tool{
			Name:           "exec",
			Description:    "Call a tool. Inspect it first.",
			RawInputSchema: []byte(execSchema),
		}},
	}
}

// listTwo answers tools/list in lazy mode: two tools, on one page.
func (s *Server) listTwo(ctx context.Context, c *Client, m jsonrpc.Message) ([]byte, error) {
	if !rawjson.IsNull(rawjson.Get(m.Params, "cursor")) {
		return nil, invalidParams(`"cursor" is not one that mcpx gave`)
	}
	return s.delegate(ctx, c, jsonrpc.Message{ID: m.ID, Method: m.Method})
}

// unreachable stands where mcp-go wants a handler: Server.callTool answers every
// tools/call before mcp-go sees it.
func unreachable(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return nil, fmt.Errorf("tools/call is not for mcp-go")
}

// directory is the description of inspect: what it does, and every server. If it
// gets too long, descriptions go before names do.
func directory(p *config.Profile) string {
	const use = "List a server's tools, or get one's schema. Servers: "
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
		if text := use + strings.Join(append(list, executor.Builtin), ", "); len(text) <= directoryLimit {
			return text
		}
	}
	text := use + executor.Builtin + " (lists all)"
	var fit []string
	room := directoryLimit - len(text)
	for _, name := range names {
		if room -= len(name) + len(", "); room < 0 {
			break
		}
		fit = append(fit, name)
	}
	return use + strings.Join(append(fit, executor.Builtin+" (lists all)"), ", ")
}

// callTool answers tools/call in lazy mode.
func (s *Server) callTool(ctx context.Context, c *Client, m jsonrpc.Message) ([]byte, error) {
	var name string
	var arguments, meta []byte
	named := false
	for key, value := range rawjson.Members(m.Params) {
		switch key {
		case "name":
			name, named = rawjson.View(value)
		case "arguments":
			arguments = value
		case "_meta":
			meta = value
		}
	}
	if !named || name == "" {
		return nil, invalidParams(`"name" must be the name of a tool`)
	}
	if k := rawjson.Kind(arguments); k != 0 && k != '{' && k != 'n' {
		return nil, invalidParams(`"arguments" must be an object`)
	}
	switch name {
	case "inspect":
		return s.inspect(ctx, arguments)
	case "exec":
		call := executor.ParseExec(arguments)
		call.Request, call.Client, call.Meta, call.Progress = string(m.ID), c, meta, c.progress(meta)
		return s.exec(ctx, call)
	}
	return nil, s.notListed(name)
}

func (s *Server) inspect(ctx context.Context, arguments []byte) ([]byte, error) {
	server, _ := rawjson.String(rawjson.Get(arguments, "server_name"))
	tool, _ := rawjson.String(rawjson.Get(arguments, "tool_name"))
	text, err := s.executor.Inspect(ctx, server, tool)
	if err != nil {
		return errorResult(err.Error()), nil
	}
	return executor.TextResult(text), nil
}

// exec turns every failure into a result: the model can act on it.
func (s *Server) exec(ctx context.Context, call executor.Call) ([]byte, error) {
	result, err := s.executor.Do(ctx, call)
	if err != nil {
		return errorResult(err.Error()), nil
	}
	return result, nil
}

// notListed is the error of a call to a tool that tools/list does not have. If
// an upstream has it, it says how to call it.
func (s *Server) notListed(name string) error {
	e := executor.ToolNotFound(name)
	if server, tool, ok := s.executor.Locate(name); ok {
		call := rawjson.AppendString([]byte(`{"server_name":`), server)
		call = rawjson.AppendString(append(call, `,"tool_name":`...), tool)
		e.Message += fmt.Sprintf(`; call it with the tool exec: %s,"arguments":{…}}`, call)
	}
	return e
}

// Tools is the result of tools/list.
func (s *Server) Tools(ctx context.Context) []byte {
	result, _ := s.listTwo(ctx, nil, jsonrpc.Message{ID: []byte("1"), Method: "tools/list"})
	return result
}
