package server

import (
	"context"
	"errors"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/executor"
	"mcpx/internal/jsonrpc"
	"mcpx/internal/rawjson"
)

// callFlat answers tools/call in flat mode: the tool is an upstream's, under the
// name it has on the front.
func (s *Server) callFlat(ctx context.Context, c *Client, m jsonrpc.Message) ([]byte, error) {
	if _, err := readCall(m.Params); err != nil {
		return nil, err
	}
	result, err := s.relay(ctx, c, m)
	var invalid *executor.Invalid
	if !errors.As(err, &invalid) {
		return result, err
	}
	if c.speaks(mcp.ProtocolVersion20251125) {
		return errorResult(invalid.Error()), nil
	}
	return nil, invalidArguments(invalid)
}

// invalidArguments is what clients up to 2025-06-18 hear of arguments that do not
// fit the tool's schema.
func invalidArguments(e *executor.Invalid) *jsonrpc.Error {
	p := e.Problems[0]
	parameter, text := strings.Join(p.Path, "."), p.String()
	if p.Text == "required" {
		text = "Missing required parameter '" + parameter + "'"
	}
	return &jsonrpc.Error{
		Code:    jsonrpc.CodeInvalidParams,
		Message: "Invalid params: " + text,
		Data:    rawjson.With([]byte("{}"), "parameter", rawjson.AppendString(nil, parameter)),
	}
}
