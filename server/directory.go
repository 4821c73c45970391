package server

import (
	"sync"

	"mcpx/config"
	"mcpx/internal/policy"
)

// lazyDirectory is what a client learns about the servers before it uses any, in lazy
// mode. It depends only on the config and on what the caller may use, so its bytes stay
// the same whatever upstreams do.
type lazyDirectory struct {
	tools        []byte // the result of tools/list
	instructions string
}

func newDirectory(p *config.Profile, meta string) *lazyDirectory {
	return &lazyDirectory{tools: lazyTools(p, meta), instructions: lazyInstructions(p)}
}

// directories caches the directories of callers with rules. Its methods may be called
// concurrently.
type directories struct {
	mu      sync.Mutex
	byRules map[*policy.Rules]*lazyDirectory
}

// maxDirectories bounds the directories that are cached.
const maxDirectories = 256

// directory returns the directory for a client.
func (s *Server) directory(c *Client) *lazyDirectory {
	caller := c.Caller()
	if caller == nil || caller.Rules == nil {
		return s.whole
	}
	s.parts.mu.Lock()
	defer s.parts.mu.Unlock()
	if d := s.parts.byRules[caller.Rules]; d != nil {
		return d
	}
	if s.parts.byRules == nil || len(s.parts.byRules) >= maxDirectories {
		s.parts.byRules = map[*policy.Rules]*lazyDirectory{}
	}
	d := newDirectory(s.granted(caller.Rules), s.meta)
	s.parts.byRules[caller.Rules] = d
	return d
}

// granted returns the profile with the upstreams that the rules grant.
func (s *Server) granted(rules *policy.Rules) *config.Profile {
	p := *s.profile
	p.Upstreams = nil
	for _, u := range s.profile.Upstreams {
		if rules.HasServer(p.Name, u.Name) {
			p.Upstreams = append(p.Upstreams, u)
		}
	}
	return &p
}
