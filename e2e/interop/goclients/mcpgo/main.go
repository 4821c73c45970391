// Command mcpgo is mcp-go's client against mcpx, over stdio, HTTP and SSE, in
// both eras of MCP.
package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"interop/goclients/part"
)

func main() {
	path := part.Config()
	url, stop := part.Serve(path)
	fronts := []struct {
		name string
		to   func() (transport.Interface, error)
	}{
		{"stdio", func() (transport.Interface, error) {
			return transport.NewStdio("mcpx", nil, path, "--log-level", "error"), nil
		}},
		{"http", func() (transport.Interface, error) { return transport.NewStreamableHTTP(url + "/mcp") }},
		{"sse", func() (transport.Interface, error) { return transport.NewSSE(url + "/sse") }},
	}
	for _, f := range fronts {
		for _, revision := range []string{mcp.ProtocolVersion20251125, mcp.ProtocolVersion20260728} {
			if f.name == "sse" && revision == mcp.ProtocolVersion20260728 {
				continue // that revision has no SSE transport
			}
			converse(f.name+", "+revision, revision, f.to)
		}
	}
	stop()
	part.Finish()
}

// answers are what the client has for servers that ask it.
type answers struct{}

func (answers) CreateMessage(context.Context, mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	return &mcp.CreateMessageResult{
		SamplingMessage: mcp.SamplingMessage{Role: mcp.RoleAssistant, Content: mcp.NewTextContent("sampled by the client")},
		Model:           "a-model",
	}, nil
}

func (answers) Elicit(context.Context, mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{Action: mcp.ElicitationResponseActionAccept, Content: map[string]any{"name": "Ada"}}}, nil
}

func (answers) ListRoots(context.Context, mcp.ListRootsRequest) (*mcp.ListRootsResult, error) {
	return &mcp.ListRootsResult{Roots: []mcp.Root{{URI: "file:///interop", Name: "interop"}}}, nil
}

func converse(on, revision string, to func() (transport.Interface, error)) {
	var c *client.Client
	says := func(ctx context.Context, tool string, arguments map[string]any, want string) error {
		result, err := c.CallTool(ctx, call(tool, arguments))
		if err != nil {
			return err
		}
		if got := text(result); !strings.Contains(got, want) {
			return fmt.Errorf("%s: no %q in %q", tool, want, got)
		}
		return nil
	}
	part.Check(on+": connect, list, call", func(ctx context.Context) error {
		connection, err := to()
		if err != nil {
			return err
		}
		c = client.NewClient(connection, client.WithProtocolVersion(revision), client.WithSamplingHandler(answers{}), client.WithElicitationHandler(answers{}), client.WithRootsHandler(answers{}))
		if err := c.Start(context.Background()); err != nil {
			return err
		}
		var hello mcp.InitializeRequest
		hello.Params.ProtocolVersion = revision
		hello.Params.ClientInfo = mcp.Implementation{Name: "interop", Version: "1"}
		if _, err := c.Initialize(ctx, hello); err != nil {
			return err
		}
		if got := c.ProtocolVersion(); got != revision {
			return fmt.Errorf("revision %s", got)
		}
		tools, err := c.ListTools(ctx, mcp.ListToolsRequest{})
		if err != nil {
			return err
		}
		if len(tools.Tools) != 2 || tools.Tools[0].Name != "inspect" || tools.Tools[1].Name != "exec" {
			return fmt.Errorf("tools: %v", tools.Tools)
		}
		return says(ctx, "get-sum", map[string]any{"a": 19, "b": 23}, "42")
	})
	if c == nil || !c.IsInitialized() {
		return
	}
	defer c.Close()
	part.Check(on+": prompts, resources", func(ctx context.Context) error {
		var get mcp.GetPromptRequest
		get.Params.Name = "everything__args-prompt"
		get.Params.Arguments = map[string]string{"city": "Rome"}
		prompt, err := c.GetPrompt(ctx, get)
		if err != nil {
			return err
		}
		if got := fmt.Sprint(prompt.Messages); !strings.Contains(got, "Rome") {
			return fmt.Errorf("prompt: %s", got)
		}
		var read mcp.ReadResourceRequest
		read.Params.URI = "demo://resource/dynamic/text/7"
		contents, err := c.ReadResource(ctx, read)
		if err != nil {
			return err
		}
		if got := fmt.Sprint(contents.Contents); !strings.Contains(got, "7") {
			return fmt.Errorf("resource: %s", got)
		}
		return nil
	})
	asked := on + ": sampling, elicitation, roots"
	check := part.Check
	if strings.HasPrefix(on, "sse") {
		check = part.NotRun("mcp-go's SSE client takes a server's request for the answer to one of its own")
	}
	check(asked, func(ctx context.Context) error {
		return errors.Join(
			says(ctx, "trigger-sampling-request", map[string]any{"prompt": "say so"}, "sampled by the client"),
			says(ctx, "trigger-elicitation-request", nil, "Ada"),
			says(ctx, "get-roots-list", nil, "file:///interop"),
		)
	})
	part.Check(on+": cancel", func(ctx context.Context) error {
		short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		defer cancel()
		if _, err := c.CallTool(short, call("trigger-long-running-operation", map[string]any{"duration": 30, "steps": 3})); err == nil {
			return errors.New("a canceled call was answered")
		}
		return says(ctx, "echo", map[string]any{"message": "still here"}, "still here")
	})
	part.Check(on+": errors", func(ctx context.Context) error {
		result, err := c.CallTool(ctx, call("get-sum", map[string]any{"a": "one"}))
		if err != nil {
			return err
		}
		if got := text(result); !result.IsError || !strings.Contains(got, "arguments.b: required") {
			return fmt.Errorf("bad arguments: %s", got)
		}
		var unknown mcp.CallToolRequest
		unknown.Params.Name = "nope"
		if _, err := c.CallTool(ctx, unknown); err == nil || !strings.Contains(err.Error(), "'nope' not found") {
			return fmt.Errorf("unknown tool: %v", err)
		}
		return nil
	})
}

// call is a call of an upstream's tool.
func call(tool string, arguments map[string]any) (r mcp.CallToolRequest) {
	r.Params.Name = "exec"
	r.Params.Arguments = map[string]any{"server_name": "everything", "tool_name": tool, "arguments": arguments}
	return r
}

func text(result *mcp.CallToolResult) string {
	var b strings.Builder
	for _, c := range result.Content {
		if t, ok := c.(mcp.TextContent); ok {
			b.WriteString(t.Text)
		}
	}
	return b.String()
}
