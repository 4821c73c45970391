// Package demo has the small MCP servers that are part of mcpx, so that people can try
// mcpx with nothing else installed:
//
//   - time: the current time, and conversions between time zones
//   - files: lists and reads the files of one folder
//   - show: progress, an image, a structured result, a question to the person, a
//     prompt and a resource
//
// conversation.go handles the messages of a client, and each server has its own file. The
// package does not use mcp-go's server, because that would add 6 ms to every start of mcpx
// (docs/adr/0005), and it sends progress after the result.
package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"mcpx/internal/rawjson"
)

// Options configure a server.
type Options struct {
	Version string // reported to clients
	Folder  string // the folder of the server files; empty: the working directory
}

// servers has the servers in the order of their names in help texts.
var servers = []struct {
	name string
	open func(o Options) (*server, error)
}{
	{"time", timeServer},
	{"files", filesServer},
	{"show", showServer},
}

// Names returns the names of the servers.
func Names() []string {
	names := make([]string, len(servers))
	for i, s := range servers {
		names[i] = s.name
	}
	return names
}

// Serve serves the named server to one client until in ends or ctx is done. When
// ctx is done first, a goroutine may still be blocked reading in: the process is
// expected to exit.
func Serve(ctx context.Context, name string, o Options, in io.Reader, out io.Writer) error {
	for _, entry := range servers {
		if entry.name != name {
			continue
		}
		s, err := entry.open(o)
		if err != nil {
			return err
		}
		s.name, s.version = "mcpx-demo-"+name, o.Version
		for i := range s.tools {
			s.tools[i].Annotations = json.RawMessage(readOnly)
		}
		return s.serve(ctx, in, out)
	}
	return fmt.Errorf("unknown demo %q", name)
}

// server is a demo server. Its functions may run concurrently.
type server struct {
	name, version string
	instructions  string // for the model: how the tools are meant to be used
	tools         []tool
	prompts       []prompt
	resources     []resource
}

// tool is a tool and its function.
type tool struct {
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Input       schema          `json:"inputSchema"`
	Output      schema          `json:"outputSchema,omitempty"` // of the structured result; empty: it has none
	Annotations json.RawMessage `json:"annotations"`            // set by Serve

	run func(ctx context.Context, c *call) (*result, error)
}

// schema is a JSON Schema.
type schema = json.RawMessage

// readOnly are the annotations of a tool that only reads, as every tool here does. Clients may
// call it without asking the person.
const readOnly = `{"readOnlyHint":true,"openWorldHint":false}`

// result is the result of a call.
type result struct {
	Content    []content `json:"content"`
	Structured any       `json:"structuredContent,omitempty"`
	IsError    bool      `json:"isError,omitempty"`
}

// content is one item of a result or a prompt: text, or an image.
type content struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	Data     []byte `json:"data,omitempty"` // written as base64
	MIMEType string `json:"mimeType,omitempty"`
}

// text returns a result of one text.
func text(format string, values ...any) *result {
	return &result{Content: []content{{Type: "text", Text: fmt.Sprintf(format, values...)}}}
}

// structured returns a structured result, and the same as text for clients that do not
// support structured results.
func structured(value any) *result {
	r := text("%s", rawjson.Encode(value))
	r.Structured = value
	return r
}

// prompt is a message that a person can send.
type prompt struct {
	Name        string           `json:"name"`
	Title       string           `json:"title"`
	Description string           `json:"description"`
	Arguments   []promptArgument `json:"arguments"`

	write func(arguments map[string]string) string
}

type promptArgument struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Required    bool   `json:"required,omitempty"`
}

// resource is a text that clients can read.
type resource struct {
	URI         string `json:"uri"`
	Name        string `json:"name"`
	Title       string `json:"title"`
	Description string `json:"description"`
	MIMEType    string `json:"mimeType"`

	text string
}
