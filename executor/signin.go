package executor

import (
	"context"
	"crypto/rand"
	"errors"

	"mcpx/internal/rawjson"
	"mcpx/registry/live"
)

// needsSignIn reports whether an error means that a person must act first.
func needsSignIn(err error) bool {
	e, ok := errors.AsType[*live.Unavailable](err)
	if ok {
		_, ok = e.NeedsSignIn()
	}
	return ok
}

// capable is implemented by clients that know what they can do.
type capable interface {
	// Supports returns why the client cannot handle a request, nil if it can.
	Supports(method string, params []byte) error
}

// askToSignIn asks the client to open the page where a person signs in, if err means that
// this is needed and the client can do it. It then waits until the person has signed in,
// within the limit of the call. It reports whether the call, which was not made, can be
// made now. A call asks once.
func (e *Executor) askToSignIn(ctx context.Context, c *Call, err error) bool {
	client, isCapable := c.Client.(capable)
	needed, ok := errors.AsType[*live.Unavailable](err)
	if e.signIn == nil || c.hasAsked || !isCapable || !ok {
		return false
	}
	if !e.registry.For(c.Client).MaySignIn(needed.Server) {
		return false // others sign in to it
	}
	scopes, ok := needed.NeedsSignIn()
	request := func(address, id string) []byte {
		b := rawjson.AppendString([]byte(`{"mode":"url","message":`), needed.Server+" "+needed.Why()+". Sign in on this page.")
		b = rawjson.AppendString(append(b, `,"url":`...), address)
		return append(rawjson.AppendString(append(b, `,"elicitationId":`...), id), '}')
	}
	if !ok || client.Supports("elicitation/create", request("", "")) != nil {
		return false
	}
	c.hasAsked = true
	ctx, cancel := context.WithTimeout(ctx, e.registry.MaxTimeout(needed.Server))
	defer cancel()
	address, err := e.signIn(ctx, c.Client, needed.Server, scopes)
	if err != nil {
		e.log.Warn().Err(err).Str("server", needed.Server).Msg("signing in cannot begin")
		return false
	}
	id := rand.Text()
	answer, err := c.Client.Request(ctx, "elicitation/create", request(address, id))
	if err != nil || text(answer, "action") != "accept" {
		return false
	}
	if e.registry.For(c.Client).SignedIn(ctx, needed.Server, scopes) != nil {
		return false
	}
	c.Client.Notify("notifications/elicitation/complete", append(rawjson.AppendString([]byte(`{"elicitationId":`), id), '}'))
	return true
}
