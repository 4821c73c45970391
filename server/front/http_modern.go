package front

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/jsonrpc"
	"mcpx/internal/rawjson"
	"mcpx/server"
)

// postModern takes a request of 2026-07-28, which needs no session. When its
// connection is closed it is cancelled.
func (h *HTTP) postModern(w http.ResponseWriter, r *http.Request, s *server.Server, m jsonrpc.Message) {
	if wrong := h.refusal(r, s, m); wrong != nil {
		status := http.StatusBadRequest
		if wrong.Code == jsonrpc.CodeMethodNotFound {
			status = http.StatusNotFound
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write(jsonrpc.AppendError(nil, m.ID, wrong))
		return
	}
	ctx, done := h.connected(r)
	defer done()
	c := sessionless(s, r)
	c.Ended = h.ended
	h.answer(w, r, call{ctx: ctx, server: s, client: c, body: server.Inbound{Message: m}, done: func() {}})
}

// refusal says what is wrong with a request of 2026-07-28 before anything is done
// for it. From then on a status of 200 has gone out.
func (h *HTTP) refusal(r *http.Request, s *server.Server, m jsonrpc.Message) *jsonrpc.Error {
	if text := mismatch(r.Header, m); text != "" {
		return &jsonrpc.Error{Code: mcp.HEADER_MISMATCH, Message: text}
	}
	if !m.IsRequest() {
		return nil
	}
	if wrong := s.CheckModern(m); wrong != nil {
		return wrong
	}
	if err := s.CheckParameterHeaders(r.Header, m); err != nil {
		return &jsonrpc.Error{Code: mcp.HEADER_MISMATCH, Message: err.Error()}
	}
	return nil
}

// lacksMeta reports whether a message is of 2026-07-28 by its header alone.
// Notifications are: go-sdk's client sends its cancellations that way, and takes
// a refusal for the end of its connection.
func lacksMeta(r *http.Request, m jsonrpc.Message) bool {
	return !m.IsResponse() && m.Method != "initialize" && r.Header.Get(sessionHeader) == "" && mcp.IsModernProtocol(r.Header.Get("Mcp-Protocol-Version"))
}

// connected is the context of a call without a session: it ends with its
// connection, or when mcpx stops and the call has had its time.
func (h *HTTP) connected(r *http.Request) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(r.Context())
	stop := context.AfterFunc(h.calls, func() { cancel(context.Cause(h.calls)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// mismatch says where the headers of a request of 2026-07-28 differ from it.
func mismatch(h http.Header, m jsonrpc.Message) string {
	if got := h.Get("Mcp-Method"); got != m.Method {
		return fmt.Sprintf("the header Mcp-Method is %q, but the method is %q", got, m.Method)
	}
	version, _ := rawjson.String(rawjson.Get(rawjson.Get(m.Params, "_meta"), mcp.MetaKeyProtocolVersion))
	if got := h.Get("Mcp-Protocol-Version"); got != "" && version != "" && got != version {
		return fmt.Sprintf("the header Mcp-Protocol-Version is %q, but the request says %q", got, version)
	}
	member := map[string]string{"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}[m.Method]
	want, _ := rawjson.String(rawjson.Get(m.Params, member))
	// What is not plain ASCII comes in Base64.
	if got, ok := mcp.DecodeHeaderValue(h.Get("Mcp-Name")); member != "" && (!ok || got != want) {
		return fmt.Sprintf("the header Mcp-Name is %q, but the %s is %q", got, member, want)
	}
	return ""
}

// sessionless returns the client of a request without a session.
func sessionless(s *server.Server, r *http.Request) *server.Client {
	return s.NewSessionlessClient("http-"+rand.Text()[:8], sender(r))
}

// sender identifies who sends a request, as far as that is known.
func sender(r *http.Request) string {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	c := credential(r)
	return fmt.Sprintf("%s %x", host, c[:8])
}
