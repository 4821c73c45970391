package httpfront

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"strconv"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
	"mcpx/server"
	"mcpx/server/access"
)

// post2026 handles a request of 2026-07-28, which has no client session. It is
// canceled when its connection is closed.
func (h *HTTP) post2026(w http.ResponseWriter, r *http.Request, s *server.Server, m rpc.Message) {
	c := NewSessionlessClient(s, r)
	c.Ended = h.stopping
	if wrong := h.check2026(r, s, c, m); wrong != nil {
		status := http.StatusBadRequest
		if wrong.Code == rpc.CodeMethodNotFound {
			status = http.StatusNotFound
		}
		h.times.writeJSON(w, rpc.AppendError(nil, m.ID, wrong), status)
		return
	}
	ctx, done := h.callContext(r)
	defer done()
	h.respond(w, r, call{ctx: ctx, server: s, client: c, body: server.Inbound{Message: m}, done: func() {}, status: status2026})
}

// status2026 returns the HTTP status of a response of 2026-07-28: 400 if the client lacks
// a capability that the call requires.
func status2026(response []byte) int {
	isError := bytes.Contains(response[:min(len(response), 1<<10)], []byte(`"error"`)) // so that long results are not read
	if isError && string(rawjson.Get(rawjson.Get(response, "error"), "code")) == strconv.Itoa(mcp.MISSING_REQUIRED_CLIENT_CAPABILITY) {
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// check2026 returns why a request of 2026-07-28 is refused, nil if it is not. It runs
// first because later errors are sent with status 200.
func (h *HTTP) check2026(r *http.Request, s *server.Server, c *server.Client, m rpc.Message) *rpc.Error {
	if text := headerMismatch(r.Header, m); text != "" {
		return &rpc.Error{Code: mcp.HEADER_MISMATCH, Message: text}
	}
	if !m.IsRequest() {
		return nil
	}
	if wrong := server.Check2026(m); wrong != nil {
		return wrong
	}
	if err := s.CheckParameterHeaders(c, r.Header, m); err != nil {
		return &rpc.Error{Code: mcp.HEADER_MISMATCH, Message: err.Error()}
	}
	return nil
}

// is2026ByHeader reports whether a message is of 2026-07-28 according to its headers.
// Not every message says so in _meta: go-sdk's client sends cancellations without it, and
// closes its connection if they are refused.
func is2026ByHeader(r *http.Request, m rpc.Message) bool {
	return !m.IsResponse() && m.Method != "initialize" && r.Header.Get(sessionHeader) == "" && mcp.IsModernProtocol(r.Header.Get("Mcp-Protocol-Version"))
}

// callContext returns the context of a call without a client session. It ends when the
// connection is closed, or when mcpx stops and the drain time is over.
func (h *HTTP) callContext(r *http.Request) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(r.Context())
	stop := context.AfterFunc(h.callsCtx, func() { cancel(context.Cause(h.callsCtx)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// headerMismatch returns how the headers of a request of 2026-07-28 differ from its
// body; "" if they do not.
func headerMismatch(h http.Header, m rpc.Message) string {
	if got := h.Get("Mcp-Method"); got != m.Method {
		return fmt.Sprintf("the header Mcp-Method is %q, but the method is %q", got, m.Method)
	}
	version, _ := rawjson.String(rawjson.Get(rawjson.Get(m.Params, "_meta"), mcp.MetaKeyProtocolVersion))
	if got := h.Get("Mcp-Protocol-Version"); got != "" && version != "" && got != version {
		return fmt.Sprintf("the header Mcp-Protocol-Version is %q, but the request says %q", got, version)
	}
	member := map[string]string{"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}[m.Method]
	want, _ := rawjson.String(rawjson.Get(m.Params, member))
	// A value that is not ASCII is sent in Base64.
	if got, ok := mcp.DecodeHeaderValue(h.Get("Mcp-Name")); member != "" && (!ok || got != want) {
		return fmt.Sprintf("the header Mcp-Name is %q, but the %s is %q", got, member, want)
	}
	return ""
}

// NewSessionlessClient returns the client of a request without a client session.
func NewSessionlessClient(s *server.Server, r *http.Request) *server.Client {
	return s.NewSessionlessClient("http-"+rand.Text()[:8], senderName(r)).As(callerOf(r, s))
}

// senderName returns a key for the sender of a request that the log may show: the caller,
// or, for a caller without a name, the address and a part of the credential's hash.
func senderName(r *http.Request) string {
	if caller := access.CallerOf(r.Context()); caller != nil {
		return "caller " + caller.Name
	}
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	of := senderOf(r)
	return fmt.Sprintf("%s %x", host, of.credential[:8])
}
