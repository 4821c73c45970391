package app

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mcpx/config"
	"mcpx/executor"
)

// newApp returns an App without upstreams whose log goes to a buffer.
func newApp(t testing.TB, logging string) (*App, *bytes.Buffer) {
	t.Helper()
	c, err := config.Parse(filepath.Join(t.TempDir(), "mcpx.json"), []byte(`{"logging":`+logging+`,"mcpServers":{}}`), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	log := &bytes.Buffer{}
	a, err := New(c, "", log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.log.Close() })
	return a, log
}

// aCall is the event of a usual call.
var aCall = executor.Event{
	Profile: "default", Client: "http-7f3a9c", Request: "1234", Server: "files", Tool: "read_file", Outcome: "ok",
	Took: 1234567 * time.Nanosecond, BytesIn: 42, BytesOut: 1234, Arguments: []byte(`{"path":"a.txt"}`),
}

// TestTheLineOfACall: its fields and their order.
func TestTheLineOfACall(t *testing.T) {
	for _, row := range []struct{ logging, want string }{
		{`{"format":"console"}`, " INF call client=http-7f3a9c request=1234 server=files tool=read_file outcome=ok ms=1.23 in=42 out=1234\n"},
		{`{"format":"json"}`, `","message":"call"}` + "\n"},
		{`{"level":"warn"}`, ""},
	} {
		a, log := newApp(t, row.logging)
		a.observers().Observe(aCall, &a.log.Logger)
		if err := a.log.Close(); err != nil {
			t.Fatal(err)
		}
		if got := log.String(); !strings.HasSuffix(got, row.want) || (got == "") != (row.want == "") {
			t.Errorf("with %s the log is %q, want %q at its end", row.logging, got, row.want)
		}
		const fields = `{"level":"info","client":"http-7f3a9c","request":"1234","server":"files","tool":"read_file","outcome":"ok","ms":1.23,"in":42,"out":1234,"time":"`
		if got := log.String(); strings.Contains(row.logging, "json") && !strings.HasPrefix(got, fields) {
			t.Errorf("the log is %s", got)
		}
	}
}

// TestALateObserverThatPanics: the others get the event, without the arguments, which are
// not valid any more.
func TestALateObserverThatPanics(t *testing.T) {
	a, log := newApp(t, `{}`)
	var got []executor.Event
	observe := a.later(func(executor.Event) { panic("on purpose") }, func(e executor.Event) { got = append(got, e) })
	observe(aCall)
	a.log.Flush()
	if len(got) != 1 || got[0].Tool != aCall.Tool || got[0].Arguments != nil {
		t.Errorf("the second observer got %+v", got)
	}
	if err := a.log.Close(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), `panic="on purpose"`) {
		t.Errorf("the log is %s", log)
	}
}

// BenchmarkLater: what a call costs besides its line, in its own path and later.
func BenchmarkLater(b *testing.B) {
	a, _ := newApp(b, `{"level":"warn"}`)
	observers := a.observers()
	b.ReportAllocs()
	for b.Loop() {
		observers.Observe(aCall, &a.log.Logger)
	}
}
