package server

import (
	"errors"

	"mcpx/internal/jsonrpc"
	"mcpx/internal/rawjson"
)

// WireError is what a client hears of an error.
func WireError(err error) *jsonrpc.Error {
	var e *jsonrpc.Error
	if errors.As(err, &e) {
		return e
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: err.Error()}
}

// invalidParams is the error of a request that is not as MCP has it.
func invalidParams(detail string) *jsonrpc.Error {
	return &jsonrpc.Error{
		Code:    jsonrpc.CodeInvalidParams,
		Message: "Invalid params: " + detail,
		Data:    append(rawjson.AppendString([]byte(`{"detail":`), detail), '}'),
	}
}

// errorResult is the result of a tool that failed in a way the model can act on.
func errorResult(text string) []byte {
	b := rawjson.AppendString([]byte(`{"content":[{"type":"text","text":`), text)
	return append(b, `}],"isError":true}`...)
}
