package demo

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"image/color"
	"image/png"
	"reflect"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
)

func TestShowCalls(t *testing.T) {
	c := connect(t, "show", Options{})
	for _, row := range []struct {
		name, tool, arguments, want string
		isError                     bool
	}{
		{"count", "count_down", `{"from":3,"pause_ms":0}`, "Counted down from 3 to 0.", false},
		{"count too far", "count_down", `{"from":101}`, "arguments.from: expected 1 to 100", true},
		{"count too slowly", "count_down", `{"pause_ms":1001}`, "arguments.pause_ms: expected 0 to 1000", true},
		{"one bar", "draw_bars", `{"values":[0]}`, "1 bar of 0", false},
		{"no bars", "draw_bars", `{}`, "arguments.values: expected 1 to 50 numbers, got 0", true},
		{"negative bar", "draw_bars", `{"values":[1,-1]}`, "arguments.values[1]: expected a number from 0 on", true},
		{"no numbers", "draw_bars", `{"values":"x"}`, "arguments.values: expected array, got string", true},
		{"no text", "measure_text", `{}`, `{"characters":0,"words":0,"lines":0,"longest_word":""}`, false},
		{"no person", "order_coffee", `{}`, errNobody.Error(), true},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, isError := callTool(t, c, row.tool, row.arguments)
			if got != row.want || isError != row.isError {
				t.Errorf("got  %s, error %v\nwant %s, error %v", got, isError, row.want, row.isError)
			}
		})
	}
}

// TestProgress: progress comes before the result, and only on request.
func TestProgress(t *testing.T) {
	const params = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count_down","arguments":{"from":2,"pause_ms":0}`
	const result = `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"Counted down from 2 to 0."}]}}` + "\n"
	for _, row := range []struct{ name, line, want string }{
		{"wanted", params + `,"_meta":{"progressToken":"p"}}}`, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":0,"total":2,"message":"2…"}}
{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1,"total":2,"message":"1…"}}
{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":2,"total":2,"message":"0"}}
` + result},
		{"not wanted", params + `}}`, result},
	} {
		t.Run(row.name, func(t *testing.T) {
			var out bytes.Buffer
			if err := Serve(t.Context(), "show", Options{}, strings.NewReader(row.line), &out); err != nil || out.String() != row.want {
				t.Errorf("%v\ngot\n%s\nwant\n%s", err, out.String(), row.want)
			}
		})
	}
}

func TestImage(t *testing.T) {
	c := connect(t, "show", Options{})
	r, err := c.CallTool(t.Context(), request("draw_bars", `{"values":[1,2,0]}`))
	if err != nil || len(r.Content) != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	item, ok := r.Content[1].(mcp.ImageContent)
	if !ok || item.MIMEType != "image/png" {
		t.Fatalf("%+v", r.Content[1])
	}
	data, err := base64.StdEncoding.DecodeString(item.Data)
	if err != nil {
		t.Fatal(err)
	}
	picture, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	white := color.RGBAModel.Convert(color.White)
	bottom := chartHeight - barGap - 1
	for _, row := range []struct {
		name string
		x, y int
		bar  bool
	}{
		{"foot of the first", barGap, bottom, true},
		{"half of the height", barGap, bottom - 80, false},
		{"top of the second", 2*barGap + barWidth, barGap, true},
		{"foot of the third", 3*barGap + 2*barWidth, bottom, true},
		{"over the third", 3*barGap + 2*barWidth, bottom - 1, false},
		{"margin", 0, bottom, false},
	} {
		if got := color.RGBAModel.Convert(picture.At(row.x, row.y)) != white; got != row.bar {
			t.Errorf("%s: bar %v, want %v", row.name, got, row.bar)
		}
	}
}

func TestStructured(t *testing.T) {
	c := connect(t, "show", Options{})
	r, err := c.CallTool(t.Context(), request("measure_text", `{"text":"one two\nthree größer"}`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"characters": 20.0, "words": 4.0, "lines": 2.0, "longest_word": "größer"}
	if !reflect.DeepEqual(r.StructuredContent, want) {
		t.Errorf("got %v, want %v", r.StructuredContent, want)
	}
}

// person responds to the elicitation of a server.
type person struct {
	answer *mcp.ElicitationResult
	err    error
	asked  string
}

func (p *person) Elicit(_ context.Context, r mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	p.asked = r.Params.Message
	return p.answer, p.err
}

func TestElicitation(t *testing.T) {
	answer := func(action mcp.ElicitationResponseAction, content any) *mcp.ElicitationResult {
		return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{Action: action, Content: content}}
	}
	for _, row := range []struct {
		name    string
		person  person
		want    string
		isError bool
	}{
		{"accept", person{answer: answer("accept", map[string]any{"drink": "latte", "size": "small", "sugar": 2})},
			"One small latte, sugar: 2. (A demo: nothing was ordered.)", false},
		{"defaults", person{answer: answer("accept", map[string]any{"drink": "espresso"})},
			"One medium espresso, sugar: 0. (A demo: nothing was ordered.)", false},
		{"decline", person{answer: answer("decline", nil)}, "No coffee, then.", false},
		{"cancel", person{answer: answer("cancel", nil)}, "No coffee, then.", false},
		{"no drink", person{answer: answer("accept", map[string]any{})}, "the client's answer does not fit the form; it needs a drink", true},
		{"error", person{err: errors.New("out of order")}, "the question was not answered: out of order", true},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := connect(t, "show", Options{}, client.WithElicitationHandler(&row.person))
			got, isError := callTool(t, c, "order_coffee", `{}`)
			if got != row.want || isError != row.isError || row.person.asked != "Which coffee would you like?" {
				t.Errorf("asked %q\ngot  %q, error %v\nwant %q, error %v", row.person.asked, got, isError, row.want, row.isError)
			}
		})
	}
}

func TestPromptAndResource(t *testing.T) {
	c := connect(t, "show", Options{})
	prompts, err := c.ListPrompts(t.Context(), mcp.ListPromptsRequest{})
	if err != nil || len(prompts.Prompts) != 1 || !prompts.Prompts[0].Arguments[0].Required {
		t.Fatalf("%+v, %v", prompts, err)
	}
	var get mcp.GetPromptRequest
	get.Params.Name, get.Params.Arguments = "use_tools", map[string]string{"task": "count to 3", "language": "French"}
	prompt, err := c.GetPrompt(t.Context(), get)
	if err != nil || len(prompt.Messages) != 1 {
		t.Fatalf("%+v, %v", prompt, err)
	}
	text, _ := prompt.Messages[0].Content.(mcp.TextContent)
	if !strings.HasPrefix(text.Text, "Do this task with the tools you have: count to 3\n") || !strings.HasSuffix(text.Text, "Answer in French.") {
		t.Errorf("%+v", prompt.Messages[0])
	}
	resources, err := c.ListResources(t.Context(), mcp.ListResourcesRequest{})
	if err != nil || len(resources.Resources) != 1 {
		t.Fatalf("%+v, %v", resources, err)
	}
	var read mcp.ReadResourceRequest
	read.Params.URI = resources.Resources[0].URI
	contents, err := c.ReadResource(t.Context(), read)
	if err != nil || len(contents.Contents) != 1 || contents.Contents[0].(mcp.TextResourceContents).Text != guide {
		t.Errorf("%+v, %v", contents, err)
	}
	if templates, err := c.ListResourceTemplates(t.Context(), mcp.ListResourceTemplatesRequest{}); err != nil || len(templates.ResourceTemplates) != 0 {
		t.Errorf("%+v, %v", templates, err)
	}
}
