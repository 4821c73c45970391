package server

import (
	"context"
	"slices"

	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
	"mcpx/registry"
)

// logLevels maps the levels that a client may set to a level of MCP and a level of mcpx's
// own log.
var logLevels = map[string]struct{ level, own string }{
	"debug": {"debug", "debug"}, "info": {"info", "info"}, "notice": {"notice", "info"},
	"warn": {"warning", "warn"}, "warning": {"warning", "warn"}, "error": {"error", "error"},
	"critical": {"critical", "error"}, "alert": {"alert", "error"}, "emergency": {"emergency", "error"},
}

// LogLevel returns the level of MCP that the params of logging/setLevel name.
func LogLevel(params []byte) (level string, ok bool) {
	name, _ := rawjson.String(rawjson.Get(params, "level"))
	levels, ok := logLevels[name]
	return levels.level, ok
}

// SendLogLevel sends the level that a continued client wants to the upstreams. It may wait
// for them.
func (s *Server) SendLogLevel(c *Client) {
	if level := c.logLevel(); level != "" {
		s.registry.SetLevel(c, level)
	}
}

// setLogLevel handles logging/setLevel.
func (s *Server) setLogLevel(_ context.Context, c *Client, m rpc.Message) ([]byte, error) {
	raw := rawjson.Get(m.Params, "level")
	level, isString := rawjson.String(raw)
	levels, known := logLevels[level]
	if !isString || !known {
		return nil, rpc.Errorf(rpc.CodeInternal, "Invalid log level: %s. Valid levels are: debug, info, warn, error", levelText(raw, level))
	}
	if s.SetLevel != nil {
		s.SetLevel(levels.own)
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

// wantsLog reports whether the client wants a log message of that level.
func (c *Client) wantsLog(params []byte) bool {
	least := c.logLevel()
	level, _ := rawjson.String(rawjson.Get(params, "level"))
	return least == "" || least != noLogs && slices.Index(registry.LogLevels, level) >= slices.Index(registry.LogLevels, least)
}

// noLogs is the level of a client that wants no log messages.
const noLogs = "none"

func (c *Client) logLevel() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.level
}

func (c *Client) setLevel(level string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.level = level
}
