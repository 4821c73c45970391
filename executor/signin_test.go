package executor

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/internal/mcptest"
	"mcpx/internal/rpc"
	"mcpx/registry"
	"mcpx/registry/link"
	"mcpx/registry/live"
	"mcpx/registry/upstream"
)

// locked is a remote upstream, and its account. It needs a sign-in, and more access for calls.
type locked struct{ isOpen, mayCall atomic.Bool }

func (l *locked) Transport(http.RoundTripper) http.RoundTripper { return l }
func (l *locked) Redact(text string) string                     { return text }
func (l *locked) Changed(context.Context) bool                  { return l.isOpen.Load() }
func (l *locked) Has([]string) bool                             { return true }

func (l *locked) Wait(ctx context.Context, _ []string) error {
	<-ctx.Done()
	return ctx.Err()
}

// RoundTrip implements http.RoundTripper.
func (l *locked) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	m, _ := rpc.Parse(body)
	switch {
	case !l.isOpen.Load():
		return nil, &link.Denied{Failure: link.Failure{Reason: "needs sign-in", Cause: link.CauseSignIn}}
	case m.Method == "tools/call" && !l.mayCall.Load():
		return nil, &link.Denied{Failure: link.Failure{Reason: "needs more access", Cause: link.CauseAccess, Scopes: []string{"write"}}}
	}
	result, ok := map[string]string{
		"initialize": `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"locked","version":"1"}}`,
		"tools/list": `{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}`,
		"tools/call": `{"content":[{"type":"text","text":"well"}]}`,
	}[m.Method]
	response := &http.Response{StatusCode: http.StatusAccepted, Header: http.Header{"Content-Type": {"application/json"}}, Body: http.NoBody, Request: r}
	if ok {
		response.StatusCode = http.StatusOK
		response.Body = io.NopCloser(strings.NewReader(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)))
	}
	return response, nil
}

// TestSignInHook: a call that needs a person asks once, and is made after the person has acted.
func TestSignInHook(t *testing.T) {
	mcptest.NothingLeft(t)
	c := parse(t, nil, map[string]any{"name": "a", "url": "http://127.0.0.1:1/mcp", "type": "http"})
	l := &locked{}
	r := registry.New(&c.Profiles[0], registry.Options{
		Log: zerolog.Nop(), MessageBytes: 1 << 20, ConnectsAtOnce: 1,
		Account: func(*config.Upstream) live.Account { return l },
	})
	var asked []string
	helps := false
	e := New(r, c, &c.Profiles[0], Options{Log: zerolog.Nop(), SignIn: func(_ context.Context, _ upstream.Client, needed *live.Unavailable) bool {
		scopes, _ := needed.NeedsSignIn()
		asked = append(asked, fmt.Sprint(needed.Server, scopes))
		l.mayCall.Store(helps && l.isOpen.Load())
		l.isOpen.Store(helps)
		return helps
	}})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- r.Run(ctx) }()
	defer func() {
		cancel()
		<-done
	}()
	r.Settled(t.Context(), "a")
	for _, row := range []struct {
		helps       bool
		asked, want string
	}{
		{false, "a[]", "needs sign-in"},
		{true, "a[]", "needs more access"}, // it asks once
		{true, "a[write]", ""},
	} {
		asked, helps = nil, row.helps
		_, err := e.Call(t.Context(), Call{Server: "a", Tool: "t"})
		if strings.Join(asked, " ") != row.asked || (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("asked %q, error %v; want %q and %q", asked, err, row.asked, row.want)
		}
	}
}
