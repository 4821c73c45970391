package demo

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// connect starts a server and returns a client of mcp-go that is connected to it.
// The test fails if the server does not end with its input.
func connect(t *testing.T, name string, o Options, options ...client.ClientOption) *client.Client {
	t.Helper()
	serverIn, clientOut := io.Pipe()
	clientIn, serverOut := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(context.Background(), name, o, serverIn, serverOut)
		_ = serverOut.Close()
	}()
	c := client.NewClient(transport.NewIO(clientIn, clientOut, io.NopCloser(strings.NewReader(""))), options...)
	t.Cleanup(func() {
		_ = clientOut.Close()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
		_ = c.Close()
	})
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	hello, err := c.Initialize(t.Context(), mcp.InitializeRequest{Params: mcp.InitializeParams{ProtocolVersion: mcp.LATEST_PROTOCOL_VERSION}})
	if err != nil {
		t.Fatal(err)
	}
	if hello.ServerInfo.Name != "mcpx-demo-"+name || hello.ServerInfo.Version != o.Version || hello.Instructions == "" {
		t.Errorf("initialize: %+v", hello)
	}
	return c
}

// callTool calls a tool, and returns its texts and whether it is an error.
func callTool(t *testing.T, c *client.Client, name, arguments string) (texts string, isError bool) {
	t.Helper()
	r, err := c.CallTool(t.Context(), request(name, arguments))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var b strings.Builder
	for _, item := range r.Content {
		if text, ok := item.(mcp.TextContent); ok {
			b.WriteString(text.Text + "\n")
		}
	}
	return strings.TrimSuffix(b.String(), "\n"), r.IsError
}

func request(name, arguments string) (r mcp.CallToolRequest) {
	r.Params.Name, r.Params.Arguments = name, json.RawMessage(arguments)
	return r
}

// TestTools: every tool has a description, is marked as read-only, and allows no unknown
// arguments.
func TestTools(t *testing.T) {
	want := map[string][]string{
		"time":  {"get_current_time", "convert_time", "time_between"},
		"files": {"list_directory", "read_file"},
		"show":  {"count_down", "draw_bars", "measure_text", "order_coffee"},
	}
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			c := connect(t, name, Options{Version: "1.2.3", Folder: t.TempDir()})
			list, err := c.ListTools(t.Context(), mcp.ListToolsRequest{})
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, tool := range list.Tools {
				names = append(names, tool.Name)
				if tool.Description == "" || tool.Title == "" || tool.InputSchema.Type != "object" || tool.InputSchema.AdditionalProperties != false ||
					tool.Annotations.ReadOnlyHint == nil || !*tool.Annotations.ReadOnlyHint {
					t.Errorf("%+v", tool)
				}
				for key, property := range tool.InputSchema.Properties {
					if property.(map[string]any)["description"] == nil {
						t.Errorf("%s: %s has no description", tool.Name, key)
					}
				}
			}
			if !slices.Equal(names, want[name]) {
				t.Errorf("got %v, want %v", names, want[name])
			}
		})
	}
}

// TestMistakes: requests for unknown things are refused, and the connection stays open.
func TestMistakes(t *testing.T) {
	const hello = `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2024-11-05"}}` + "\n"
	for _, row := range []struct{ name, line, want string }{
		{"method", `{"jsonrpc":"2.0","id":1,"method":"nope"}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"method not found: nope"}}`},
		{"tool", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nope"}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"unknown tool \"nope\"; tools: count_down, draw_bars, measure_text, order_coffee"}}`},
		{"prompt", `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"nope"}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"unknown prompt \"nope\""}}`},
		{"prompt without its argument", `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"use_tools"}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"prompt \"use_tools\" needs the argument \"task\": What to do"}}`},
		{"prompt with a number", `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"use_tools","arguments":{"task":1}}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"the arguments of a prompt are strings"}}`},
		{"resource", `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"show://nope"}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"no resource \"show://nope\"; resources/list names those there are"}}`},
		{"not JSON", `nope`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`},
		{"too long", strings.Repeat("x", maxMessage+1), `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"message over 1048576 bytes"}}`},
		{"elicitation of a client that cannot", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"order_coffee"}}`, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"this tool asks a person, and this client cannot`},
		{"response to nothing", `{"jsonrpc":"2.0","id":"demo-1","result":{}}`, ``},
	} {
		t.Run(row.name, func(t *testing.T) {
			var out bytes.Buffer
			if err := Serve(t.Context(), "show", Options{}, strings.NewReader(hello+row.line+"\n"), &out); err != nil {
				t.Fatal(err)
			}
			var got string
			for line := range strings.Lines(out.String()) {
				if !strings.Contains(line, `"id":"i"`) {
					got += line
				} else if !strings.Contains(line, `"protocolVersion":"2024-11-05"`) {
					t.Errorf("initialize: %s", line)
				}
			}
			if !strings.HasPrefix(got, row.want) || row.want == "" && got != "" {
				t.Errorf("got  %s\nwant %s", got, row.want)
			}
		})
	}
	if err := Serve(t.Context(), "nope", Options{}, strings.NewReader(""), io.Discard); err == nil || err.Error() != `unknown demo "nope"` {
		t.Errorf("got %v", err)
	}
}

// lines is a connection on which the test writes and reads single messages.
type lines struct {
	*testing.T
	in  *io.PipeWriter
	out *bufio.Scanner
}

// converse starts a server. At the end of the test its input is closed, and it
// must end.
func converse(t *testing.T, name string) lines {
	t.Helper()
	serverIn, clientOut := io.Pipe()
	clientIn, serverOut := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, name, Options{}, serverIn, serverOut) }()
	t.Cleanup(func() {
		cancel()
		_ = clientOut.Close()
		_ = clientIn.Close()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	l := lines{t, clientOut, bufio.NewScanner(clientIn)}
	l.write(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}}}}`)
	l.read()
	return l
}

func (l lines) write(line string) {
	l.Helper()
	if _, err := io.WriteString(l.in, line+"\n"); err != nil {
		l.Fatal(err)
	}
}

func (l lines) read() string {
	l.Helper()
	if !l.out.Scan() {
		l.Fatalf("no more messages: %v", l.out.Err())
	}
	return l.out.Text()
}

// TestCancel: a canceled request ends at once and gets no response, and its own requests
// to the client are canceled.
func TestCancel(t *testing.T) {
	l := converse(t, "show")
	l.write(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"order_coffee"}}`)
	if got := l.read(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":"demo-1","method":"elicitation/create"`) {
		t.Fatal(got)
	}
	l.write(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	if got, want := l.read(), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"demo-1","reason":"canceled"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	l.write(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	if got, want := l.read(), `{"jsonrpc":"2.0","id":2,"result":{}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestTooManyRequests: the number of concurrent requests has a limit.
func TestTooManyRequests(t *testing.T) {
	l := converse(t, "show")
	for i := range maxRequests {
		l.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"order_coffee"}}`, i))
		l.read() // the server's request
	}
	l.write(`{"jsonrpc":"2.0","id":"more","method":"ping"}`)
	if got, want := l.read(), `{"jsonrpc":"2.0","id":"more","error":{"code":-32000,"message":"more than 64 requests at a time; wait for one to finish"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
