//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"

	"mcpx/internal/mcptest"
)

// plantedBug is a bug that the tests of the soak plant, to see that the soak
// reports it. A relay between mcpx and one upstream misbehaves once: seen from
// outside, mcpx has the bug.
type plantedBug struct {
	kind   string // empty: none
	part   string
	server string
}

// The planted bugs.
const (
	bugDrop   = "drop"   // an answer is dropped
	bugSwap   = "swap"   // two answers are swapped
	bugRepeat = "repeat" // a call is sent twice
	bugChange = "change" // the last byte of a long result is changed
	bugTail   = "tail"   // a long result has the payload of another call after its nonce
	bugStop   = "stop"   // the session ends, though no fault hit the upstream
)

func (b plantedBug) concerns(p part, server string) bool {
	return b.kind != "" && b.part == p.name && b.server == server
}

// relayVariable tells this program to be the relay, with which bug; onceVariable is
// the record of the run, beside which the relays leave two files.
const (
	relayVariable = "SOAK_RELAY"
	onceVariable  = "SOAK_RELAY_ONCE"
	claimed       = ".claimed" // the relay that creates it misbehaves, all others of the run do not
	happened      = ".happened"
)

// hasHappened reports whether the relay has misbehaved.
func (b plantedBug) hasHappened(record string) bool {
	_, err := os.Stat(record + happened)
	return err == nil
}

// relayMain becomes the relay if the process was started as one, and then does not
// return. main calls it first.
func relayMain() {
	kind := os.Getenv(relayVariable)
	if kind == "" {
		return
	}
	if err := relayAs(kind); err != nil {
		fmt.Fprintln(os.Stderr, "relay:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// relayAs starts this program again as the upstream, and relays until it ends.
func relayAs(kind string) error {
	if err := os.Unsetenv(relayVariable); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	child := exec.Command(self, os.Args[1:]...)
	child.Stderr = os.Stderr
	in, err := child.StdinPipe()
	if err != nil {
		return err
	}
	out, err := child.StdoutPipe()
	if err != nil {
		return err
	}
	if err := child.Start(); err != nil {
		return err
	}
	r := &relay{bug: kind, once: os.Getenv(onceVariable), calls: map[string]mcptest.Work{}, down: in, up: os.Stdout}
	go func() { // ends with the process
		eachLine(os.Stdin, r.request)
		_ = in.Close()
	}()
	eachLine(out, r.answer)
	return child.Wait()
}

// eachLine calls take for every line.
func eachLine(from io.Reader, take func(line []byte)) {
	for lines := bufio.NewReaderSize(from, 1<<16); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		take(line)
	}
}

// relay passes lines on, and misbehaves once: at a call that suits the bug and that
// its client does not give up.
type relay struct {
	bug      string
	once     string // the value of onceVariable
	down, up io.Writer

	mu    sync.Mutex
	seen  int                     // calls that suit
	calls map[string]mcptest.Work // those that are not answered, by id
	held  []byte                  // the first of two answers to swap
}

// repeatedID is the id of the request that is sent in addition.
const repeatedID = `"repeated"`

// request takes a line of mcpx.
func (r *relay) request(line []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct {
			Name      string
			Arguments mcptest.Work
		}
	}
	if json.Unmarshal(line, &m) == nil && m.Method == "tools/call" && m.Params.Name == "work" && r.suits(m.Params.Arguments) {
		r.calls[string(m.ID)] = m.Params.Arguments
		switch {
		case r.bug == bugRepeat && r.isDue():
			r.create(happened)
			_, _ = r.down.Write(bytes.Replace(line, append([]byte(`"id":`), m.ID...), []byte(`"id":`+repeatedID), 1))
		case r.bug == bugStop && r.isDue():
			r.create(happened)
			os.Exit(0)
		}
	}
	_, _ = r.down.Write(line)
}

// suits reports whether the relay may misbehave at a call. Clients give up only
// calls that take a while.
func (r *relay) suits(w mcptest.Work) bool {
	isLong := w.Bytes > 0 || r.bug != bugChange && r.bug != bugTail
	return w.MS == 0 && w.How == "text" && isLong
}

// isDue reports whether the relay is to misbehave now, which it says once in a run.
// The first call is left alone: with it the soak waits for the upstream to start.
func (r *relay) isDue() bool {
	r.seen++
	return r.seen > 1 && r.create(claimed)
}

// create creates one of the files beside the record, and reports whether it is new.
func (r *relay) create(suffix string) bool {
	f, err := os.OpenFile(r.once+suffix, os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false
	}
	_ = f.Close()
	return true
}

// answer takes a line of the upstream.
func (r *relay) answer(line []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var m struct{ ID json.RawMessage }
	if json.Unmarshal(line, &m) != nil {
		return
	}
	work, suits := r.calls[string(m.ID)]
	delete(r.calls, string(m.ID))
	if string(m.ID) == repeatedID {
		return
	}
	switch {
	case !suits || r.bug == bugRepeat || r.bug == bugStop:
	case r.held != nil:
		r.create(happened)
		line, r.held = swapped(r.held, line), nil
	case r.isDue():
		line = r.misbehave(line, m.ID, work)
	}
	_, _ = r.up.Write(line)
}

// misbehave returns what is passed on in place of an answer.
func (r *relay) misbehave(line []byte, id json.RawMessage, w mcptest.Work) []byte {
	if r.bug != bugSwap { // which needs a second answer
		r.create(happened)
	}
	text := w.Text()
	switch r.bug {
	case bugDrop:
		return nil
	case bugSwap:
		r.held = line
		return nil
	case bugChange:
		return resultLine(id, text[:len(text)-1]+"~")
	case bugTail:
		w.Nonce = strings.Repeat("x", len(w.Nonce))
		return resultLine(id, text[:len(w.Nonce)]+w.Text()[len(w.Nonce):])
	}
	return line
}

// swapped are two answers, each with the result of the other.
func swapped(first, second []byte) []byte {
	var a, b struct{ ID, Result json.RawMessage }
	if json.Unmarshal(first, &a) != nil || json.Unmarshal(second, &b) != nil {
		return nil
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n"+`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", a.ID, b.Result, b.ID, a.Result)
}

func resultLine(id json.RawMessage, text string) []byte {
	quoted, _ := json.Marshal(text) // of a string
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":%s}]}}`+"\n", id, quoted)
}
