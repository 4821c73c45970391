package server

import (
	"errors"

	"mcpx/internal/jsonrpc"
	"mcpx/internal/rawjson"
)

// WireError returns the JSON-RPC error that a client gets for an error.
func WireError(err error) *jsonrpc.Error {
	var e *jsonrpc.Error
	if errors.As(err, &e) {
		return e
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: err.Error()}
}

// invalidParams returns the error for a request whose params are invalid.
func invalidParams(detail string) *jsonrpc.Error {
	return &jsonrpc.Error{
		Code:    jsonrpc.CodeInvalidParams,
		Message: "Invalid params: " + detail,
		Data:    append(rawjson.AppendString([]byte(`{"detail":`), detail), '}'),
	}
}

// errorResult returns a tool result with an error that the model should see.
func errorResult(text string) []byte {
	b := rawjson.AppendString([]byte(`{"content":[{"type":"text","text":`), text)
	return append(b, `}],"isError":true}`...)
}
