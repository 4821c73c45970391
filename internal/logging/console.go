package logging

import (
	"bytes"

	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
)

// format appends one event to what is written. An event is JSON, as zerolog makes
// it.
type format func(out, event []byte) []byte

// asIs leaves events as they are.
func asIs(out, event []byte) []byte { return append(append(out, event...), '\n') }

// console shows events to people, one a line. zerolog's own ConsoleWriter decodes
// each into a map, which costs more than a whole relayed call.
type console struct{ colours bool }

// levels are the short names of zerolog's levels, and their colours.
var levels = map[string]struct{ name, colour string }{
	"debug": {"DBG", "\x1b[90m"}, "info": {"INF", "\x1b[32m"}, "warn": {"WRN", "\x1b[33m"}, "error": {"ERR", "\x1b[31m"},
}

// format writes an event as: time LEVEL message key=value …
func (c console) format(out, event []byte) []byte {
	type field struct {
		key   string
		value []byte
	}
	var room [16]field
	fields := room[:0]
	var clock, message string
	level := levels["info"]
	_ = rawjson.Object(event, func(key string, value []byte) bool {
		switch key {
		case "time":
			clock, _ = rawjson.View(value)
		case "level":
			name, _ := rawjson.View(value)
			level = levels[name]
		case "message":
			message, _ = rawjson.View(value)
		default:
			fields = append(fields, field{key, value})
		}
		return true
	})
	out = append(append(out, timeOfDay(clock)...), ' ')
	out = c.paint(out, level.colour, level.name)
	out = append(append(out, ' '), message...)
	for _, f := range fields {
		out = append(out, ' ')
		out = c.paint(out, "\x1b[36m", f.key, "=")
		out = append(out, shown(f.value)...)
	}
	return append(out, '\n')
}

// timeOfDay is that part of a time as RFC 3339 has it.
func timeOfDay(time string) string {
	const from, to = len("2006-01-02T"), len("2006-01-02T15:04:05")
	if len(time) < to {
		return time
	}
	return time[from:to]
}

// shown is a value: a string without its quotes, if it needs none. JSON escapes
// only some of what steers a terminal.
func shown(value []byte) []byte {
	isWord, isPlain := len(value) > 2 && value[0] == '"', true
	for _, c := range value {
		isWord = isWord && c != ' ' && c != '\\' && c != '='
		isPlain = isPlain && c < 0x7f
	}
	if !isPlain {
		value = []byte(plain.Line(string(value)))
		isWord = isWord && !bytes.ContainsRune(value, '\\')
	}
	if isWord {
		return value[1 : len(value)-1]
	}
	return value
}

func (c console) paint(out []byte, colour string, parts ...string) []byte {
	if !c.colours {
		colour = ""
	}
	out = append(out, colour...)
	for _, p := range parts {
		out = append(out, p...)
	}
	if colour != "" {
		out = append(out, "\x1b[0m"...)
	}
	return out
}
