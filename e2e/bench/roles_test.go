package bench

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
)

// role says what a copy of the test binary is, instead of tests.
const role = "MCPX_BENCH_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "upstream":
		upstream(os.Stdin, os.Stdout)
	case "relay":
		relay()
	default:
		os.Exit(build(m))
	}
}

// upstream is an MCP server that does next to nothing for a call. Its tools take
// the size of the answer and the time it takes.
func upstream(in io.Reader, out io.Writer) {
	if slow := os.Getenv("MCPX_BENCH_SLOW"); slow != "" && slow == os.Getenv("MCPX_BENCH_NAME") {
		time.Sleep(3 * time.Second)
	}
	if address := os.Getenv("MCPX_BENCH_ADDRESS"); address != "" {
		panic(http.ListenAndServe(address, http.HandlerFunc(remoteUpstream)))
	}
	lines := newLines(in)
	pipe := &pipe{w: out}
	for line := range lines.all() {
		response, delay := respond(line)
		switch {
		case response == nil:
			continue
		case delay > 0:
			time.AfterFunc(delay, func() {
				pipe.add(response)
				pipe.flush()
			})
			continue
		}
		pipe.add(response)
		if !lines.more() {
			pipe.flush()
		}
	}
}

// respond returns the upstream's response to a message, nil for a notification, and the
// time to wait before it is sent.
func respond(message []byte) (response []byte, delay time.Duration) {
	m, err := rpc.Parse(message)
	if err != nil || m.ID == nil {
		return nil, 0
	}
	switch m.Method {
	case "initialize":
		return rpc.AppendResult(nil, m.ID, []byte(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"bench","version":"1"}}`)), 0
	case "tools/list":
		count, _ := strconv.Atoi(os.Getenv("MCPX_BENCH_TOOLS"))
		return rpc.AppendResult(nil, m.ID, toolList(max(count, 1))), 0
	case "tools/call", "ping":
		arguments := rawjson.Get(m.Params, "arguments")
		size, _ := strconv.Atoi(string(rawjson.Get(arguments, "size")))
		wait, _ := strconv.Atoi(string(rawjson.Get(arguments, "delay_ms")))
		result := []byte(`{"content":[{"type":"text","text":"` + strings.Repeat("x", max(size, 64)) + `"}]}`)
		return rpc.AppendResult(nil, m.ID, result), time.Duration(wait) * time.Millisecond
	}
	return rpc.AppendError(nil, m.ID, rpc.Errorf(rpc.CodeMethodNotFound, "method not found")), 0
}

// remoteUpstream is the upstream over Streamable HTTP. It responds with JSON or, if
// MCPX_BENCH_EVENTS is set, with an event.
func remoteUpstream(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	response, delay := respond(body)
	time.Sleep(delay)
	switch {
	case response == nil:
		w.WriteHeader(http.StatusAccepted)
		return
	case os.Getenv("MCPX_BENCH_EVENTS") != "":
		w.Header().Set("Content-Type", "text/event-stream")
		response = slicesJoin([]byte("event: message\ndata: "), response, []byte("\n\n"))
	default:
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(response)))
	}
	_, _ = w.Write(response)
}

func toolList(n int) []byte {
	b := []byte(`{"tools":[`)
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"name":"t%d","description":"Tool %d: answers with a text of the size that is asked for.","inputSchema":{"type":"object","properties":{`+
			`"message":{"type":"string","description":"What to say."},"size":{"type":"integer","minimum":0},"delay_ms":{"type":"integer"},`+
			`"path":{"type":"string"},"mode":{"type":"string","enum":["r","w"]}},"required":["message"]}}`, i, i)
	}
	return append(b, "]}"...)
}

// lines reads a pipe line by line.
type lines struct{ r *bufio.Reader }

func newLines(r io.Reader) *lines { return &lines{bufio.NewReaderSize(r, 1<<16)} }

// all are the lines; each is valid until the next.
func (l *lines) all() func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		var long []byte
		for {
			part, err := l.r.ReadSlice('\n')
			switch {
			case errors.Is(err, bufio.ErrBufferFull):
				long = append(long, part...)
				continue
			case err != nil:
				return
			}
			if len(long) > 0 {
				part, long = append(long, part...), nil
			}
			if !yield(part) {
				return
			}
		}
	}
}

// more reports whether another whole line is there already.
func (l *lines) more() bool {
	waiting, _ := l.r.Peek(l.r.Buffered())
	return bytes.IndexByte(waiting, '\n') >= 0
}

// pipe gathers lines into one write.
type pipe struct {
	mu     sync.Mutex
	w      io.Writer
	buffer []byte
}

func (p *pipe) add(message []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.buffer = append(append(p.buffer, message...), '\n')
}

func (p *pipe) flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = p.w.Write(p.buffer)
	p.buffer = p.buffer[:0]
}

// relay is the floor for any proxy: it passes messages to one upstream and
// changes nothing but ids.
func relay() {
	if to := os.Getenv("MCPX_BENCH_TO"); to != "" {
		relayTo(to)
		return
	}
	child := self("upstream", "MCPX_BENCH_ADDRESS=") // the address is for the relay
	stdin, err := child.StdinPipe()
	if err != nil {
		panic(err)
	}
	stdout, err := child.StdoutPipe()
	if err != nil {
		panic(err)
	}
	if err := child.Start(); err != nil {
		panic(err)
	}
	r := &relayed{up: &pipe{w: stdin}, waiting: map[int64]origin{}}
	if address := os.Getenv("MCPX_BENCH_ADDRESS"); address != "" {
		go r.down(stdout, nil)
		panic(http.ListenAndServe(address, r))
	}
	go func() {
		in := newLines(os.Stdin)
		for line := range in.all() {
			r.forward(line, nil)
			if !in.more() {
				r.up.flush()
			}
		}
		_ = stdin.Close()
	}()
	r.down(stdout, &pipe{w: os.Stdout})
	_ = child.Wait()
}

// relayTo is the floor for remote upstreams: it posts each message as it is.
func relayTo(to string) {
	c := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	exchange := func(message []byte) []byte {
		r, err := http.NewRequest(http.MethodPost, to, bytes.NewReader(message))
		if err != nil {
			panic(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		answer, err := c.Do(r)
		if err != nil {
			panic(err)
		}
		defer func() { _ = answer.Body.Close() }()
		text, _ := io.ReadAll(answer.Body)
		text = bytes.TrimPrefix(text, []byte("event: message\ndata: "))
		return bytes.TrimRight(text, "\n")
	}
	if address := os.Getenv("MCPX_BENCH_ADDRESS"); address != "" {
		panic(http.ListenAndServe(address, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(exchange(body))
		})))
	}
	out := &pipe{w: os.Stdout}
	for line := range newLines(os.Stdin).all() {
		message := bytes.Clone(line)
		go func() {
			if answer := exchange(message); len(answer) > 0 {
				out.add(answer)
				out.flush()
			}
		}()
	}
}

type relayed struct {
	up *pipe

	mu      sync.Mutex
	last    int64
	waiting map[int64]origin
}

// origin is who waits for an answer.
type origin struct {
	id    []byte
	reply chan []byte // over HTTP
}

// idSpan finds the id of a message, which the clients and upstreams here always
// write as a number before all long members.
func idSpan(line []byte) (from, to int) {
	const key = `"id":`
	from = bytes.Index(line, []byte(key))
	if from < 0 {
		return 0, 0
	}
	from += len(key)
	to = from
	for line[to] >= '0' && line[to] <= '9' {
		to++
	}
	return from, to
}

func (r *relayed) forward(line []byte, reply chan []byte) {
	line = bytes.TrimSuffix(line, []byte("\n"))
	from, to := idSpan(line)
	if to == 0 {
		r.up.add(line)
		return
	}
	r.mu.Lock()
	r.last++
	id := r.last
	r.waiting[id] = origin{bytes.Clone(line[from:to]), reply}
	r.mu.Unlock()
	r.up.add(slicesJoin(line[:from], strconv.AppendInt(nil, id, 10), line[to:]))
}

func (r *relayed) down(stdout io.Reader, out *pipe) {
	in := newLines(stdout)
	for line := range in.all() {
		line = bytes.TrimSuffix(line, []byte("\n"))
		from, to := idSpan(line)
		id, _ := strconv.ParseInt(string(line[from:to]), 10, 64)
		r.mu.Lock()
		to1 := r.waiting[id]
		delete(r.waiting, id)
		r.mu.Unlock()
		message := slicesJoin(line[:from], to1.id, line[to:])
		if to1.reply != nil {
			to1.reply <- message
			continue
		}
		out.add(message)
		if !in.more() {
			out.flush()
		}
	}
}

func slicesJoin(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// ServeHTTP implements http.Handler.
func (r *relayed) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return
	}
	if _, to := idSpan(body); to == 0 {
		r.forward(body, nil)
		r.up.flush()
		w.WriteHeader(http.StatusAccepted)
		return
	}
	reply := make(chan []byte, 1)
	r.forward(body, reply)
	r.up.flush()
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(<-reply)
}

// self is a command that runs this binary in a role.
func self(as string, env ...string) *exec.Cmd {
	c := exec.Command(os.Args[0])
	c.Env = append(append(os.Environ(), role+"="+as), env...)
	return c
}
