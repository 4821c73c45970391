package upstream

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/rpc"
)

// TestElicitationCompleteReachesItsClient: the notification goes to the client that
// was sent to the URL, whichever client uses the session then.
func TestElicitationCompleteReachesItsClient(t *testing.T) {
	inTime(t, func(t *testing.T, f fixture) {
		one, two := &client{id: "one"}, &client{id: "two"}
		visit := func(c *client, id string) {
			t.Helper()
			callID, _ := f.begin(t, c)
			if got := f.peer.request("q", "elicitation/create", fmt.Sprintf(`{"mode":"url","elicitationId":%q}`, id)); got != string(c.from()) {
				t.Fatalf("the upstream got %s", got)
			}
			f.peer.respond(callID, done)
			synctest.Wait()
		}
		complete := func(id, want string) {
			t.Helper()
			f.peer.say(`{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":%q}}`, id)
			if got := f.host.heard(); !slices.Equal(got, []string{strings.TrimSpace(fmt.Sprintf(`notifications/elicitation/complete {"elicitationId":%q} %s`, id, want))}) {
				t.Errorf("%s: got %q, want it for %q", id, got, want)
			}
		}
		visit(one, "first")
		after(time.Minute)
		visit(two, "second")
		complete("second", "two")
		complete("first", "one")
		complete("first", "one")
		_, cancel := f.begin(t, two)
		complete("first", "one")
		complete("unknown", "two") // the client of the running call
		_ = cancel()
		for i := range maxElicited {
			visit(two, fmt.Sprint("more ", i))
		}
		complete("first", "") // the oldest is forgotten
	})
}

// TestURLsInErrorsAreRemembered: the error of a call may send a client to a URL, too.
func TestURLsInErrorsAreRemembered(t *testing.T) {
	s := &Session{}
	c := &client{id: "one"}
	s.rememberURLs(&rpc.Error{Code: -32042, Data: []byte(`{"elicitations":[{"mode":"url","elicitationId":"x","url":"https://example.com"},{"mode":"form","elicitationId":"y"}]}`)}, c)
	s.rememberURLs(&rpc.Error{Code: -32603, Data: []byte(`{"elicitations":[{"mode":"url","elicitationId":"z"}]}`)}, c)
	for id, want := range map[string]Client{"x": c, "y": nil, "z": nil} {
		if got := s.visitor(fmt.Appendf(nil, `{"elicitationId":%q}`, id)); got != want {
			t.Errorf("%s: %v, want %v", id, got, want)
		}
	}
}
