package logging

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestLevelChangesWhileRunning(t *testing.T) {
	var out bytes.Buffer
	l, err := New(Options{Level: "info", Format: "json"}, &out)
	if err != nil {
		t.Fatal(err)
	}
	l.Debug().Msg("one")
	l.Info().Msg("two")
	l.SetLevel("debug")
	l.Debug().Msg("three")
	l.SetLevel("error")
	l.Warn().Msg("four")
	l.SetLevel("no such level")
	l.Error().Msg("five")
	if err := l.Close(); err != nil {
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

func TestConsoleHasNoColorsInAPipe(t *testing.T) {
	var out bytes.Buffer
	l, err := New(Options{Level: "info", Format: "console"}, &out)
	if err != nil {
		t.Fatal(err)
	}
	l.Info().Str("server", "time").Msg("upstream ready")
	l.Error().Str("reason", "a b").Str("empty", "").Int("n", 5).Strs("lines", []string{"x"}).Msg("upstream down")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	for i, want := range []string{`INF upstream ready server=time`, `ERR upstream down reason="a b" empty="" n=5 lines=["x"]`, ""} {
		if _, got, _ := strings.Cut(lines[i], " "); got != want {
			t.Errorf("line %d is %q, want %q", i, got, want)
		}
	}
}

func TestConsole(t *testing.T) {
	event := `{"level":"warn","server":"a","text":"one\ntwo` + "\u202e" + `","time":"2026-01-02T03:04:05+01:00","message":"m"}`
	got := string(console{true}.format(nil, []byte(event)))
	if want := "03:04:05 \x1b[33mWRN\x1b[0m m \x1b[36mserver=\x1b[0ma \x1b[36mtext=\x1b[0m\"one\\ntwo\\u202e\"\n"; got != want {
		t.Errorf("wrote %q, want %q", got, want)
	}
}

func TestFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mcpx.log")
	l, err := New(Options{Level: "info", Format: "json", File: file}, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	l.Info().Msg("hello")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), `"hello"`) {
		t.Errorf("file has %q, %v", text, err)
	}
	if _, err := New(Options{File: filepath.Join(file, "below")}, os.Stderr); err == nil {
		t.Error("a log file that cannot be opened is not reported")
	}
}

// TestNobodyReads: if nobody reads the log, lines are dropped and counted, and nobody
// waits.
func TestNobodyReads(t *testing.T) {
	r, w := io.Pipe()
	q := newQueue(w, formatJSON)
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
	q.close()
	<-q.over // close does not wait for as long as a loaded machine may take
	_ = w.Close()
	text := <-read
	if !strings.HasPrefix(text, line) || !strings.Contains(text, "lines of the log were dropped") || !strings.HasSuffix(text, "last\n") || len(text) > 3*queueBytes {
		t.Errorf("%d bytes: %.100s … %s", len(text), text, text[max(len(text)-100, 0):])
	}
}

// TestLater: queued functions run once and in order: soon, when too many wait, and at
// the end. Each line is written as a whole.
func TestLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l, err := New(Options{Level: "info"}, &out)
		if err != nil {
			t.Fatal(err)
		}
		queued := 0
		var ran atomic.Int64
		later := func(n int) {
			for range n {
				number := queued
				queued++
				l.Later(func() {
					if n := int(ran.Add(1)) - 1; n != number {
						t.Errorf("function %d runs as number %d", number, n)
					}
					l.Info().Msg("call")
				})
			}
		}
		expect := func(want int, when string) {
			t.Helper()
			if got := int(ran.Load()); got != want {
				t.Errorf("%s %d functions have run, want %d", when, got, want)
			}
		}
		later(3)
		expect(0, "while the callers are busy")
		time.Sleep(2 * gatherTime)
		synctest.Wait()
		expect(queued, "soon after")
		later(queueWork)
		expect(queued, "when too many wait")
		later(1)
		for range 2 { // the second has nothing to do
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
		expect(queued, "at the end")
		if got := strings.Count(out.String(), " INF call\n"); got != queued {
			t.Errorf("%d lines were written, want %d", got, queued)
		}
	})
}
