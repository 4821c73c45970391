package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/internal/mcptest"
	"mcpx/registry/child"
	"mcpx/registry/live"
	"mcpx/registry/upstream"
)

func TestMain(m *testing.M) {
	child.WatchIfAsked()
	mcptest.Main()
	os.Exit(m.Run())
}

// run starts a registry of the given upstreams and stops it after the test.
func run(t *testing.T, upstreams map[string]any) (*Registry, *log) {
	t.Helper()
	return runWith(t, Options{}, upstreams)
}

// runWith is run with options.
func runWith(t *testing.T, o Options, upstreams map[string]any) (*Registry, *log) {
	t.Helper()
	mcptest.NothingLeft(t)
	text, err := json.Marshal(map[string]any{"mcpServers": upstreams})
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Parse(filepath.Join(t.TempDir(), "config.json"), text, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	l := newLog()
	w := child.NewWatcher(zerolog.New(l))
	o.Log, o.Version, o.MessageBytes, o.ConnectsAtOnce, o.Watcher = zerolog.New(l), "1.2.3", 1<<20, 2, w
	r := New(&c.Profiles[0], o)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		w.Close()
		for _, u := range r.Catalog().Upstreams {
			if u.State != live.Stopped {
				t.Errorf("%s is %s after the end", u.Name, u.State)
			}
		}
	})
	return r, l
}

// Times of package live.
const (
	slotTime   = 3 * time.Second  // that a start holds its slot
	fillTime   = time.Second      // that a process to fill the cache waits for a use
	relistTime = 30 * time.Second // until a list that could not be read is read again
	drainTime  = time.Minute      // for calls on a session that was replaced
)

// log collects the log and lets a test wait for a line.
type log struct {
	mu    sync.Mutex
	text  strings.Builder
	wrote chan struct{}
}

func newLog() *log { return &log{wrote: make(chan struct{})} }

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	close(l.wrote)
	l.wrote = make(chan struct{})
	return len(p), nil
}

func (l *log) wait(t *testing.T, part string) {
	t.Helper()
	l.waitFor(t, part, 1)
}

// waitFor waits until the log contains a part that many times.
func (l *log) waitFor(t *testing.T, part string, times int) {
	t.Helper()
	limit := time.After(10 * time.Second)
	for {
		l.mu.Lock()
		text, wrote := l.text.String(), l.wrote
		l.mu.Unlock()
		if strings.Count(text, part) >= times {
			return
		}
		select {
		case <-wrote:
		case <-limit:
			t.Fatalf("the log never had %q %d times:\n%s", part, times, text)
		}
	}
}

func (l *log) count(part string) int { return strings.Count(l.String(), part) }

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// callTool calls a tool and returns the text of its result.
func callTool(ctx context.Context, r *Registry, server, tool, arguments string) (string, error) {
	return callFor(ctx, r, nil, server, tool, arguments)
}

// callFor is callTool for a client.
func callFor(ctx context.Context, r *Registry, c upstream.Client, server, tool, arguments string) (string, error) {
	result, err := r.Call(ctx, server, upstream.Request{
		Method: "tools/call", Params: fmt.Appendf(nil, `{"name":%q,"arguments":%s}`, tool, arguments), Meta: []byte("{}"), Client: c,
	})
	if err != nil {
		return "", err
	}
	var answer struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(result, &answer); err != nil || len(answer.Content) != 1 {
		return "", fmt.Errorf("result %s: %w", result, err)
	}
	return answer.Content[0].Text, nil
}

func mustCall(t *testing.T, r *Registry, server, tool, arguments string) string {
	t.Helper()
	text, err := callTool(t.Context(), r, server, tool, arguments)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
