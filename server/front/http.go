package front

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/rs/zerolog"

	"mcpx/internal/jsonrpc"
	"mcpx/internal/rawjson"
	"mcpx/internal/tasks"
	"mcpx/server"
	"mcpx/server/access"
)

// HTTP is the front for any number of clients: Streamable HTTP on /mcp, the
// older SSE on /sse. mcp-go's own is not used: it loses and misplaces a call's
// notifications, takes invented session ids, and lets one client cancel
// another's request.
type HTTP struct {
	Servers   map[string]*server.Server // by the name of their schema
	Guard     access.Guard
	Log       zerolog.Logger
	BodyBytes int
	Sessions  int
	Idle      time.Duration
	Calls     int          // of one session in flight at a time; 0: no limit
	Unread    int          // bytes of answers that one session may leave unread; 0: the usual
	Stateless bool         // no session is kept, so that any replica can answer
	Metrics   http.Handler // answers /metrics; nil: nothing does
	Console   http.Handler // answers / and what is below /assets/; nil: nothing does

	build     sync.Once
	handler   http.Handler
	answering tasks.Group                          // goroutines that answer legacy SSE clients
	views     map[string]map[string]*server.Server // of each schema, by how tools are shown
	times     times                                // what clients get for their part; zero: the usual
	sessions  *sessions
	ended     chan struct{}   // closed when no more is served
	calls     context.Context // ends when those in flight have had their time
	cancel    context.CancelCauseFunc
}

const usualUnread = 64 << 20

// Run serves on the listener until ctx ends. Calls in flight then have a while
// to finish.
func (h *HTTP) Run(ctx context.Context, l net.Listener) error {
	handler := h.Handler()
	s := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: h.times.header,
		ReadTimeout:       h.times.body,                 // net/http lifts it when the body is there
		WriteTimeout:      h.times.body + h.times.write, // what writes later sets a deadline before every write
		IdleTimeout:       h.times.idle,
		MaxHeaderBytes:    64 << 10,

		DisableGeneralOptionsHandler: true, // the guard sees every request
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
	h.closeStreams()
	err := shutdown(s, h.times.drain)
	if err != nil {
		h.cancel(errStopping)
		h.sessions.cancelAll(errStopping)
		err = shutdown(s, h.times.last)
	}
	h.sessions.endAll()
	if err != nil {
		return s.Close()
	}
	return nil
}

// close waits for what still runs for clients that are gone.
func (h *HTTP) close() {
	h.sessions.endAll()
	h.answering.Close()
	h.sessions.close()
}

// shutdown waits until every request is answered, that long at most.
func shutdown(s *http.Server, atMost time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), atMost)
	defer cancel()
	return s.Shutdown(ctx)
}

// Open is how many sessions are open.
func (h *HTTP) Open() int { return len(h.sessions.all()) }

// closeStreams ends what would never end by itself.
func (h *HTTP) closeStreams() {
	close(h.ended)
	h.sessions.leave()
}

// refuse answers with an error that no request can be blamed for.
func refuse(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(jsonrpc.AppendError(nil, nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: text}))
}

// sessionHeader names the session of a request.
const sessionHeader = "Mcp-Session-Id"

// post takes what a client sends.
func (h *HTTP) post(w http.ResponseWriter, r *http.Request, s *server.Server) {
	body, ok := h.body(w, r)
	if !ok {
		return
	}
	m, err := jsonrpc.ParseStrict(body)
	switch {
	case err != nil && !isArray(body, err):
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write(server.InvalidMessage(m, err))
	case err == nil && server.IsModern(m.Params):
		h.postModern(w, r, s, m)
	case !knownVersion(r.Header.Get("Mcp-Protocol-Version")):
		refuse(w, http.StatusBadRequest, "Unsupported protocol version: "+r.Header.Get("Mcp-Protocol-Version"))
	case err == nil && lacksMeta(r, m):
		h.postModern(w, r, s, m)
	case h.Stateless:
		h.postStateless(w, r, s, server.Inbound{Text: body, Message: m, Err: err})
	case err == nil && m.IsRequest() && m.Method == "initialize":
		h.initialize(w, r, s, m)
	default:
		h.postInSession(w, r, s, server.Inbound{Text: body, Message: m, Err: err})
	}
}

// isArray reports whether a body that is no message is a JSON array. Whether it is
// a batch depends on the client's session.
func isArray(body []byte, err error) bool {
	return rawjson.Kind(body) == '[' && server.WireError(err).Code != jsonrpc.CodeParse
}

// knownVersion reports whether a header may name that revision; it may be absent.
func knownVersion(version string) bool { return version == "" || mcp.IsValidProtocolVersion(version) }

// body reads the request's body, within its limit, as UTF-8.
func (h *HTTP) body(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	if kind := r.Header.Get("Content-Type"); kind != "" && kind != "application/json" {
		if media, _, err := mime.ParseMediaType(kind); err != nil || media != "application/json" {
			refuse(w, http.StatusUnsupportedMediaType, "Content-Type must be application/json")
			return nil, false
		}
	}
	body, err := readBody(http.MaxBytesReader(w, r.Body, int64(h.BodyBytes)), int(min(r.ContentLength, int64(h.BodyBytes))))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		refuse(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("a message is at most %d bytes (limits.body_bytes)", h.BodyBytes))
		return nil, false
	case errors.Is(err, os.ErrDeadlineExceeded):
		refuse(w, http.StatusRequestTimeout, fmt.Sprintf("the body did not come within %s", h.times.body))
		return nil, false
	case err != nil:
		refuse(w, http.StatusBadRequest, "the body could not be read")
		return nil, false
	}
	return jsonrpc.UTF8(body), true
}

// readBody reads all of a body that is about that long, -1 if that is not known.
func readBody(r io.Reader, size int) ([]byte, error) {
	b := bytes.NewBuffer(make([]byte, 0, max(size, 0)+bytes.MinRead))
	_, err := b.ReadFrom(r)
	return b.Bytes(), err
}

// initialize opens a session.
func (h *HTTP) initialize(w http.ResponseWriter, r *http.Request, s *server.Server, m jsonrpc.Message) {
	n := h.open(w, r, s)
	if n == nil {
		return
	}
	var answer []byte
	s.Handle(context.Background(), n.client, server.Inbound{Message: m}, func(a []byte) { answer = a }) // initialize is answered at once
	if rawjson.Get(answer, "error") != nil {
		h.sessions.end(n)
	} else {
		w.Header().Set(sessionHeader, n.id)
	}
	h.times.writeJSON(w, answer)
}

// open opens a session, or says that there are too many.
func (h *HTTP) open(w http.ResponseWriter, r *http.Request, s *server.Server) *session {
	n, err := h.sessions.open(s, r)
	if err != nil {
		w.Header().Set("Retry-After", "10")
		refuse(w, http.StatusServiceUnavailable, err.Error())
		return nil
	}
	return n
}

// session finds the session of a request, or says why there is none.
func (h *HTTP) session(w http.ResponseWriter, r *http.Request, s *server.Server) (n *session, done func()) {
	if v := r.Header.Get("Mcp-Protocol-Version"); !knownVersion(v) {
		refuse(w, http.StatusBadRequest, "Unsupported protocol version: "+v)
		return nil, nil
	}
	id := r.Header.Get(sessionHeader)
	if id == "" {
		refuse(w, http.StatusBadRequest, "the header "+sessionHeader+" is missing; send initialize first")
		return nil, nil
	}
	n, done = h.sessions.find(id, false, r)
	if n == nil || n.server != s {
		if done != nil {
			done()
		}
		refuse(w, http.StatusNotFound, "there is no such session; send initialize")
		return nil, nil
	}
	return n, done
}

// postInSession takes a message of a session. A call goes on when its connection
// breaks: MCP has it that only the client's word cancels it.
func (h *HTTP) postInSession(w http.ResponseWriter, r *http.Request, s *server.Server, body server.Inbound) {
	n, done := h.session(w, r, s)
	if n == nil {
		return
	}
	if body.IsRequest() {
		if !n.client.Quota.Enter() {
			done()
			tooMany(w)
			return
		}
		defer n.client.Quota.Leave()
	}
	h.answer(w, r, call{ctx: context.Background(), server: s, client: n.client, body: body, done: done, quota: n.client.Quota})
}

// tooMany refuses a call of a session that has too many in flight.
func tooMany(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	refuse(w, http.StatusTooManyRequests, "too many calls are in flight (limits.calls_per_client), or too many answers unread (limits.unread_bytes); read answers, then try again")
}

// call is a message on its way: done is called when it is over, which may be
// after its connection is.
type call struct {
	ctx    context.Context
	server *server.Server
	client *server.Client
	body   server.Inbound
	done   func()
	quota  *server.Quota // the session's; nil for a call without a session
}

// send sends a message on the call's own stream. Where that has ended, the call is
// over, but not all that it began: the standing stream has the rest.
func (c call) send(own *stream, message []byte) error {
	err := own.Send(message)
	if !errors.Is(err, errStreamClosed) || c.client.Send == nil {
		return err
	}
	return c.client.Send(message)
}

// answer takes a message and writes the answer, with all that belongs to the
// call on the same stream.
func (h *HTTP) answer(w http.ResponseWriter, r *http.Request, c call) {
	out := newStream(h.times, h.Unread)
	client := c.client.Through(func(message []byte) error { return c.send(out, message) })
	replied := make(chan []byte, 1)
	c.server.Handle(c.ctx, client, c.body, func(answer []byte) { replied <- answer })
	if !c.body.IsAnswered() {
		c.done()
		w.WriteHeader(http.StatusAccepted)
		return
	}
	release := func() {}
	out.respond(w, r, func() []byte {
		defer c.done()
		last := <-replied
		if c.quota != nil {
			release = c.quota.Hold(last)
		}
		return last
	})
	release()
}

// postStateless takes a message of a client for which nothing is kept.
func (h *HTTP) postStateless(w http.ResponseWriter, r *http.Request, s *server.Server, body server.Inbound) {
	c := sessionless(s, r)
	version := r.Header.Get("Mcp-Protocol-Version")
	if version == "" {
		version = mcp.ProtocolVersion20250326 // what MCP has a server assume
	}
	c.SetInitialized(version, nil)
	ctx, done := h.connected(r)
	defer done()
	h.answer(w, r, call{ctx: ctx, server: s, client: c, body: body, done: func() {}})
}

// keepsNone refuses what needs a session where none is kept.
func (h *HTTP) keepsNone(w http.ResponseWriter, allowed string) bool {
	if h.Stateless {
		w.Header().Set("Allow", allowed)
		refuse(w, http.StatusMethodNotAllowed, "no session is kept here (--stateless): there are only calls")
	}
	return h.Stateless
}

// get opens the stream for what belongs to no call.
func (h *HTTP) get(w http.ResponseWriter, r *http.Request, s *server.Server) {
	if h.keepsNone(w, http.MethodPost) {
		return
	}
	n, done := h.session(w, r, s)
	if n == nil {
		return
	}
	defer done()
	h.stand(w, r, n, nil)
}

// stand serves the standing stream of a session.
func (h *HTTP) stand(w http.ResponseWriter, r *http.Request, n *session, first []byte) {
	out := newStream(h.times, h.Unread)
	events := h.times.events(w)
	events.start()
	events.buffer = append(events.buffer, first...)
	n.listen(out) // before the client can know of it: what it posts next is answered here
	defer n.unlisten(out)
	if events.flush() != nil {
		return
	}
	out.serve(events, r)
}

// delete ends a session.
func (h *HTTP) delete(w http.ResponseWriter, r *http.Request, s *server.Server) {
	if h.keepsNone(w, http.MethodPost) {
		return
	}
	n, done := h.session(w, r, s)
	if n == nil {
		return
	}
	done()
	h.sessions.end(n)
	w.WriteHeader(http.StatusNoContent)
}
