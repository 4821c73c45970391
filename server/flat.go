package server

import (
	"errors"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/executor"
	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
)

// flatResult returns the result of a tool call in flat mode. Arguments that do not
// fit the tool's schema are an error in the result since 2025-11-25, and an MCP error
// before.
func flatResult(c *Client, result, line []byte, err error) (_, _ []byte, _ error) {
	var invalid *executor.Invalid
	switch {
	case !errors.As(err, &invalid):
		return result, line, err
	case c.speaks(mcp.ProtocolVersion20251125):
		return errorResult(invalid.Error()), nil, nil
	}
	return nil, nil, invalidArguments(invalid)
}

// invalidArguments returns the MCP error for arguments that do not fit the schema.
func invalidArguments(e *executor.Invalid) *rpc.Error {
	p := e.Problems[0]
	parameter, text := strings.Join(p.Path, "."), p.String()
	if p.Text == "required" {
		text = "Missing required parameter '" + parameter + "'"
	}
	return &rpc.Error{
		Code:    rpc.CodeInvalidParams,
		Message: "Invalid params: " + text,
		Data:    rawjson.With([]byte("{}"), "parameter", rawjson.AppendString(nil, parameter)),
	}
}
