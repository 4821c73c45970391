package link

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
	"unicode"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
)

// tooLongError ends a stream with an event over the limit.
type tooLongError struct{ limit int }

func (e *tooLongError) Error() string {
	return fmt.Sprintf("an event has more than %d bytes (limits.message_bytes)", e.limit)
}

func isTooLong(err error) bool {
	var e *tooLongError
	return errors.As(err, &e)
}

// readEvents reads the events of a stream within the limits of the link.
func (l *httpLink) readEvents(ctx context.Context, r io.Reader, at *position, event func(name string, data rpc.Line)) error {
	memory := l.Intake.reserve(ctx)
	defer memory.release()
	err := readEvents(r, eventLimits{l.MessageBytes, memory}, at, event)
	if isTooLong(err) {
		memory.collect()
	}
	return err
}

// eventLimits are the limits of an event stream.
type eventLimits struct {
	bytes  int // of one event
	memory *reservation
}

// readEvents reads server-sent events until the stream ends. It calls event for each one
// that has data, and the data then belongs to event. It keeps at up to date.
func readEvents(r io.Reader, limits eventLimits, at *position, event func(name string, data rpc.Line)) error {
	var name string
	var data []byte
	id := at.id
	lines := rpc.NewReader(r, limits.bytes+fieldBytes)
	lines.Reserve = func(size int) error { return limits.memory.grow(min(len(data)+size, limits.bytes)) }
	for isFirst := true; ; isFirst = false {
		line, err := lines.ReadLine()
		switch {
		case errors.Is(err, rpc.ErrTooLong):
			return &tooLongError{limits.bytes}
		case errors.Is(err, io.EOF), err == nil && lines.Partial():
			return nil
		case err != nil:
			return err
		}
		line = bytes.TrimRight(line, "\r")
		if isFirst {
			line = rpc.WithoutMark(line)
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch {
		case len(line) == 0:
			if len(data) > 0 {
				event(name, rpc.Line{Text: data, Room: limits.memory.pass()})
			}
			name, data = "", nil
			limits.memory.release()
			at.id = id // only now: an unfinished event can be resumed
		case string(field) == "event":
			name = string(value)
		case string(field) == "id":
			if !bytes.ContainsFunc(value, unicode.IsControl) { // a header cannot carry these
				id = string(value)
			}
		case string(field) == "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				at.retry = time.Duration(ms) * time.Millisecond
			}
		case string(field) == "data":
			if len(data)+len(value) > limits.bytes {
				return &tooLongError{limits.bytes}
			}
			if len(data) == 0 {
				data = value
				continue
			}
			data = append(append(data, '\n'), value...)
		}
	}
}

// fieldBytes is the room for the name of a field.
const fieldBytes = 64

// is2026Message reports whether a message is a request of 2026-07-28.
func is2026Message(message []byte) bool {
	return bytes.Contains(message, []byte(mcp.MetaKeyProtocolVersion))
}

// set2026Headers sets the headers that 2026-07-28 requires.
func set2026Headers(h http.Header, message []byte) {
	method, _ := rawjson.String(rawjson.Get(message, "method"))
	params := rawjson.Get(message, "params")
	version, _ := rawjson.String(rawjson.Get(rawjson.Get(params, "_meta"), mcp.MetaKeyProtocolVersion))
	h.Set("Mcp-Method", method)
	h.Set("Mcp-Protocol-Version", version)
	for _, member := range []string{"name", "uri"} {
		if name, ok := rawjson.String(rawjson.Get(params, member)); ok {
			encoded, _ := mcp.EncodeHeaderValue(name) // in Base64, if it is not plain ASCII
			h.Set("Mcp-Name", encoded)
		}
	}
}

// setParameterHeaders repeats arguments of a tool call in headers, as x-mcp-header in the
// tool's schema asks.
func (l *httpLink) setParameterHeaders(h http.Header, message []byte) {
	if h.Get("Mcp-Method") != "tools/call" || l.InputSchema == nil {
		return
	}
	params := rawjson.Get(message, "params")
	tool, _ := rawjson.String(rawjson.Get(params, "name"))
	schema := l.InputSchema(tool)
	if !bytes.Contains(schema, []byte(`"x-mcp-header"`)) {
		return
	}
	for name, value := range mcp.GenerateParamHeaders(&mcp.Tool{RawInputSchema: schema}, params) {
		h.Set(name, value)
	}
}
