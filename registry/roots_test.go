package registry

import (
	"context"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
	"mcpx/internal/rpc"
)

// TestKeptRoots: a server that keeps the roots of its client has those of the caller at
// every call, whoever called before.
func TestKeptRoots(t *testing.T) {
	r, _ := run(t, map[string]any{"a": mcptest.Upstream(t, "-keep-roots")})
	if _, err := r.Ready(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server requests roots", func() bool { return r.Catalog().Upstream("a").KeepsRoots() })
	a, b := newRecorder("A"), newRecorder("B")
	none := rootless{inputRecorder{newRecorder("none"), `{"sampling":{}}`, "2025-11-25"}}
	for _, c := range []Client{a, b, none} {
		r.Attach(c)
	}
	for _, c := range []struct {
		client Client
		want   string
	}{{a, `{"from":"A"}`}, {a, `{"from":"A"}`}, {b, `{"from":"B"}`}, {a, `{"from":"A"}`}, {none, `{"roots":[]}`}} {
		if got, err := callAs(t, r, c.client, "kept", "{}"); err != nil || got != c.want {
			t.Errorf("%s has the roots %s, %v, want %s", c.client.ID(), got, err, c.want)
		}
	}
	if len(a.asked) != 2 || len(b.asked) != 1 {
		t.Errorf("A was asked %d times, B %d times", len(a.asked), len(b.asked))
	}
}

// rootless is a client that has no roots.
type rootless struct{ inputRecorder }

func (c rootless) Request(context.Context, string, []byte) ([]byte, error) {
	return nil, rpc.Errorf(rpc.CodeMethodNotFound, "no roots")
}

// TestKeptRootsOfARunningCall: while a call of one client runs, the roots do not change, and
// a call of another client is refused.
func TestKeptRootsOfARunningCall(t *testing.T) {
	r, _ := run(t, map[string]any{"a": mcptest.Upstream(t, "-keep-roots")})
	eventually(t, "the server requests roots", func() bool { return r.Catalog().Upstream("a").KeepsRoots() })
	a, b := newRecorder("A"), newRecorder("B")
	r.Attach(a)
	r.Attach(b)
	if _, err := callAs(t, r, a, "kept", "{}"); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := callAs(t, r, a, "sleep", `{"ms":20000}`)
		ended <- err
	}()
	eventually(t, "A has a call", func() bool { _, isBusy := r.Catalog().Upstream("a").session.Activity(); return isBusy })
	if _, err := callAs(t, r, b, "kept", "{}"); err == nil || !strings.Contains(err.Error(), `set "isolation": "client"`) {
		t.Errorf("error %v, want that it was refused", err)
	}
	if len(b.asked) > 0 {
		t.Errorf("B was asked %q", b.asked)
	}
}
