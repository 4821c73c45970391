package executor

import (
	"context"
	"errors"
	"strings"
	"time"

	"mcpx/internal/jsonrpc"
	"mcpx/internal/rawjson"
	"mcpx/registry"
)

// Relay is a request that goes to the upstream that has what it names.
type Relay struct {
	Request  string // the client's id of it, for the log
	Client   registry.Client
	Method   string
	Params   []byte
	Progress func(params []byte)

	settled bool // what is not known by now will not be
}

// route is where a relayed request goes: to whom, with what, and what is made of
// the answer.
type route struct {
	to     *Exposed
	params []byte
	answer func(result []byte) []byte                // nil: the result stays as it came
	own    func(ctx context.Context) ([]byte, error) // how mcpx answers itself; nil: the upstream is asked
}

// relayed is the table of methods that are passed on. Each finds the route of a
// request; the rest is the same for all.
var relayed = map[string]func(e *Executor, r Relay) (route, error){
	"tools/call":            (*Executor).routeTool,
	"prompts/get":           (*Executor).routePrompt,
	"resources/read":        (*Executor).routeRead,
	"resources/subscribe":   (*Executor).routeSubscribe,
	"resources/unsubscribe": (*Executor).routeUnsubscribe,
	"completion/complete":   (*Executor).routeCompletion,
}

// Relay passes a request on and returns its result. Its errors are those of the
// wire: a *jsonrpc.Error with the code and the data that the client hears.
func (e *Executor) Relay(ctx context.Context, r Relay) (result []byte, err error) {
	begin := time.Now()
	var to route
	defer func() {
		event := Event{Client: ownerOf(r.Client), Request: r.Request, Tool: r.Method, Outcome: outcome(ctx, err), Took: time.Since(begin), BytesIn: len(r.Params), BytesOut: len(result)}
		if to.to != nil {
			event.Server, event.Tool = to.to.Upstream.Name, r.Method+" "+to.to.Key
		}
		e.observe(event)
	}()
	find := relayed[r.Method]
	if to, err = find(e, r); errors.As(err, &unknown{}) {
		e.Settle(ctx, routeTime) // it may belong to a server that starts
		r.settled = true
		to, err = find(e, r)
	}
	if owner := e.absent(r); owner != "" && errors.As(err, &unknown{}) {
		if _, reason := e.registry.Ready(ctx, owner); reason != nil {
			return nil, serviceError(owner, reason)
		}
		to, err = find(e, r)
	}
	if err != nil {
		return nil, err
	}
	if to.own != nil {
		result, err = to.own(ctx)
	} else {
		result, err = e.registry.Call(ctx, to.to.Upstream.Name, registry.Request{
			Method: r.Method,
			Params: rawjson.With(to.params, "_meta", nil),
			Meta:   rawjson.OrObject(rawjson.Get(r.Params, "_meta")),
			Client: r.Client, Progress: r.Progress, Begun: begin,
		})
	}
	if err != nil {
		return nil, serviceError(to.to.Upstream.Name, err)
	}
	if to.answer != nil {
		result = to.answer(result)
	}
	return result, nil
}

// routeTime is what a request for something unknown waits for servers that start.
const routeTime = 10 * time.Second

// absent is the server that would have the tool or the prompt of a request by its
// name on the front, but has no session that could tell; "" if there is none.
func (e *Executor) absent(r Relay) (owner string) {
	name, _ := rawjson.String(rawjson.Get(r.Params, "name"))
	for _, u := range e.registry.Catalog().Upstreams {
		theirs := !e.profile.Prefix || strings.HasPrefix(name, strings.Map(plainName, u.Name)+"__")
		if theirs && u.State != registry.Ready && len(u.Name) >= len(owner) {
			owner = u.Name
		}
	}
	return owner
}

// unknown is the error of a request for something that no server has.
type unknown struct{ own *jsonrpc.Error }

func (u unknown) Error() string { return u.own.Error() }
func (u unknown) Unwrap() error { return u.own }

func ownerOf(c registry.Client) string {
	if c == nil {
		return ""
	}
	return c.Owner()
}

// serviceError is an error of an upstream as the client hears it: its own code
// and message, or that of an internal error, and whose it is.
func serviceError(server string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	e := &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: err.Error()}
	var own *jsonrpc.Error
	if errors.As(err, &own) {
		e = &jsonrpc.Error{Code: own.Code, Message: own.Message, Data: own.Data}
	}
	name := rawjson.AppendString(nil, server)
	if len(e.Data) > 0 && rawjson.Kind(e.Data) != '{' {
		e.Data = rawjson.With([]byte("{}"), "data", e.Data)
	}
	e.Data = rawjson.With(e.Data, "service", name)
	return e
}

// invalidParams is the error of a request that cannot be passed on.
func invalidParams(member, value, text string) *jsonrpc.Error {
	return &jsonrpc.Error{
		Code:    jsonrpc.CodeInvalidParams,
		Message: "Invalid params: " + text,
		Data:    rawjson.With([]byte("{}"), member, rawjson.AppendString(nil, value)),
	}
}

// badRequest is the error of a request that is not as MCP has it.
func badRequest(text string) *jsonrpc.Error { return invalidParams("detail", text, text) }

func (e *Executor) routePrompt(r Relay) (route, error) {
	name, ok := rawjson.String(rawjson.Get(r.Params, "name"))
	if !ok || name == "" {
		return route{}, badRequest(`"name" must be the name of a prompt`)
	}
	to := e.Exposure().prompts[name]
	if to == nil {
		return route{}, unknown{invalidParams("prompt", name, "Prompt '"+name+"' not found")}
	}
	arguments := rawjson.Get(r.Params, "arguments")
	if !rawjson.IsNull(arguments) && rawjson.Kind(arguments) != '{' {
		return route{}, badRequest(`"arguments" must be an object`)
	}
	for argument := range rawjson.Elements(rawjson.Get(to.Raw, "arguments")) {
		key, _ := rawjson.String(rawjson.Get(argument, "name"))
		if string(rawjson.Get(argument, "required")) == "true" && rawjson.IsNull(rawjson.Get(arguments, key)) {
			return route{}, invalidParams("argument", key, "Missing required argument '"+key+"'")
		}
	}
	params := rawjson.With(r.Params, "name", rawjson.AppendString(nil, to.Key))
	if rawjson.IsNull(arguments) || isEmpty(arguments) {
		// Servers exist that take {} for arguments that are missing.
		params = rawjson.With(params, "arguments", nil)
	}
	return route{to: to, params: params}, nil
}

// uri finds who has the resource that a request names.
func (e *Executor) uri(r Relay) (*Exposed, error) {
	uri, ok := rawjson.String(rawjson.Get(r.Params, "uri"))
	if !ok || uri == "" {
		return nil, badRequest(`"uri" must be the URI of a resource`)
	}
	to := e.Exposure().resource(uri, r.settled)
	if to == nil {
		return nil, unknown{&jsonrpc.Error{
			Code:    CodeResourceNotFound,
			Message: "Resource not found: " + uri,
			Data:    rawjson.With([]byte("{}"), "uri", rawjson.AppendString(nil, uri)),
		}}
	}
	return to, nil
}

// CodeResourceNotFound is MCP's, up to the revision 2025-11-25.
const CodeResourceNotFound = -32002

func (e *Executor) routeRead(r Relay) (route, error) {
	to, err := e.uri(r)
	if err != nil {
		return route{}, err
	}
	found := route{to: to, params: rawjson.With(r.Params, "uri", rawjson.AppendString(nil, to.Key))}
	if to.Name != to.Key {
		found.answer = func(result []byte) []byte { return renameContents(result, to.Key, to.Name) }
	}
	return found, nil
}

// renameContents gives the contents of a resource the URI they were read by.
func renameContents(result []byte, key, name string) []byte {
	contents := []byte("[")
	for content := range rawjson.Elements(rawjson.Get(result, "contents")) {
		if len(contents) > 1 {
			contents = append(contents, ',')
		}
		if uri, _ := rawjson.String(rawjson.Get(content, "uri")); uri == key {
			content = rawjson.With(content, "uri", rawjson.AppendString(nil, name))
		}
		contents = append(contents, content...)
	}
	return rawjson.With(result, "contents", append(contents, ']'))
}

func (e *Executor) routeSubscribe(r Relay) (route, error) {
	to, err := e.uri(r)
	if err != nil {
		return route{}, err
	}
	return route{to: to, own: func(ctx context.Context) ([]byte, error) {
		return []byte("{}"), e.registry.Subscribe(ctx, r.Client, to.Upstream.Name, to.Key, to.Name)
	}}, nil
}

func (e *Executor) routeUnsubscribe(r Relay) (route, error) {
	to, err := e.uri(r)
	if err != nil {
		return route{}, err
	}
	return route{to: to, own: func(ctx context.Context) ([]byte, error) {
		return []byte("{}"), e.registry.Unsubscribe(ctx, r.Client, to.Upstream.Name, to.Key)
	}}, nil
}

func (e *Executor) routeCompletion(r Relay) (route, error) {
	ref := rawjson.Get(r.Params, "ref")
	kind, _ := rawjson.String(rawjson.Get(ref, "type"))
	var to *Exposed
	var member, name string
	switch kind {
	case "ref/prompt":
		member = "name"
		name, _ = rawjson.String(rawjson.Get(ref, member))
		to = e.Exposure().prompts[name]
	case "ref/resource":
		member = "uri"
		name, _ = rawjson.String(rawjson.Get(ref, member))
		to = e.Exposure().template(name, r.settled)
	default:
		return route{}, badRequest(`"ref.type" must be "ref/prompt" or "ref/resource"`)
	}
	if to == nil {
		return route{}, unknown{invalidParams("ref", name, "there is no "+kind+" '"+name+"' to complete")}
	}
	ref = rawjson.With(ref, member, rawjson.AppendString(nil, to.Key))
	if !to.Upstream.Has("completions") { // asked, it could only answer with an error
		return route{to: to, own: func(context.Context) ([]byte, error) { return []byte(`{"completion":{"values":[]}}`), nil }}, nil
	}
	return route{to: to, params: rawjson.With(r.Params, "ref", ref)}, nil
}

// routeTool is flat mode: a tool by its name on the front.
func (e *Executor) routeTool(r Relay) (route, error) {
	name, ok := rawjson.String(rawjson.Get(r.Params, "name"))
	if !ok || name == "" {
		return route{}, badRequest(`"name" must be the name of a tool`)
	}
	if a := rawjson.Get(r.Params, "arguments"); !rawjson.IsNull(a) && rawjson.Kind(a) != '{' {
		return route{}, badRequest(`"arguments" must be an object`)
	}
	to := e.Exposure().tools[name]
	if to == nil {
		return route{}, unknown{ToolNotFound(name)}
	}
	t := to.Upstream.Tool(to.Key)
	arguments, err := e.arguments(Call{Arguments: rawjson.Get(r.Params, "arguments")}, to.Upstream, t)
	if err != nil {
		return route{}, err
	}
	if to.Upstream == e.builtin.flat {
		return route{to: to, own: func(ctx context.Context) ([]byte, error) {
			return e.builtin.call(ctx, Call{Client: r.Client, Tool: to.Key}, arguments)
		}}, nil
	}
	params := rawjson.With(r.Params, "name", rawjson.AppendString(nil, to.Key))
	return route{to: to, params: rawjson.With(params, "arguments", arguments)}, nil
}

// ToolNotFound is the error of a call to a tool that is not listed.
func ToolNotFound(name string) *jsonrpc.Error {
	return &jsonrpc.Error{
		Code:    jsonrpc.CodeMethodNotFound,
		Message: "Tool '" + name + "' not found",
		Data:    rawjson.With([]byte("{}"), "tool", rawjson.AppendString(nil, name)),
	}
}
