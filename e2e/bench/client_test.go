package bench

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpx/internal/parts/replicas/storetest"
	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
)

// programs is where the built mcpx is.
var programs string

func build(m *testing.M) int {
	dir, err := os.MkdirTemp("", "mcpx-bench-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	programs = dir
	if given := os.Getenv("MCPX_BENCH_PROGRAMS"); given != "" {
		programs = given
		return runIn(dir, m)
	}
	compile := exec.Command("go", "build", "-o", dir, "mcpx/cmd/mcpx", "mcpx/cmd/mcpx-sse")
	compile.Stderr = os.Stderr
	if err := compile.Run(); err != nil {
		return 1
	}
	return runIn(dir, m)
}

// runIn runs the benchmarks. The cache of mcpx and its key are in dir.
func runIn(dir string, m *testing.M) int {
	err := errors.Join(os.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache")), os.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state")))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// client is an MCP client that can have any number of calls in flight.
type client interface {
	do(method, params string) ([]byte, error)
}

// target is one way to the upstream.
type target struct {
	name    string
	clients []client // over stdio one, over HTTP as many as there are calls at a time
	tool    string   // the params of a call; %s are its arguments
	process int      // the ID of the process that the clients speak to; 0: not measured
}

func (t *target) call(i int, arguments string) error {
	answer, err := t.clients[i%len(t.clients)].do("tools/call", fmt.Sprintf(t.tool, arguments))
	if err == nil && rawjson.Get(answer, "result") == nil {
		err = fmt.Errorf("%s: %.300s", t.name, answer)
	}
	return err
}

const (
	plainCall = `{"name":"t0","arguments":%s}`
	flatCall  = `{"name":"s0__t0","arguments":%s}`
	execCall  = `{"name":"exec","arguments":{"server_name":"s0","tool_name":"t0","arguments":%s}}`

	// The same call of a client of 2026-07-28.
	execCall2026 = `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"}},` +
		`"name":"exec","arguments":{"server_name":"s0","tool_name":"t0","arguments":%s}}`
)

// stdioTargets are the upstream itself, behind the relay, and behind mcpx.
func stdioTargets(b *testing.B, upstreams int, env ...string) []*target {
	return []*target{
		overStdio(b, target{name: "direct", tool: plainCall}, self("upstream")),
		overStdio(b, target{name: "relay", tool: plainCall}, self("relay")),
		overStdio(b, target{name: "mcpx", tool: execCall}, mcpx("mcpx", configFile(b, upstreams, env...))),
	}
}

// httpTargets are the upstream behind the relay and behind mcpx, with that many
// clients each.
func httpTargets(b *testing.B, clients int) []*target {
	many := make([]client, clients)
	return []*target{
		overHTTP(b, target{name: "relay", tool: plainCall, clients: many}, self("relay")),
		overHTTP(b, target{name: "mcpx", tool: execCall, clients: slices.Clone(many)}, mcpx("mcpx-sse", configFile(b, 1))),
	}
}

// fronts are the ways in which clients reach a target, and the program of mcpx for each.
var fronts = map[string]struct {
	program string
	open    func(b *testing.B, t target, c *exec.Cmd) *target
}{
	"stdio": {"mcpx", overStdio},
	"http":  {"mcpx-sse", overHTTP},
}

// remoteTargets are a remote upstream behind the relay and behind mcpx. env is for the
// upstream.
func remoteTargets(b *testing.B, front string, env ...string) []*target {
	address := freeAddress(b)
	startHTTP(b, self("upstream", append(env, "MCPX_BENCH_ADDRESS="+address)...), address)
	url := "http://" + address + "/mcp"
	f := fronts[front]
	return []*target{
		f.open(b, target{name: "relay", tool: plainCall}, self("relay", "MCPX_BENCH_TO="+url)),
		f.open(b, target{name: "mcpx", tool: execCall}, mcpx(f.program, writeConfig(b, map[string]any{"s0": map[string]any{"url": url}}))),
	}
}

// flatTargets are mcpx in lazy and in flat mode.
func flatTargets(b *testing.B, front string) []*target {
	f := fronts[front]
	return []*target{
		f.open(b, target{name: "lazy", tool: execCall}, mcpx(f.program, configFile(b, 1))),
		f.open(b, target{name: "flat", tool: flatCall}, mcpx(f.program, "--expose", "flat", configFile(b, 1))),
	}
}

// revisionTargets are mcpx with a client of 2025-06-18 and with one of 2026-07-28.
func revisionTargets(b *testing.B, front string) []*target {
	f := fronts[front]
	return []*target{
		f.open(b, target{name: "2025-06-18", tool: execCall}, mcpx(f.program, configFile(b, 1))),
		f.open(b, target{name: "2026-07-28", tool: execCall2026}, mcpx(f.program, configFile(b, 1))),
	}
}

// overStdio starts a target that has one client on its stdin and stdout.
func overStdio(b *testing.B, t target, c *exec.Cmd) *target {
	b.Helper()
	client := startStdio(b, c)
	t.clients, t.process = append(t.clients, client), c.Process.Pid
	return &t
}

// overHTTP starts a target with as many clients as t has places for, at least one.
func overHTTP(b *testing.B, t target, c *exec.Cmd) *target {
	b.Helper()
	address := freeAddress(b)
	_, port, _ := net.SplitHostPort(address)
	c.Env = append(c.Environ(), "MCPX_BENCH_ADDRESS="+address) // for the relay
	c.Args = append(c.Args, "--port", port)                    // for mcpx
	startHTTP(b, c, address)
	t.clients, t.process = slices.Grow(t.clients, 1)[:max(len(t.clients), 1)], c.Process.Pid
	for i := range t.clients {
		t.clients[i] = openHTTP(b, address)
	}
	return &t
}

// replicaTargets are mcpx without and with a session key, or with a session key, without and
// with a store.
func replicaTargets(b *testing.B, name string) []*target {
	alone, key := map[string]string{}, map[string]string{"session_key": base64.StdEncoding.EncodeToString(make([]byte, 32))}
	if name == "key" {
		return []*target{replicaTarget(b, "mcpx", alone), replicaTarget(b, "key", key)}
	}
	shared := maps.Clone(key)
	shared["store"] = storetest.Start(b).Address()
	return []*target{replicaTarget(b, "key", key), replicaTarget(b, "store", shared)}
}

// replicaTarget is mcpx with settings of its HTTP front.
func replicaTarget(b *testing.B, name string, server map[string]string) *target {
	text, err := json.Marshal(server)
	if err != nil {
		b.Fatal(err)
	}
	return overHTTP(b, target{name: name, tool: execCall}, mcpx("mcpx-sse", withMember(b, configFile(b, 1), "server", text)))
}

func mcpx(program string, args ...string) *exec.Cmd {
	return exec.Command(filepath.Join(programs, program), args...)
}

// lazyFile is configFile with upstreams that start on first use.
func lazyFile(b *testing.B, upstreams int) string {
	return withMember(b, configFile(b, upstreams), "start", []byte(`"lazy"`))
}

// withMember sets a member of the config in a file.
func withMember(b *testing.B, file, key string, value []byte) string {
	text, err := os.ReadFile(file)
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(file, rawjson.With(text, key, value), 0o600); err != nil {
		b.Fatal(err)
	}
	return file
}

// configFile has that many upstreams, s0 and so on.
func configFile(b *testing.B, upstreams int, env ...string) string {
	servers := map[string]any{}
	for i := range upstreams {
		environment := map[string]string{role: "upstream", "MCPX_BENCH_NAME": "s" + strconv.Itoa(i)}
		for j := 0; j < len(env); j += 2 {
			environment[env[j]] = env[j+1]
		}
		servers["s"+strconv.Itoa(i)] = map[string]any{"command": os.Args[0], "env": environment}
	}
	return writeConfig(b, servers)
}

// writeConfig writes a config file with these servers. Results are not cut.
func writeConfig(b *testing.B, servers map[string]any) string {
	text, err := json.Marshal(map[string]any{"limits": map[string]int{"result_tokens": 0}, "mcpServers": servers})
	if err != nil {
		b.Fatal(err)
	}
	file := filepath.Join(b.TempDir(), "mcpx.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		b.Fatal(err)
	}
	return file
}

// stdioClient speaks to a child.
type stdioClient struct {
	out     *pipe
	process *os.Process
	stop    func()

	mu      sync.Mutex
	last    int64
	waiting map[int64]chan []byte
}

func startStdio(b *testing.B, c *exec.Cmd) *stdioClient {
	b.Helper()
	stdin, err := c.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	stdout, err := c.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := c.Start(); err != nil {
		b.Fatal(err)
	}
	stop := sync.OnceFunc(func() {
		_ = stdin.Close()
		_ = c.Wait()
	})
	b.Cleanup(stop)
	s := &stdioClient{out: &pipe{w: stdin}, process: c.Process, stop: stop, waiting: map[int64]chan []byte{}}
	go s.read(stdout)
	s.open(b)
	return s
}

const hello = `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}`

// must makes a request that succeeds.
func (s *stdioClient) must(b *testing.B, method, params string) {
	b.Helper()
	if _, err := s.do(method, params); err != nil {
		b.Fatal(err)
	}
}

func (s *stdioClient) open(b *testing.B) {
	b.Helper()
	if _, err := s.do("initialize", hello); err != nil {
		b.Fatal(err)
	}
	s.out.add(rpc.AppendNotification(nil, "notifications/initialized", nil))
	s.out.flush()
}

func (s *stdioClient) read(stdout io.Reader) {
	for line := range newLines(stdout).all() {
		from, to := idSpan(line)
		id, _ := strconv.ParseInt(string(line[from:to]), 10, 64)
		s.mu.Lock()
		reply := s.waiting[id]
		delete(s.waiting, id)
		s.mu.Unlock()
		if reply != nil {
			reply <- bytes.Clone(line)
		}
	}
}

func (s *stdioClient) do(method, params string) ([]byte, error) {
	reply := make(chan []byte, 1)
	s.mu.Lock()
	s.last++
	id := s.last
	s.waiting[id] = reply
	s.mu.Unlock()
	s.out.add(rpc.AppendRequest(nil, strconv.AppendInt(nil, id, 10), method, []byte(params)))
	s.out.flush()
	select {
	case answer := <-reply:
		return answer, nil
	case <-time.After(time.Minute):
		return nil, fmt.Errorf("no answer to %s", method)
	}
}

// httpClient speaks Streamable HTTP on a connection of its own.
type httpClient struct {
	http    *http.Client
	url     string
	session string
	last    int64
}

func startHTTP(b *testing.B, c *exec.Cmd, address string) {
	b.Helper()
	if err := c.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = c.Process.Signal(os.Interrupt)
		_ = c.Wait()
	})
	for range 500 {
		if conn, err := net.Dial("tcp", address); err == nil {
			_ = conn.Close()
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	b.Fatalf("nothing listens on %s", address)
}

func openHTTP(b *testing.B, address string) *httpClient {
	b.Helper()
	c := &httpClient{http: &http.Client{Transport: &http.Transport{}}, url: "http://" + address + "/mcp"}
	b.Cleanup(c.http.CloseIdleConnections)
	if _, err := c.do("initialize", hello); err != nil {
		b.Fatal(err)
	}
	return c
}

func (c *httpClient) do(method, params string) ([]byte, error) {
	c.last++
	body := rpc.AppendRequest(nil, strconv.AppendInt(nil, c.last, 10), method, []byte(params))
	r, err := http.NewRequest(http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	switch {
	case strings.Contains(params, "2026-07-28"): // without a client session
		r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
		r.Header.Set("Mcp-Method", method)
		r.Header.Set("Mcp-Name", "exec")
	case c.session != "":
		r.Header.Set("Mcp-Session-Id", c.session)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	if id := answer.Header.Get("Mcp-Session-Id"); id != "" {
		c.session = id
	}
	return io.ReadAll(answer.Body)
}

func freeAddress(b *testing.B) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
