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
	count, _ := strconv.Atoi(os.Getenv("MCPX_BENCH_TOOLS"))
	lines := newLines(in)
	pipe := &pipe{w: out}
	for line := range lines.all() {
		m, err := rpc.Parse(line)
		if err != nil || m.ID == nil {
			continue
		}
		id := bytes.Clone(m.ID)
		switch m.Method {
		case "initialize":
			pipe.add(rpc.AppendResult(nil, id, []byte(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"bench","version":"1"}}`)))
		case "tools/list":
			pipe.add(rpc.AppendResult(nil, id, toolList(max(count, 1))))
		default:
			arguments := rawjson.Get(m.Params, "arguments")
			size, _ := strconv.Atoi(string(rawjson.Get(arguments, "size")))
			delay, _ := strconv.Atoi(string(rawjson.Get(arguments, "delay_ms")))
			result := []byte(`{"content":[{"type":"text","text":"` + strings.Repeat("x", max(size, 64)) + `"}]}`)
			if delay > 0 {
				time.AfterFunc(time.Duration(delay)*time.Millisecond, func() {
					pipe.add(rpc.AppendResult(nil, id, result))
					pipe.flush()
				})
				continue
			}
			pipe.add(rpc.AppendResult(nil, id, result))
		}
		if !lines.more() {
			pipe.flush()
		}
	}
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
	child := self("upstream")
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
