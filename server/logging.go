package server

import (
	"context"

	"mcpx/internal/jsonrpc"
	"mcpx/internal/rawjson"
)

// logLevels are the levels a client may set, with the level each means for
// mcpx's own log.
var logLevels = map[string]string{
	"debug": "debug", "info": "info", "notice": "info", "warn": "warn", "warning": "warn",
	"error": "error", "critical": "error", "alert": "error", "emergency": "error",
}

// setLogLevel answers logging/setLevel.
func (s *Server) setLogLevel(_ context.Context, _ *Client, m jsonrpc.Message) ([]byte, error) {
	raw := rawjson.Get(m.Params, "level")
	level, isString := rawjson.String(raw)
	own, known := logLevels[level]
	if !isString || !known {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "Invalid log level: %s. Valid levels are: debug, info, warn, error", shown(raw, level))
	}
	if s.setLevel != nil {
		s.setLevel(own)
	}
	b := rawjson.AppendString([]byte(`{"_meta":{"success":true,"level":`), level)
	b = rawjson.AppendString(append(b, `,"message":`...), "Log level set to "+level)
	return append(b, "}}"...), nil
}

// shown is a level as the error names it.
func shown(raw []byte, level string) string {
	switch rawjson.Kind(raw) {
	case 0:
		return "undefined"
	case '"':
		return level
	}
	return string(raw)
}
