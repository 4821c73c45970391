package registry

import (
	"bufio"
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
)

// errTooLong is of a stream that is not worth reading on.
var errTooLong = errors.New("has more than")

// readEvents reads the events of a stream within the bounds of the link.
func (l *httpLink) readEvents(ctx context.Context, r io.Reader, at *place, event func(name string, data []byte)) error {
	memory := l.intake.reserve(ctx)
	defer memory.release()
	return readEvents(r, eventLimits{l.limit, memory.grow}, at, event)
}

// eventLimits are the bounds of a stream of events.
type eventLimits struct {
	bytes   int                  // of one event
	reserve func(size int) error // is called before an event takes that much memory, and with 0 when it was handed on
}

// readEvents reads server-sent events until they end. Those without data are left
// out. The data is memory of its own. at is where the reader is then.
func readEvents(r io.Reader, limits eventLimits, at *place, event func(name string, data []byte)) error {
	lines := bufio.NewReaderSize(r, 1<<16)
	var name string
	var data []byte
	id := at.id
	for {
		line, err := readEventLine(lines, limits, len(data))
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch {
		case len(line) == 0:
			if len(data) > 0 {
				event(name, data)
			}
			name, data = "", nil
			_ = limits.reserve(0)
			at.id = id // not before: an event that broke off can be had again
		case string(field) == "event":
			name = string(value)
		case string(field) == "id":
			if !bytes.ContainsFunc(value, unicode.IsControl) { // which no header can say
				id = string(value)
			}
		case string(field) == "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				at.retry = time.Duration(ms) * time.Millisecond
			}
		case string(field) == "data":
			if len(data)+len(value) > limits.bytes {
				return fmt.Errorf("an event %w %d bytes (limits.message_bytes)", errTooLong, limits.bytes)
			}
			if len(data) > 0 {
				data = append(data, '\n')
			}
			data = append(data, value...)
		}
	}
}

// readEventLine reads a line without its end. The event has that many bytes so far.
func readEventLine(r *bufio.Reader, limits eventLimits, soFar int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		size := len(line) + len(part)
		if size > limits.bytes+64 {
			return nil, fmt.Errorf("a line %w %d bytes (limits.message_bytes)", errTooLong, limits.bytes)
		}
		if err := limits.reserve(min(soFar+size, limits.bytes)); err != nil {
			return nil, err
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return bytes.TrimRight(line, "\r\n"), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// isModernMessage reports whether a message is a request of 2026-07-28.
func isModernMessage(message []byte) bool {
	return bytes.Contains(message, []byte(modernPrefix+"protocolVersion"))
}

// setModernHeaders repeats in the headers what 2026-07-28 wants there.
func setModernHeaders(h http.Header, message []byte) {
	method, _ := rawjson.String(rawjson.Get(message, "method"))
	params := rawjson.Get(message, "params")
	version, _ := rawjson.String(rawjson.Get(rawjson.Get(params, "_meta"), modernPrefix+"protocolVersion"))
	h.Set("Mcp-Method", method)
	h.Set("Mcp-Protocol-Version", version)
	for _, member := range []string{"name", "uri"} {
		if name, ok := rawjson.String(rawjson.Get(params, member)); ok {
			encoded, _ := mcp.EncodeHeaderValue(name) // in Base64, if it is not plain ASCII
			h.Set("Mcp-Name", encoded)
		}
	}
}
