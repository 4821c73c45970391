//go:build !unix

package storetest

// Pause makes the server hang: it accepts connections and never answers.
func (s *Server) Pause() { s.t.Skip("processes cannot be stopped here") }

// Resume ends Pause.
func (s *Server) Resume() {}
