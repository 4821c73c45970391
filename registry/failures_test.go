package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/internal/mcptest"
	"mcpx/registry/link"
	"mcpx/registry/live"
	"mcpx/registry/registrytest"
	"mcpx/registry/upstream"
)

func TestOneBadUpstreamCostsOnlyItself(t *testing.T) {
	slow := mcptest.Upstream(t, "-silent", "initialize", "-stderr", "still thinking")
	slow["startup_timeout"] = 5 // it has said what it thinks by then
	talks := mcptest.Upstream(t, "-silent", "initialize", "-stdout", "Listening on port 80\nPress Ctrl-C")
	talks["startup_timeout"] = 5
	missing := mcptest.Upstream(t)
	missing["args"] = []string{"${MCPX_NO_SUCH_VARIABLE}"}
	nowhere := mcptest.Upstream(t)
	nowhere["cwd"] = "/no/such/folder"
	r, _ := run(t, map[string]any{
		"good":    mcptest.Upstream(t),
		"gone":    map[string]any{"command": "mcpx-no-such-program"},
		"path":    map[string]any{"command": "./no-such-program"},
		"notexec": map[string]any{"command": "/dev/null"},
		"folder":  map[string]any{"command": "../registry"},
		"words":   map[string]any{"command": "npx -y foo"},
		"spaces":  map[string]any{"command": "/no such folder/foo"},
		"own":     map[string]any{"command": "npx -y foo", "env": map[string]string{"PATH": t.TempDir()}},
		"exits":   mcptest.Upstream(t, "-exit", "3", "-stderr", "no API key\nset API_KEY"),
		"refuses": mcptest.Upstream(t, "-refuse", "initialize"),
		"lists":   mcptest.Upstream(t, "-refuse", "tools/list"),
		"slow":    slow,
		"talks":   talks,
		"usage":   mcptest.Upstream(t, "-exit", "3", "-stdout", "usage: server --key KEY"),
		"env":     missing,
		"nowhere": nowhere,
	})
	if got := mustCall(t, r, "good", "echo", `{"text":"hi"}`); got != "hi" {
		t.Errorf("good answered %q", got)
	}
	for server, want := range map[string]struct {
		state  live.State
		reason string
		stderr []string
	}{
		"gone":    {live.Waiting, `command "mcpx-no-such-program" was not found in PATH; install it, or give its full path`, nil},
		"path":    {live.Waiting, `command "./no-such-program" does not exist; check its path`, nil},
		"notexec": {live.Waiting, `command "/dev/null" may not be executed; check its permissions`, nil},
		"folder":  {live.Waiting, `command "../registry" is a folder, not a program; give the path of the program in it`, nil},
		"words":   {live.Waiting, `command "npx -y foo" does not exist: it is the program alone; move the words after "npx" to "args"`, nil},
		"spaces":  {live.Waiting, `command "/no such folder/foo" does not exist; check its path`, nil},
		"own":     {live.Waiting, `command "npx -y foo" does not exist: it is the program alone; move the words after "npx" to "args"`, nil},
		"exits":   {live.Waiting, "exited with status 3", []string{"no API key", "set API_KEY"}},
		"refuses": {live.Waiting, "initialize: refused on purpose (-32050)", nil},
		"lists":   {live.Waiting, "tools/list: refused on purpose (-32050)", nil},
		"slow":    {live.Waiting, `not ready within 5s (its "startup_timeout")`, []string{"still thinking"}},
		"talks":   {live.Waiting, `not ready within 5s (its "startup_timeout"); it wrote "Listening on port 80" to its stdout instead of a message`, nil},
		"usage":   {live.Waiting, `exited with status 3; it wrote "usage: server --key KEY" to its stdout instead of a message`, nil},
		"env":     {live.Failed, "environment variable MCPX_NO_SUCH_VARIABLE is not set (used in args[0]); set it, or write ${MCPX_NO_SUCH_VARIABLE:-default}", nil},
		"nowhere": {live.Waiting, `cwd "/no/such/folder" is not a folder; check its path`, nil},
	} {
		u := r.Settled(t.Context(), server)
		if u.State != want.state || u.Reason != want.reason || strings.Join(u.Stderr, "|") != strings.Join(want.stderr, "|") {
			t.Errorf("%s: %s, %q, %q; want %+v", server, u.State, u.Reason, u.Stderr, want)
		}
	}
	_, err := callTool(t.Context(), r, "exits", "echo", "{}")
	var unavailable *live.Unavailable
	if !errors.As(err, &unavailable) || !strings.Contains(err.Error(), `server "exits" is unavailable: exited with status 3; next try in `) ||
		!strings.HasSuffix(err.Error(), "last lines of its stderr:\n  no API key\n  set API_KEY") {
		t.Errorf("error %v", err)
	}
	if _, err := callTool(t.Context(), r, "nobody", "echo", "{}"); !errors.As(err, &unavailable) {
		t.Errorf("error %v", err)
	}
}

func TestDeathDuringACallAndAfter(t *testing.T) {
	r, _ := run(t, map[string]any{"a": mcptest.Upstream(t)})
	pid := mustCall(t, r, "a", "pid", "{}")
	_, err := callTool(t.Context(), r, "a", "crash", `{"status":7,"stderr":"out of memory"}`)
	var lost *upstream.Lost
	if !errors.As(err, &lost) {
		t.Fatalf("error %v, want a *Lost", err)
	}
	want := `server "a" stopped during the call: exited with status 7; whether the call took effect is unknown, and mcpx does not repeat it` +
		"\nlast lines of its stderr:\n  out of memory"
	if err.Error() != want {
		t.Errorf("error\n%v\nwant\n%s", err, want)
	}
	if again := mustCall(t, r, "a", "pid", "{}"); again == pid {
		t.Error("the next call found the dead process")
	}
	// The second one makes it wait, for most of a second at least.
	for {
		begin := time.Now()
		_, _ = callTool(t.Context(), r, "a", "crash", `{"status":0}`)
		_, err = callTool(t.Context(), r, "a", "pid", "{}")
		var unavailable *live.Unavailable
		if errors.As(err, &unavailable) {
			break
		}
		if time.Since(begin) < 700*time.Millisecond {
			t.Fatalf("after a second death: %v, want it to wait", err)
		}
	}
}

// TestACallStartsAWaitingUpstreamAfterTheGrace: a call soon after a failed start fails
// with its reason, a later one starts the upstream at once. So does Ready.
func TestACallStartsAWaitingUpstreamAfterTheGrace(t *testing.T) {
	for name, use := range map[string]func(ctx context.Context, r *Registry) error{
		"call": func(ctx context.Context, r *Registry) error {
			_, err := call(ctx, r, nil)
			return err
		},
		"ready": func(ctx context.Context, r *Registry) error {
			_, err := r.For(nil).Ready(ctx, "a")
			return err
		},
	} {
		f := &fake{Down: true}
		inTime(t, f, func(t *testing.T, r *Registry) {
			after(20 * time.Second) // attempts at about 0, 1, 3, 7 and 15
			u := r.Catalog().Upstream("a")
			after(time.Until(u.RetryAt)) // the next attempt fails now
			f.Set(func(f *fake) { f.Down = false })
			attempts := len(f.Times())
			after(900 * time.Millisecond)
			err := use(t.Context(), r)
			var none *live.Unavailable
			if !errors.As(err, &none) || none.Reason != "down on purpose" || len(f.Times()) != attempts {
				t.Errorf("%s within the grace: %v, attempts at %v", name, err, f.Times())
			}
			after(200 * time.Millisecond)
			begin := time.Now()
			if err := use(t.Context(), r); err != nil || len(f.Times()) != attempts+1 || time.Since(begin) != 0 {
				t.Errorf("%s after the grace: %v, attempts at %v", name, err, f.Times())
			}
		})
	}
}

// TestACallWaitsNoLongerThanAStart: many upstreams hang at the start and stop slowly.
// A call to any of them waits for startup_timeout at most, although starts wait for
// each other.
func TestACallWaitsNoLongerThanAStart(t *testing.T) {
	f := &fake{Silent: true, Stops: 4 * time.Second}
	link.Transports[registrytest.Transport] = f.Dial
	defer delete(link.Transports, registrytest.Transport)
	const limit = 5 * time.Second
	synctest.Test(t, func(t *testing.T) {
		p := &config.Profile{}
		for i := range 20 {
			isolation := config.Shared
			if i%2 == 1 {
				isolation = config.PerClient
			}
			p.Upstreams = append(p.Upstreams, config.Upstream{Name: fmt.Sprint("u", i), Transport: registrytest.Transport, StartupTimeout: limit, Timeout: time.Minute, Isolation: isolation})
		}
		r := New(p, Options{Log: zerolog.Nop(), MessageBytes: 1 << 20, ConnectsAtOnce: 2})
		ctx, cancel := context.WithCancel(t.Context())
		var running, calls sync.WaitGroup
		running.Go(func() { _ = r.Run(ctx) })
		for range 8 { // some during the first start, some during a stop or a later start
			for _, u := range p.Upstreams {
				calls.Go(func() {
					begin := time.Now()
					_, err := r.Call(t.Context(), u.Name, upstream.Request{Method: "tools/call", Client: newRecorder("one")})
					var unavailable *live.Unavailable
					if took := time.Since(begin); took > limit || !errors.As(err, &unavailable) {
						t.Errorf("%s: %v after %s", u.Name, err, took)
					}
				})
			}
			after(1500 * time.Millisecond)
		}
		calls.Wait()
		// What a call waited before it came here counts, too.
		begin := time.Now()
		_, _ = r.Call(t.Context(), "u0", upstream.Request{Method: "tools/call", Begun: begin.Add(-4 * time.Second)})
		if took := time.Since(begin); took > limit-4*time.Second {
			t.Errorf("a call that came 4 s ago waited for another %s", took)
		}
		cancel()
		running.Wait()
	})
}

// stderrLines is the number of lines of a child's stderr that are kept.
const stderrLines = 10

// TestStderrOfAReadyUpstream: the last lines are available while it runs, redacted.
// Adjacent lines that are all secret are kept as one.
func TestStderrOfAReadyUpstream(t *testing.T) {
	a := mcptest.Upstream(t, "-full", "-token", "the-token-1")
	a["env"].(map[string]string)["API_KEY"] = key
	r, l := run(t, map[string]any{"a": a})
	u, err := r.For(nil).Ready(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	l.wait(t, `"line":"bad token ***, bad key ***"`)
	l.waitFor(t, `"line":"***"`, 2)
	if got, want := u.LatestStderr(), []string{"bad token ***, bad key ***", "***"}; !slices.Equal(got, want) || u.Stderr != nil {
		t.Errorf("kept %q and %q, want %q", got, u.Stderr, want)
	}
	for range stderrLines + 2 {
		if _, err := r.Call(t.Context(), "a", upstream.Request{Method: "logging/setLevel", Params: []byte(`{"level":"info"}`)}); err != nil {
			t.Fatal(err)
		}
	}
	l.waitFor(t, `"line":"logging/setLevel info"`, stderrLines+2)
	if got := u.LatestStderr(); len(got) != stderrLines || got[0] != "logging/setLevel info" {
		t.Errorf("kept %q", got)
	}
	_, err = callTool(t.Context(), r, "a", "crash", `{"status":7,"stderr":"out of memory"}`)
	if got := u.LatestStderr(); err == nil || got[len(got)-1] != "out of memory" {
		t.Errorf("kept %q after %v", got, err)
	}
}

// TestStderrOfAServerThatStarts: a call that waited too long shows what the server has
// written so far, and does not wait until the server is stopped.
func TestStderrOfAServerThatStarts(t *testing.T) {
	a := mcptest.Upstream(t, "-start-delay", "1h", "-stderr", "loading the model", "-ignore-eof", "-ignore-term")
	a["startup_timeout"] = "1s"
	r, _ := run(t, map[string]any{"a": a})
	begin := time.Now()
	_, err := callTool(t.Context(), r, "a", "echo", `{"text":"x"}`)
	var unavailable *live.Unavailable
	if !errors.As(err, &unavailable) || !strings.Contains(err.Error(), "startup_timeout") || !strings.Contains(err.Error(), "loading the model") {
		t.Errorf("error %v", err)
	}
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("the call waited for %s", took)
	}
}

// TestCallsGoAheadOfTheQueue: a server that a call waits for starts at once, however many
// others hang in front of it. Any other server waits until those have freed their slots.
func TestCallsGoAheadOfTheQueue(t *testing.T) {
	good, hangs := &fake{}, &fake{Silent: true}
	link.Transports[registrytest.Transport] = func(ctx context.Context, o link.Options) (link.Link, error) {
		if strings.HasPrefix(o.Upstream.Name, "good") {
			return good.Dial(ctx, o)
		}
		return hangs.Dial(ctx, o)
	}
	defer delete(link.Transports, registrytest.Transport)
	synctest.Test(t, func(t *testing.T) {
		p := &config.Profile{}
		add := func(name string) {
			p.Upstreams = append(p.Upstreams, config.Upstream{Name: name, Transport: registrytest.Transport, StartupTimeout: time.Minute, Timeout: time.Minute})
		}
		for i := range 20 {
			add(fmt.Sprint("hangs", i))
		}
		add("good")
		add("good, but nobody calls it")
		r := New(p, Options{Log: zerolog.Nop(), MessageBytes: 1 << 20, ConnectsAtOnce: 2})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = r.Run(ctx) })
		synctest.Wait()
		begin := time.Now()
		if _, err := r.For(nil).Ready(t.Context(), "good"); err != nil || time.Since(begin) != 0 {
			t.Errorf("ready after %s, %v", time.Since(begin), err)
		}
		after(20 / 2 * slotTime)
		if u := r.Catalog().Upstream("good, but nobody calls it"); u.State != live.Ready {
			t.Errorf("after the starts that hang, it is %s", u.State)
		}
		cancel()
		running.Wait()
	})
}
