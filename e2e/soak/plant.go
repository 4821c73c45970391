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

// plantedBug is a bug that the tests plant to check that the soak reports it. A relay
// between mcpx and one upstream misbehaves once, which looks like a bug of mcpx.
type plantedBug struct {
	kind   string // empty: none
	part   string
	server string
}

// The planted bugs. Over HTTP the relay supports only those that change one answer.
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

// relayVariable makes this program the relay with a bug. onceVariable is the path of the
// record, beside which the relays create two files.
const (
	relayVariable = "SOAK_RELAY"
	onceVariable  = "SOAK_RELAY_ONCE"
	claimed       = ".claimed" // only the relay that creates it misbehaves
	happened      = ".happened"
)

// hasHappened reports whether the relay has misbehaved.
func (b plantedBug) hasHappened(record string) bool {
	_, err := os.Stat(record + happened)
	return err == nil
}

// relay passes lines on and misbehaves once, at a call that suits the bug and is not
// canceled.
type relay struct {
	bug  string
	once string // the value of onceVariable

	mu    sync.Mutex
	seen  int                     // suitable calls
	calls map[string]mcptest.Work // pending calls by ID
	held  []byte                  // the first of two answers to swap
}

func newRelay(bug, once string) *relay {
	return &relay{bug: bug, once: once, calls: map[string]mcptest.Work{}}
}

// repeatedID is the ID of the additional request.
const repeatedID = `"repeated"`

// request returns the lines to the upstream for a message from mcpx.
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

// isDue reports, once in a run, that the relay must misbehave now. It skips the first call,
// with which the soak waits for the start of the upstream.
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

// answer returns the lines to mcpx for a message from the upstream.
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

// misbehave returns the lines that replace an answer.
func (r *relay) misbehave(line []byte, id json.RawMessage, w mcptest.Work) []byte {
	if r.bug != bugSwap { // a swap needs a second answer
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

// swapped returns two answers with their results swapped.
func swapped(first, second []byte) []byte {
	var a, b struct{ ID, Result json.RawMessage }
	if json.Unmarshal(first, &a) != nil || json.Unmarshal(second, &b) != nil {
		return nil
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n"+`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", a.ID, b.Result, b.ID, a.Result)
}

func resultLine(id json.RawMessage, text string) []byte {
	quoted, _ := json.Marshal(text) // cannot fail for a string
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":%s}]}}`+"\n", id, quoted)
}
