// Command demo is a few small MCP servers in one program, for the examples:
// "demo time", "demo files" and "demo echo" each serve one on stdin and stdout.
package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	servers := map[string]func(s *server.MCPServer){"time": timeTools, "files": fileTools, "echo": echoTools}
	if len(args) != 1 || servers[args[0]] == nil {
		return fmt.Errorf("usage: demo time|files|echo")
	}
	s := server.NewMCPServer("demo-"+args[0], "1.0.0", server.WithToolCapabilities(false), server.WithRecovery())
	servers[args[0]](s)
	return server.ServeStdio(s)
}

// readOnly says that a tool changes nothing and reaches for nothing outside, so
// that a client need not ask before each call. Unsaid, mcp-go says the contrary.
func readOnly() mcp.ToolOption {
	return mcp.WithToolAnnotation(mcp.ToolAnnotation{ReadOnlyHint: mcp.ToBoolPtr(true), OpenWorldHint: mcp.ToBoolPtr(false)})
}

func timeTools(s *server.MCPServer) {
	zone := mcp.WithString("timezone", mcp.Required(), mcp.Description("IANA time zone, such as Europe/Paris"))
	s.AddTool(mcp.NewTool("get_current_time",
		mcp.WithDescription("Get the current time in a time zone. The answer is in RFC 3339."), readOnly(), zone,
	), func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		location, err := time.LoadLocation(r.GetString("timezone", ""))
		if err != nil {
			return mcp.NewToolResultError(err.Error()), nil
		}
		return mcp.NewToolResultText(time.Now().In(location).Format(time.RFC3339)), nil
	})
	s.AddTool(mcp.NewTool("convert_time",
		mcp.WithDescription("Convert a time of today to another time zone."), readOnly(),
		mcp.WithString("source_timezone", mcp.Required(), mcp.Description("IANA time zone of the time")),
		mcp.WithString("time", mcp.Required(), mcp.Description("Time as HH:MM"), mcp.Pattern("^[0-2][0-9]:[0-5][0-9]$")),
		mcp.WithString("target_timezone", mcp.Required(), mcp.Description("IANA time zone to convert to")),
	), convertTime)
}

func convertTime(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	from, err := time.LoadLocation(r.GetString("source_timezone", ""))
	if err != nil {
		return mcp.NewToolResultError(err.Error()), nil
	}
	to, err := time.LoadLocation(r.GetString("target_timezone", ""))
	if err != nil {
		return mcp.NewToolResultError(err.Error()), nil
	}
	clock, err := time.Parse("15:04", r.GetString("time", ""))
	if err != nil {
		return mcp.NewToolResultError(err.Error()), nil
	}
	now := time.Now().In(from)
	at := time.Date(now.Year(), now.Month(), now.Day(), clock.Hour(), clock.Minute(), 0, 0, from)
	return mcp.NewToolResultText(at.In(to).Format(time.RFC3339)), nil
}

// fileTools read below the folder the server was started in, and nothing else.
func fileTools(s *server.MCPServer) {
	root, err := os.OpenRoot(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
	s.AddTool(mcp.NewTool("list_directory",
		mcp.WithDescription("List the files of a folder."), readOnly(),
		mcp.WithString("path", mcp.Description("Folder, relative to the server's own"), mcp.DefaultString(".")),
	), func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		entries, err := fs.ReadDir(root.FS(), path.Clean(r.GetString("path", ".")))
		if err != nil {
			return mcp.NewToolResultError(err.Error()), nil
		}
		var names []string
		for _, e := range entries {
			name := e.Name()
			if e.IsDir() {
				name += "/"
			}
			names = append(names, name)
		}
		return mcp.NewToolResultText(strings.Join(names, "\n")), nil
	})
	s.AddTool(mcp.NewTool("read_file",
		mcp.WithDescription("Read a text file."), readOnly(),
		mcp.WithString("path", mcp.Required(), mcp.Description("File, relative to the server's folder")),
		mcp.WithNumber("lines", mcp.Description("Read only this many lines"), mcp.Min(1)),
	), func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		text, err := root.ReadFile(r.GetString("path", ""))
		if err != nil {
			return mcp.NewToolResultError(err.Error()), nil
		}
		lines := strings.SplitAfter(string(text), "\n")
		if n := r.GetInt("lines", 0); n > 0 && n < len(lines) {
			lines = lines[:n]
		}
		return mcp.NewToolResultText(strings.Join(lines, "")), nil
	})
}

func echoTools(s *server.MCPServer) {
	s.AddTool(mcp.NewTool("echo",
		mcp.WithDescription("Say it again."), readOnly(),
		mcp.WithString("text", mcp.Required()),
		mcp.WithNumber("times", mcp.Description("How often"), mcp.DefaultNumber(1), mcp.Min(1), mcp.Max(10)),
		mcp.WithString("style", mcp.Enum("plain", "loud")),
	), func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		text := strings.Repeat(r.GetString("text", "")+"\n", r.GetInt("times", 1))
		if r.GetString("style", "plain") == "loud" {
			text = strings.ToUpper(text)
		}
		return mcp.NewToolResultText(strings.TrimSuffix(text, "\n")), nil
	})
}
