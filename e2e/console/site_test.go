package console

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

// patience is the time limit for anything that must happen, on a loaded machine.
const patience = time.Minute

// site is a run of mcpx-sse.
type site struct {
	url string // without a path
	cmd *exec.Cmd
}

var urlInLog = regexp.MustCompile(`url=(http://[^/]+)/mcp/`)

// config is the config of mcpx-sse.
type config map[string]any

// serve runs mcpx-sse with more environment variables, and stops it after the test.
func (c config) serve(t *testing.T, env ...string) *site {
	t.Helper()
	browser.start(t)
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "mcpx.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	s := &site{cmd: exec.Command(program, file, "--port", "0")}
	s.cmd.Env = append([]string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}, env...)
	log := &urlFinder{found: make(chan string, 1)}
	s.cmd.Stderr = log
	stdin, err := s.cmd.StdinPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.stop(stdin) })
	select {
	case s.url = <-log.found:
	case <-time.After(patience):
		t.Fatalf("mcpx does not say where to connect:\n%s", log)
	}
	return s
}

// stop ends mcpx-sse.
func (s *site) stop(stdin io.Closer) {
	_ = stdin.Close()
	_ = s.cmd.Process.Signal(os.Interrupt)
	kill := time.AfterFunc(patience, func() { _ = s.cmd.Process.Kill() })
	defer kill.Stop()
	_ = s.cmd.Wait()
}

// urlFinder collects the log and finds the address in it.
type urlFinder struct {
	found chan string

	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (f *urlFinder) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.text.Write(p)
	if m := urlInLog.FindStringSubmatch(f.text.String()); m != nil {
		select {
		case f.found <- m[1]:
		default:
		}
	}
	return len(p), nil
}

// String returns the log.
func (f *urlFinder) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.text.String()
}

// full returns a config with one upstream, "demo", that has every feature.
func full(t *testing.T, flags ...string) config {
	t.Helper()
	return servers(map[string]any{"demo": mcptest.Upstream(t, append([]string{"-full"}, flags...)...)})
}

// servers returns a config with these upstreams.
func servers(upstreams map[string]any) config {
	return config{"mcpServers": upstreams}
}

// twoProfiles has the server one in the profile default and two in work.
func twoProfiles(t *testing.T) config {
	t.Helper()
	return config{"schemas": map[string]any{
		"default": servers(map[string]any{"one": mcptest.Upstream(t)}),
		"work":    servers(map[string]any{"two": mcptest.Upstream(t)}),
	}}
}

// sameNames has a server demo in each of the profiles default and second.
func sameNames(t *testing.T) config {
	t.Helper()
	return config{"schemas": map[string]any{"default": full(t), "second": full(t)}}
}

// testdata returns the path of a copy of a testdata file on one line, as a server writes
// it.
func testdata(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var line bytes.Buffer
	if err := json.Compact(&line, text); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, line.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
