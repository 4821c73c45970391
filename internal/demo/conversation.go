package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
)

// Limits on the memory that a client can use.
const (
	maxMessage  = 1 << 20 // bytes of one message
	maxUnread   = 4 << 20 // bytes written that the client has not read
	maxRequests = 64      // requests at a time
)

// drainTime is how long running requests may take once the input has ended.
const drainTime = 5 * time.Second

// conversation is the connection to one client.
type conversation struct {
	*server
	rpc.BasicHandler
	conn    *rpc.Conn
	out     *rpc.Writer
	running sync.WaitGroup // requests
	elicits atomic.Bool    // the client supports elicitation
}

// serve implements Serve.
func (s *server) serve(ctx context.Context, in io.Reader, out io.Writer) error {
	c := &conversation{server: s, out: rpc.NewWriter(out, maxUnread)}
	c.conn = rpc.NewConn(rpc.ConnOptions{Handler: c, Send: c.out.Push, Prefix: "demo-", Log: zerolog.Nop()})
	ended := make(chan error, 1)
	go func() { ended <- c.run(ctx, in) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return nil
	}
}

// run reads messages until in ends, and returns when all its goroutines have ended.
func (c *conversation) run(ctx context.Context, in io.Reader) error {
	var writing sync.WaitGroup
	writing.Go(func() { _ = c.out.Run() }) // a client that is gone also ends in
	ctx, cancel := context.WithCancel(ctx)
	err := c.read(ctx, in)
	late := time.AfterFunc(drainTime, cancel)
	c.running.Wait()
	late.Stop()
	cancel()
	c.out.Close()
	writing.Wait()
	return err
}

func (c *conversation) read(ctx context.Context, in io.Reader) error {
	lines := rpc.NewReader(in, maxMessage)
	for {
		line, err := lines.Read()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, rpc.ErrTooLong):
			c.send(rpc.AppendError(nil, nil, rpc.Errorf(rpc.CodeInvalidRequest, "message over %d bytes", maxMessage)))
		case err != nil:
			return fmt.Errorf("reading from the client: %w", err)
		default:
			c.accept(ctx, line)
		}
	}
}

// accept handles one message. It does not wait for the request in it.
func (c *conversation) accept(ctx context.Context, line []byte) {
	m, err := rpc.ParseStrict(line)
	wrong, isWrong := errors.AsType[*rpc.Error](err)
	switch {
	case isWrong:
		c.send(rpc.AppendError(nil, m.ID, wrong))
	case !c.conn.Receive(m, rpc.Line{Text: line}) && m.IsRequest():
		c.start(ctx, m)
	}
}

// start runs a request in a goroutine of its own.
func (c *conversation) start(ctx context.Context, m rpc.Message) {
	in, err := c.conn.Begin(ctx, m.ID, maxRequests)
	if err != nil {
		c.send(rpc.AppendError(nil, m.ID, rpc.Errorf(rpc.CodeServer, "more than %d requests at a time; wait for one to finish", maxRequests)))
		return
	}
	c.running.Go(func() {
		defer in.End()
		response := c.respond(in, m)
		if in.Err() == nil { // a canceled request gets no response
			c.send(response)
		}
	})
}

// send writes one message. If that fails, the client is gone, and reading ends too.
func (c *conversation) send(message []byte) { _ = c.out.Push(message) }

// handler handles a request: it returns the result.
type handler func(c *conversation, ctx context.Context, params []byte) (any, *rpc.Error)

// methods has the requests that the server handles.
var methods = map[string]handler{
	"initialize":               (*conversation).initialize,
	"ping":                     func(*conversation, context.Context, []byte) (any, *rpc.Error) { return struct{}{}, nil },
	"tools/list":               list("tools", func(c *conversation) []tool { return c.tools }),
	"tools/call":               (*conversation).callTool,
	"prompts/list":             list("prompts", func(c *conversation) []prompt { return c.prompts }),
	"prompts/get":              (*conversation).getPrompt,
	"resources/list":           list("resources", func(c *conversation) []resource { return c.resources }),
	"resources/templates/list": list("resourceTemplates", func(*conversation) []resource { return nil }),
	"resources/read":           (*conversation).readResource,
}

// list returns the handler of a list.
func list[T any](key string, items func(c *conversation) []T) handler {
	return func(c *conversation, _ context.Context, _ []byte) (any, *rpc.Error) {
		return map[string][]T{key: append([]T{}, items(c)...)}, nil // an empty list, not null
	}
}

// respond returns the response to a request.
func (c *conversation) respond(ctx context.Context, m rpc.Message) []byte {
	handle := methods[m.Method]
	if handle == nil {
		return rpc.AppendError(nil, m.ID, rpc.Errorf(rpc.CodeMethodNotFound, "method not found: %s", m.Method))
	}
	value, err := handle(c, ctx, m.Params)
	if err != nil {
		return rpc.AppendError(nil, m.ID, err)
	}
	return rpc.AppendResult(nil, m.ID, rawjson.Encode(value))
}

// revisions are the protocol revisions a client may choose, the newest first.
var revisions = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

func (c *conversation) initialize(_ context.Context, params []byte) (any, *rpc.Error) {
	elicitation := rawjson.Get(rawjson.Get(params, "capabilities"), "elicitation")
	c.elicits.Store(!rawjson.IsNull(elicitation))
	version, _ := rawjson.String(rawjson.Get(params, "protocolVersion"))
	if !slices.Contains(revisions, version) {
		version = revisions[0]
	}
	capabilities := map[string]any{"tools": struct{}{}}
	if len(c.prompts) > 0 {
		capabilities["prompts"] = struct{}{}
	}
	if len(c.resources) > 0 {
		capabilities["resources"] = struct{}{}
	}
	return map[string]any{
		"protocolVersion": version,
		"capabilities":    capabilities,
		"serverInfo":      map[string]string{"name": c.name, "version": c.version},
		"instructions":    c.instructions,
	}, nil
}

// call is one call of a tool.
type call struct {
	*conversation
	arguments json.RawMessage
	token     []byte // the client's progress token; nil: it requests no progress
}

func (c *conversation) callTool(ctx context.Context, params []byte) (any, *rpc.Error) {
	name, _ := rawjson.String(rawjson.Get(params, "name"))
	at := slices.IndexFunc(c.tools, func(t tool) bool { return t.Name == name })
	if at < 0 {
		names := make([]string, len(c.tools))
		for i, t := range c.tools {
			names[i] = t.Name
		}
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "unknown tool %q; tools: %s", name, strings.Join(names, ", "))
	}
	token := rawjson.Get(rawjson.Get(params, "_meta"), "progressToken")
	if rawjson.IsNull(token) {
		token = nil
	}
	arguments := rawjson.OrObject(rawjson.Get(params, "arguments"))
	r, err := c.tools[at].run(ctx, &call{conversation: c, arguments: arguments, token: token})
	if err != nil { // the model can act on it
		r = text("%v", err)
		r.IsError = true
	}
	return r, nil
}

// with returns the function of a tool whose arguments are read into a struct with
// defaults.
func with[A any](defaults A, run func(ctx context.Context, c *call, a A) (*result, error)) func(context.Context, *call) (*result, error) {
	return func(ctx context.Context, c *call) (*result, error) {
		a := defaults
		err := json.Unmarshal(c.arguments, &a)
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return nil, fmt.Errorf("arguments.%s: expected %s, got %s", strings.ToLower(wrong.Field), jsonType(wrong.Type.Kind()), wrong.Value)
		}
		if err != nil {
			return nil, err
		}
		return run(ctx, c, a)
	}
}

// inRange returns an error if an argument is not between two numbers.
func inRange(argument string, value, least, most int) error {
	if value < least || value > most {
		return fmt.Errorf("arguments.%s: expected %d to %d", argument, least, most)
	}
	return nil
}

// jsonType returns the JSON name of a type.
func jsonType(kind reflect.Kind) string {
	switch kind {
	case reflect.Int:
		return "integer"
	case reflect.Float64:
		return "number"
	case reflect.Slice:
		return "array"
	case reflect.Struct:
		return "object"
	}
	return kind.String()
}

// progress notifies the client of the call's progress, if it requested that.
func (c *call) progress(done, total int, message string) {
	if c.token == nil {
		return
	}
	params := rawjson.AppendMember([]byte("{"), "progressToken", c.token)
	params = rawjson.AppendMember(params, "progress", strconv.AppendInt(nil, int64(done), 10))
	params = rawjson.AppendMember(params, "total", strconv.AppendInt(nil, int64(total), 10))
	params = rawjson.AppendMember(params, "message", rawjson.AppendString(nil, message))
	c.send(rpc.AppendNotification(nil, "notifications/progress", append(params, '}')))
}

// errNobody is returned if the client does not support elicitation.
var errNobody = errors.New("this tool asks a person, and this client cannot; call it from a terminal (mcpx exec) or from a client with elicitation")

// elicit requests a form from the person at the client. content is nil if they decline.
func (c *call) elicit(ctx context.Context, message, schema string) (content []byte, err error) {
	if !c.elicits.Load() {
		return nil, errNobody
	}
	params := rawjson.AppendMember([]byte("{"), "message", rawjson.AppendString(nil, message))
	params = append(rawjson.AppendMember(params, "requestedSchema", []byte(schema)), '}')
	answer, err := c.conn.Call(ctx, rpc.Request{Method: "elicitation/create", Params: params})
	if err != nil {
		return nil, fmt.Errorf("the question was not answered: %s", rpc.Text(err))
	}
	if action, _ := rawjson.String(rawjson.Get(answer, "action")); action != "accept" {
		return nil, nil
	}
	return rawjson.OrObject(rawjson.Get(answer, "content")), nil
}

func (c *conversation) getPrompt(_ context.Context, params []byte) (any, *rpc.Error) {
	name, _ := rawjson.String(rawjson.Get(params, "name"))
	at := slices.IndexFunc(c.prompts, func(p prompt) bool { return p.Name == name })
	if at < 0 {
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "unknown prompt %q", name)
	}
	p := c.prompts[at]
	var arguments map[string]string
	if raw := rawjson.OrObject(rawjson.Get(params, "arguments")); json.Unmarshal(raw, &arguments) != nil {
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "the arguments of a prompt are strings")
	}
	for _, a := range p.Arguments {
		if a.Required && arguments[a.Name] == "" {
			return nil, rpc.Errorf(rpc.CodeInvalidParams, "prompt %q needs the argument %q: %s", name, a.Name, a.Description)
		}
	}
	message := map[string]any{"role": "user", "content": content{Type: "text", Text: p.write(arguments)}}
	return map[string]any{"description": p.Description, "messages": []any{message}}, nil
}

// codeNoResource is MCP's code for a resource that does not exist.
const codeNoResource = -32002

func (c *conversation) readResource(_ context.Context, params []byte) (any, *rpc.Error) {
	uri, _ := rawjson.String(rawjson.Get(params, "uri"))
	at := slices.IndexFunc(c.resources, func(r resource) bool { return r.URI == uri })
	if at < 0 {
		return nil, rpc.Errorf(codeNoResource, "no resource %q; resources/list names those there are", uri)
	}
	r := c.resources[at]
	return map[string]any{"contents": []map[string]string{{"uri": r.URI, "mimeType": r.MIMEType, "text": r.text}}}, nil
}
