// Package config reads, checks and shows mcpx's configuration file. Package edit changes it.
//
// [Hooks.Load] checks the whole file before anything is started and reports every problem
// with its line and column. Each key is declared once, in fields.go: how it is read,
// how the JSON Schema describes it and how it is shown. References such as ${VAR} are
// expanded for each upstream; a missing variable makes that upstream unusable, not the
// file. Stored secrets, such as ${keyring:NAME}, are read by [Upstream.Resolve] when the
// upstream starts. [Upstream.Redact] hides an upstream's secrets in any text.
package config

import (
	"fmt"
	"path"
	"strings"
	"time"

	"mcpx/internal/jsonc"
	"mcpx/internal/redact"
	"mcpx/internal/seal"
)

// Config is the config file in one shape, with defaults filled in and references
// expanded.
type Config struct {
	File     string    // where it was read from, absolute
	Profiles []Profile // in file order
	Server   Server
	Stdio    Stdio // cli.stdio
	Logging  Logging
	Limits   Limits
	Auth     Vault // auth

	Start    Start         // of upstreams that do not set their own
	IdleStop time.Duration // likewise

	Watch      bool // apply changes of the file when they are saved
	AlwaysLoad bool // ask clients that defer tools to show the two tools from the start

	Parts Values // what parts have at the top level

	Warnings []jsonc.Problem // problems that do not prevent the start

	unchanged *Config // what Show shows; nil: the config itself
}

// Profile returns the enabled profile with this name.
func (c *Config) Profile(name string) (*Profile, error) {
	problem := "no such profile"
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
	return nil, fmt.Errorf("profile %q: %s; %s has: %s", name, problem, c.File, strings.Join(known, ", "))
}

// Profile is a named group of upstreams, the config calls them schemas or profiles.
type Profile struct {
	Name      string
	Enabled   bool
	Expose    Expose
	Prefix    bool          // flat tools carry their server's name
	FlatWait  time.Duration // how long tools/list waits for upstreams that start
	Upstreams []Upstream    // in file order, without the disabled ones
	Parts     Values

	all []Upstream // including the disabled ones
}

// Disabled returns the names of the upstreams that the file disables.
func (p *Profile) Disabled() []string {
	var names []string
	for _, u := range p.all {
		if u.disabled {
			names = append(names, u.Name)
		}
	}
	return names
}

// All returns the upstreams in file order, including the disabled ones.
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
	Dir     string // absolute; empty: the folder mcpx was started in

	InheritAll bool // pass on the whole environment of mcpx, not only PATH, HOME and the like

	URL     string // http, sse
	Headers map[string]string
	Auth    Auth // OAuth

	Caller         string          // whose own upstream it is, with isolation user; empty: it is not of one caller
	ForwardHeaders []Named[string] // by a header of the client's request: the header to send, see ParseForward

	Tools          Filter
	StartupTimeout time.Duration // connect, handshake and first lists
	Timeout        time.Duration // a call without any progress
	MaxTimeout     time.Duration // a call in total
	Isolation      Isolation
	Start          Start         // never empty once the config is loaded
	IdleStop       time.Duration // a process that nobody uses for so long is stopped; 0: never
	Sandbox        *Sandbox      // nil: none
	Parts          Values

	// Err is the reason why this upstream cannot be started: a variable is not set, its value
	// cannot be used there, or a part does not allow it. Other upstreams are not affected.
	Err error

	disabled    bool
	forwarded   map[string]string   // headers of the caller's request, by the name that it gets
	commands    map[string][]string // by "env.NAME" or "headers.NAME": a command that prints the value, which is empty until Resolve
	written     *Upstream           // the upstream before expansion, for Show and Resolve
	environment environment         // from which it was expanded
	isDeferred  bool                // it has stored secrets, which Resolve reads
	secrets     *redact.Set         // what Redact hides; nil: nothing
}

// Sandbox restricts the process of an upstream, on Linux.
type Sandbox struct {
	Write      []string // folders and files it may write; relative ones are in its working directory
	Network    bool     // it may create sockets
	BestEffort bool     // start it without the protection that the system cannot give
}

// NoSandbox is why a sandbox does not work on this system.
const NoSandbox = `the sandbox works only on Linux; run the server in a container instead, or set "best_effort": true in it`

// Disabled reports whether the file disables the upstream.
func (u *Upstream) Disabled() bool { return u.disabled }

// Transport is how an upstream is reached.
type Transport string

// The transports. Remote is a url without a type: try Streamable HTTP, then legacy SSE.
const (
	TransportStdio  Transport = "stdio"
	TransportHTTP   Transport = "http"
	TransportSSE    Transport = "sse"
	TransportRemote Transport = "remote"
)

// Isolation is the set of clients that share an upstream session.
type Isolation string

// The isolations.
const (
	Shared    Isolation = "shared" // one for all clients
	PerClient Isolation = "client" // one for each client session
	PerUser   Isolation = "user"   // one for each caller
)

// Auth is how mcpx signs in to an upstream that uses OAuth.
type Auth struct {
	Flow              Flow
	ClientID          string // a client that was registered by hand
	ClientSecret      string
	Issuer            string   // the only authorization server that may be used
	Scopes            []string // instead of those that the upstream names
	ClientMetadataURL string   // the client ID metadata document of this client
	RedirectPort      int      // of the loopback listener; 0: any free port
	PrivateKey        string   // PEM; signs client assertions instead of a secret
	SigningAlg        string   // of the assertions; empty: the key decides
}

// Flow is the way to get a token.
type Flow string

// The flows. Auto is the browser where there is one, else the device flow.
const (
	FlowAuto              Flow = "auto"
	FlowBrowser           Flow = "browser"
	FlowDevice            Flow = "device"
	FlowClientCredentials Flow = "client_credentials"
	FlowNone              Flow = "none"
)

// Vault is where the tokens of upstreams are kept.
type Vault struct {
	Place Tokens
}

// Tokens is the way to keep tokens in files.
type Tokens string

// The ways. Auto encrypts the files if the system has a keyring.
const (
	TokensAuto    Tokens = "auto"
	TokensKeyring Tokens = "keyring"
	TokensFile    Tokens = "file"
)

// Start is when an upstream is started.
type Start string

// The starts.
const (
	StartEager Start = "eager" // with mcpx
	StartLazy  Start = "lazy"  // when a request needs it
)

// Server is the HTTP front.
type Server struct {
	Host           string
	Port           int
	StopDelay      time.Duration // after a signal to stop, before connections are refused
	Token          string
	Console        Console
	AllowedOrigins []string
	AllowedHosts   []string
	PublicURL      string     // the address that clients use, without /mcp; empty: unknown
	SessionKeys    []seal.Key // the first seals client sessions, all open them; none: they are not sealed
	Store          string     // address of what replicas share; empty: the memory of this process
	Parts          Values
}

// Console is the permission of the console.
type Console string

// The permissions.
const (
	ConsoleView Console = "view" // show and test
	ConsoleEdit Console = "edit" // also change what mcpx runs
)

// Stdio is the stdio front: cli.stdio.
type Stdio struct {
	Encoding  string        // utf8
	Delimiter string        // ends a message: \n
	Timeout   time.Duration // 0: no limit beyond the upstream's own
}

// Logging is mcpx's own log.
type Logging struct {
	Level  string // debug, info, warn, error
	Format string // console, json
	File   string // empty: stderr
	Parts  Values
}

// Limits bounds the memory and the output of mcpx.
type Limits struct {
	InspectTokens  int
	ResultTokens   int // 0: never cut a result
	ResultHead     int // tokens shown of a cut result
	Sessions       int
	SessionIdle    time.Duration
	BodyBytes      int
	MessageBytes   int
	CallsPerClient int
	UnreadBytes    int
	KeptBytes      int // results that are kept for all clients
	WorkBytes      int // memory for all work on large results together
	ConnectsAtOnce int // 0: depends on the machine
	Parts          Values
}

// Filter selects tools of an upstream. The zero Filter allows all.
type Filter struct {
	Allow []string // globs; none allows all
	Deny  []string // globs; stronger than Allow
}

// Allows reports whether the tool may be seen and called.
func (f Filter) Allows(tool string) bool {
	return !matchAny(f.Deny, tool) && (len(f.Allow) == 0 || matchAny(f.Allow, tool))
}

func matchAny(globs []string, tool string) bool {
	for _, g := range globs {
		if ok, _ := path.Match(unslash(g), unslash(tool)); ok {
			return true
		}
	}
	return false
}

// unslash replaces slashes, which * of path.Match does not match.
func unslash(s string) string { return strings.ReplaceAll(s, "/", "\x00") }
