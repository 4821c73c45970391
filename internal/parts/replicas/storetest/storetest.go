// Package storetest runs a real Redis or Valkey server for tests.
package storetest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// startTime bounds how long a server takes to start, on a busy machine.
const startTime = 20 * time.Second

// Server is a server on a loopback port of its own. It ends with the test.
type Server struct {
	t       testing.TB
	program string
	folder  string
	options []string
	port    string
	process *exec.Cmd // nil while it is stopped
}

// Start starts a server with further options, such as "--cluster-enabled", "yes". If there
// is no server program, it skips the test.
func Start(t testing.TB, options ...string) *Server {
	t.Helper()
	s := &Server{t: t, program: program(t), folder: t.TempDir(), options: options}
	t.Cleanup(s.Stop)
	for range 5 {
		if s.port = freePort(t); s.start() {
			return s
		}
	}
	t.Fatal(s.output())
	return nil
}

// program returns the program of a server: MCPX_REDIS, or one in PATH.
func program(t testing.TB) string {
	for _, name := range []string{os.Getenv("MCPX_REDIS"), "redis-server", "valkey-server"} {
		if name == "" {
			continue
		}
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("NOT RUN: there is no redis-server or valkey-server in PATH, so nothing here is tested with a real store; install one, or name it in MCPX_REDIS")
	return ""
}

// busOffset is the distance between the two ports of a node of a cluster.
const busOffset = 10_000

// freePort returns a port that nobody listens on now, and that a node of a cluster can have.
func freePort(t testing.TB) string {
	for {
		listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := listener.Addr().(*net.TCPAddr).Port
		_ = listener.Close()
		if port+busOffset <= math.MaxUint16 {
			return strconv.Itoa(port)
		}
	}
}

// Start starts the server again after Stop, at the same address and without its values. It
// waits if a connection of another program uses the port for a moment.
func (s *Server) Start() {
	s.t.Helper()
	for end := time.Now().Add(startTime); time.Now().Before(end); <-time.After(50 * time.Millisecond) {
		if s.start() {
			return
		}
	}
	s.t.Fatal(s.output())
}

// start reports whether the server answers.
func (s *Server) start() bool {
	file := filepath.Join(s.folder, "redis.conf") // a file that Sentinel can write
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		s.t.Fatal(err)
	}
	arguments := []string{file, "--bind", "127.0.0.1", "--port", s.port, "--dir", s.folder, "--save", "", "--appendonly", "no"}
	if slices.Contains(s.options, "--sentinel") {
		arguments = []string{file, "--bind", "127.0.0.1", "--port", s.port, "--dir", s.folder}
	}
	s.process = exec.Command(s.program, append(arguments, s.options...)...)
	log, err := os.Create(s.log())
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	s.process.Stdout, s.process.Stderr = log, log
	if err := s.process.Start(); err != nil {
		s.t.Fatal(err)
	}
	for end := time.Now().Add(startTime); time.Now().Before(end); <-time.After(5 * time.Millisecond) {
		if answer, err := s.request("PING"); err == nil && (answer == "+PONG" || strings.HasPrefix(answer, "-NOAUTH")) {
			return true
		}
		if strings.Contains(s.output(), "Address already in use") {
			break
		}
	}
	s.Stop()
	return false
}

func (s *Server) log() string { return filepath.Join(s.folder, "log") }

// output returns what the server has printed.
func (s *Server) output() string {
	text, _ := os.ReadFile(s.log())
	return string(text)
}

// Host returns the host and port of the server.
func (s *Server) Host() string { return "127.0.0.1:" + s.port }

// Address returns the address of the server as a store.
func (s *Server) Address() string { return "redis://" + s.Host() }

// Stop kills the server. Its values are lost.
func (s *Server) Stop() {
	if s.process == nil {
		return
	}
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
	s.process = nil
}

// Do makes a request, as a line of words, and returns the answer: a text, or a line with
// its sign, such as +OK.
func (s *Server) Do(request string) string {
	s.t.Helper()
	answer, err := s.request(strings.Fields(request)...)
	if err != nil {
		s.t.Fatalf("%s: %v", request, err)
	}
	return answer
}

// Says makes a request and reports whether the answer contains a text. It does not if the
// server closes the connection, as one does that becomes a primary or a replica.
func (s *Server) Says(request, text string) bool {
	answer, err := s.request(strings.Fields(request)...)
	return err == nil && strings.Contains(answer, text)
}

// Eternal returns the keys that never expire.
func (s *Server) Eternal() string {
	s.t.Helper()
	const script = `local keys = {} for _, key in ipairs(redis.call('KEYS', '*')) do if redis.call('PTTL', key) == -1 then keys[#keys + 1] = key end end return table.concat(keys, ' ')`
	keys, err := s.request("EVAL", script, "0")
	if err != nil {
		s.t.Fatal(err)
	}
	return keys
}

func (s *Server) request(words ...string) (string, error) {
	dialer := net.Dialer{Timeout: time.Second}
	connection, err := dialer.DialContext(context.Background(), "tcp", s.Host()) // also after the test
	if err != nil {
		return "", err
	}
	defer func() { _ = connection.Close() }()
	_ = connection.SetDeadline(time.Now().Add(startTime))
	request := fmt.Sprintf("*%d\r\n", len(words))
	for _, word := range words {
		request += fmt.Sprintf("$%d\r\n%s\r\n", len(word), word)
	}
	if _, err := connection.Write([]byte(request)); err != nil {
		return "", err
	}
	answer := bufio.NewReader(connection)
	line, err := answer.ReadString('\n')
	if err != nil || line[0] != '$' {
		return strings.TrimSpace(line), err
	}
	size, err := strconv.Atoi(strings.TrimSpace(line[1:]))
	if err != nil || size < 0 {
		return "", err
	}
	text := make([]byte, size)
	_, err = io.ReadFull(answer, text)
	return string(text), err
}
