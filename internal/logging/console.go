package logging

import (
	"io"
	"strings"
	"sync"
	"time"

	"mcpx/internal/rawjson"
)

// console writes log events for people, one a line. zerolog's own ConsoleWriter
// decodes each event into a map, which costs more than a whole relayed call.
type console struct {
	out     io.Writer
	colours bool

	mu   sync.Mutex
	line []byte
}

// levels are the short names of zerolog's levels, and their colours.
var levels = map[string]struct{ name, colour string }{
	"debug": {"DBG", "\x1b[90m"}, "info": {"INF", "\x1b[32m"}, "warn": {"WRN", "\x1b[33m"}, "error": {"ERR", "\x1b[31m"},
}

// Write takes one event as JSON: time LEVEL message key=value …
func (c *console) Write(event []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.line = time.Now().AppendFormat(c.line[:0], time.TimeOnly)
	level, message := text(event, "level"), text(event, "message")
	c.line = append(c.line, ' ')
	c.line = c.paint(c.line, levels[level].colour, levels[level].name)
	c.line = append(append(c.line, ' '), message...)
	for key, value := range rawjson.Members(event) {
		if key == "level" || key == "message" || key == "time" {
			continue
		}
		c.line = append(c.line, ' ')
		c.line = c.paint(c.line, "\x1b[36m", key+"=")
		c.line = append(c.line, shown(value)...)
	}
	c.line = append(c.line, '\n')
	if _, err := c.out.Write(c.line); err != nil {
		return 0, err
	}
	return len(event), nil
}

func text(event []byte, key string) string {
	s, _ := rawjson.String(rawjson.Get(event, key))
	return s
}

// shown is a value: a string without its quotes, if it needs none.
func shown(value []byte) []byte {
	if len(value) > 2 && value[0] == '"' && !strings.ContainsAny(string(value), " \\=") {
		return value[1 : len(value)-1]
	}
	return value
}

func (c *console) paint(line []byte, colour, s string) []byte {
	if !c.colours || colour == "" {
		return append(line, s...)
	}
	return append(append(append(line, colour...), s...), "\x1b[0m"...)
}
