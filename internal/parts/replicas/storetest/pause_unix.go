//go:build unix

package storetest

import "syscall"

// Pause makes the server hang: it accepts connections and never answers.
func (s *Server) Pause() { s.signal(syscall.SIGSTOP) }

// Resume ends Pause.
func (s *Server) Resume() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(signal syscall.Signal) {
	if err := s.process.Process.Signal(signal); err != nil {
		s.t.Fatal(err)
	}
}
