// Package config reads mcpx's configuration file: its types, its defaults and
// every check that can be made before anything is started.
package config

import (
	"fmt"
	"strings"
	"time"
)

// Config is the file as a program needs it: one shape whatever was written,
// defaults filled in, references expanded.
type Config struct {
	File     string    // where it was read from, absolute
	Profiles []Profile // the schemas, in file order
	Server   Server
	Stdio    Stdio // cli.stdio
	Logging  Logging
	Limits   Limits

	AlwaysLoad bool // clients that defer tools are asked to show the two tools from the start

	Warnings []Problem // what was odd but did not stop the start
}

// Profile returns an enabled profile by its name.
func (c *Config) Profile(name string) (*Profile, error) {
	problem := "no such schema"
	var known []string
	for i := range c.Profiles {
		p := &c.Profiles[i]
		if p.Name == name && p.Enabled {
			return p, nil
		}
		if p.Name == name {
			problem = "not enabled"
		}
		known = append(known, p.describe())
	}
	return nil, fmt.Errorf("schema %q: %s; %s has: %s", name, problem, c.File, strings.Join(known, ", "))
}

// Profile is a named group of upstreams: a "schema" of the file.
type Profile struct {
	Name      string
	Enabled   bool
	Expose    Expose
	Prefix    bool       // flat tools carry their server's name
	Upstreams []Upstream // in file order, without the disabled ones

	all []Upstream // the disabled ones too, for Show
}

// Disabled are the names of the upstreams that the file has and switches off.
func (p *Profile) Disabled() []string {
	var names []string
	for _, u := range p.all {
		if u.disabled {
			names = append(names, u.Name)
		}
	}
	return names
}

// All returns the upstreams in file order, including those that are switched off.
func (p *Profile) All() []Upstream { return p.all }

func (p *Profile) describe() string {
	if p.Enabled {
		return p.Name
	}
	return p.Name + " (not enabled)"
}

// Expose is the way a profile shows its tools.
type Expose string

// The two ways.
const (
	Lazy Expose = "lazy" // inspect and exec
	Flat Expose = "flat" // every tool as Server__tool
)

// Upstream is one configured MCP server.
type Upstream struct {
	Name        string
	Description string
	Transport   Transport

	Command string // stdio
	Args    []string
	Env     map[string]string
	Dir     string // absolute; empty without cwd: the folder mcpx was started in

	InheritAll bool // it gets the whole environment of mcpx, not only PATH, HOME and the like

	URL     string // http, sse
	Headers map[string]string

	Tools          Filter
	StartupTimeout time.Duration // connect, handshake and first lists
	Timeout        time.Duration // a call without any progress
	MaxTimeout     time.Duration // a call in all
	Isolation      Isolation

	// Err says why this upstream cannot be started: a variable it refers to
	// is not set, or makes no sense where it is used. The others are not
	// affected.
	Err error

	disabled bool
	written  *Upstream // itself as the file has it, before expansion; for Show
	redactor *redactor // nil: there is nothing to hide
}

// Disabled reports whether the file switches the upstream off.
func (u *Upstream) Disabled() bool { return u.disabled }

// Transport is how an upstream is reached.
type Transport string

// The transports. Remote stands for a url without a type: HTTP, then SSE.
const (
	TransportStdio  Transport = "stdio"
	TransportHTTP   Transport = "http"
	TransportSSE    Transport = "sse"
	TransportRemote Transport = "remote"
)

// Isolation says who shares an upstream's session.
type Isolation string

// The isolations.
const (
	Shared    Isolation = "shared" // all clients
	PerClient Isolation = "client" // each client has its own
)

// Server is the HTTP front.
type Server struct {
	Host           string
	Port           int
	Token          string
	AllowedOrigins []string
	AllowedHosts   []string
}

// Stdio is the stdio front: cli.stdio.
type Stdio struct {
	Encoding  string        // utf8
	Delimiter string        // what ends a message: \n
	Timeout   time.Duration // 0: no limit beyond the upstream's own
}

// Logging is mcpx's own log.
type Logging struct {
	Level  string // debug, info, warn, error
	Format string // console, json
	File   string // empty: stderr
}

// Limits bound what mcpx holds and says.
type Limits struct {
	InspectTokens  int
	ResultTokens   int // 0: results are never cut
	Sessions       int
	SessionIdle    time.Duration
	BodyBytes      int
	MessageBytes   int
	CallsPerClient int
	UnreadBytes    int
	ConnectsAtOnce int
}
