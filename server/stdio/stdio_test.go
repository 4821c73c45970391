package stdio

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/config"
	"mcpx/internal/rpc"
	"mcpx/server"
	"mcpx/server/servertest"
)

func TestMain(m *testing.M) { servertest.Main(m) }

// running is a Front at work, and its client.
type running struct {
	t    *testing.T
	in   *io.PipeWriter
	out  *bufio.Reader
	read *io.PipeReader // what out reads
	done chan error
	stop context.CancelFunc
}

// serve runs a front on pipes until the test ends.
func serve(t *testing.T, s *server.Server, limit int) *running {
	t.Helper()
	return serveWith(t, &Front{Server: s, Limits: config.Limits{MessageBytes: limit}})
}

// serveWith is serve with more settings.
func serveWith(t *testing.T, front *Front) *running {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ctx, stop := context.WithCancel(context.Background())
	f := &running{t: t, in: toServer, out: bufio.NewReader(fromServer), read: fromServer, done: make(chan error, 1), stop: stop}
	front.In, front.Out = in, out
	go func() {
		f.done <- front.Run(ctx)
		_ = out.Close()
	}()
	t.Cleanup(func() {
		stop()
		_ = toServer.Close()
		_ = fromServer.Close()
	})
	return f
}

// say sends lines.
func (f *running) say(lines ...string) {
	f.t.Helper()
	if _, err := io.WriteString(f.in, strings.Join(lines, "\n")+"\n"); err != nil {
		f.t.Error(err)
	}
}

// hear is the next line.
func (f *running) hear() string {
	f.t.Helper()
	line, err := f.out.ReadString('\n')
	if err != nil {
		f.t.Errorf("%q, %v", line, err)
	}
	return strings.TrimSuffix(line, "\n")
}

// rest is every line up to the end of the output.
func (f *running) rest() []string {
	f.t.Helper()
	text, err := io.ReadAll(f.out)
	if err != nil {
		f.t.Error(err)
	}
	if len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// request returns a request with the ID 1.
func request(method, params string) string {
	if params != "" {
		params = `,"params":` + params
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q%s}`, method, params)
}

// result returns the answer to it.
func result(result string) string { return `{"jsonrpc":"2.0","id":1,"result":` + result + `}` }

// hang is a method that is answered only when its request is canceled.
var hang server.Method = func(_ *server.Server, ctx context.Context, _ *server.Client, _ rpc.Message) ([]byte, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func TestConversation(t *testing.T) {
	f := serve(t, servertest.Start(t, server.Options{}, servertest.Upstream(t, "a")).Server, 1<<20)
	f.say(request("initialize", `{"protocolVersion":"2025-06-18"}`))
	f.hear()
	for _, row := range []struct{ say, hear string }{
		{`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n\n  \r\n" + request("ping", ""), result("{}")},
		{`{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/call","params":{"name":"exec","arguments":{"server_name":"a","tool_name":"echo","arguments":{"text":"hi"}}}}`, `{"jsonrpc":"2.0","id":9007199254740993,"result":{"content":[{"type":"text","text":"hi"}]}}`},
		{`not JSON`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: not valid JSON"}}`},
		{`{"jsonrpc":"2.0","id":1,"method":"ping"`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: not valid JSON"}}`},
		{strings.Repeat("[", 300) + strings.Repeat("]", 300), `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: JSON nested too deep"}}`},
		{`[` + request("ping", "") + `]`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: a message is one JSON object"}}`},
		{`5`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: a message is one JSON object"}}`},
		{`{}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: no \"method\""}}`},
		{`{"jsonrpc":"1.0","id":5,"method":"ping"}`, `{"jsonrpc":"2.0","id":5,"error":{"code":-32600,"message":"Invalid request: \"jsonrpc\" must be \"2.0\""}}`},
		{`{"id":5,"method":"ping"}`, `{"jsonrpc":"2.0","id":5,"error":{"code":-32600,"message":"Invalid request: \"jsonrpc\" must be \"2.0\""}}`},
		{`{"method":"notifications/exit"}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: \"jsonrpc\" must be \"2.0\""}}`},
		{`{"jsonrpc":"2.0","id":5,"method":7}`, `{"jsonrpc":"2.0","id":5,"error":{"code":-32600,"message":"Invalid request: \"method\" must be a string"}}`},
		{`{"jsonrpc":"2.0","id":{},"method":"ping"}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: \"id\" must be a string or a number"}}`},
		{`{"jsonrpc":"2.0","id":null,"method":"ping"}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: \"id\" must be a string or a number"}}`},
		{`{"jsonrpc":"2.0","id":5,"method":"ping","method":"tools/list"}`, `{"jsonrpc":"2.0","id":5,"error":{"code":-32600,"message":"Invalid request: \"method\" is given twice"}}`},
		{`{"jsonrpc":"2.0","id":{},"method":"ping","method":"tools/list"}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: \"method\" is given twice"}}`},
		{strings.Repeat("x", 1<<20+1), `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: a message is at most 1048576 bytes (limits.message_bytes)"}}`},
		{strings.Repeat("x", 5<<20), `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: a message is at most 1048576 bytes (limits.message_bytes)"}}`},
		{request("ping", "") + "\r", result("{}")},
		{request("shutdown", ""), result("{}")},
	} {
		f.say(row.say)
		if got := f.hear(); got != row.hear {
			t.Errorf("%.200s\n got %s\nwant %s", row.say, got, row.hear)
		}
	}
	f.say(`{"jsonrpc":"2.0","method":"notifications/exit"}`)
	if err := <-f.done; err != nil {
		t.Errorf("after notifications/exit: %v", err)
	}
	if rest := f.rest(); rest != nil {
		t.Errorf("more was written: %q", rest)
	}
}

// TestCallsOverlap: no request waits for another. Each of 64 is answered only
// once all have come.
func TestCallsOverlap(t *testing.T) {
	const n = 64
	var all sync.WaitGroup
	all.Add(n)
	servertest.AddMethod(t, "test/meet", func(*server.Server, context.Context, *server.Client, rpc.Message) ([]byte, error) {
		all.Done()
		all.Wait()
		return []byte("{}"), nil
	})
	f := serve(t, servertest.Bare(), 1<<20)
	want := map[string]bool{}
	for i := range n {
		f.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"test/meet"}`, i))
		want[fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, i)] = true
	}
	got := map[string]bool{}
	for range n {
		got[f.hear()] = true
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	_ = f.in.Close()
	if err := <-f.done; err != nil {
		t.Error(err)
	}
}

// TestDrains: after the end of input, calls in flight get five seconds and are
// then canceled. The last answer ends the front.
func TestDrains(t *testing.T) {
	const takes = 4 * time.Second
	servertest.AddMethod(t, "test/hang", hang)
	servertest.AddMethod(t, "test/slow", func(*server.Server, context.Context, *server.Client, rpc.Message) ([]byte, error) {
		<-time.After(takes)
		return []byte("{}"), nil
	})
	for name, end := range map[string]func(*running){
		"EOF":  func(f *running) { _ = f.in.Close() },
		"exit": func(f *running) { f.say(`{"jsonrpc":"2.0","method":"notifications/exit"}`) },
		"ctx":  func(f *running) { f.stop() },
		"torn": func(f *running) { _ = f.in.CloseWithError(errors.New("torn")) },
	} {
		for last, want := range map[time.Duration][]string{
			takes: {`{"jsonrpc":"2.0","id":2,"result":{}}`},
			server.DrainTime: {
				`{"jsonrpc":"2.0","id":2,"result":{}}`,
				`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"mcpx is stopping; the call was canceled"}}`,
			},
		} {
			synctest.Test(t, func(t *testing.T) {
				f := serve(t, servertest.Bare(), 1<<20)
				begin := time.Now()
				if last == server.DrainTime {
					f.say(request("test/hang", ""))
				}
				f.say(`{"jsonrpc":"2.0","id":2,"method":"test/slow"}`)
				synctest.Wait() // they are in flight
				end(f)
				if got := f.rest(); !slices.Equal(got, want) {
					t.Errorf("%s: got %q, want %q", name, got, want)
				}
				if err := <-f.done; (err != nil) != (name == "torn") {
					t.Errorf("%s: error %v", name, err)
				}
				if took := time.Since(begin); took != last {
					t.Errorf("%s: it took %v, want %v", name, took, last)
				}
			})
		}
	}
}

// TestDoesNotWaitForStuckMethods: a method that ignores its cancellation does not
// delay the end.
func TestDoesNotWaitForStuckMethods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		servertest.AddMethod(t, "test/stuck", func(*server.Server, context.Context, *server.Client, rpc.Message) ([]byte, error) {
			<-release
			return nil, errors.New("at last")
		})
		f := serve(t, servertest.Bare(), 1<<20)
		f.say(request("test/stuck", ""))
		synctest.Wait()
		begin := time.Now()
		_ = f.in.Close()
		if got := f.rest(); got != nil {
			t.Errorf("got %q", got)
		}
		if err := <-f.done; err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took > 8*time.Second {
			t.Errorf("it took %v", took)
		}
		close(release)
		synctest.Wait()
	})
}

func TestTimeout(t *testing.T) {
	servertest.AddMethod(t, "test/hang", hang)
	synctest.Test(t, func(t *testing.T) {
		f := serveWith(t, &Front{Server: servertest.Bare(), Limits: config.Limits{MessageBytes: 1 << 20}, Timeout: 2 * time.Second})
		begin := time.Now()
		f.say(request("test/hang", ""))
		want := `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no answer within 2s (cli.stdio.timeout); the call was canceled"}}`
		if got := f.hear(); got != want || time.Since(begin) != 2*time.Second {
			t.Errorf("after %v: %s, want %s", time.Since(begin), got, want)
		}
		_ = f.in.Close()
		if err := <-f.done; err != nil {
			t.Error(err)
		}
	})
}

// TestClientThatDoesNotRead: its requests are read up to a limit, and the end
// comes in time.
func TestClientThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servertest.AddMethod(t, "test/large", func(*server.Server, context.Context, *server.Client, rpc.Message) ([]byte, error) {
			return []byte(`"` + strings.Repeat("x", 10_000) + `"`), nil
		})
		f := serve(t, servertest.Bare(), 20_000)
		for range 50 {
			f.say(request("test/large", ""))
		}
		synctest.Wait()
		begin := time.Now()
		f.stop()
		if err := <-f.done; err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("it took %v", took)
		}
		_ = f.read.Close()
		_ = f.in.Close()
		synctest.Wait()
	})
}

// TestWriterThatFails: a client whose output is gone ends the front at once.
func TestWriterThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, servertest.Bare(), 1<<20)
		gone := errors.New("gone")
		_ = f.read.CloseWithError(gone)
		begin := time.Now()
		f.say(request("ping", ""))
		if err := <-f.done; !errors.Is(err, gone) {
			t.Errorf("error %v, want %v", err, gone)
		}
		if took := time.Since(begin); took > 100*time.Millisecond {
			t.Errorf("it took %v, with nothing in flight", took)
		}
		_ = f.in.Close()
		synctest.Wait()
	})
}

// TestCancellationRightBehindTheRequest: it is not lost.
func TestCancellationRightBehindTheRequest(t *testing.T) {
	servertest.AddMethod(t, "test/hang", hang)
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, servertest.Bare(), 1<<20)
		var lines []string
		for i := range 200 {
			lines = append(lines,
				fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"test/hang"}`, i),
				fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, i))
		}
		f.say(lines...)
		_ = f.in.Close()
		if got := f.rest(); got != nil {
			t.Errorf("%d canceled requests were answered, the first with %s", len(got), got[0])
		}
		if err := <-f.done; err != nil {
			t.Error(err)
		}
	})
}

// TestEndsWhileRequestsCome: the race detector finds a WaitGroup that is waited
// for and added to at the same time.
func TestEndsWhileRequestsCome(t *testing.T) {
	for range 50 {
		f := serve(t, servertest.Bare(), 1<<20)
		begun := make(chan struct{})
		go func() {
			for i := 0; ; i++ {
				if i == 20 {
					close(begun)
				}
				if _, err := io.WriteString(f.in, request("ping", "")+"\n"); err != nil {
					return
				}
			}
		}()
		go func() {
			<-begun
			f.stop()
		}()
		f.rest()
		if err := <-f.done; err != nil {
			t.Error(err)
		}
		_ = f.in.Close()
	}
}

// TestIsAnsweredWhileItEnds: a call in flight at the end gets the response of the
// client to its request.
func TestIsAnsweredWhileItEnds(t *testing.T) {
	servertest.AddMethod(t, "test/ask", func(_ *server.Server, ctx context.Context, c *server.Client, _ rpc.Message) ([]byte, error) {
		return c.Request(ctx, "roots/list", nil)
	})
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, servertest.Bare(), 1<<20)
		begin := time.Now()
		f.say(request("initialize", `{"protocolVersion":"2025-06-18","capabilities":{"roots":{}}}`))
		f.hear()
		f.say(`{"jsonrpc":"2.0","id":2,"method":"test/ask"}`)
		if got, want := f.hear(), `{"jsonrpc":"2.0","id":"mcpx-1","method":"roots/list"}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		f.stop()
		synctest.Wait()
		f.say(request("ping", ""), `{"jsonrpc":"2.0","id":"mcpx-1","result":{"roots":[]}}`)
		if got, want := f.rest(), []string{`{"jsonrpc":"2.0","id":2,"result":{"roots":[]}}`}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("it took %v", took)
		}
	})
}

// TestRequestsNamedLikeNotifications: an ID makes a message a request, whatever
// its method is. Each one is answered, or the front would wait for it in vain.
func TestRequestsNamedLikeNotifications(t *testing.T) {
	f := serve(t, servertest.Bare(), 1<<20)
	var want []string
	for i, method := range []string{"notifications/cancelled", "notifications/initialized", "notifications/progress"} {
		f.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{"requestId":7,"progressToken":7}}`, i, method))
		want = append(want, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":-32601,"message":"Method '%s' not found"}}`, i, method))
	}
	_ = f.in.Close()
	if got := slices.Sorted(slices.Values(f.rest())); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestRequestThatBeginsTooLate: a request that comes when the front has canceled all requests
// is canceled, too.
func TestRequestThatBeginsTooLate(t *testing.T) {
	servertest.AddMethod(t, "test/hang", hang)
	s := servertest.Bare()
	out := rpc.NewWriter(io.Discard, 1<<20)
	c := &run{Front: &Front{Server: s}, out: out, client: s.NewClient("stdio", out.Send)}
	c.client.Quota = server.NewQuota(1, 0)
	c.client.Conn.Close(server.ErrStopping)
	c.handle(server.Read([]byte(request("test/hang", ""))))
	idle := make(chan struct{})
	go func() {
		defer close(idle)
		c.pending.Close()
	}()
	select {
	case <-idle:
	case <-time.After(2 * time.Second):
		t.Error("the request goes on")
	}
}

// gate is a method that is answered with its number when open says so.
func gate(open <-chan struct{}) server.Method {
	return func(_ *server.Server, ctx context.Context, _ *server.Client, m rpc.Message) ([]byte, error) {
		select {
		case <-open:
			return m.Params, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// numbered returns requests with IDs from 0 to n-1.
func numbered(n int) (requests []string) {
	for i := range n {
		requests = append(requests, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"test/gate","params":{}}`, i))
	}
	return requests
}

// TestQueuedRequests: those that there is no room for are answered in their order, except
// those that the client cancels meanwhile.
func TestQueuedRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := make(chan struct{})
		servertest.AddMethod(t, "test/gate", gate(open))
		f := serveWith(t, &Front{Server: servertest.Bare(), Limits: config.Limits{MessageBytes: 1 << 20, CallsPerClient: 1}})
		f.say(numbered(5)...)
		f.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
		synctest.Wait()
		_ = f.in.Close()
		synctest.Wait()
		close(open)
		var want []string
		for _, id := range []int{0, 1, 3, 4} {
			want = append(want, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, id))
		}
		if got := f.rest(); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// TestDrainsQueuedRequests: at the end, requests and batches that wait for room are canceled
// with those that run. Each gets a response.
func TestDrainsQueuedRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servertest.AddMethod(t, "test/gate", gate(nil))
		f := serveWith(t, &Front{Server: servertest.Bare(), Limits: config.Limits{MessageBytes: 1 << 20, CallsPerClient: 2}})
		f.say(request("initialize", `{"protocolVersion":"2025-03-26"}`))
		f.hear()
		all := numbered(20)
		f.say(append(all, "["+all[0]+","+all[1]+"]")...)
		synctest.Wait()
		begin := time.Now()
		f.stop()
		const stopped = `"error":{"code":-32603,"message":"mcpx is stopping; the call was canceled"}`
		got := strings.Join(f.rest(), "\n")
		if n := strings.Count(got, stopped); n != 22 || strings.Count(got, "\n") != 20 {
			t.Errorf("%d requests are answered:\n%s", n, got)
		}
		if err := <-f.done; err != nil || time.Since(begin) != server.DrainTime {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}

// TestFullQueue: a client that sends without end is read no further than a limit, and the
// front ends in time.
func TestFullQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servertest.AddMethod(t, "test/gate", gate(nil))
		f := serveWith(t, &Front{Server: servertest.Bare(), Limits: config.Limits{MessageBytes: 1 << 20, CallsPerClient: 1}})
		large := request("test/gate", `{"text":"`+strings.Repeat("x", 100_000)+`"}`)
		sent := 0
		writing := make(chan struct{})
		go func() {
			defer close(writing)
			for {
				if _, err := io.WriteString(f.in, large+"\n"); err != nil {
					return
				}
				sent++
			}
		}()
		synctest.Wait()
		if sent > 13 { // one runs, ten are queued, one waits; the reader has a buffer
			t.Errorf("%d messages were read", sent)
		}
		begin := time.Now()
		f.stop()
		f.rest()
		if err := <-f.done; err != nil || time.Since(begin) != server.DrainTime {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		_ = f.in.Close()
		<-writing
	})
}

// TestTimeoutOfQueuedRequests: the time in which a request waits for room does not count.
func TestTimeoutOfQueuedRequests(t *testing.T) {
	servertest.AddMethod(t, "test/gate", func(*server.Server, context.Context, *server.Client, rpc.Message) ([]byte, error) {
		<-time.After(2 * time.Second)
		return []byte("{}"), nil
	})
	synctest.Test(t, func(t *testing.T) {
		f := serveWith(t, &Front{Server: servertest.Bare(), Limits: config.Limits{MessageBytes: 1 << 20, CallsPerClient: 1}, Timeout: 3 * time.Second})
		f.say(numbered(3)...)
		for i := range 3 {
			if got, want := f.hear(), fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, i); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		_ = f.in.Close()
		if err := <-f.done; err != nil {
			t.Error(err)
		}
	})
}

// TestUnreadResponses: responses that the writer has no room for arrive unchanged, in the order
// in which their calls end, and no further call starts until they are written.
func TestUnreadResponses(t *testing.T) {
	const calls = 9
	text := func(id int) string { return strings.Repeat(fmt.Sprint(id), 100_000) }
	synctest.Test(t, func(t *testing.T) {
		var end [calls + 1]chan struct{}
		for i := range end {
			end[i] = make(chan struct{})
		}
		started := 0
		f := serveWith(t, &Front{Server: servertest.Bare(), Limits: config.Limits{MessageBytes: 1 << 20, UnreadBytes: 250_000, CallsPerClient: 20}})
		servertest.AddMethod(t, "test/long", func(_ *server.Server, _ context.Context, _ *server.Client, m rpc.Message) ([]byte, error) {
			id, _ := strconv.Atoi(string(m.ID))
			started++ // the test waits after each
			<-end[id]
			return []byte(`"` + text(id) + `"`), nil
		})
		call := func(id int) {
			f.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"test/long"}`, id))
			synctest.Wait()
		}
		for id := range calls {
			call(id)
		}
		for id := range calls {
			close(end[id])
			synctest.Wait()
		}
		close(end[calls])
		call(calls)
		if started != calls {
			t.Errorf("%d calls have started, want %d", started, calls)
		}
		for id := range end {
			if want := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":"%s"}`, id, text(id)); f.hear() != want {
				t.Errorf("the response to %d is not the next, or has changed", id)
			}
		}
		_ = f.in.Close()
		if err := <-f.done; err != nil {
			t.Error(err)
		}
	})
}
