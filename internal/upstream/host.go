package upstream

import "mcpx/internal/link"

// Host is the user of a session. Its methods may be called concurrently.
type Host interface {
	// Redact hides the secrets of the upstream.
	Redact(text string) string
	// OnlyClient returns the only client that could use the session, nil if there are none
	// or several.
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
	// MaySpeakModern reports whether the upstream may support 2026-07-28.
	MaySpeakModern() bool
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
