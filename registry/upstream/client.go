package upstream

import (
	"context"
	"errors"

	"mcpx/internal/policy"
	"mcpx/registry/link"
)

// Client is a client of mcpx. It receives requests and notifications of upstreams. Its
// methods may be called concurrently.
type Client interface {
	// ID identifies the client.
	ID() string
	// Owner is the key for state that outlives a call. It is the ID, except for a client
	// without a client session, which has a new ID with each call.
	Owner() string
	// Caller is who uses the client; nil for a caller without a name, who may use everything.
	Caller() *policy.Caller
	// Request sends a request to the client and waits for the response.
	Request(ctx context.Context, method string, params []byte) (result []byte, err error)
	// Notify sends a notification to the client. It never waits.
	Notify(method string, params []byte)
}

// CallerOf returns the caller of a client: the zero Caller, who may use everything, for a nil
// client or one without a caller.
func CallerOf(c Client) policy.Caller {
	if c == nil || c.Caller() == nil {
		return policy.Caller{}
	}
	return *c.Caller()
}

// Program is the name and version that a client reports in clientInfo. mcpx does not check them.
type Program struct{ Name, Version string }

// ProgramOf returns the program of a client; the zero Program if the client has not named it.
func ProgramOf(c Client) (p Program) {
	if named, ok := c.(interface{ Program() Program }); ok {
		p = named.Program()
	}
	return p
}

// InputClient is a Client that speaks MCP; mcpx's own command line does not. An upstream of
// 2026-07-28 gets the client's capabilities with each request, and sends its requests to
// the client in rounds.
type InputClient interface {
	Client
	// Capabilities returns the capabilities that the client has declared.
	Capabilities() []byte
	// Revision returns the revision of MCP that the client speaks.
	Revision() string
	// RequestAll sends the requests of one round to the client, and waits for all
	// responses. They have the order of the requests.
	RequestAll(ctx context.Context, inputs []Input) (responses [][]byte, err error)
}

// RoundClient is an InputClient that may continue a call of several rounds by itself, with the
// upstream's own state. mcpx then keeps nothing between the rounds.
type RoundClient interface {
	InputClient
	// Resumed returns the input and the state with which the client continues a call to an
	// upstream; ok is false for a call that begins.
	Resumed(server string) (responses, state []byte, ok bool)
	// Pass reports whether the client gets the upstream's requests and state as the result of
	// the call. Otherwise the requests are sent with RequestAll.
	Pass(server string, inputs []Input) (ok bool, err error)
	// HasPassed reports whether Pass returned true.
	HasPassed() bool
}

// Input is one of the requests to a client that an upstream needs to continue a call.
type Input struct {
	Key    string // chosen by the upstream
	Method string
	Params []byte
}

// RequestEach sends requests to a client one after the other.
func RequestEach(ctx context.Context, c Client, inputs []Input) (responses [][]byte, err error) {
	for _, input := range inputs {
		response, err := c.Request(ctx, input.Method, input.Params)
		if err != nil {
			return nil, err
		}
		responses = append(responses, response)
	}
	return responses, nil
}

// ErrCallOver is returned by Client.Request if the client accepts requests only during a
// call, and the call is over.
var ErrCallOver = errors.New("the call is over")

// Host is the user of an upstream session. Its methods may be called concurrently.
type Host interface {
	// Redact hides the secrets of the upstream.
	Redact(text string) string
	// OnlyClient returns the only client that could use the upstream session, nil if there
	// are none or several.
	OnlyClient() Client
	// LogLevel returns the log level that clients have set; "" if none has set one.
	LogLevel() string
	// Subscriptions returns the URIs that clients have subscribed to.
	Subscriptions() []string
	// Notified handles a notification of the upstream. to are its recipients.
	Notified(method string, params []byte, to []Client)
	// Record receives each message in both directions, except for mcpx's responses.
	Record(d Direction, message []byte)
	// Denied returns the error of a call that was refused because a person must act first:
	// sign in, or grant more access. It returns nil if no person must act.
	Denied(f *link.Failure) error
	// MaySpeak2026 reports whether the upstream may support 2026-07-28.
	MaySpeak2026() bool
	// SpeaksEarlier records that the upstream does not support 2026-07-28.
	SpeaksEarlier()
}

// Direction says who sent a message.
type Direction bool

// The directions.
const (
	Sent     Direction = false
	Received Direction = true
)
