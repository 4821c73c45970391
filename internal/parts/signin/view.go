package signin

import (
	"context"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/registry"
	"mcpx/registry/live"
	"mcpx/registry/upstream"
)

// view is a registry as one client sees it, for the person who uses the client.
type view struct {
	registry.View
	registry *registry.Registry
	client   upstream.Client // nil: mcpx itself
}

func viewOf(r *registry.Registry, c upstream.Client) view { return view{r.For(c), r, c} }

// account returns the account that signs in to a server.
func (v view) account(ctx context.Context, server string) (*Account, error) {
	found, err := v.Account(ctx, server)
	if err != nil {
		return nil, err
	}
	account, ok := found.(*Account)
	if !ok {
		return nil, fmt.Errorf("%s has no sign-in", server)
	}
	return account, nil
}

// begin starts to sign in to a server, with these scopes in addition to those that it asks
// for. It returns the address that the person must open. The browser is then sent to redirect.
func (v view) begin(ctx context.Context, server, redirect string, scopes []string) (address string, err error) {
	account, err := v.account(ctx, server)
	if err != nil {
		return "", err
	}
	if address, err = account.Begin(ctx, redirect, scopes); err == nil {
		v.NoteSignIn(server)
	}
	return address, err
}

// beginLocal is begin for a person on this machine: the browser is sent back to a port of its
// own. The sign-in ends in the background.
func (v view) beginLocal(ctx context.Context, log zerolog.Logger, server string, scopes []string) (address string, err error) {
	account, err := v.account(ctx, server)
	if err != nil {
		return "", err
	}
	signIn, err := account.BeginLoopback(ctx, server, scopes)
	if err != nil {
		return "", err
	}
	v.registry.Background(func(ctx context.Context) {
		if err := signIn.Wait(ctx); err != nil {
			log.Warn().Err(err).Str("server", server).Msg("nobody has signed in")
			return
		}
		v.registry.Resume(ctx, account.Is)
	})
	v.NoteSignIn(server)
	return signIn.Address, nil
}

// signOut removes the tokens of a server, and revokes them where that is possible.
func (v view) signOut(ctx context.Context, server string) error {
	account, err := v.account(ctx, server)
	if err != nil {
		return err
	}
	_, err = account.Logout(ctx)
	v.registry.SignedOut(account.Is)
	return err
}

// status returns what is known about the sign-in of a server; ok is false if it has none.
func (v view) status(ctx context.Context, server string) (status Status, ok bool) {
	account, err := v.account(ctx, server)
	if err != nil {
		return status, false
	}
	status, err = account.Status(ctx)
	return status, err == nil
}

// StatusOf returns the Status of a server's sign-in for a client; nil if it has none. The console
// shows it.
func StatusOf(ctx context.Context, r *registry.Registry, c upstream.Client, server string) any {
	if status, ok := viewOf(r, c).status(ctx, server); ok {
		return status
	}
	return nil
}

// maySignIn reports whether the client's caller may sign in to a server: for itself, or, if
// it may use everything, for all.
func (v view) maySignIn(server string) bool {
	u := v.Catalog().Upstream(server)
	return upstream.CallerOf(v.client).Rules == nil || u != nil && u.Config.Isolation == config.PerUser
}

// signedIn waits until a person has signed in to a server and granted these scopes, or ctx
// ends.
func (v view) signedIn(ctx context.Context, server string, scopes []string) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		u := v.Catalog().Upstream(server)
		if u == nil {
			return &live.Unavailable{Server: server, Reason: "no such server"}
		}
		status, ok := v.status(ctx, server)
		if ok && status.Has(scopes) && !u.NeedsPerson() {
			return nil
		}
		select {
		case <-tick.C:
		case <-u.Changed():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
