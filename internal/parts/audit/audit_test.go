package audit

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mcpx/executor"
	"mcpx/internal/logging"
	"mcpx/registry/upstream"
)

func TestAuditLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	a, err := Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	call := executor.Event{
		Program: upstream.Program{Name: "claude-code", Version: "2.0.31"},
		Caller:  "ci", Client: "http-1", Profile: "default", Server: "files", Tool: "read", Outcome: "ok",
		Took: 1500 * time.Microsecond, BytesIn: 23, BytesOut: 9, Arguments: []byte(`{"path":"/top/secret","n":12345678901234567890}`),
	}
	read := executor.Event{Profile: "default", Server: "files", Method: "resources/read", Tool: "resources/read file:///top/secret", Outcome: "ok", Arguments: []byte(`{"uri":"file:///top/secret"}`)}
	odd := executor.Event{Profile: "default", Arguments: []byte(`"secret text"`)}
	for _, e := range []executor.Event{call, call, read, odd} {
		if err := a.write(a.line(e)); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "secret") || strings.Contains(string(text), "12345678901234567890") {
		t.Errorf("a value is in the audit: %s", text)
	}
	var lines []record
	for line := range bytes.Lines(text) {
		var l record
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		if _, err := time.Parse(time.RFC3339Nano, l.Time); err != nil || len(l.HMAC) != 64 {
			t.Errorf("%+v: %v", l, err)
		}
		lines = append(lines, l)
	}
	if len(lines) != 4 || lines[0].HMAC != lines[1].HMAC || lines[0].HMAC == lines[2].HMAC || lines[2].Tool != "resources/read" || len(lines[3].Arguments) != 0 {
		t.Fatalf("%+v", lines)
	}
	first := lines[0]
	if first.Caller != "ci" || first.Program != "claude-code" || first.Version != "2.0.31" || first.Client != "http-1" || first.Tool != "read" || first.MS != 1.5 || first.Arguments["path"] != 13 || first.Arguments["n"] != 20 || first.BytesIn != 23 || first.BytesOut != 9 {
		t.Errorf("%+v", first)
	}
}

// TestObserve: lines are written in the goroutine of the log, which says so once if they
// cannot be written.
func TestObserve(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	var out bytes.Buffer
	log, err := logging.New(logging.Options{Level: "info"}, &out)
	if err != nil {
		t.Fatal(err)
	}
	a, err := Open(path, log)
	if err != nil {
		t.Fatal(err)
	}
	a.Observe(executor.Event{Tool: "read"})
	log.Flush()
	if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), `"tool":"read"`) {
		t.Errorf("the file is %q, %v", text, err)
	}
	_ = a.file.Close() // as if the disk were full
	a.Observe(executor.Event{})
	a.Observe(executor.Event{})
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "the audit file cannot be written"); n != 1 || a.Failed() != 2 {
		t.Errorf("%d lines have failed; the log is %s", a.Failed(), out.String())
	}
}

// TestAuditLinesAreBounded: clients choose names, also of servers and tools that do not exist.
func TestAuditLinesAreBounded(t *testing.T) {
	a, err := Open(filepath.Join(t.TempDir(), "audit.jsonl"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Close() }()
	long := strings.Repeat("x", 1<<20)
	if n := len(a.line(executor.Event{Server: long, Tool: long, Arguments: []byte(`{"` + long + `":1}`)})); n > 1000 {
		t.Errorf("a line has %d bytes", n)
	}
}

// TestAuditFiles: others cannot read the files, the key stays the same, and a file that
// was moved away is made again.
func TestAuditFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	a, err := Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	e := executor.Event{Arguments: []byte(`{}`)}
	first := a.line(e)
	_ = a.write(first)
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	if err := a.Reopen(); err != nil {
		t.Fatal(err)
	}
	_ = a.write(a.line(e))
	_ = a.write(a.line(e))
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	for name, lines := range map[string]int{path: 2, path + ".1": 1} {
		text, err := os.ReadFile(name)
		if err != nil || bytes.Count(text, []byte("\n")) != lines {
			t.Errorf("%s: %v %s", name, err, text)
		}
	}
	for _, name := range []string{path, path + ".key"} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
	b, err := Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	if !bytes.Equal(a.key, b.key) {
		t.Error("the key has changed")
	}
}

// TestAuditFailures: a file that cannot be opened at the start is an error. One that
// cannot be written later is counted.
func TestAuditFailures(t *testing.T) {
	folder := t.TempDir()
	if _, err := Open(filepath.Join(folder, "missing", "audit.jsonl"), nil); err == nil {
		t.Error("no error for a folder that does not exist")
	}
	if err := os.WriteFile(filepath.Join(folder, "x.key"), []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(filepath.Join(folder, "x"), nil); err == nil || !strings.Contains(err.Error(), "5 bytes") {
		t.Errorf("a short key: %v", err)
	}
	a, err := Open(filepath.Join(folder, "audit.jsonl"), nil)
	if err != nil {
		t.Fatal(err)
	}
	a.isTorn = true // as if the disk had been full in the middle of a line
	if err := a.write([]byte("{}\n")); err != nil || a.isTorn {
		t.Errorf("a line after a part of one: %v", err)
	}
	if text, err := os.ReadFile(filepath.Join(folder, "audit.jsonl")); err != nil || string(text) != "\n{}\n" {
		t.Errorf("the file is %q, %v", text, err)
	}
	_ = a.file.Close() // as if the disk were full
	first, second := a.write([]byte("x\n")), a.write([]byte("y\n"))
	if a.Failed() != 2 || first == nil || second != nil {
		t.Errorf("%d failed: %v, %v", a.Failed(), first, second)
	}
	if none, err := Open("", nil); err != nil || none.Reopen() != nil || none.Close() != nil {
		t.Error("without a path there is an audit")
	}
}
