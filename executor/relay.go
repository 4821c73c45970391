package executor

import (
	"context"
	"errors"
	"strings"
	"time"

	"mcpx/executor/listing"
	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
	"mcpx/registry/lists"
	"mcpx/registry/live"
	"mcpx/registry/upstream"
)

// Relay is a request to forward to the upstream that has the prompt or resource in it.
type Relay struct {
	Request  string // the client's ID of the request, for the log
	Client   upstream.Client
	Method   string
	Params   []byte
	Progress func(params []byte)

	isSettled bool // mcpx has waited for servers in their first start
}

// route is the destination of a request.
type route struct {
	to     *listing.Exposed
	params []byte
	rename func(result []byte) []byte                // changes names in the result; may be nil
	local  func(ctx context.Context) ([]byte, error) // replaces the request to the upstream; may be nil
}

// relayed is the table of forwarded methods, with the function that finds the route of a
// request.
var relayed = map[string]func(e *Executor, r Relay) (route, error){
	"prompts/get":           (*Executor).routePrompt,
	"resources/read":        (*Executor).routeRead,
	"resources/subscribe":   (*Executor).routeSubscription,
	"resources/unsubscribe": (*Executor).routeSubscription,
	"completion/complete":   (*Executor).routeCompletion,
}

// Relay forwards a request and returns its result. Its errors are a *rpc.Error
// with the code and the data that the client gets.
func (e *Executor) Relay(ctx context.Context, r Relay) (result []byte, err error) {
	begin := time.Now()
	var to route
	defer func() {
		event := Event{Client: ownerOf(r.Client), Request: r.Request, Tool: r.Method, Outcome: outcome(ctx, err), Took: time.Since(begin), BytesIn: len(r.Params), BytesOut: len(result)}
		event.Method, event.Arguments, event.Caller = r.Method, r.Params, upstream.CallerOf(r.Client).Name
		event.Program = upstream.ProgramOf(r.Client)
		if to.to != nil {
			event.Server, event.Tool = to.to.Upstream.Name, r.Method+" "+to.to.Key
		}
		e.observe(event)
	}()
	if to, err = e.findRoute(ctx, r, relayed[r.Method]); err != nil {
		return nil, err
	}
	if seen, u := e.registry.For(r.Client), to.to.Upstream; u.IsStrict() && seen.AwaitsLists(u) {
		if _, err = seen.Relisted(ctx, u.Name); err != nil {
			return nil, serviceError(to.to.Upstream.Name, err)
		}
		if to, err = e.findRoute(ctx, r, relayed[r.Method]); err != nil {
			return nil, err
		}
	}
	if len(e.gates) > 0 {
		a := &Attempt{Client: r.Client, Server: to.to.Upstream.Name, Method: r.Method, Name: to.to.Key, Arguments: to.params}
		if _, err = e.pass(ctx, a, 0, true); err != nil {
			return nil, serviceError(to.to.Upstream.Name, err)
		}
	}
	if to.local != nil {
		result, err = to.local(ctx)
	} else {
		result, err = e.registry.Call(ctx, to.to.Upstream.Name, upstream.Request{
			Method: r.Method,
			Params: rawjson.With(to.params, "_meta", nil),
			Meta:   rawjson.OrObject(rawjson.Get(r.Params, "_meta")),
			Client: r.Client, Progress: r.Progress, Begun: begin,
		})
	}
	if err != nil {
		return nil, serviceError(to.to.Upstream.Name, err)
	}
	if to.rename != nil {
		result = to.rename(result)
	}
	return result, nil
}

// findRoute finds the destination of a request. If no server is known to have the item,
// it waits for servers that start.
func (e *Executor) findRoute(ctx context.Context, r Relay, find func(e *Executor, r Relay) (route, error)) (to route, err error) {
	if to, err = find(e, r); is[unknown](err) {
		e.Settle(ctx, r.Client, routeTime)
		r.isSettled = true
		to, err = find(e, r)
	}
	if owner := e.absent(r); owner != "" && is[unknown](err) {
		if _, reason := e.registry.For(r.Client).Ready(ctx, owner); reason != nil {
			return route{}, serviceError(owner, reason)
		}
		to, err = find(e, r)
	}
	return to, err
}

// routeTime is how long a request for an unknown item waits for servers that start.
const routeTime = 10 * time.Second

// absent returns the server that a request is for, judged by the prefix of the name in
// it, if that server is not ready; "" if there is none.
func (e *Executor) absent(r Relay) (owner string) {
	name := text(r.Params, "name")
	for _, u := range e.registry.For(r.Client).Catalog().Upstreams {
		matches := !e.settings.Load().profile.Prefix || strings.HasPrefix(name, listing.Prefix(u.Name))
		if matches && u.State != live.Ready && len(u.Name) >= len(owner) {
			owner = u.Name
		}
	}
	return owner
}

// unknown is returned for an item that no server has.
type unknown struct{ own *rpc.Error }

func (u unknown) Error() string { return u.own.Error() }
func (u unknown) Unwrap() error { return u.own }

// ownerOf returns the owner of a client; "" for a nil client.
func ownerOf(c upstream.Client) string {
	if c == nil {
		return ""
	}
	return c.Owner()
}

// serviceError returns the error that the client gets for an error of an upstream: with
// the upstream's code and message, or those of an internal error, and the server's name.
func serviceError(server string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	e := &rpc.Error{Code: rpc.CodeInternal, Message: err.Error()}
	if own, ok := errors.AsType[*rpc.Error](err); ok {
		e = &rpc.Error{Code: own.Code, Message: own.Message, Data: own.Data}
	}
	if len(e.Data) > 0 && rawjson.Kind(e.Data) != '{' {
		e.Data = rawjson.With(nil, "data", e.Data)
	}
	e.Data = rawjson.With(e.Data, "service", rawjson.AppendString(nil, server))
	return e
}

// invalidParams returns the error for a request that cannot be forwarded.
func invalidParams(member, value, text string) *rpc.Error {
	return &rpc.Error{Code: rpc.CodeInvalidParams, Message: "Invalid params: " + text, Data: errorData(member, value)}
}

// errorData returns the data of an error: an object with one string.
func errorData(member, value string) []byte {
	return rawjson.With(nil, member, rawjson.AppendString(nil, value))
}

// badRequest returns the error for a request that does not follow MCP.
func badRequest(text string) *rpc.Error { return invalidParams("detail", text, text) }

func (e *Executor) routePrompt(r Relay) (route, error) {
	name := text(r.Params, "name")
	if name == "" {
		return route{}, badRequest(`"name" must be the name of a prompt`)
	}
	to := e.Exposure(r.Client).Prompt(name)
	if to == nil {
		return route{}, unknown{invalidParams("prompt", name, "Prompt '"+name+"' not found")}
	}
	arguments := rawjson.Get(r.Params, "arguments")
	if !rawjson.IsNull(arguments) && rawjson.Kind(arguments) != '{' {
		return route{}, badRequest(`"arguments" must be an object`)
	}
	for argument := range rawjson.Elements(rawjson.Get(to.Raw, "arguments")) {
		key := text(argument, "name")
		if string(rawjson.Get(argument, "required")) == "true" && rawjson.IsNull(rawjson.Get(arguments, key)) {
			return route{}, invalidParams("argument", key, "Missing required argument '"+key+"'")
		}
	}
	params := rawjson.With(r.Params, "name", rawjson.AppendString(nil, to.Key))
	if rawjson.IsNull(arguments) || isEmpty(arguments) {
		// Some servers treat {} as missing arguments.
		params = rawjson.With(params, "arguments", nil)
	}
	return route{to: to, params: params}, nil
}

// findResource returns the resource whose URI is in a request.
func (e *Executor) findResource(r Relay) (*listing.Exposed, error) {
	uri := text(r.Params, "uri")
	if uri == "" {
		return nil, badRequest(`"uri" must be the URI of a resource`)
	}
	x := e.Exposure(r.Client)
	to, isFinal := x.Resource(uri)
	if to == nil || !isFinal && !r.isSettled {
		return nil, unknown{&rpc.Error{Code: CodeResourceNotFound, Message: "Resource not found: " + uri, Data: errorData("uri", uri)}}
	}
	if why := x.WhyHidden(to); why != "" {
		return nil, invalidParams("uri", uri, "Resource '"+uri+"' cannot be read: "+why)
	}
	return to, nil
}

// CodeResourceNotFound is MCP's code for an unknown resource up to 2025-11-25.
const CodeResourceNotFound = -32002

func (e *Executor) routeRead(r Relay) (route, error) {
	to, err := e.findResource(r)
	if err != nil {
		return route{}, err
	}
	found := route{to: to, params: rawjson.With(r.Params, "uri", rawjson.AppendString(nil, to.Key))}
	if to.Name != to.Key {
		found.rename = func(result []byte) []byte { return renameContents(result, to.Key, to.Name) }
	}
	return found, nil
}

// renameContents replaces the URI key in the contents of a resource by name.
func renameContents(result []byte, key, name string) []byte {
	contents := []byte("[")
	for content := range rawjson.Elements(rawjson.Get(result, "contents")) {
		if text(content, "uri") == key {
			content = rawjson.With(content, "uri", rawjson.AppendString(nil, name))
		}
		contents = rawjson.AppendElement(contents, content)
	}
	return rawjson.With(result, "contents", append(contents, ']'))
}

func (e *Executor) routeSubscription(r Relay) (route, error) {
	to, err := e.findResource(r)
	return route{to: to, local: func(ctx context.Context) ([]byte, error) {
		if r.Method == "resources/unsubscribe" {
			return []byte("{}"), e.registry.Unsubscribe(ctx, r.Client, to.Upstream.Name, to.Key)
		}
		return []byte("{}"), e.registry.Subscribe(ctx, r.Client, to.Upstream.Name, to.Key, to.Name)
	}}, err
}

func (e *Executor) routeCompletion(r Relay) (route, error) {
	ref := rawjson.Get(r.Params, "ref")
	var to *listing.Exposed
	var member string
	kind, isFinal := text(ref, "type"), true
	switch kind {
	case "ref/prompt":
		member, to = "name", e.Exposure(r.Client).Prompt(text(ref, "name"))
	case "ref/resource":
		member = "uri"
		to, isFinal = e.Exposure(r.Client).Template(text(ref, "uri"))
	default:
		return route{}, badRequest(`"ref.type" must be "ref/prompt" or "ref/resource"`)
	}
	if to == nil || !isFinal && !r.isSettled {
		name := text(ref, member)
		return route{}, unknown{invalidParams("ref", name, "there is no "+kind+" '"+name+"' to complete")}
	}
	ref = rawjson.With(ref, member, rawjson.AppendString(nil, to.Key))
	if !to.Upstream.Has("completions") { // the upstream would return an error
		return route{to: to, local: func(context.Context) ([]byte, error) { return []byte(`{"completion":{"values":[]}}`), nil }}, nil
	}
	return route{to: to, params: rawjson.With(r.Params, "ref", ref)}, nil
}

// findFlat finds the upstream and the tool of a flat call, whose tool has its name on
// the front.
func (e *Executor) findFlat(ctx context.Context, c *Call) (*live.Upstream, *lists.Tool, error) {
	c.Server, c.Tool = "", "" // an error about the name is not of a server
	if a := c.Arguments; !rawjson.IsNull(a) && rawjson.Kind(a) != '{' {
		return nil, nil, badRequest(`"arguments" must be an object`)
	}
	name := Relay{Client: c.Client, Params: rawjson.With(nil, "name", c.FlatName)}
	to, err := e.findRoute(ctx, name, (*Executor).routeTool)
	if seen := e.registry.For(c.Client); err == nil && seen.AwaitsLists(to.to.Upstream) {
		if _, err := seen.Relisted(ctx, to.to.Upstream.Name); err != nil {
			c.Server = to.to.Upstream.Name
			return nil, nil, err
		}
		to, err = e.findRoute(ctx, name, (*Executor).routeTool)
	}
	if err != nil {
		return nil, nil, err
	}
	return to.to.Upstream, to.to.Upstream.Tool(to.to.Key), nil
}

func (e *Executor) routeTool(r Relay) (route, error) {
	name := text(r.Params, "name")
	if name == "" {
		return route{}, badRequest(`"name" must be the name of a tool`)
	}
	to := e.Exposure(r.Client).Tool(name)
	if to == nil {
		return route{}, unknown{ToolNotFound(name)}
	}
	return route{to: to}, nil
}

// flatError returns the error that the client gets for a flat call. Errors about the call
// itself, which no upstream has received, stay as they are.
func flatError(server string, err error) error {
	if server == "" || is[*Invalid](err) {
		return err
	}
	return serviceError(server, err)
}

// ToolNotFound returns the error for a tool that is not listed.
func ToolNotFound(name string) *rpc.Error {
	return &rpc.Error{Code: rpc.CodeMethodNotFound, Message: "Tool '" + name + "' not found", Data: errorData("tool", name)}
}
