//go:build unix

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// store is a real Redis or Valkey server. It can be stopped and started again: the server
// listens on a socket in a folder, and a relay in the test keeps the port.
type store struct {
	t      *testing.T
	socket string
	relay  net.Listener

	mu      sync.Mutex
	server  *exec.Cmd // nil while it is stopped
	inUse   map[net.Conn]bool
	copying sync.WaitGroup
}

// startStore starts a server, and skips the test if there is none.
func startStore(t *testing.T) *store {
	t.Helper()
	dir, err := os.MkdirTemp("", "mcpx-store-") // t.TempDir() may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &store{t: t, socket: filepath.Join(dir, "socket"), inUse: map[net.Conn]bool{}}
	if s.relay, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	s.start()
	s.copying.Go(s.accept)
	t.Cleanup(func() {
		_ = s.relay.Close()
		s.stop()
		s.copying.Wait()
	})
	return s
}

// storeProgram returns the path of redis-server or valkey-server.
func storeProgram(t *testing.T) string {
	t.Helper()
	for _, name := range []string{os.Getenv("MCPX_REDIS"), "redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return path
		}
	}
	t.Skip("NOT RUN: no redis-server and no valkey-server in PATH; install one, or set MCPX_REDIS to its path")
	return ""
}

// url returns the value of server.store.
func (s *store) url() string { return "redis://" + s.relay.Addr().String() }

// start starts the server with no values.
func (s *store) start() {
	s.t.Helper()
	server := exec.Command(storeProgram(s.t), "--port", "0", "--unixsocket", s.socket, "--save", "", "--appendonly", "no", "--dir", filepath.Dir(s.socket))
	if err := server.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	s.server = server
	s.mu.Unlock()
	eventually(s.t, "the store answers", func() (string, bool) {
		err := ping(s.socket)
		return fmt.Sprint(err), err == nil
	})
}

// ping makes a request to the server.
func ping(socket string) error {
	c, err := net.DialTimeout("unix", socket, time.Second)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	_, err = io.WriteString(c, "PING\r\n")
	answer := make([]byte, 7)
	_, readErr := io.ReadFull(c, answer)
	if err = cmp.Or(err, readErr); err == nil && string(answer) != "+PONG\r\n" {
		err = fmt.Errorf("it answers %q", answer)
	}
	return err
}

// stop kills the server. Its values are lost.
func (s *store) stop() {
	s.mu.Lock()
	server := s.server
	s.server = nil
	for c := range s.inUse {
		_ = c.Close()
	}
	s.mu.Unlock()
	if server == nil {
		return
	}
	_ = server.Process.Signal(syscall.SIGCONT)
	_ = server.Process.Kill()
	_ = server.Wait()
	_ = os.Remove(s.socket)
}

// hang makes the server keep its connections and answer nothing, until resume is called.
func (s *store) hang() (resume func()) {
	process := s.server.Process
	_ = process.Signal(syscall.SIGSTOP)
	return func() { _ = process.Signal(syscall.SIGCONT) }
}

// accept connects clients to the server until the relay is closed.
func (s *store) accept() {
	for {
		client, err := s.relay.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		server, err := net.Dial("unix", s.socket)
		if err != nil {
			_ = client.Close()
			continue
		}
		s.use(client, server)
	}
}

// use copies between two connections until one of them ends.
func (s *store) use(a, b net.Conn) {
	s.mu.Lock()
	s.inUse[a], s.inUse[b] = true, true
	s.mu.Unlock()
	for _, pair := range [][2]net.Conn{{a, b}, {b, a}} {
		s.copying.Go(func() {
			_, _ = io.Copy(pair[0], pair[1])
			_ = a.Close()
			_ = b.Close()
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.inUse, pair[0])
		})
	}
}
