// Package httpfront has the front for many clients, who connect over Streamable HTTP or legacy
// SSE. It reads messages, hands them to a server.Server, and writes the responses. It also
// bounds what a client may have pending or leave unread. Others add routes for people: see Route.
package httpfront

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
	"mcpx/internal/store"
	"mcpx/internal/unread"
	"mcpx/server"
	"mcpx/server/access"
)

// HTTP is the front for many clients: Streamable HTTP on /mcp, legacy SSE on /sse. It
// does not use mcp-go's server, which loses notifications or sends them on the wrong
// stream, accepts unknown session IDs, and lets a client cancel requests of others.
type HTTP struct {
	Servers   map[string]*server.Server // by profile name; SetServers changes them later
	Guard     access.Guard
	Log       zerolog.Logger
	Limits    config.Limits // if UnreadBytes is 0, it is defaultUnread
	StopDelay time.Duration // how long Run still serves after its context has ended, so that load balancers notice
	Stateless bool          // keep no client sessions, so that any replica can serve a request

	Replicas   Replicas           // continue client sessions of other processes; may be nil
	StoreState func() store.State // describes the store that they share; nil without one

	Freed func() // called whenever much memory of unread messages was freed; may be nil

	Routes []Route // routes that are not for MCP clients, besides /health

	build       sync.Once
	handler     http.Handler
	views       atomic.Pointer[views]
	times       times // zero: defaultTimes
	sessions    *sessions
	leaving     atomic.Bool     // mcpx stops, and StopDelay has begun
	stopping    chan struct{}   // closed when Run stops
	callsCtx    context.Context // canceled when times.drain is over
	cancelCalls context.CancelCauseFunc
}

const defaultUnread = 64 << 20

// Run serves on the listener until ctx ends. Unfinished calls then have times.drain to
// finish before they are canceled.
func (h *HTTP) Run(ctx context.Context, l net.Listener) error {
	handler := h.Handler()
	s := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: h.times.header,
		ReadTimeout:       h.times.body,                 // net/http clears it once the body was read
		WriteTimeout:      h.times.body + h.times.write, // slow handlers set a new deadline before each write
		IdleTimeout:       h.times.idle,
		MaxHeaderBytes:    64 << 10,

		DisableGeneralOptionsHandler: true, // the guard must see every request
	}
	h.sessions.tasks.Go(h.sessions.expire)
	defer h.close()
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	if err := h.leave(ended); err != nil {
		return err
	}
	h.closeStreams()
	err := shutdown(s, h.times.drain)
	if err != nil {
		h.cancelCalls(server.ErrStopping)
		h.sessions.cancelAll(server.ErrStopping)
		err = shutdown(s, h.times.cancel)
	}
	h.sessions.endAll()
	if err != nil {
		return s.Close()
	}
	return nil
}

// close closes all client sessions and waits for the goroutines of the front.
func (h *HTTP) close() {
	h.sessions.endAll()
	h.sessions.close()
}

// shutdown waits until every request has its response. It fails after the timeout.
func shutdown(s *http.Server, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return s.Shutdown(ctx)
}

// Open returns the number of open client sessions.
func (h *HTTP) Open() int { return len(h.sessions.all()) }

// OpenFor returns the number of open client sessions that the sender of a request may know
// of: all, or its own.
func (h *HTTP) OpenFor(r *http.Request) int {
	if access.MayUseAll(r.Context()) {
		return h.Open()
	}
	own, n := senderOf(r), 0
	for _, s := range h.sessions.all() {
		if s.sender == own {
			n++
		}
	}
	return n
}

// closeStreams ends the streams that carry no responses, since they would never end by
// themselves.
func (h *HTTP) closeStreams() {
	close(h.stopping)
	h.sessions.drain()
}

// post handles POST /mcp.
func (h *HTTP) post(w http.ResponseWriter, r *http.Request, s *server.Server) {
	body, ok := h.read(w, r)
	if !ok {
		return
	}
	m, err := body.Message, body.Err
	switch {
	case err != nil && !isArray(body):
		h.times.writeJSON(w, server.InvalidMessage(m, err), http.StatusBadRequest)
	case err == nil && server.Is2026(m.Params):
		h.post2026(w, r, s, m)
	case !isKnownVersion(r.Header.Get("Mcp-Protocol-Version")):
		access.Refuse(w, http.StatusBadRequest, "Unsupported protocol version: "+r.Header.Get("Mcp-Protocol-Version"))
	case err == nil && is2026ByHeader(r, m):
		h.post2026(w, r, s, m)
	case h.Stateless:
		h.postStateless(w, r, s, body)
	case err == nil && m.IsRequest() && m.Method == "initialize":
		h.initialize(w, r, s, m)
	default:
		h.postInSession(w, r, s, body)
	}
}

// isArray reports whether a body that failed to parse as a message is a JSON array.
// The client session decides whether arrays are batches.
func isArray(body server.Inbound) bool {
	return rawjson.Kind(body.Text) == '[' && server.WireError(body.Err).Code != rpc.CodeParse
}

// isKnownVersion reports whether a header Mcp-Protocol-Version is valid or absent.
func isKnownVersion(version string) bool { return version == "" || mcp.IsValidProtocolVersion(version) }

// read reads the message in the body of a request. If the body cannot be read, it writes the
// error response and returns false.
func (h *HTTP) read(w http.ResponseWriter, r *http.Request) (server.Inbound, bool) {
	text, ok := h.Body(w, r)
	body := server.Read(text)
	if body.Err == nil {
		body.Message = withTrace(body.Message, r.Header)
	}
	return body, ok
}

// Body reads the body of a request, as valid UTF-8 without a byte order mark. If it fails, it
// writes the error response and returns false.
func (h *HTTP) Body(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	body, err := readBody(http.MaxBytesReader(w, r.Body, int64(h.Limits.BodyBytes)), r.ContentLength, int64(h.Limits.BodyBytes))
	_, isTooLarge := errors.AsType[*http.MaxBytesError](err)
	switch {
	case err == nil:
		return rpc.UTF8(rpc.WithoutMark(body)), true
	case isTooLarge:
		access.Refuse(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("a message is at most %d bytes (limits.body_bytes)", h.Limits.BodyBytes))
	case errors.Is(err, os.ErrDeadlineExceeded):
		access.Refuse(w, http.StatusRequestTimeout, fmt.Sprintf("the body did not arrive within %s", h.times.body))
	default:
		access.Refuse(w, http.StatusBadRequest, "the body could not be read")
	}
	return nil, false
}

// readBody reads a body of that length; -1: unknown. A longer one than limit fails.
func readBody(r io.Reader, length, limit int64) ([]byte, error) {
	if length < 0 || length > limit {
		return io.ReadAll(r)
	}
	body := make([]byte, length)
	_, err := io.ReadFull(r, body)
	return body, err
}

// call is a message that was posted.
type call struct {
	ctx    context.Context
	server *server.Server
	client *server.Client
	body   server.Inbound
	done   func()          // called when the message was handled, perhaps after its connection broke
	unread *unread.Account // of the client session; nil without one

	status func(response []byte) int // the HTTP status of the response; nil: 200
}

// send sends a message on the call's own stream. If that has ended, the message goes to
// the GET stream: work that the call started may outlast it.
func (c call) send(own *Stream, message []byte) error {
	err := own.Send(message)
	if !errors.Is(err, errStreamClosed) || c.client.Send == nil {
		return err
	}
	return c.client.Send(message)
}

// respond handles a message. It writes the response, after the requests and
// notifications that belong to the call.
func (h *HTTP) respond(w http.ResponseWriter, r *http.Request, c call) {
	if c.unread == nil {
		c.unread = h.sessions.unread.NewCallAccount(h.Limits.UnreadBytes)
	}
	out := newStream(h.times, c.unread)
	client := c.client.Through(func(message []byte) error { return c.send(out, message) })
	handled := make(chan struct{})
	c.server.Handle(c.ctx, client, c.body, func(response []byte) {
		c.done()
		if c.status != nil {
			out.status = c.status(response)
		}
		out.end(response)
		close(handled)
	})
	if !c.body.IsAnswered() {
		c.done()
		w.WriteHeader(http.StatusAccepted)
		return
	}
	out.respond(w, r)
	<-handled // a call may outlast its connection
}

// postStateless handles a message without a client session (--stateless).
func (h *HTTP) postStateless(w http.ResponseWriter, r *http.Request, s *server.Server, body server.Inbound) {
	c := NewSessionlessClient(s, r)
	c.SetInitialized(cmp.Or(r.Header.Get("Mcp-Protocol-Version"), mcp.ProtocolVersion20250326), nil) // the default that MCP defines
	ctx, done := h.callContext(r)
	defer done()
	h.respond(w, r, call{ctx: ctx, server: s, client: c, body: body, done: func() {}})
}

// refuseStateless refuses a request that needs a client session if mcpx keeps none, and
// reports whether it did.
func (h *HTTP) refuseStateless(w http.ResponseWriter, allowed string) bool {
	if h.Stateless {
		w.Header().Set("Allow", allowed)
		access.Refuse(w, http.StatusMethodNotAllowed, "mcpx keeps no sessions (--stateless); send requests with POST /mcp")
	}
	return h.Stateless
}

// times are the timeouts and intervals of the HTTP front. None of them ends an idle
// stream.
type times struct {
	header time.Duration // for a client to send the headers of a request
	body   time.Duration // for a client to send a whole request
	idle   time.Duration // between two requests on a connection
	write  time.Duration // for a client to read one write
	alive  time.Duration // between two keep-alive comments on a stream
	drain  time.Duration // for unfinished calls when mcpx stops
	cancel time.Duration // for the responses to calls that are canceled then
}

var defaultTimes = times{
	header: 10 * time.Second,
	body:   time.Minute,
	idle:   2 * time.Minute,
	write:  30 * time.Second,
	alive:  15 * time.Second,
	drain:  server.DrainTime,
	cancel: server.CancelTime,
}
