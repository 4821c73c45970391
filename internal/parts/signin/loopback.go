package signin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Loopback is a sign-in whose browser is sent back to a port of this machine.
type Loopback struct {
	Address string // that the person must open

	server *http.Server
	done   chan error
}

// BeginLoopback is Begin with a redirect to a port of this machine. The caller must call
// Wait. name is the upstream's name for the person.
func (a *Account) BeginLoopback(ctx context.Context, name string, scopes []string) (*Loopback, error) {
	port := a.settings.RedirectPort
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, fmt.Errorf("port %d (auth.redirect_port) is in use; stop the program that uses it, or sign in with --paste", port)
	}
	l := &Loopback{done: make(chan error, 1)}
	if l.Address, err = a.Begin(ctx, fmt.Sprintf("http://%s/callback", listener.Addr()), scopes); err != nil {
		_ = listener.Close()
		return nil, err
	}
	l.server = &http.Server{Handler: l.callback(ctx, a.accounts, name), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = l.server.Serve(listener) }() // until Wait ends it
	return l, nil
}

// PasteRedirect returns the redirect address for a person who pastes the address that the
// browser ends at. Nothing of mcpx listens there.
func (a *Account) PasteRedirect() string {
	if a.settings.RedirectPort == 0 {
		return noRedirect
	}
	return fmt.Sprintf("http://127.0.0.1:%d/callback", a.settings.RedirectPort)
}

// noRedirect is the redirect address of sign-ins whose browser need not come back.
const noRedirect = "http://127.0.0.1/callback"

// Wait waits until the person has signed in or was refused, for as long as a sign-in may
// take.
func (l *Loopback) Wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, pendingTime, fmt.Errorf("nobody signed in within %s", pendingTime))
	defer cancel()
	var err error
	select {
	case err = <-l.done:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	stop, end := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer end()
	_ = l.server.Shutdown(stop) // the last page is being sent
	return err
}

// callback handles the redirect that ends a sign-in in the browser. It ignores requests that belong to no sign-in, or to
// another one.
func (l *Loopback) callback(ctx context.Context, accounts *Accounts, name string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /callback", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Connection", "close")
		answer, err := r.URL.Query(), ErrNotBegun
		if begun, _ := url.Parse(l.Address); answer.Get("state") == begun.Query().Get("state") {
			_, err = accounts.Complete(ctx, "", answer)
		}
		switch {
		case errors.Is(err, ErrNotBegun):
			http.Error(w, "This page belongs to another sign-in.", http.StatusBadRequest)
			return
		case err != nil:
			http.Error(w, "You are not signed in. The program that started this says why.", http.StatusBadRequest)
		default:
			_, _ = fmt.Fprintf(w, "You are signed in to %s. You can close this page.\n", name)
		}
		select {
		case l.done <- err:
		default:
		}
	})
	return mux
}
