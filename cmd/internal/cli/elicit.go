package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"mcpx/cmd/internal/terminal"
	"mcpx/executor/validate"
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
	status *terminal.Status
	out    io.Writer
	mu     sync.Mutex      // one question at a time
	in     *terminal.Lines // nil: there is no person
}

func newCaller(t *invocation, s *talk) *caller {
	c := &caller{server: s.server, status: s.status, out: t.Stderr}
	if ansi.IsTerminal(t.Stdin) && ansi.IsTerminal(t.Stderr) {
		c.in = terminal.NewLines(t.Stdin)
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
	if ctx.Err() != nil { // canceled while another form was shown
		return nil, ctx.Err()
	}
	defer c.status.Hold()()
	c.in.Forget()
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
	fmt.Fprintf(c.out, "%s asks: %s\n", c.server, plain.Text(rawjson.GetString(params, "message")))
	if page := rawjson.GetString(params, "url"); page != "" {
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
	answer, err := c.in.Next(ctx)
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
		answer, err := c.in.Next(ctx)
		if err != nil {
			return nil, err
		}
		value, problem := q.read(ctx, answer)
		if problem == "" {
			return value, nil
		}
		fmt.Fprintf(c.out, "    %s\n", plain.Line(problem))
	}
}

// question is one field of a form.
type question struct {
	parameter
	name     string
	required bool
	choices  []choice            // of the value, or of the elements of an array
	form     *validate.Validator // checks the whole form
}

// choice is a value that the person may choose, by any of its names. The first name is
// shown.
type choice struct {
	value []byte
	names []string
}

// questions returns the fields of a form in the schema's order.
func questions(requested *schema.Schema) (list []question) {
	whole := newParameter(requested)
	required := schema.Strings(whole.node.Get("required"))
	form := validate.New(requested)
	for name, field := range whole.node.Get("properties").Members() {
		q := question{parameter: parameter{requested, field}, name: name, required: slices.Contains(required, name), form: form}
		q.choices = append(choicesOf(q.parameter), choicesOf(q.items())...)
		list = append(list, q)
	}
	return list
}

// choicesOf returns the choices of a value: a boolean, an enum, perhaps with enumNames, or
// alternatives with a const and perhaps a title each. None: any value will do.
func choicesOf(p parameter) (choices []choice) {
	if p.is("boolean") && !p.is("string") {
		return []choice{{[]byte("true"), []string{"y", "yes", "true", "1"}}, {[]byte("false"), []string{"n", "no", "false", "0"}}}
	}
	for _, s := range p.schemas() {
		titles := s.Get("enumNames").Elements()
		for i, value := range s.Get("enum").Elements() {
			title := rawjson.Node{}
			if i < len(titles) {
				title = titles[i]
			}
			choices = append(choices, newChoice(value, title))
		}
		if value := s.Get("const"); !value.IsZero() {
			choices = append(choices, newChoice(value, s.Get("title")))
		}
	}
	return choices
}

func newChoice(value, title rawjson.Node) choice {
	text := bare(value.Raw())
	name, _ := title.String()
	return choice{value.Raw(), []string{cmp.Or(name, text), text}}
}

// prompt returns the line that asks for the value: what it is, then what is expected.
func (q question) prompt() string {
	title, _ := q.node.Get("title").String()
	about, _ := q.node.Get("description").String()
	label := cmp.Or(title, q.name)
	if about != "" {
		label += " – " + about
	}
	expected := q.expected()
	switch fallback := q.node.Get("default").Raw(); {
	case fallback != nil:
		expected = append(expected, "Enter: "+q.shown(fallback))
	case !q.required:
		expected = append(expected, "optional")
	}
	if len(expected) > 0 {
		label += " (" + strings.Join(expected, "; ") + ")"
	}
	return plain.Line(label) + ": "
}

// kinds are what people call some types and formats. A text needs no word.
var kinds = map[string]string{"integer": "whole number", "string": "", "array": "", "uri": "URL", "date-time": "date and time"}

// limits are the keywords that limit a value, and what they say to people.
var limits = []struct{ keyword, text string }{
	{"minimum", "%s or more"}, {"maximum", "%s or less"},
	{"minLength", "%s or more characters"}, {"maxLength", "%s or fewer characters"},
	{"minItems", "%s or more"}, {"maxItems", "%s or fewer"},
}

// expected describes the valid values.
func (q question) expected() (parts []string) {
	format, _ := q.node.Get("format").String()
	kind := cmp.Or(append([]string{format}, q.types()...)...)
	if name, ok := kinds[kind]; ok {
		kind = name
	}
	if len(q.choices) > 0 {
		kind = q.listed()
	}
	if kind != "" {
		parts = append(parts, kind)
	}
	if q.is("array") {
		parts = append(parts, "several, with commas between them")
	}
	for _, limit := range limits {
		if value := q.node.Get(limit.keyword); !value.IsZero() {
			parts = append(parts, fmt.Sprintf(limit.text, value.Raw()))
		}
	}
	return parts
}

// maxChoices bounds how many choices a prompt lists.
const maxChoices = 50

// listed returns the choices as the person types them.
func (q question) listed() string {
	var names []string
	for _, c := range q.choices[:min(len(q.choices), maxChoices)] {
		names = append(names, c.names[0])
	}
	if len(q.choices) > maxChoices {
		names = append(names, "…")
	}
	return strings.Join(names, " | ")
}

// shown returns a value as the person would type it.
func (q question) shown(value []byte) string {
	if rawjson.Kind(value) == '[' {
		var parts []string
		for element := range rawjson.Elements(value) {
			parts = append(parts, q.shown(element))
		}
		return strings.Join(parts, ", ")
	}
	for _, c := range q.choices {
		if bytes.Equal(c.value, value) {
			return c.names[0]
		}
	}
	return bare(value)
}

// read returns the value of an answer, nil if it is left out, or the problem with it.
func (q question) read(ctx context.Context, answer string) (value []byte, problem string) {
	switch {
	case answer == "":
		value = q.node.Get("default").Raw()
	case !q.is("array"):
		value = q.convert(q.parameter, answer)
	case rawjson.Kind([]byte(answer)) == '[' && rawjson.Check([]byte(answer)) == nil:
		value = []byte(answer)
	default:
		value = jsonArray(strings.Split(answer, ","), func(part string) []byte { return q.convert(q.items(), strings.TrimSpace(part)) })
	}
	switch {
	case value == nil && q.required:
		return nil, "an answer is required"
	case value == nil:
		return nil, ""
	}
	return value, q.problem(ctx, value)
}

// convert returns an answer as a value: a choice, or what key=value would be.
func (q question) convert(p parameter, answer string) []byte {
	for _, same := range []func(a, b string) bool{func(a, b string) bool { return a == b }, strings.EqualFold} {
		for _, c := range q.choices {
			if slices.ContainsFunc(c.names, func(name string) bool { return same(name, answer) }) {
				return c.value
			}
		}
	}
	return p.scalar(answer)
}

// problem explains why a value is not valid, "" if it is. Unlike the arguments of a tool, an
// answer must also fit its format.
func (q question) problem(ctx context.Context, value []byte) string {
	verdict := q.form.Check(ctx, append(rawjson.AppendMember([]byte("{"), q.name, value), '}'))
	for _, p := range append(verdict.Problems, verdict.Notes...) {
		switch isNumberOfItems := q.is("array") && len(p.Path) == 1; {
		case len(p.Path) == 0 || p.Path[0] != q.name: // the other fields are asked for later
		case len(q.choices) > 0 && !isNumberOfItems:
			return "expected " + q.listed()
		default:
			return strings.TrimSuffix(p.Text, "; sent as it is")
		}
	}
	return ""
}

// bare returns a value without quotes.
func bare(value []byte) string {
	if text, ok := rawjson.String(value); ok {
		return text
	}
	return string(value)
}
