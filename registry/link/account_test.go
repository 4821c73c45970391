package link

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"mcpx/config"
)

// denying is an account that refuses every request.
type denying struct{ failure Failure }

func (a denying) Transport(http.RoundTripper) http.RoundTripper {
	return roundTripper(func(*http.Request) (*http.Response, error) { return nil, &Denied{a.failure} })
}

func (a denying) Redact(text string) string { return strings.ReplaceAll(text, "token-1", "***") }

// TestDenied: a request that the account refuses was not run, and the link goes on.
func TestDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		account := denying{Failure{Reason: "needs more than token-1", Cause: CauseAccess, Scopes: []string{"write"}}}
		h := newHTTPLink(Options{Upstream: &config.Upstream{URL: "http://127.0.0.1/"}, Account: account, MessageBytes: 1000, Intake: NewIntake(1000)})
		t.Cleanup(h.Close)
		l := run(h)
		for range 2 {
			l.sendAll(t, aCall)
			d := <-l.incoming
			end, ok := errors.AsType[*CallEnd](d.Err)
			if !ok || end.Outcome != Refused || end.Denied == nil {
				t.Fatalf("%+v", d)
			}
			if f := end.Denied; f.Cause != CauseAccess || len(f.Scopes) != 1 || f.Reason != "needs more than ***" || end.Reason != f.Reason {
				t.Errorf("%+v", f)
			}
		}
	})
}
