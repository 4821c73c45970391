// Package mcptest is a real MCP server for tests: the test binary, started
// again as a child, with every feature and every fault that tests need. It has its own
// JSON-RPC code based on encoding/json, so that it does not share mcpx's bugs.
package mcptest

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// variable makes the test binary run as the server.
const variable = "MCPTEST_SERVER"

// Main runs the server and does not return, if the process was started as one. TestMain
// calls it first.
func Main() {
	if os.Getenv(variable) != "" {
		os.Exit(serve(os.Args[1:]))
	}
}

// markVariable marks the children of one test.
const markVariable = "MCPTEST_MARK"

// Upstream returns the config of a server with these flags, as a JSON object. The test
// fails if the server or one of its descendants outlives it.
func Upstream(t testing.TB, flags ...string) map[string]any {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if flags == nil {
		flags = []string{}
	}
	mark := rand.Text()
	NoneLeft(t, markVariable+"="+mark)
	return map[string]any{"command": self, "args": flags, "env": map[string]string{
		variable:     "1",
		markVariable: mark,
		"GOCOVERDIR": t.TempDir(),         // otherwise a binary built for coverage writes to stderr
		"GORACE":     "atexit_sleep_ms=0", // otherwise a binary with the race detector takes a second to end
	}}
}

// Environment returns the variable that makes a program a server, if it calls Main.
func Environment() map[string]string { return map[string]string{variable: "1"} }

// server is one run of the server.
type server struct {
	startDelay   time.Duration
	exit         int
	stderr       string
	token        string
	stray        string
	stdout       string
	stdoutStart  string
	extraTools   int
	toolsFile    string
	pageSize     int
	instructions string
	ignoreEOF    bool
	ignoreTerm   bool
	noTools      bool
	refuse       string
	silent       string
	long         int
	full         bool
	name         string
	askRoots     bool
	only2026     bool
	both         bool
	exitOn       string
	countCalls   bool
	answersFile  string
	report       bool
	recordFile   string
	address      string
	standing     bool
	sseAddress   string

	sink    func(line string, written func()) // used instead of stdout; nil: stdout
	out     sync.Mutex
	mu      sync.Mutex
	lists   map[string]int // list requests received, by method
	extra   map[string]int // items added by the tool change, by list
	calls   int
	cancels map[string]chan struct{}
	deaf    bool // stop reading
	lastID  int
	answers map[string]chan string // responses to the server's own requests
	notices map[string]int         // notifications received, by method
}

// parse returns a server with the options of its flags.
func parse(args []string) (*server, error) {
	s := &server{cancels: map[string]chan struct{}{}, answers: map[string]chan string{}, notices: map[string]int{}, lists: map[string]int{}, extra: map[string]int{}}
	flags := flag.NewFlagSet("mcptest", flag.ContinueOnError)
	flags.DurationVar(&s.startDelay, "start-delay", 0, "respond to initialize only after this time")
	flags.IntVar(&s.exit, "exit", -1, "exit at once with this status")
	flags.StringVar(&s.stderr, "stderr", "", "write this to stderr at the start")
	flags.StringVar(&s.stdout, "stdout", "", "write this to stdout at the start")
	flags.StringVar(&s.stdoutStart, "stdout-start", "", "write this to stdout before the first line")
	flags.StringVar(&s.token, "token", "", "complain on stderr about this secret and the one in $API_KEY")
	flags.StringVar(&s.stray, "stray", "", "write this line to stdout before every response")
	flags.IntVar(&s.extraTools, "tools", 0, "have this many more tools")
	flags.StringVar(&s.toolsFile, "tools-file", "", "have the tools of this JSON array as well")
	flags.IntVar(&s.pageSize, "page-size", 0, "list this many tools a page")
	flags.StringVar(&s.instructions, "instructions", "", "send these instructions in initialize")
	flags.BoolVar(&s.ignoreEOF, "ignore-eof", false, "stay when stdin ends")
	flags.BoolVar(&s.ignoreTerm, "ignore-term", false, "stay when SIGTERM comes")
	flags.BoolVar(&s.noTools, "no-tools", false, "declare no tools")
	flags.StringVar(&s.refuse, "refuse", "", "respond to this method with an error")
	flags.StringVar(&s.silent, "silent", "", "never respond to this method")
	flags.BoolVar(&s.full, "full", false, "have prompts, resources, completion and logging")
	flags.StringVar(&s.name, "name", "test", "a name that no other server has")
	flags.BoolVar(&s.askRoots, "ask-roots", false, "request the roots after initialize, and write them to stderr")
	flags.BoolVar(&s.only2026, "only-2026", false, "support only 2026-07-28")
	flags.BoolVar(&s.both, "both", false, "support 2026-07-28 as well as earlier revisions")
	flags.StringVar(&s.exitOn, "exit-on", "", "exit when this method is called")
	flags.IntVar(&s.long, "long-line", 0, "write a line of this many bytes at the start")
	flags.BoolVar(&s.countCalls, "count-calls", false, "have the tool calls, which returns the number of calls")
	flags.BoolVar(&s.report, "report", false, "write the method of every request to stderr")
	flags.StringVar(&s.answersFile, "answers", "", "send the responses in this file")
	flags.StringVar(&s.recordFile, "record", "", "have the tools work and fault, and record calls, responses and faults in this file")
	flags.StringVar(&s.address, "http", "", "serve Streamable HTTP on this address")
	flags.BoolVar(&s.standing, "standing", false, "over HTTP, have a stream for messages that belong to no request")
	flags.StringVar(&s.sseAddress, "sse", "", "serve legacy SSE on this address")
	return s, flags.Parse(args)
}

// serve returns the exit status.
func serve(args []string) int {
	s, err := parse(args)
	if err != nil {
		return 2
	}
	if s.stderr != "" {
		fmt.Fprintln(os.Stderr, s.stderr)
	}
	fmt.Print(s.stdoutStart)
	if s.stdout != "" {
		fmt.Println(s.stdout)
	}
	if s.token != "" {
		fmt.Fprintf(os.Stderr, "bad token %s, bad key %s\n", s.token, os.Getenv("API_KEY"))
	}
	if s.exit >= 0 {
		return s.exit
	}
	if s.ignoreTerm {
		signal.Ignore(syscall.SIGTERM)
	}
	fresh := func() *server {
		session, _ := parse(args)
		return session
	}
	switch {
	case s.address != "":
		return serveHTTP(s.address, newWeb(s, fresh))
	case s.sseAddress != "":
		return serveHTTP(s.sseAddress, legacy{newWeb(s, fresh)})
	}
	if s.long > 0 {
		s.write(strings.Repeat("x", s.long))
	}
	s.loop()
	if s.ignoreEOF {
		<-time.After(time.Hour) // a select without cases would be reported as a deadlock
	}
	return 0
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// loop handles requests, each in its own goroutine, until stdin ends.
func (s *server) loop() {
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			fmt.Fprintln(os.Stderr, "not JSON:", err)
			continue
		}
		s.handle(m, line)
		s.waitIfDeaf()
	}
}

// waitIfDeaf blocks if the server has stopped reading.
func (s *server) waitIfDeaf() {
	for begin := time.Now(); ; {
		s.mu.Lock()
		deaf := s.deaf
		s.mu.Unlock()
		if !deaf || time.Since(begin) > time.Hour {
			return
		}
		<-time.After(100 * time.Millisecond)
	}
}

// handle handles one message; line is its text.
func (s *server) handle(m message, line []byte) {
	switch {
	case m.ID == nil:
		s.handleNotification(m)
	case m.Method == "":
		s.handleResponse(line)
	default:
		done := make(chan struct{})
		s.mu.Lock()
		s.cancels[string(m.ID)] = done
		s.mu.Unlock()
		go s.handleRequest(m, done)
	}
}

// handleNotification handles a notification of the client.
func (s *server) handleNotification(m message) {
	s.mu.Lock()
	s.notices[m.Method]++
	s.mu.Unlock()
	switch {
	case m.Method == "notifications/cancelled":
		s.cancel(m.Params)
	case m.Method == "notifications/initialized" && s.askRoots:
		_, answer := s.request("roots/list", nil)
		go func() { fmt.Fprintln(os.Stderr, "roots:", <-answer) }()
	}
}

// cancel cancels the call that the notification names.
func (s *server) cancel(params json.RawMessage) {
	id := string(decode[struct{ RequestID json.RawMessage }](params).RequestID)
	s.mu.Lock()
	defer s.mu.Unlock()
	if done := s.cancels[id]; done != nil {
		fmt.Fprintln(os.Stderr, "canceled", id)
		close(done)
		delete(s.cancels, id)
	}
}

func (s *server) handleRequest(m message, canceled chan struct{}) {
	if s.report {
		fmt.Fprintln(os.Stderr, "got", m.Method)
	}
	if m.Method == s.exitOn {
		os.Exit(1)
	}
	if strings.HasSuffix(m.Method, "/list") {
		s.mu.Lock()
		s.lists[m.Method]++
		s.mu.Unlock()
	}
	switch m.Method {
	case s.silent:
		return
	case s.refuse:
		s.fail(m.ID, -32050, "refused on purpose", `{"why":"test"}`)
		return
	}
	if s.handle2026(m, canceled) {
		return
	}
	if s.scripted(m) {
		return
	}
	switch m.Method {
	case "initialize":
		time.Sleep(s.startDelay)
		s.result(m.ID, s.initialize(m.Params))
	case "ping":
		s.result(m.ID, "{}")
	case "tools/list":
		s.result(m.ID, s.listTools(m.Params))
	case "tools/call":
		s.call(m, canceled)
	default:
		if !s.feature(m) {
			s.fail(m.ID, -32601, "no method "+m.Method, "")
		}
	}
}

func (s *server) initialize(params json.RawMessage) string {
	capabilities := `{"tools":{"listChanged":true}}`
	if s.full {
		capabilities = `{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"completions":{},"logging":{}}`
	}
	if s.noTools {
		capabilities = `{}`
	}
	return fmt.Sprintf(`{"protocolVersion":%q,"capabilities":%s,"serverInfo":{"name":"mcptest","version":"1"},"instructions":%s}`,
		member(params, "protocolVersion"), capabilities, quote(s.instructions))
}

// notify sends a notification.
func (s *server) notify(method, params string) {
	s.write(fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params))
}

func (s *server) result(id json.RawMessage, result string) { s.write(resultLine(id, result)) }

func (s *server) fail(id json.RawMessage, code int, text, data string) {
	s.write(errorLine(id, code, text, data))
}

func resultLine(id json.RawMessage, result string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

func errorLine(id json.RawMessage, code int, text, data string) string {
	if data != "" {
		data = `,"data":` + data
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s%s}}`, id, code, quote(text), data)
}

func (s *server) write(line string) { s.send(line, func() {}) }

// send writes a line and calls written once the whole line is in the pipe, or
// flushed to the connection. It does not call written if the write fails.
func (s *server) send(line string, written func()) {
	if s.sink != nil {
		s.sink(line, written)
		return
	}
	if s.writeStdout(line) == nil {
		written()
	}
}

func (s *server) writeStdout(line string) error {
	s.out.Lock()
	defer s.out.Unlock()
	if s.stray != "" {
		fmt.Println(s.stray)
	}
	_, err := os.Stdout.WriteString(line + "\n")
	return err
}

func quote(text string) string {
	b, _ := json.Marshal(text)
	return string(b)
}
