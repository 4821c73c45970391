package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
	"mcpx/internal/tasks"
)

// Since revision 2026-07-28 MCP has no initialize. Every request names its revision
// and capabilities. A server that needs input from its client responds to the call with
// input_required. Changes are reported in one long response to subscriptions/listen.
// Which revision an upstream speaks is decided in revision.go.

// modern is the additional state of a session that speaks 2026-07-28.
type modern struct {
	meta []byte // members of every request's _meta
	filterState
}

// modernPrefix begins the keys of _meta that 2026-07-28 defines.
const modernPrefix = "io.modelcontextprotocol/"

// maxRounds bounds how often one call may require input of its client.
const maxRounds = 10

func modernMeta(version string) []byte {
	handshake := initializeParams(version)
	meta := rawjson.AppendString([]byte(`{"`+mcp.MetaKeyProtocolVersion+`":`), mcp.ProtocolVersion20260728)
	meta = rawjson.AppendMember(meta, mcp.MetaKeyClientInfo, rawjson.Get(handshake, "clientInfo"))
	return append(rawjson.AppendMember(meta, mcp.MetaKeyClientCapabilities, rawjson.Get(handshake, "capabilities")), '}')
}

// withoutModernKeys returns the _meta of a client's request without the keys of
// 2026-07-28, which are between the client and mcpx.
func withoutModernKeys(meta []byte) []byte {
	if !bytes.Contains(meta, []byte(modernPrefix)) {
		return meta
	}
	for key := range rawjson.Members(meta) {
		if strings.HasPrefix(key, modernPrefix) {
			meta = rawjson.With(meta, key, nil)
		}
	}
	return meta
}

// requestMeta returns the _meta of a request: the client's own keys, and those of
// 2026-07-28 as mcpx sets them. The capabilities are those of the client: what it lacks,
// the upstream must not require. For its own requests mcpx declares all of them.
func (s *Session) requestMeta(own []byte, client Client) []byte {
	meta := s.modern().meta
	for key, value := range rawjson.Members(withoutModernKeys(own)) {
		meta = rawjson.With(meta, key, value)
	}
	if c, ok := client.(InputClient); ok {
		meta = rawjson.With(meta, mcp.MetaKeyClientCapabilities, forwardable(c.Capabilities()))
	}
	if level := s.supervisor.registry.clients.level(); level != "" {
		meta = rawjson.With(meta, mcp.MetaKeyLogLevel, rawjson.AppendString(nil, level))
	}
	return meta
}

// forwardable returns the capabilities of a client that upstreams learn. mcpx forwards no
// other requests to clients.
func forwardable(capabilities []byte) []byte {
	b := []byte("{")
	for _, name := range []string{"roots", "sampling", "elicitation"} {
		if declared := rawjson.Get(capabilities, name); rawjson.Kind(declared) == '{' {
			b = rawjson.AppendMember(b, name, declared)
		}
	}
	return append(b, '}')
}

// callInRounds makes a call. Each time the upstream requires input, it gets the input
// from the client and makes the call again.
func (s *Session) callInRounds(ctx context.Context, r Request, l limits) ([]byte, error) {
	switch r.Method {
	case "resources/subscribe": // the filter of listen has all URIs
		return []byte("{}"), s.waitListening(ctx, s.modern().request())
	case "resources/unsubscribe":
		s.modern().request()
		return []byte("{}"), nil
	case "logging/setLevel":
		return []byte("{}"), nil
	}
	s.rounds.Add(1)
	defer s.rounds.Add(-1)
	r.Meta = s.requestMeta(r.Meta, r.Client)
	if l.total > 0 { // for all rounds, and the client's time between them
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, l.total, &Timeout{Server: s.config.Name, Key: "max_timeout", Limit: l.total})
		defer cancel()
		l.total = 0
	}
	for round := range maxRounds {
		result, err := s.callOnce(ctx, r, l)
		if round > 0 && errors.Is(err, rpc.ErrClosed) { // this round was not sent, but the first was
			<-s.done()
			return nil, s.Lost(s.conn.Err())
		}
		if err != nil || string(rawjson.Get(result, "resultType")) != `"input_required"` {
			return result, err
		}
		if r.Client == nil {
			return nil, errors.New("the upstream requires input of a client, but mcpx made the call")
		}
		if r.Params, err = s.collectInput(ctx, r, result); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("the upstream required input more than %d times", maxRounds)
}

// collectInput sends the upstream's requests to the client and returns the params of
// the next round, with the responses.
func (s *Session) collectInput(ctx context.Context, r Request, result []byte) ([]byte, error) {
	requestCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.conn.Context(), cancel)() // nothing waits for the response then
	inputs, err := s.inputs(r, result)
	if err != nil {
		return nil, err
	}
	ask := func() ([][]byte, error) { return RequestEach(requestCtx, r.Client, inputs) }
	if c, ok := r.Client.(InputClient); ok {
		ask = func() ([][]byte, error) { return c.RequestAll(requestCtx, inputs) }
	}
	responses, err := ask()
	switch {
	case s.isOver():
		return nil, s.Lost(s.conn.Err())
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, err
	}
	byKey := []byte("{")
	for i, input := range inputs {
		byKey = rawjson.AppendMember(byKey, input.Key, responses[i])
	}
	params := rawjson.With(rawjson.OrObject(r.Params), "inputResponses", append(byKey, '}'))
	return rawjson.With(params, "requestState", rawjson.Get(result, "requestState")), nil
}

// maxInputs bounds the requests of one round.
const maxInputs = 100

// inputs returns the requests to the client in a result.
func (s *Session) inputs(r Request, result []byte) (inputs []Input, err error) {
	for key, request := range rawjson.Members(rawjson.Get(result, "inputRequests")) {
		method, _ := rawjson.String(rawjson.Get(request, "method"))
		if !forClients[method] {
			return nil, fmt.Errorf("the upstream requests %q, which clients do not know", method)
		}
		if len(inputs) == maxInputs {
			return nil, fmt.Errorf("the upstream requires more than %d inputs at once", maxInputs)
		}
		params := rawjson.Get(request, "params")
		if method == "elicitation/create" {
			s.rememberURL(params, r.Client)
		}
		inputs = append(inputs, Input{key, method, params})
	}
	return inputs, nil
}

// filterState tracks the filter of subscriptions/listen: which notifications are
// wanted, and which of them the upstream has acknowledged. Every change of the
// filter has a generation.
type filterState struct {
	changed tasks.Signal // a newer generation is requested

	mu           sync.Mutex
	requested    int           // newest generation
	acknowledged int           // newest generation that the upstream acknowledged, or that failed
	news         chan struct{} // closed when acknowledged changes
	missed       bool          // lists may have changed while no request was open
}

// Times for subscriptions/listen.
const (
	listenTime    = 5 * time.Second  // for the acknowledgment, which some upstreams do not send
	relistenPause = 10 * time.Second // before a request that failed is sent again
)

func newFilterState() filterState {
	return filterState{changed: tasks.NewSignal(), news: make(chan struct{})}
}

// request requests a new filter and returns its generation; waitListening waits
// until the upstream has acknowledged it.
func (f *filterState) request() (generation int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requested++
	f.changed.Notify()
	return f.requested
}

// newest returns the newest requested generation and clears the signal.
func (f *filterState) newest() (generation int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changed.Clear()
	return f.requested
}

// acknowledge records that the upstream has acknowledged a generation. It reports
// whether changes of lists may have been missed before.
func (f *filterState) acknowledge(generation int) (missed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.advance(generation)
	missed, f.missed = f.missed, false
	return missed
}

// fail records that the request for a generation has ended, so that nobody waits for it.
func (f *filterState) fail(generation int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.advance(generation)
	f.missed = true
}

func (f *filterState) advance(generation int) {
	f.acknowledged = max(f.acknowledged, generation)
	close(f.news)
	f.news = make(chan struct{})
}

// waitListening waits until the upstream has acknowledged a generation: a client
// that got the response to its subscription may change the resource at once.
func (s *Session) waitListening(ctx context.Context, generation int) error {
	limit := time.NewTimer(listenTime)
	defer limit.Stop()
	for f := &s.modern().filterState; ; {
		f.mu.Lock()
		acknowledged, news := f.acknowledged, f.news
		f.mu.Unlock()
		if acknowledged >= generation {
			return nil
		}
		select {
		case <-news:
		case <-limit.C:
			return nil
		case <-s.done():
			return rpc.ErrClosed // the filter of the next session has it, too
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// listen keeps a subscriptions/listen request open until the session ends, and
// replaces it when the filter changes.
func (s *Session) listen(capabilities []byte) {
	for !s.isOver() {
		generation := s.modern().newest() // before the filter is read
		s.listenTo(s.filter(capabilities), generation)
	}
}

// filter returns the wanted notifications: the lists that can change, and the
// resources that clients subscribed to. It is nil if there are none.
func (s *Session) filter(capabilities []byte) (filter []byte) {
	for _, list := range listable {
		if string(rawjson.Get(rawjson.Get(capabilities, list), "listChanged")) == "true" {
			filter = rawjson.With(filter, list+"ListChanged", []byte("true"))
		}
	}
	uris := s.supervisor.registry.clients.uris(s.key())
	if len(uris) == 0 {
		return filter
	}
	list := []byte("[")
	for i, uri := range uris {
		if i > 0 {
			list = append(list, ',')
		}
		list = rawjson.AppendString(list, uri)
	}
	return rawjson.With(filter, "resourceSubscriptions", append(list, ']'))
}

// acknowledgment is the tag of a subscriptions/listen request. It is called when the
// upstream acknowledges the request.
type acknowledgment func()

// listenTo keeps one request open until the filter changes, or the session or the
// request ends. For a nil filter nothing is sent.
func (s *Session) listenTo(filter []byte, generation int) {
	ctx, cancel := context.WithCancel(s.conn.Context())
	ended := make(chan error, 1)
	var request sync.WaitGroup
	defer request.Wait() // its cancellation is sent before the next request
	defer cancel()
	if filter == nil {
		s.modern().acknowledge(generation)
	} else {
		request.Go(func() {
			_, err := s.conn.Call(ctx, rpc.Request{
				Method: "subscriptions/listen",
				Params: rawjson.With([]byte("{}"), "notifications", filter),
				Meta:   s.requestMeta(nil, nil),
				Tag:    acknowledgment(func() { s.listening(filter, generation) }),
			})
			ended <- err
		})
	}
	select {
	case <-s.modern().changed:
	case <-s.done():
	case err := <-ended:
		s.log.Debug().Err(err).Msg("subscriptions/listen ended")
		s.modern().fail(generation)
		select {
		case <-s.modern().changed:
		case <-time.After(relistenPause):
		case <-s.done():
		}
	}
}

// listening records that the upstream has acknowledged a filter. Lists that may have
// changed before are read again.
func (s *Session) listening(filter []byte, generation int) {
	if !s.modern().acknowledge(generation) {
		return
	}
	for _, list := range listable {
		if rawjson.Get(filter, list+"ListChanged") != nil {
			s.notified(listChanged(list), nil, nil)
		}
	}
}

// acknowledged handles the acknowledgment of a subscriptions/listen request. Its
// _meta names the request; otherwise the stream that carried it does.
func (s *Session) acknowledged(params, callID []byte) {
	if id := rawjson.Get(rawjson.Get(params, "_meta"), mcp.MetaKeySubscriptionID); id != nil {
		callID = id
	}
	if c := s.conn.Pending(callID); c != nil {
		if acknowledge, ok := c.Tag.(acknowledgment); ok {
			acknowledge()
		}
	}
}
