package registry

import (
	"bufio"
	"bytes"
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

// readEvents reads server-sent events until they end, each of at most limit
// bytes. Those without data are left out. The data is memory of its own. Where the
// reader is then, is noted in at.
func readEvents(r io.Reader, limit int, at *place, event func(name string, data []byte)) error {
	lines := bufio.NewReaderSize(r, 1<<16)
	var name string
	var data []byte
	id := at.id
	for {
		line, err := readEventLine(lines, limit)
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
			if len(data)+len(value) > limit {
				return fmt.Errorf("an event %w %d bytes (limits.message_bytes)", errTooLong, limit)
			}
			if len(data) > 0 {
				data = append(data, '\n')
			}
			data = append(data, value...)
		}
	}
}

// readEventLine reads a line without its end.
func readEventLine(r *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > limit+64 {
			return nil, fmt.Errorf("a line %w %d bytes (limits.message_bytes)", errTooLong, limit)
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
