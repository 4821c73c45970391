package rpc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
)

func TestReader(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	exact := strings.Repeat("y", 150_000)
	input := "\ufeffa\n\n  \r\nb\xff\r\n" + long + "\n" + exact + "\n \ufeff \n\ufeff c\ufeff"
	r := NewReader(strings.NewReader(input), len(exact))
	var got []string
	for {
		line, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			got = append(got, err.Error())
			continue
		}
		got = append(got, string(line))
	}
	want := []string{"a", "b\ufffd", ErrTooLong.Error(), exact, "c\ufeff"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %d lines %.80q, want %d", len(got), got, len(want))
	}
}

func TestReaderEndsInsideALongLine(t *testing.T) {
	r := NewReader(strings.NewReader(strings.Repeat("x", 1<<20)), 1000)
	if _, err := r.Read(); !errors.Is(err, ErrTooLong) {
		t.Fatalf("error %v, want ErrTooLong", err)
	}
	if _, err := r.Read(); !errors.Is(err, io.EOF) {
		t.Fatalf("error %v, want EOF", err)
	}
}

// endless is a line without an end.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	e.read += len(p)
	return copy(p, bytes.Repeat([]byte("x"), len(p))), nil
}

func TestReaderDoesNotWaitForTheEndOfALongLine(t *testing.T) {
	line := &endless{}
	if _, err := NewReader(line, 1000).Read(); !errors.Is(err, ErrTooLong) {
		t.Fatalf("error %v, want ErrTooLong", err)
	}
	if line.read > 1<<20 {
		t.Errorf("it read %d bytes", line.read)
	}
}

func TestReaderPassesErrorsOn(t *testing.T) {
	broken := errors.New("broken")
	for _, before := range []string{"", "abc", strings.Repeat("x", 1<<17)} {
		r := NewReader(io.MultiReader(strings.NewReader(before), &failing{broken}), 1000)
		_, err := r.Read()
		if errors.Is(err, ErrTooLong) {
			_, err = r.Read()
		}
		if !errors.Is(err, broken) {
			t.Errorf("after %d bytes: error %v, want broken", len(before), err)
		}
	}
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error)  { return 0, f.err }
func (f *failing) Write([]byte) (int, error) { return 0, f.err }

func TestWriterKeepsOrderAndBatches(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out, 1000)
	var want strings.Builder
	for i := range 50 {
		if err := w.Send(fmt.Appendf(nil, "m%d", i)); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&want, "m%d\n", i)
	}
	w.Close()
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
	if out.String() != want.String() {
		t.Errorf("wrote %q", out.String())
	}
	if err := w.Send([]byte("late")); err == nil {
		t.Error("a message after Close was taken")
	}
}

// TestWriterQueuesEverySize: short and long messages are written in their order, and the
// queue counts exactly their bytes, without the unused memory of a message.
func TestWriterQueuesEverySize(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out, 10<<20)
	w.try = nil // everything is queued
	var want strings.Builder
	for i, size := range []int{5, 70_000, 5, 5, 60_000, 10_000, 3 << 20, 5, 100_000} {
		message := append(make([]byte, 0, 3*size), bytes.Repeat([]byte{byte('a' + i)}, size)...)
		want.Write(append(bytes.Clone(message), '\n'))
		if err := w.Send(message); err != nil {
			t.Fatal(err)
		}
	}
	held := 0
	for _, piece := range w.queue {
		held += cap(piece)
	}
	if w.queued != want.Len() || held > want.Len()*3/2 {
		t.Errorf("%d bytes are queued in %d bytes of memory, want %d", w.queued, held, want.Len())
	}
	w.Close()
	if err := w.Run(); err != nil || out.String() != want.String() || w.queued != 0 {
		t.Errorf("%d bytes are written, %d still queued, %v", out.Len(), w.queued, err)
	}
}

func TestAMessageIsOneLine(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out, 1000)
	if err := w.Send([]byte("{\"a\":\r\n{\"method\":\"x\"}\n}")); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if err := w.Run(); err != nil || out.String() != "{\"a\":  {\"method\":\"x\"} }\n" {
		t.Errorf("wrote %q, %v", out.String(), err)
	}
}

func TestWriterNeverWaits(t *testing.T) {
	w := NewWriter(io.Discard, 100) // Run is not called: nobody reads
	if err := w.Send(make([]byte, 500)); err != nil {
		t.Fatalf("one large message: %v", err)
	}
	if err := w.Send([]byte("x")); !errors.Is(err, ErrFull) {
		t.Errorf("error %v, want ErrFull", err)
	}
}

func TestPushWaitsForRoom(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out, 10)
	if err := w.Send([]byte("first one")); err != nil {
		t.Fatal(err)
	}
	pushed := make(chan error)
	go func() { pushed <- w.Push([]byte("second one")) }()
	done := make(chan error)
	go func() { done <- w.Run() }()
	if err := <-pushed; err != nil {
		t.Fatal(err)
	}
	w.Close()
	if err := <-done; err != nil || out.String() != "first one\nsecond one\n" {
		t.Errorf("wrote %q, %v", out.String(), err)
	}
	if err := w.Push([]byte("late")); err == nil {
		t.Error("a message after Close was taken")
	}
}

func TestWriterReportsABrokenPipe(t *testing.T) {
	broken := errors.New("broken")
	w := NewWriter(&failing{broken}, 100)
	if err := w.Send([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := w.Run(); !errors.Is(err, broken) {
		t.Fatalf("Run: %v", err)
	}
	if err := w.Send([]byte("x")); !errors.Is(err, broken) {
		t.Errorf("Send: %v", err)
	}
}

func TestWriterDropsLargeBuffers(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out, 10<<20)
	done := make(chan error)
	go func() { done <- w.Run() }()
	for range 3 {
		if err := w.Send(make([]byte, 2<<20)); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	if err := <-done; err != nil || out.Len() != 3*(2<<20+1) {
		t.Errorf("%d bytes, %v", out.Len(), err)
	}
}

// TestManyLinesBehindALongOne: what a long line brings along is not copied again
// for every line of it.
func TestManyLinesBehindALongOne(t *testing.T) {
	const lines = 20_000
	long := strings.Repeat("x", 1<<20)
	input := long + "\n" + strings.Repeat("short\n", lines)
	r := NewReader(strings.NewReader(input), len(long))
	if line, err := r.Read(); err != nil || len(line) != len(long) {
		t.Fatalf("%d bytes, %v", len(line), err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range lines {
		if line, err := r.Read(); err != nil || string(line) != "short" {
			t.Fatalf("%.80q, %v", line, err)
		}
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 10<<20 {
		t.Errorf("%d bytes of memory for %d short lines", took, lines)
	}
	if _, err := r.Read(); !errors.Is(err, io.EOF) {
		t.Errorf("error %v, want EOF", err)
	}
}

func TestUTF8(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "",
		"plain":                  "plain",
		"\u00fc\ufffd\U0001f600": "\u00fc\ufffd\U0001f600",
		"a\xffb":                 "a\ufffdb",
		"cut \xe2\x82":           "cut \ufffd",
		"\xed\xa0\x80":           "\ufffd", // half of a pair
		"\xc0\xaf":               "\ufffd", // longer than it need be
	} {
		if got := string(UTF8([]byte(text))); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	valid := []byte("valid \u00fc")
	if got := UTF8(valid); &got[0] != &valid[0] || testing.AllocsPerRun(10, func() { UTF8(valid) }) != 0 {
		t.Error("what is valid is copied")
	}
}
