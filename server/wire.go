package server

import (
	"errors"

	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
)

// WireError returns the JSON-RPC error that a client gets for an error.
func WireError(err error) *rpc.Error {
	var e *rpc.Error
	if errors.As(err, &e) {
		return e
	}
	return &rpc.Error{Code: rpc.CodeInternal, Message: err.Error()}
}

// invalidParams returns the error for a request whose params are invalid.
func invalidParams(detail string) *rpc.Error {
	return &rpc.Error{
		Code:    rpc.CodeInvalidParams,
		Message: "Invalid params: " + detail,
		Data:    append(rawjson.AppendString([]byte(`{"detail":`), detail), '}'),
	}
}

// errorResult returns a tool result with an error that the model should see.
func errorResult(text string) []byte {
	b := rawjson.AppendString([]byte(`{"content":[{"type":"text","text":`), text)
	return append(b, `}],"isError":true}`...)
}
