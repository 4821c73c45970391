//go:build linux

package main

import (
	"slices"
	"time"

	"mcpx/internal/mcptest"
)

// The upstreams. One has no faults; two are remote.
const (
	steady       = "steady"
	remoteServer = "remote" // Streamable HTTP
	legacyServer = "legacy" // HTTP+SSE
)

var (
	victims    = []string{"anna", "bert", "carl"}
	allServers = append([]string{steady, remoteServer, legacyServer}, victims...)
)

// part is one run of mcpx under load: its front, its settings and its upstreams.
type part struct {
	name    string // for its files and the environment of its processes
	title   string // for the report
	isHTTP  bool
	workers int // calls at a time, or clients over HTTP
	servers []string

	resultTokens int           // limits.result_tokens; 0: results are never cut
	isolated     bool          // every client has its own session to each upstream
	sessionIdle  time.Duration // after which mcpx ends an unused HTTP session
	timeout      time.Duration // of a call without progress; 0: that of all parts
	unreadBytes  int           // limits.unread_bytes; 0: the default
	idleStop     time.Duration // if not 0, the upstreams start on first use, and stop after this time without one
}

// workers is the number of concurrent calls, or clients, of each part.
type workers struct{ stdio, http, cut, own, lazy int }

// allParts returns the parts of a full run.
func allParts(n workers) []part {
	return []part{
		{name: "stdio", title: "mcpx on stdio", workers: n.stdio, servers: allServers},
		{name: "http", title: "mcpx-sse", isHTTP: true, workers: n.http, servers: allServers, sessionIdle: 20 * time.Second},
		{
			name: "cut", title: "mcpx on stdio, results cut", workers: n.cut,
			servers: []string{steady, remoteServer, legacyServer, "anna"}, resultTokens: 2000,
		},
		{
			name: "own", title: "mcpx-sse, results cut, a session per client", isHTTP: true, workers: n.own,
			servers: []string{steady, remoteServer, legacyServer, "anna"}, resultTokens: 2000, isolated: true, sessionIdle: 5 * time.Second,
		},
		{
			name: "lazy", title: "mcpx on stdio, servers that start on first use", workers: n.lazy,
			servers: []string{steady, remoteServer, legacyServer, "anna"}, idleStop: 20 * time.Millisecond,
		},
	}
}

func isRemote(server string) bool { return server == remoteServer || server == legacyServer }

// upstream returns the name under which a server of the part records its events. All parts
// share the remote servers.
func (p part) upstream(server string) string {
	if isRemote(server) {
		return server
	}
	return p.name + "/" + server
}

// victims returns the servers that mcpx starts and that have faults.
func (p part) victims(bug plantedBug) (names []string) {
	for _, server := range p.servers {
		if slices.Contains(victims, server) && !bug.concerns(p, server) {
			names = append(names, server)
		}
	}
	return names
}

// config returns the config of the part.
func (s *soak) config(p part, self string) map[string]any {
	upstreams := map[string]any{}
	timeout := max(s.timeout, p.timeout)
	for _, server := range p.servers {
		u := map[string]any{"timeout": timeout.String(), "max_timeout": (timeout + 7*time.Second).String(), "startup_timeout": "15s"}
		if p.isolated {
			u["isolation"] = "client"
		}
		switch server {
		case remoteServer:
			u["url"] = s.remotes[server].address()
		case legacyServer:
			u["type"], u["url"] = "sse", s.remotes[server].address()+"/sse"
		default:
			env := s.upstreamEnv()
			env["SOAK_RUN"], env["SOAK_SERVER"] = s.mark+" "+p.name, server
			if s.bug.concerns(p, server) {
				env[relayVariable], env[onceVariable] = s.bug.kind, s.record
			}
			u["command"], u["args"], u["env"] = self, []string{"-record", s.record, "-name", p.upstream(server)}, env
		}
		upstreams[server] = u
	}
	limits := map[string]any{"result_tokens": p.resultTokens, "message_bytes": 4 << 20, "work_bytes": 32 << 20}
	if p.unreadBytes > 0 {
		limits["unread_bytes"] = p.unreadBytes
	}
	if p.sessionIdle > 0 {
		limits["session_idle"] = p.sessionIdle.String()
	}
	config := map[string]any{"mcpServers": upstreams, "limits": limits}
	if p.idleStop > 0 {
		config["start"], config["idle_stop"] = "lazy", p.idleStop.String()
	}
	return config
}

// upstreamEnv returns the environment that makes this program an upstream.
func (s *soak) upstreamEnv() map[string]string {
	env := mcptest.Environment()
	env["GOCOVERDIR"] = s.dir           // without it a coverage build writes to stderr
	env["GORACE"] = "atexit_sleep_ms=0" // without it a race build takes a second to end
	return env
}
