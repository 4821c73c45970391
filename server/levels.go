package server

import (
	"context"

	"mcpx/internal/jsonrpc"
	"mcpx/internal/rawjson"
)

// logLevels are the levels a client may set, with the level of MCP and the level
// of mcpx's own log that each means.
var logLevels = map[string]struct{ level, own string }{
	"debug": {"debug", "debug"}, "info": {"info", "info"}, "notice": {"notice", "info"},
	"warn": {"warning", "warn"}, "warning": {"warning", "warn"}, "error": {"error", "error"},
	"critical": {"critical", "error"}, "alert": {"alert", "error"}, "emergency": {"emergency", "error"},
}

// setLogLevel answers logging/setLevel.
func (s *Server) setLogLevel(_ context.Context, c *Client, m jsonrpc.Message) ([]byte, error) {
	raw := rawjson.Get(m.Params, "level")
	level, isString := rawjson.String(raw)
	means, known := logLevels[level]
	if !isString || !known {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "Invalid log level: %s. Valid levels are: debug, info, warn, error", shown(raw, level))
	}
	if s.options.SetLevel != nil {
		s.options.SetLevel(means.own)
	}
	c.setLevel(means.level)
	s.registry.SetLevel(c, means.level)
	if s.bare { // as MCP has it, with nothing added
		return []byte("{}"), nil
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
