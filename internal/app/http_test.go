package app

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpx/config"
	"mcpx/server/access"
)

// What mcpx says at its start of where to connect is true, whatever it is bound to.
func TestWhereToConnect(t *testing.T) {
	where := regexp.MustCompile(`(?:url=|listening on )(http://[^\s"]+)`)
	for _, host := range []string{"127.0.0.1", "localhost", "0.0.0.0"} {
		t.Run(host, func(t *testing.T) {
			text := `{"server":{"host":"` + host + `","port":0,"token":"a-token-of-the-test"},"schemas":{"default":{"mcpServers":{}},"my work":{"mcpServers":{}}}}`
			c, err := config.Parse(filepath.Join(t.TempDir(), "mcpx.json"), []byte(text), os.LookupEnv)
			if err != nil {
				t.Fatal(err)
			}
			said, stderr := io.Pipe()
			a, err := New(c, "", stderr)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			served := make(chan error, 1)
			go func() {
				served <- a.ListenHTTP(ctx)
				_ = stderr.Close()
			}()
			defer func() {
				cancel()
				_, _ = io.Copy(io.Discard, said)
				if err := <-served; err != nil {
					t.Error(err)
				}
			}()
			var urls, paths []string
			for lines := bufio.NewScanner(said); len(urls) < 4 && lines.Scan(); {
				if found := where.FindStringSubmatch(lines.Text()); found != nil {
					urls = append(urls, found[1])
				}
			}
			for _, url := range urls { // not before: Serve says all of it first, and somebody must read it
				paths = append(paths, visit(t, url))
			}
			slices.Sort(paths) // the log is written in its own time
			if want := []string{"/ 200", "/mcp 400", "/mcp/default 400", "/mcp/my work 400"}; !slices.Equal(paths, want) {
				t.Errorf("it says %q, want %q", paths, want)
			}
		})
	}
}

// visit opens a url, and returns its path and what came of it.
func visit(t *testing.T, url string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer a-token-of-the-test")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	return fmt.Sprint(r.URL.Path, " ", answer.StatusCode)
}

// TestPortInUse: the message names the address and says what to do, without the words of
// the operating system's interface.
func TestPortInUse(t *testing.T) {
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	_, err = listen(t.Context(), access.Guard{Server: config.Server{Host: "127.0.0.1", Port: taken.Addr().(*net.TCPAddr).Port}})
	want := "cannot listen on " + taken.Addr().String() + ": another program uses this port\nhint: choose another port with --port (0: any free one), or another address with --host"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestReachable(t *testing.T) {
	for _, row := range []struct{ host, bound, want string }{
		{"127.0.0.1", "127.0.0.1:80", "127.0.0.1:80"},
		{"box.lan", "192.168.1.5:80", "192.168.1.5:80"},
		{"2001:db8::1", "[2001:db8::1]:80", "[2001:db8::1]:80"},
		{"0.0.0.0", "0.0.0.0:80", "127.0.0.1:80"},
		{"0.0.0.0", "[::]:80", "127.0.0.1:80"},
		{"::", "[::]:80", "[::1]:80"},
		{"", "[::]:80", "127.0.0.1:80"},
	} {
		bound, err := net.ResolveTCPAddr("tcp", row.bound)
		if err != nil {
			t.Fatal(err)
		}
		if got := reachable(row.host, bound); got != row.want {
			t.Errorf("host %q, bound to %s: %s, want %s", row.host, row.bound, got, row.want)
		}
	}
}

// Who binds a name can be called by it.
func TestGuardOfABoundName(t *testing.T) {
	for _, row := range []struct {
		bind, host string
		want       int
	}{
		{"box.lan", "box.lan", http.StatusOK},
		{"box.lan", "192.168.1.5", http.StatusOK},
		{"box.lan", "lan", http.StatusForbidden},
		{"192.168.1.5", "192.168.1.5", http.StatusOK},
		{"192.168.1.5", "box.lan", http.StatusForbidden},
		{"0.0.0.0", "0.0.0.0", http.StatusForbidden},
		{"", "box.lan", http.StatusForbidden},
	} {
		guard := access.Guard{Server: config.Server{Host: row.bind}, Bind: "192.168.1.5:80"}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+row.host+"/", nil)
		w := httptest.NewRecorder()
		guard.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
		if w.Code != row.want {
			t.Errorf("bound to %q, called %q: %d, want %d", row.bind, row.host, w.Code, row.want)
		}
	}
}

// TestForwardedHeadersAfterReload: a page may send the headers that servers get with the
// config in force.
func TestForwardedHeadersAfterReload(t *testing.T) {
	a := &App{config: &config.Config{}}
	a.profiles.Store(&[]*Profile{})
	guard := access.Guard{Bind: "127.0.0.1:80", Headers: a.forwardedHeaders}
	handler := guard.Wrap(http.NotFoundHandler())
	upstream := config.Upstream{ForwardHeaders: []config.Named[string]{{Name: "X-Jira-Token", Value: "Authorization"}}}
	a.profiles.Store(&[]*Profile{{Profile: &config.Profile{Upstreams: []config.Upstream{upstream}}}})
	r := httptest.NewRequestWithContext(t.Context(), http.MethodOptions, "http://localhost/mcp", nil)
	r.Header.Set("Origin", "http://localhost:3000")
	r.Header.Set("Access-Control-Request-Method", http.MethodPost)
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	if allowed := w.Header().Get("Access-Control-Allow-Headers"); !strings.HasSuffix(allowed, ", X-Jira-Token") {
		t.Errorf("allowed headers %q", allowed)
	}
}
