// Command gosdk is go-sdk's client against mcpx, over stdio, HTTP and SSE.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"interop/goclients/part"
)

func main() {
	path := part.Config()
	url, stop := part.Serve(path)
	fronts := []struct {
		name string
		to   func() mcp.Transport
	}{
		{"stdio", func() mcp.Transport {
			return &mcp.CommandTransport{Command: exec.Command("mcpx", path, "--log-level", "error")}
		}},
		{"http", func() mcp.Transport { return &mcp.StreamableClientTransport{Endpoint: url + "/mcp"} }},
		{"sse", func() mcp.Transport { return &mcp.SSEClientTransport{Endpoint: url + "/sse"} }},
	}
	for _, f := range fronts {
		converse(f.name, f.to())
	}
	stop()
	part.Finish()
}

func converse(front string, to mcp.Transport) {
	var mu sync.Mutex
	var progress []float64
	client := mcp.NewClient(&mcp.Implementation{Name: "interop", Version: "1"}, &mcp.ClientOptions{
		CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{Role: "assistant", Model: "a-model", Content: &mcp.TextContent{Text: "sampled by the client"}}, nil
		},
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			mu.Lock()
			defer mu.Unlock()
			progress = append(progress, r.Params.Progress)
		},
	})
	client.AddRoots(&mcp.Root{URI: "file:///interop", Name: "interop"})
	var session *mcp.ClientSession
	tool := func(ctx context.Context, name string, arguments map[string]any) (*mcp.CallToolResult, error) {
		params := &mcp.CallToolParams{Name: "exec", Arguments: map[string]any{"server_name": "everything", "tool_name": name, "arguments": arguments}}
		params.SetProgressToken("p-" + name)
		return session.CallTool(ctx, params)
	}
	says := func(ctx context.Context, name string, arguments map[string]any, want string) error {
		result, err := tool(ctx, name, arguments)
		if err != nil {
			return err
		}
		if got := text(result); !strings.Contains(got, want) {
			return fmt.Errorf("%s: no %q in %q", name, want, got)
		}
		return nil
	}

	part.Check(front+": connect, list, call", func(ctx context.Context) (err error) {
		if session, err = client.Connect(context.Background(), to, nil); err != nil {
			return err
		}
		tools, err := session.ListTools(ctx, nil)
		if err != nil {
			return err
		}
		if len(tools.Tools) != 2 || tools.Tools[0].Name != "inspect" || tools.Tools[1].Name != "exec" {
			return fmt.Errorf("tools: %v", tools.Tools)
		}
		return says(ctx, "get-sum", map[string]any{"a": 19, "b": 23}, "42")
	})
	if session == nil {
		return
	}
	defer session.Close()
	part.Check(front+": prompts, resources, completion", func(ctx context.Context) error {
		prompt, err := session.GetPrompt(ctx, &mcp.GetPromptParams{Name: "everything__args-prompt", Arguments: map[string]string{"city": "Rome"}})
		if err != nil {
			return err
		}
		if got, _ := json.Marshal(prompt.Messages); !strings.Contains(string(got), "Rome") {
			return fmt.Errorf("prompt: %s", got)
		}
		contents, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: "demo://resource/dynamic/text/7"})
		if err != nil {
			return err
		}
		if !strings.Contains(contents.Contents[0].Text, "7") {
			return fmt.Errorf("resource: %v", contents.Contents[0])
		}
		completed, err := session.Complete(ctx, &mcp.CompleteParams{
			Ref:      &mcp.CompleteReference{Type: "ref/prompt", Name: "everything__completable-prompt"},
			Argument: mcp.CompleteParamsArgument{Name: "department", Value: "S"},
		})
		if err != nil {
			return err
		}
		if got := strings.Join(completed.Completion.Values, " "); got != "Sales Support" {
			return fmt.Errorf("completion: %s", got)
		}
		return nil
	})
	part.Check(front+": sampling", func(ctx context.Context) error {
		return says(ctx, "trigger-sampling-request", map[string]any{"prompt": "say so"}, "sampled by the client")
	})
	part.Check(front+": elicitation", func(ctx context.Context) error {
		return says(ctx, "trigger-elicitation-request", nil, "Ada")
	})
	part.Check(front+": roots", func(ctx context.Context) error {
		return says(ctx, "get-roots-list", nil, "file:///interop")
	})
	part.Check(front+": progress", func(ctx context.Context) error {
		if err := says(ctx, "trigger-long-running-operation", map[string]any{"duration": 0.3, "steps": 3}, "completed"); err != nil {
			return err
		}
		// Its handler runs beside the call, and may be behind it.
		seen := func() string {
			mu.Lock()
			defer mu.Unlock()
			return fmt.Sprint(progress)
		}
		for range 100 {
			if seen() == "[1 2 3]" {
				return nil
			}
			time.Sleep(20 * time.Millisecond)
		}
		return fmt.Errorf("progress: %s", seen())
	})
	part.Check(front+": cancel", func(ctx context.Context) error {
		short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		defer cancel()
		if _, err := tool(short, "trigger-long-running-operation", map[string]any{"duration": 30, "steps": 3}); err == nil {
			return errors.New("a canceled call was answered")
		}
		return says(ctx, "echo", map[string]any{"message": "still here"}, "still here")
	})
	part.Check(front+": errors", func(ctx context.Context) error {
		result, err := tool(ctx, "get-sum", map[string]any{"a": "one"})
		if err != nil {
			return err
		}
		if got := text(result); !result.IsError || !strings.Contains(got, "arguments.b: required") {
			return fmt.Errorf("bad arguments: %s", got)
		}
		if _, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "nope"}); err == nil || !strings.Contains(err.Error(), "'nope' not found") {
			return fmt.Errorf("unknown tool: %v", err)
		}
		return nil
	})
}

func text(result *mcp.CallToolResult) string {
	var b strings.Builder
	for _, c := range result.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			b.WriteString(t.Text)
		}
	}
	return b.String()
}
