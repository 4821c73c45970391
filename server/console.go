package server

import (
	"mcpx/config"
	"mcpx/executor"
	"mcpx/internal/upstream"
	"mcpx/registry"
	"mcpx/registry/live"
)

// This file has what the console shows of a schema besides MCP, and what it may do.

// Upstream returns an upstream that a client sees, nil if there is none of that name.
func (s *Server) Upstream(c upstream.Client, name string) *live.Upstream {
	return s.registry.For(c).Catalog().Upstream(name)
}

// Disabled returns the servers that the config file disables.
func (s *Server) Disabled() (list []config.Upstream) {
	for _, u := range s.profile.All() {
		if u.Disabled() {
			list = append(list, u)
		}
	}
	return list
}

// Search returns the tools that exec("mcpx", "search") finds for a client, the best first.
func (s *Server) Search(c upstream.Client, query string, limit int) []executor.Hit {
	return s.executor.Search(c, query, limit)
}

// Reading returns what the agent of a client reads about a tool, and false if there is no
// such tool.
func (s *Server) Reading(c upstream.Client, server, tool string) (executor.Reading, bool) {
	u := s.Upstream(c, server)
	if u == nil || u.Tool(tool) == nil {
		return executor.Reading{}, false
	}
	return s.executor.Reading(c, u, u.Tool(tool)), true
}

// Preview returns what an agent would read of a result with a select.
func (s *Server) Preview(result []byte, fields string) (executor.Preview, error) {
	return s.executor.Preview(result, fields)
}

// Restart ends the session of an upstream and opens a new one.
func (s *Server) Restart(name string) error { return s.registry.Restart(name) }

// Stop ends the session of an upstream until Start.
func (s *Server) Stop(name string) error { return s.registry.Stop(name) }

// Start starts an upstream that does not run.
func (s *Server) Start(name string) error { return s.registry.Start(name) }

// Messages returns the messages of an upstream after a number, and begins to record them.
func (s *Server) Messages(name string, after int64) ([]registry.Message, error) {
	return s.registry.Messages(name, after)
}
