// Package link has the transports to upstreams: the stdin and stdout of a child,
// Streamable HTTP, and the legacy HTTP transport with server-sent events (SSE). A
// Link carries whole JSON-RPC messages as bytes and reports failures by type. It does not
// interpret the messages, except for what the transport needs.
package link

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/internal/plain"
	"mcpx/internal/rpc"
	"mcpx/registry/child"
)

// Link is a connection to one upstream. Its methods may be called concurrently.
type Link interface {
	// Send queues a message; it never waits for the upstream to read. It fails with
	// rpc.ErrClosed after the end of the connection.
	Send(message []byte) error
	// Run calls receive for everything that the upstream sends, until the link ends, and
	// returns why it ended. It is called once. Messages of one stream are received in order
	// by one goroutine. Over HTTP there are several streams, so receive may be called
	// concurrently, and while it waits, its stream waits.
	Run(receive func(Delivery)) error
	// Close ends the connection and returns when nothing of it is left, except Run, which
	// returns soon after. It is safe to call twice.
	Close()
}

// Delivery is one message of the upstream, or an error that does not end the link: a
// *CallEnd, or ErrGap.
type Delivery struct {
	rpc.Line        // the message; it belongs to the receiver
	CallID   []byte // the ID of the request whose stream carried the message; nil if unknown
	Err      error
}

// Options are what a Link needs.
type Options struct {
	Upstream     *config.Upstream
	Account      Account // of a remote upstream; may be nil
	Log          zerolog.Logger
	MessageBytes int                           // the largest message that is accepted
	Intake       *Intake                       // bounds the memory of messages being read
	Watcher      *child.Watcher                // ends children if mcpx is killed; may be nil
	Stderr       *atomic.Pointer[child.Stderr] // set to the stderr of a started child; may be nil
	InputSchema  func(tool string) []byte      // the schema of a tool's arguments, nil if it is unknown; may be nil
}

// Account has the credentials for the requests to one remote upstream. Its methods may be called
// concurrently.
type Account interface {
	// Transport returns a RoundTripper that adds the credentials to requests, and decides what a
	// 401 or 403 means. A *Denied error means that the request was not run.
	Transport(base http.RoundTripper) http.RoundTripper
	// Redact replaces the credentials in a text by ***.
	Redact(text string) string
}

// Dialer opens a Link. ctx bounds the opening, not the life of the link.
type Dialer func(ctx context.Context, o Options) (Link, error)

// Transports is the table of transports.
var Transports = map[config.Transport]Dialer{
	config.TransportStdio:  dialStdio,
	config.TransportHTTP:   dialHTTP,
	config.TransportSSE:    dialSSE,
	config.TransportRemote: dialRemote,
}

// Dial opens a Link to an upstream whose stored secrets are read. Errors that a person can
// act on are a *Failure.
func Dial(ctx context.Context, o Options) (Link, error) {
	return Transports[o.Upstream.Transport](ctx, o)
}

// ErrGap is delivered after a break in which the upstream may have sent
// messages, such as changes of its lists. The link goes on.
var ErrGap = errors.New("messages may have been missed")

// Cause is the kind of failure that keeps an upstream from being ready. It decides
// which advice a person gets.
type Cause string

// The causes. A failure without a cause is explained by its reason alone.
const (
	CauseConfig      Cause = "config"      // its configuration cannot work
	CauseCommand     Cause = "command"     // its program is missing or cannot be started
	CauseExit        Cause = "exit"        // its program ended
	CauseTimeout     Cause = "timeout"     // it was not ready in time
	CauseUnreachable Cause = "unreachable" // no server responds at its URL
	CauseAuth        Cause = "auth"        // it refuses the configured headers
	CauseSignIn      Cause = "sign-in"     // a person must sign in
	CauseAccess      Cause = "access"      // a person must grant more access: Failure.Scopes
)

// Failure is why a link could not be opened or has ended, in words for a person.
type Failure struct {
	Reason string
	Stderr []string // last lines of the child's stderr
	Cause  Cause
	Scopes []string // that are missing, for CauseAccess

	Instead string // the end of Reason: what a child wrote to its stdout if it never sent a message
}

func (e *Failure) Error() string { return e.Reason + Tail(e.Stderr) }

// Tail shows the last lines of a child's stderr below an error.
func Tail(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return "\nlast lines of its stderr:\n  " + strings.Join(lines, "\n  ")
}

// Denied is the error of an Account for a request that was not run. If a person must act, its
// Cause is CauseSignIn or CauseAccess.
type Denied struct{ Failure }

// CallEnd is delivered for a call that ended without a response. The link stays open.
type CallEnd struct {
	ID      []byte // of the request
	Outcome Outcome
	Reason  string   // in words for a person; empty for NotSent
	Denied  *Failure // set if it was not run because of the sign-in: a person must act, or try later
}

// Outcome is what the link knows about a call that ended without a response.
type Outcome int

// The outcomes.
const (
	NotSent   Outcome = iota // the upstream never got it
	Forgotten                // the upstream has forgotten the session, so it did not run it
	Refused                  // the upstream or its transport refused it
	Unknown                  // the upstream may be working on it
	CutOff                   // the connection broke after it was sent
)

func (e *CallEnd) Error() string { return e.Reason }

// Excerpt returns the start of a text that an upstream wrote, redacted, for the log.
func Excerpt(redact func(string) string, text []byte) string {
	const limit = 200
	return plain.Cut(plain.Line(redact(string(text[:min(len(text), child.RedactBytes)]))), limit)
}
