package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"mcpx/internal/ansi"
	"mcpx/internal/plain"
	"mcpx/internal/policy"
	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
	"mcpx/internal/schema"
)

// caller is the client of a call on the command line. A person at a terminal can fill in
// forms; otherwise the server's requests are refused.
type caller struct {
	server string
	status *status
	out    io.Writer
	in     *bufio.Reader // nil: there is no person

	mu   sync.Mutex             // one question at a time
	next <-chan reading[string] // the line that is being read; nil if none is
}

func newCaller(t *terminal, s *talk) *caller {
	c := &caller{server: s.server, status: s.status, out: t.stderr}
	if ansi.IsTerminal(t.stdin) && ansi.IsTerminal(t.stderr) {
		c.in = bufio.NewReader(t.stdin)
	}
	return c
}

// ID and the other methods with an upper-case name implement upstream.Client.
func (c *caller) ID() string             { return "command line" }
func (c *caller) Owner() string          { return c.ID() }
func (c *caller) Caller() *policy.Caller { return nil }
func (c *caller) Notify(string, []byte)  {}

// Request responds to a request of the server.
func (c *caller) Request(ctx context.Context, method string, params []byte) ([]byte, error) {
	switch {
	case method == "roots/list":
		return []byte(`{"roots":[]}`), nil
	case method == "elicitation/create" && c.in != nil:
		return c.elicit(ctx, params)
	case method == "elicitation/create":
		return nil, rpc.Errorf(rpc.CodeInvalidRequest, "%s: nobody is there to answer; call the tool from a terminal, or use a client that can", method)
	}
	return nil, rpc.Errorf(rpc.CodeMethodNotFound, "%s: mcpx exec cannot answer this; use a client that can", method)
}

// elicit shows a form to the person. Giving up declines it.
func (c *caller) elicit(ctx context.Context, params []byte) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() != nil { // cancelled while another form was shown
		return nil, ctx.Err()
	}
	defer c.status.hold()()
	c.forget()
	content, err := c.form(ctx, params)
	if err != nil {
		fmt.Fprintln(c.out)
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return []byte(`{"action":"decline"}`), nil
	}
	return append(rawjson.AppendMember([]byte(`{"action":"accept"`), "content", content), '}'), nil
}

// errNoAnswer is returned when the person does not answer a question.
var errNoAnswer = errors.New("no answer")

// form asks for every field of a form. For a URL it only asks whether the person has
// visited the page, and returns nil.
func (c *caller) form(ctx context.Context, params []byte) ([]byte, error) {
	fmt.Fprintf(c.out, "%s asks: %s\n", c.server, plain.Text(member(params, "message")))
	if page := member(params, "url"); page != "" {
		fmt.Fprintf(c.out, "  open %s\n", plain.Line(page))
		return nil, c.agree(ctx, "done?")
	}
	requested := schema.New(rawjson.Get(params, "requestedSchema"))
	if newParameter(requested).node.Get("properties").Len() == 0 {
		return []byte("{}"), c.agree(ctx, "agree?")
	}
	fmt.Fprintln(c.out, "  (Ctrl-D declines)")
	content := []byte("{")
	for _, q := range questions(requested) {
		value, err := c.ask(ctx, q)
		if err != nil {
			return nil, err
		}
		content = rawjson.AppendMember(content, q.name, value)
	}
	return append(content, '}'), nil
}

// agree asks a yes-or-no question. Anything but yes is an error.
func (c *caller) agree(ctx context.Context, question string) error {
	fmt.Fprintf(c.out, "  %s [y/N] ", question)
	answer, err := c.line(ctx)
	if err != nil || !strings.HasPrefix(strings.ToLower(answer), "y") {
		return errNoAnswer
	}
	return nil
}

// ask repeats a question until the answer is valid. It returns nil if the field is left
// out, and an error at the end of the input.
func (c *caller) ask(ctx context.Context, q question) ([]byte, error) {
	for {
		fmt.Fprint(c.out, "  "+q.prompt())
		answer, err := c.line(ctx)
		if err != nil {
			return nil, err
		}
		value, problem := q.read(answer)
		if problem == "" {
			return value, nil
		}
		fmt.Fprintf(c.out, "    %s\n", plain.Line(problem))
	}
}

// line returns the next line that the person types, unless ctx ends first. A read cannot
// be cancelled, so that its line goes to the next question.
func (c *caller) line(ctx context.Context) (string, error) {
	if c.next == nil {
		c.next = start(func() (string, error) { return c.in.ReadString('\n') })
	}
	select {
	case l := <-c.next:
		c.next = nil
		return strings.TrimSpace(l.value), l.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// forget drops a line that was typed before the question.
func (c *caller) forget() {
	select {
	case <-c.next:
		c.next = nil
	default:
	}
}
