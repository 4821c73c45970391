package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"mcpx/internal/jsonrpc"
	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
)

// caller is who makes a call on the command line. A person at a terminal can be
// asked to fill in a form; nobody else can be asked anything.
type caller struct {
	server string
	status *status
	out    io.Writer
	in     *bufio.Reader // nil: nobody is there to answer

	mu   sync.Mutex    // one question at a time
	next chan lineRead // what the person writes, if it is being read
}

type lineRead struct {
	text string
	err  error
}

func newCaller(t *terminal, s *talk) *caller {
	c := &caller{server: s.server, status: s.status, out: t.stderr}
	if looksAt(t.stdin) && looksAt(t.stderr) {
		c.in = bufio.NewReader(t.stdin)
	}
	return c
}

// ID implements registry.Client.
func (c *caller) ID() string { return "command line" }

// Owner implements registry.Client.
func (c *caller) Owner() string { return c.ID() }

// Notify implements registry.Client.
func (c *caller) Notify(string, []byte) {}

// Request implements registry.Client.
func (c *caller) Request(ctx context.Context, method string, params []byte) ([]byte, error) {
	switch {
	case method == "roots/list":
		return []byte(`{"roots":[]}`), nil
	case method == "elicitation/create" && c.in != nil:
		return c.elicit(ctx, params)
	case method == "elicitation/create":
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "%s: nobody is there to answer; call the tool from a terminal, or use a client that can", method)
	}
	return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "%s: mcpx exec cannot answer this; use a client that can", method)
}

// elicit asks the person. Who gives up declines.
func (c *caller) elicit(ctx context.Context, params []byte) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() != nil { // while another question was
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

// errNoAnswer is for a question that the person does not answer.
var errNoAnswer = errors.New("no answer")

// form asks for every field of a form, or for leave to go on once a page was
// visited. The content of the latter is nil.
func (c *caller) form(ctx context.Context, params []byte) ([]byte, error) {
	fmt.Fprintf(c.out, "%s asks: %s\n", c.server, plain.Text(member(params, "message")))
	if page := member(params, "url"); page != "" {
		fmt.Fprintf(c.out, "  open %s\n", plain.Line(page))
		return nil, c.agree(ctx, "done?")
	}
	schema := rawjson.Get(params, "requestedSchema")
	properties := rawjson.Get(schema, "properties")
	if rawjson.IsNull(properties) || string(rawjson.Compact(properties)) == "{}" {
		return []byte("{}"), c.agree(ctx, "agree?")
	}
	fmt.Fprintln(c.out, "  (Ctrl-D declines)")
	var required []string
	for name := range rawjson.Elements(rawjson.Get(schema, "required")) {
		text, _ := rawjson.String(name)
		required = append(required, text)
	}
	content := []byte("{")
	for name, field := range rawjson.Members(properties) {
		value, err := c.field(ctx, name, parameter{schema, field}, slices.Contains(required, name))
		if err != nil {
			return nil, err
		}
		content = rawjson.AppendMember(content, name, value)
	}
	return append(content, '}'), nil
}

// agree asks for a yes.
func (c *caller) agree(ctx context.Context, question string) error {
	fmt.Fprintf(c.out, "  %s [y/N] ", question)
	answer, err := c.line(ctx)
	if err != nil || !strings.HasPrefix(strings.ToLower(answer), "y") {
		return errNoAnswer
	}
	return nil
}

// field asks for one value until there is one, if there must be; nil if there is
// none.
func (c *caller) field(ctx context.Context, name string, p parameter, required bool) ([]byte, error) {
	fallback := rawjson.Get(p.schema, "default")
	for {
		fmt.Fprintf(c.out, "  %s%s: ", plain.Line(name), c.hint(p, fallback, required))
		answer, err := c.line(ctx)
		switch {
		case err != nil:
			return nil, err
		case answer != "" && p.is("boolean") && !p.is("string"):
			return truth(answer), nil
		case answer != "" && p.is("array"):
			list := []byte("[")
			for i, part := range strings.Split(answer, ",") {
				if i > 0 {
					list = append(list, ',')
				}
				list = append(list, p.items().scalar(strings.TrimSpace(part))...)
			}
			return append(list, ']'), nil
		case answer != "":
			return p.scalar(answer), nil
		case fallback != nil || !required:
			return fallback, nil
		}
	}
}

// hint says what a field takes.
func (c *caller) hint(p parameter, fallback []byte, required bool) string {
	var parts []string
	if text := member(p.schema, "description"); text != "" {
		parts = append(parts, text)
	}
	choices := rawjson.Get(p.schema, "enum")
	switch types := p.types(); {
	case choices != nil:
		var words []string
		for choice := range rawjson.Elements(choices) {
			words = append(words, bare(choice))
		}
		parts = append(parts, strings.Join(words, " | "))
	case p.is("boolean"):
		parts = append(parts, "y/n")
	case p.is("array"):
		parts = append(parts, "several parted by commas")
	case len(types) > 0 && types[0] != "string":
		parts = append(parts, types[0])
	}
	if !required {
		parts = append(parts, "optional")
	}
	text := ""
	if len(parts) > 0 {
		text = " (" + strings.Join(parts, "; ") + ")"
	}
	if fallback != nil {
		text += " [" + bare(fallback) + "]"
	}
	return plain.Line(text)
}

// bare is a value without quotes.
func bare(value []byte) string {
	if text, ok := rawjson.String(value); ok {
		return text
	}
	return string(value)
}

// truth is a boolean as people write it. What it is not stays text.
func truth(answer string) []byte {
	switch strings.ToLower(answer) {
	case "y", "yes", "true", "1":
		return []byte("true")
	case "n", "no", "false", "0":
		return []byte("false")
	}
	return rawjson.AppendString(nil, answer)
}

// line is what the person writes next, unless the question is withdrawn first. A
// read cannot be ended: the next question has what comes of it.
func (c *caller) line(ctx context.Context) (string, error) {
	if c.next == nil {
		next := make(chan lineRead, 1)
		c.next = next
		go func() {
			text, err := c.in.ReadString('\n')
			next <- lineRead{text, err}
		}()
	}
	select {
	case l := <-c.next:
		c.next = nil
		return strings.TrimSpace(l.text), l.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// forget drops what was written before the question was asked.
func (c *caller) forget() {
	select {
	case <-c.next:
		c.next = nil
	default:
	}
}
