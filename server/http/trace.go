package httpfront

import (
	"net/http"
	"regexp"
	"strings"

	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
)

// Traces connect what a client, mcpx and an upstream log about one call. In HTTP they are
// headers, in MCP members of _meta with the same names (W3C Trace Context and Baggage).

// parentForm matches a traceparent. invalidParent matches one whose trace ID or parent ID is all
// zeros, whose version is ff, or that goes on although its version is 00.
var (
	parentForm    = regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-|$)`)
	invalidParent = regexp.MustCompile(`-0{16,}-|^ff|^00.{54}`)
)

// maxTrace bounds one header of a trace. W3C wants at least 8 KiB for baggage.
const maxTrace = 8 << 10

// withTrace returns a request with the trace of its HTTP headers in _meta, unless _meta
// has one.
func withTrace(m rpc.Message, h http.Header) rpc.Message {
	if !m.IsRequest() || h.Get("traceparent") == "" && h.Get("baggage") == "" {
		return m
	}
	meta := rawjson.Get(m.Params, "_meta")
	if !isObjectOrAbsent(m.Params) || !isObjectOrAbsent(meta) || rawjson.Get(meta, "traceparent") != nil {
		return m
	}
	hasParent := isValidParent(h.Values("traceparent"))
	for _, name := range []string{"traceparent", "tracestate", "baggage"} {
		value := strings.ToValidUTF8(strings.Join(h.Values(name), ","), "\ufffd")
		isTrace := name != "baggage"
		if value == "" || len(value) > maxTrace || isTrace && !hasParent || rawjson.Get(meta, name) != nil {
			continue
		}
		meta = rawjson.With(meta, name, rawjson.AppendString(nil, value))
	}
	if meta != nil {
		m.Params = rawjson.With(m.Params, "_meta", meta)
	}
	return m
}

// isValidParent reports whether a request has one traceparent, and it is valid. Others are
// dropped, as W3C demands.
func isValidParent(values []string) bool {
	return len(values) == 1 && parentForm.MatchString(values[0]) && !invalidParent.MatchString(values[0])
}

// isObjectOrAbsent reports whether a value can get members.
func isObjectOrAbsent(value []byte) bool { return value == nil || rawjson.Kind(value) == '{' }
