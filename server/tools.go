package server

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/executor"
	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
)

// callTool handles tools/call. It never waits. A call of 2026-07-28 differs in how it begins and
// how its result is written.
func (s *Server) callTool(in *rpc.Incoming, c *Client, m rpc.Message, done rpc.Done) {
	p, err := readCall(m.Params)
	if err != nil {
		done(rpc.Result{}, err)
		return
	}
	d := readDeclared(p.meta)
	if !d.is2026() {
		s.call(in, c, m, p, done)
		return
	}
	s.go2026(in, c, m, d, func(c *Client, now rpc.Message, done rpc.Done) {
		if c.resumed != nil { // now has no members of the round
			p, _ = readCall(now.Params)
		}
		s.call(in, c, now, p, done)
	}, done)
}

// call makes a call with params that were read.
func (s *Server) call(ctx context.Context, c *Client, m rpc.Message, p callParams, done rpc.Done) {
	name, call, err := s.toolCall(c, m, p)
	switch {
	case err != nil:
		done(rpc.Result{}, err)
	case !s.lazy:
		s.executor.Go(ctx, call, func(r rpc.Result, err error) { done(flatResult(c, r, err)) })
	case name == "exec":
		s.executor.Go(ctx, call, func(r rpc.Result, err error) {
			if err != nil { // in a result, so that the model sees it
				r = rpc.NewResult(errorResult(err.Error()))
			}
			done(r, nil)
		})
	default:
		go func() {
			result, err := s.safely(ctx, (*Server).inspect, c, m)
			done(rpc.NewResult(result), err)
		}()
	}
}

// toolCall returns the call of the executor. In lazy mode the tool is inspect or exec.
func (s *Server) toolCall(c *Client, m rpc.Message, p callParams) (name string, call executor.Call, err error) {
	defer s.recovered(m.Method, &err)
	name, named := rawjson.View(p.name)
	switch {
	case !s.lazy:
		call = executor.Call{FlatName: orNull(p.name), Params: m.Params, Arguments: p.arguments}
	case !named || name == "":
		return "", call, invalidParams(`"name" must be the name of a tool`)
	case !isObjectOrNone(p.arguments):
		return "", call, invalidParams(`"arguments" must be an object`)
	case name == "exec":
		call = executor.ParseExec(p.arguments)
	case name != "inspect":
		return "", call, s.notListed(c, name)
	}
	call.Request, call.Client, call.Meta, call.Progress = string(m.ID), c, p.meta, c.progress(p.meta)
	return name, call, nil
}

// orNull returns a value, or null if it is absent.
func orNull(value []byte) []byte {
	if value == nil {
		return []byte("null")
	}
	return value
}

// isObjectOrNone reports whether a value is an object, null or absent.
func isObjectOrNone(value []byte) bool {
	k := rawjson.Kind(value)
	return k == 0 || k == '{' || k == 'n'
}

// callParams are the params of tools/call that mcpx reads.
type callParams struct{ name, arguments, meta []byte }

// readCall reads the params of tools/call. Each may be given once.
func readCall(params []byte) (p callParams, err error) {
	if kind := rawjson.Kind(params); kind != '{' && !rawjson.IsNull(params) {
		return p, invalidParams(`"params" must be an object`)
	}
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
			return p, duplicateKey(key)
		}
		*field = value
	}
	if path := rawjson.DuplicateKey(p.meta); path != nil {
		return p, duplicateKey(append([]string{"_meta"}, path...)...)
	}
	return p, checkMeta(p.meta)
}

// inspect handles a call of the tool inspect.
func (s *Server) inspect(ctx context.Context, c *Client, m rpc.Message) ([]byte, error) {
	arguments := rawjson.Get(m.Params, "arguments")
	if path := rawjson.DuplicateKey(arguments); path != nil {
		return errorResult(fmt.Sprintf("%q is given twice", strings.Join(path, "."))), nil
	}
	server, _ := rawjson.String(rawjson.Get(arguments, "server_name"))
	tool, _ := rawjson.String(rawjson.Get(arguments, "tool_name"))
	text, err := s.executor.Inspect(ctx, c, server, tool)
	if err != nil {
		return errorResult(err.Error()), nil
	}
	return executor.TextResult(text, s.newServers(c)...), nil
}

// newServers returns a note about the servers that a reload has added since the client
// got its list of tools. Each is mentioned once.
func (s *Server) newServers(c *Client) (note []string) {
	var added []string
	for _, u := range s.registry.For(c).Catalog().Upstreams {
		if !s.configured[u.Name] && c.mention(u.Name) {
			added = append(added, plain.Line(u.Name))
		}
	}
	switch len(added) {
	case 0:
		return nil
	case 1:
		return []string{"new server: " + added[0]}
	}
	return []string{"new servers: " + strings.Join(added, ", ")}
}

// notListed returns the error for a tool that tools/list does not have. If an
// upstream has it, the error says how to call it.
func (s *Server) notListed(c *Client, name string) error {
	e := executor.ToolNotFound(name)
	if server, tool, ok := s.executor.Locate(c, name); ok {
		call := rawjson.AppendString([]byte(`{"server_name":`), server)
		call = rawjson.AppendString(append(call, `,"tool_name":`...), tool)
		e.Message += fmt.Sprintf(`; call it with the tool exec: %s,"arguments":{…}}`, call)
	}
	return e
}

// flatResult returns the result of a tool call in flat mode. Arguments that do not
// fit the tool's schema are an error in the result since 2025-11-25, and an MCP error
// before.
func flatResult(c *Client, r rpc.Result, err error) (rpc.Result, error) {
	var invalid *executor.Invalid
	switch {
	case !errors.As(err, &invalid):
		return r, err
	case c.Revision() >= mcp.ProtocolVersion20251125:
		return rpc.NewResult(errorResult(invalid.Error())), nil
	}
	return rpc.Result{}, invalidArguments(invalid)
}

// invalidArguments returns the MCP error for arguments that do not fit the schema.
func invalidArguments(e *executor.Invalid) *rpc.Error {
	p := e.Problems[0]
	parameter, text := strings.Join(p.Path, "."), p.String()
	if p.Text == "required" {
		text = "Missing required parameter '" + parameter + "'"
	}
	return &rpc.Error{
		Code:    rpc.CodeInvalidParams,
		Message: "Invalid params: " + text,
		Data:    rawjson.With([]byte("{}"), "parameter", rawjson.AppendString(nil, parameter)),
	}
}
