package logging

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestLevelChangesWhileRunning(t *testing.T) {
	var out bytes.Buffer
	log, level, closeFile, err := New(Options{Level: "info", Format: "json"}, &out)
	if err != nil {
		t.Fatal(err)
	}
	log.Debug().Msg("one")
	log.Info().Msg("two")
	level.Set("debug")
	log.Debug().Msg("three")
	level.Set("error")
	log.Warn().Msg("four")
	level.Set("no such level")
	log.Error().Msg("five")
	if err := closeFile(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, word := range []string{"one", "two", "three", "four", "five"} {
		if strings.Contains(out.String(), `"message":"`+word+`"`) {
			got = append(got, word)
		}
	}
	if want := "two three five"; strings.Join(got, " ") != want {
		t.Errorf("logged %q, want %q", got, want)
	}
}

func TestConsoleHasNoColoursInAPipe(t *testing.T) {
	var out bytes.Buffer
	log, _, closeLog, err := New(Options{Level: "info", Format: "console"}, &out)
	if err != nil {
		t.Fatal(err)
	}
	log.Info().Str("server", "time").Msg("upstream ready")
	log.Error().Str("reason", "a b").Str("empty", "").Int("n", 5).Strs("lines", []string{"x"}).Msg("upstream down")
	if err := closeLog(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	for i, want := range []string{`INF upstream ready server=time`, `ERR upstream down reason="a b" empty="" n=5 lines=["x"]`, ""} {
		if _, got, _ := strings.Cut(lines[i], " "); got != want {
			t.Errorf("line %d is %q, want %q", i, got, want)
		}
	}
}

func TestColours(t *testing.T) {
	event := `{"level":"warn","server":"a","time":"2026-01-02T03:04:05+01:00","message":"m"}`
	if got := string((console{colours: true}).format(nil, []byte(event))); got != "03:04:05 \x1b[33mWRN\x1b[0m m \x1b[36mserver=\x1b[0ma\n" {
		t.Errorf("wrote %q", got)
	}
}

func TestFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mcpx.log")
	log, _, closeFile, err := New(Options{Level: "info", Format: "json", File: file}, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	log.Info().Msg("hello")
	if err := closeFile(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), `"hello"`) {
		t.Errorf("file has %q, %v", text, err)
	}
	if _, _, _, err := New(Options{File: filepath.Join(file, "below")}, os.Stderr); err == nil {
		t.Error("a log file that cannot be opened is not reported")
	}
}

// TestNobodyReads: a log that nobody reads costs lines, and nothing else.
func TestNobodyReads(t *testing.T) {
	r, w := io.Pipe()
	q := newQueue(w, asIs)
	line := strings.Repeat("x", 1000) + "\n"
	for range 4 * queueBytes / len(line) {
		if _, err := io.WriteString(q, line); err != nil {
			t.Fatal(err)
		}
	}
	read := make(chan string)
	go func() {
		text, _ := io.ReadAll(r)
		read <- string(text)
	}()
	waiting := func() int {
		q.mu.Lock()
		defer q.mu.Unlock()
		return len(q.events)
	}
	for waiting() > 0 { // until the reader has made room
		runtime.Gosched()
	}
	if _, err := io.WriteString(q, "last\n"); err != nil {
		t.Fatal(err)
	}
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	<-q.over // Close does not wait for as long as a loaded machine may take
	_ = w.Close()
	text := <-read
	if !strings.HasPrefix(text, line) || !strings.Contains(text, "lines of the log were dropped") || !strings.HasSuffix(text, "last\n") || len(text) > 3*queueBytes {
		t.Errorf("%d bytes: %.100s … %s", len(text), text, text[max(len(text)-100, 0):])
	}
}
