//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
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

// The planted bugs. Over HTTP the relay can play only those that change one answer.
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

// relayVariable makes this program the relay, and names the bug. onceVariable names the
// record of the run; the relays create two files next to it.
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

// relay passes lines on, and misbehaves once: at a call that suits the bug and that its
// client does not cancel.
type relay struct {
	bug  string
	once string // the value of onceVariable

	mu    sync.Mutex
	seen  int                     // calls that suit
	calls map[string]mcptest.Work // those that are not answered, by id
	held  []byte                  // the first of two answers to swap
}

func newRelay(bug, once string) *relay {
	return &relay{bug: bug, once: once, calls: map[string]mcptest.Work{}}
}

// repeatedID is the id of the request that is sent in addition.
const repeatedID = `"repeated"`

// request returns the message to the upstream for a message from mcpx.
func (r *relay) request(line []byte) []byte {
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
			again := bytes.Replace(line, append([]byte(`"id":`), m.ID...), []byte(`"id":`+repeatedID), 1)
			return slices.Concat(again, line)
		case r.bug == bugStop && r.isDue():
			r.create(happened)
			r.end()
		}
	}
	return line
}

// end ends the relay, and with its input the upstream.
func (r *relay) end() { os.Exit(0) }

// suits reports whether the relay may misbehave at a call. Clients cancel only slow calls.
func (r *relay) suits(w mcptest.Work) bool {
	isLong := w.Bytes > 0 || r.bug != bugChange && r.bug != bugTail
	return w.MS == 0 && w.How == "text" && isLong
}

// isDue reports once in a run that the relay must misbehave now, but not at the first
// call, which waits for the upstream to start.
func (r *relay) isDue() bool {
	r.seen++
	return r.seen > 1 && r.create(claimed)
}

// create creates a file next to the record, and reports whether it is new.
func (r *relay) create(suffix string) bool {
	f, err := os.OpenFile(r.once+suffix, os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false
	}
	_ = f.Close()
	return true
}

// answer returns the message to mcpx for a message from the upstream.
func (r *relay) answer(line []byte) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	var m struct{ ID json.RawMessage }
	if json.Unmarshal(line, &m) != nil {
		return line
	}
	work, suits := r.calls[string(m.ID)]
	delete(r.calls, string(m.ID))
	if string(m.ID) == repeatedID {
		return nil
	}
	switch {
	case !suits || r.bug == bugRepeat || r.bug == bugStop:
	case r.held != nil:
		r.create(happened)
		line, r.held = swapped(r.held, line), nil
	case r.isDue():
		line = r.misbehave(line, m.ID, work)
	}
	return line
}

// misbehave returns the text that replaces a response.
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

// swapped returns two responses, each with the result of the other.
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
