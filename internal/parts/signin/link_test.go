package signin

import (
	"errors"
	"slices"
	"testing"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/internal/parts/signin/signintest"
	"mcpx/registry/link"
)

// TestAccount: which upstreams use OAuth.
func TestAccount(t *testing.T) {
	accounts := accountsIn(t)
	for name, row := range map[string]struct {
		upstream config.Upstream
		want     bool
	}{
		"remote":       {config.Upstream{URL: "https://a.example/mcp", Auth: config.Auth{Flow: "auto"}}, true},
		"local":        {config.Upstream{Command: "x"}, false},
		"not wanted":   {config.Upstream{URL: "https://a.example/mcp", Auth: config.Auth{Flow: "none"}}, false},
		"own header":   {config.Upstream{URL: "https://a.example/mcp", Headers: map[string]string{"authorization": "Bearer x"}}, false},
		"other header": {config.Upstream{URL: "https://a.example/mcp", Headers: map[string]string{"X-Team": "a"}}, true},
	} {
		if got := accounts.Hook(&row.upstream) != nil; got != row.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestDeniedCalls: a call that needs a person ends with a typed failure, and the link goes on.
func TestDeniedCalls(t *testing.T) {
	s := signintest.New(t)
	s.CallScope = "write"
	u := &config.Upstream{URL: s.URL, Transport: config.TransportHTTP}
	accounts := accountsIn(t)
	account := accounts.For(u)
	l, err := link.Dial(t.Context(), link.Options{Upstream: u, Account: account, Log: zerolog.Nop(), MessageBytes: 1 << 20, Intake: link.NewIntake(1 << 20)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	incoming := make(chan link.Delivery, 1)
	go func() { _ = l.Run(func(d link.Delivery) { incoming <- d }) }()
	send := func(method string) (message []byte, denied *link.Failure) {
		t.Helper()
		if err := l.Send([]byte(`{"jsonrpc":"2.0","id":1,"method":"` + method + `"}`)); err != nil {
			t.Fatal(err)
		}
		d := <-incoming
		var end *link.CallEnd
		if errors.As(d.Err, &end) {
			if end.Outcome != link.Refused || end.Reason != end.Denied.Reason {
				t.Errorf("%s: %+v", method, end)
			}
			return nil, end.Denied
		}
		if d.Err != nil {
			t.Fatal(d.Err)
		}
		return d.Text, nil
	}
	if _, denied := send("tools/list"); denied == nil || denied.Cause != link.CauseSignIn || denied.Reason != "needs sign-in" {
		t.Errorf("before the sign-in: %+v", denied)
	}
	address, err := account.Begin(t.Context(), "http://127.0.0.1:1/callback", nil)
	if err != nil {
		t.Fatal(err)
	}
	back, err := signintest.Browse(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := accounts.Complete(t.Context(), "", back.Query()); err != nil {
		t.Fatal(err)
	}
	if message, denied := send("tools/list"); denied != nil {
		t.Errorf("after the sign-in: %s, %+v", message, denied)
	}
	if _, denied := send("tools/call"); denied == nil || denied.Cause != link.CauseAccess || !slices.Equal(denied.Scopes, []string{"write"}) {
		t.Errorf("without a scope: %+v", denied)
	}
}
