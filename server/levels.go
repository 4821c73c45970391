package server

import (
	"context"

	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
)

// logLevels maps the levels that a client may set to a level of MCP and a level of mcpx's
// own log.
var logLevels = map[string]struct{ level, own string }{
	"debug": {"debug", "debug"}, "info": {"info", "info"}, "notice": {"notice", "info"},
	"warn": {"warning", "warn"}, "warning": {"warning", "warn"}, "error": {"error", "error"},
	"critical": {"critical", "error"}, "alert": {"alert", "error"}, "emergency": {"emergency", "error"},
}

// setLogLevel handles logging/setLevel.
func (s *Server) setLogLevel(_ context.Context, c *Client, m rpc.Message) ([]byte, error) {
	raw := rawjson.Get(m.Params, "level")
	level, isString := rawjson.String(raw)
	levels, known := logLevels[level]
	if !isString || !known {
		return nil, rpc.Errorf(rpc.CodeInternal, "Invalid log level: %s. Valid levels are: debug, info, warn, error", levelText(raw, level))
	}
	if s.options.SetLevel != nil {
		s.options.SetLevel(levels.own)
	}
	c.setLevel(levels.level)
	s.registry.SetLevel(c, levels.level)
	if s.bare {
		return []byte("{}"), nil
	}
	b := rawjson.AppendString([]byte(`{"_meta":{"success":true,"level":`), level)
	b = rawjson.AppendString(append(b, `,"message":`...), "Log level set to "+level)
	return append(b, "}}"...), nil
}

// levelText returns an invalid level for the error message.
func levelText(raw []byte, level string) string {
	switch rawjson.Kind(raw) {
	case 0:
		return "undefined"
	case '"':
		return level
	}
	return string(raw)
}
