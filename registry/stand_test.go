package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
)

// TestStandingStreamIsOpenedAgain: each row is what an upstream answers when its
// standing stream is asked for, in turn. With the last, mcpx gives up.
func TestStandingStreamIsOpenedAgain(t *testing.T) {
	type answer struct {
		status int
		body   string
	}
	event := func(id int) string { return fmt.Sprintf("id: %d\ndata: {\"n\":%d}\n\n", id, id) }
	for _, row := range []struct {
		name    string
		answers []answer
		asked   []string // when, and after which event
		heard   []string
		ended   error // why the link was; nil: it was not
	}{
		{name: "it has none", answers: []answer{{405, ""}}, asked: []string{"0s"}},
		{name: "it never had one", answers: []answer{{503, ""}}, asked: []string{"0s"}},
		{
			name:    "it ends",
			answers: []answer{{200, "data: {\"n\":1}\n\n"}, {200, "data: {\"n\":2}\n\n"}, {200, ""}, {405, ""}},
			asked:   []string{"0s", "5s", "10s", "15s"},
			heard:   []string{`{"n":1}`, `{"n":2}`},
		},
		{
			name:    "a proxy before it restarts",
			answers: []answer{{200, event(1)}, {502, ""}, {503, ""}, {429, ""}, {500, ""}, {200, event(2)}, {404, ""}},
			asked:   []string{"0s", "5s 1", "10s 1", "15s 1", "20s 1", "25s 1", "30s 2"},
			heard:   []string{`{"n":1}`, `{"n":2}`},
			ended:   errSessionLost,
		},
		{
			name:    "it breaks, and its events have no ids",
			answers: []answer{{200, "data: {\"n\":1}\n\n"}, {502, ""}, {200, "data: {\"n\":2}\n\n"}, {405, ""}},
			asked:   []string{"0s", "5s", "10s", "15s"},
			heard: []string{
				`{"n":1}`, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`, `{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}`,
				`{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}`, `{"n":2}`,
			},
		},
		{
			name:    "it says when",
			answers: []answer{{200, "retry: 700\n" + event(1)}, {200, "retry: 0\n" + event(2)}, {200, "retry: 999999999\n" + event(3)}, {405, ""}, {405, ""}},
			asked:   []string{"0s", "700ms 1", "800ms 2", "1m0.8s 3", "2m0.8s"},
			heard:   []string{`{"n":1}`, `{"n":2}`, `{"n":3}`},
		},
		{
			name:    "a failure is not asked for faster than usual",
			answers: []answer{{200, "retry: 1\n" + event(1)}, {503, ""}, {200, ""}, {405, ""}, {405, ""}},
			asked:   []string{"0s", "100ms 1", "5.1s 1", "5.2s 1", "5.3s"},
			heard:   []string{`{"n":1}`},
		},
		{
			name:    "an event breaks off",
			answers: []answer{{200, event(1) + "id: 2\ndata: {\"n\":"}, {200, event(2)}, {405, ""}, {405, ""}},
			asked:   []string{"0s", "5s 1", "10s 2", "15s"},
			heard:   []string{`{"n":1}`, `{"n":2}`},
		},
		{
			name:    "it has forgotten the event",
			answers: []answer{{200, event(1)}, {400, "unknown event"}, {200, event(7)}, {400, "unknown event"}, {400, ""}},
			asked:   []string{"0s", "5s 1", "10s", "15s 7", "20s"},
			heard:   []string{`{"n":1}`, `{"n":7}`},
		},
		{
			name:    "an event is too long",
			answers: []answer{{200, event(1) + "id: 2\ndata: " + strings.Repeat("x", 2000) + "\n\n"}, {405, ""}},
			asked:   []string{"0s", "5s"},
			heard:   []string{`{"n":1}`},
		},
		{
			name:    "an id that no header can say",
			answers: []answer{{200, event(1) + "id: \x01\ndata: {}\n\n"}, {405, ""}, {405, ""}},
			asked:   []string{"0s", "5s 1", "10s"},
			heard:   []string{`{"n":1}`, `{}`},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newHTTPLink(&config.Upstream{URL: "http://127.0.0.1/"}, Options{MessageBytes: 1000}, zerolog.Nop())
				l.session = "s"
				start, left := time.Now(), row.answers
				var asked []string
				l.client.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
					if r.Method != http.MethodGet {
						return nil, io.ErrUnexpectedEOF
					}
					asked = append(asked, strings.TrimSpace(fmt.Sprint(time.Since(start), " ", r.Header.Get("Last-Event-ID"))))
					a := answer{status: http.StatusMethodNotAllowed} // once too often
					if len(left) > 0 {
						a, left = left[0], left[1:]
					}
					return &http.Response{StatusCode: a.status, Body: io.NopCloser(strings.NewReader(a.body))}, nil
				})
				l.stand()
				if !slices.Equal(asked, row.asked) {
					t.Errorf("asked for it\n at %q\nwant %q", asked, row.asked)
				}
				if got := context.Cause(l.ctx); !errors.Is(got, row.ended) {
					t.Errorf("the link has ended for %v, want %v", got, row.ended)
				}
				var heard []string
				for range len(l.incoming) {
					heard = append(heard, string((<-l.incoming).message))
				}
				if !slices.Equal(heard, row.heard) {
					t.Errorf("heard %q, want %q", heard, row.heard)
				}
				l.Close()
			})
		})
	}
}
