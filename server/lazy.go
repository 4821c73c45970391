package server

import (
	"context"
	"fmt"
	"strings"

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

// lazyTools is the list of inspect and exec. Nothing in it changes while mcpx
// runs. It is written by hand, since mcp-go's Tool always has annotations, which
// a client's context would pay for.
func lazyTools(p *config.Profile, alwaysLoad bool) []byte {
	meta := ""
	if alwaysLoad { // clients that defer tools show these from the start; the model does not see it
		meta = `,"_meta":{"anthropic/alwaysLoad":true}`
	}
	b := rawjson.AppendString([]byte(`{"tools":[{"name":"inspect","description":`), directory(p))
	b = append(b, `,"inputSchema":`+inspectSchema+`,"annotations":{"readOnlyHint":true}`+meta+`},`...)
	b = append(b, `{"name":"exec","description":"Call a tool. Inspect it first.","inputSchema":`+execSchema+meta+`}]}`...)
	return b
}

// listTwo answers tools/list in lazy mode: two tools, on one page.
func (s *Server) listTwo(_ context.Context, _ *Client, m jsonrpc.Message) ([]byte, error) {
	if !rawjson.IsNull(rawjson.Get(m.Params, "cursor")) {
		return nil, invalidParams(`"cursor" is not one that mcpx gave`)
	}
	return s.two, nil
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
	p, err := readCall(m.Params)
	if err != nil {
		return nil, err
	}
	name, named := rawjson.View(p.name)
	if !named || name == "" {
		return nil, invalidParams(`"name" must be the name of a tool`)
	}
	if k := rawjson.Kind(p.arguments); k != 0 && k != '{' && k != 'n' {
		return nil, invalidParams(`"arguments" must be an object`)
	}
	switch name {
	case "inspect":
		return s.inspect(ctx, p.arguments)
	case "exec":
		call := executor.ParseExec(p.arguments)
		if call.Twice != "" {
			return errorResult(fmt.Sprintf("%q is given twice", call.Twice)), nil
		}
		call.Request, call.Client, call.Meta, call.Progress = string(m.ID), c, p.meta, c.progress(p.meta)
		return s.exec(ctx, call)
	}
	return nil, s.notListed(name)
}

// callParams are the params of tools/call that mcpx looks at.
type callParams struct{ name, arguments, meta []byte }

// readCall reads the params of tools/call. Each may be given once.
func readCall(params []byte) (p callParams, err error) {
	for key, value := range rawjson.Members(params) {
		var field *[]byte
		switch key {
		case "name":
			field = &p.name
		case "arguments":
			field = &p.arguments
		case "_meta":
			field = &p.meta
		default:
			continue
		}
		if *field != nil {
			return p, givenTwice(key)
		}
		*field = value
	}
	if path := rawjson.DuplicateKey(p.meta); path != nil {
		return p, givenTwice(append([]string{"_meta"}, path...)...)
	}
	return p, nil
}

func (s *Server) inspect(ctx context.Context, arguments []byte) ([]byte, error) {
	if path := rawjson.DuplicateKey(arguments); path != nil {
		return errorResult(fmt.Sprintf("%q is given twice", strings.Join(path, "."))), nil
	}
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

// TwoTools is the result of tools/list in lazy mode, as a model sees it.
func (s *Server) TwoTools() []byte { return lazyTools(s.profile, false) }
