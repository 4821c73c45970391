package rpc

import (
	"context"
	"errors"
	"testing"

	"github.com/rs/zerolog"
)

// TestRoomOfALine: the room of a message is held until the owner of the result frees it, and
// it is free at once if the message is no result of a call that waits.
func TestRoomOfALine(t *testing.T) {
	const answer = `{"jsonrpc":"2.0","id":1,"result":{}}`
	ends := map[string]func(r Result){
		"freed":     func(r Result) { r.Free(); r.Free() },
		"taken":     func(r Result) { r.Take() },
		"changed":   func(r Result) { r.With([]byte("1")).Free() },
		"responded": func(r Result) { r.Response([]byte("7")) },
		"panic":     func(Result) { panic("on purpose") },
	}
	for _, row := range []struct {
		name, line string
		isLate     bool // the call was canceled before
	}{
		{"held", answer, false},
		{"freed", answer, false},
		{"taken", answer, false},
		{"changed", answer, false},
		{"responded", answer, false},
		{"panic", answer, false},
		{"late", answer, true},
		{"unknown", `{"jsonrpc":"2.0","id":9,"result":{}}`, false},
		{"error", `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}`, false},
		{"progress", `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`, false},
	} {
		c := NewConn(ConnOptions{Handler: BasicHandler{}, Send: func([]byte) error { return nil }, Log: zerolog.Nop()})
		ctx, cancel := context.WithCancelCause(t.Context())
		err := c.Go(ctx, Request{Method: "m"}, func(r Result, _ error) {
			if end := ends[row.name]; end != nil {
				end(r)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if row.isLate {
			c.Abandon([]byte("1"), errors.New("too late"))
		}
		freed := 0
		m, err := Parse([]byte(row.line))
		if err != nil {
			t.Fatal(err)
		}
		if !c.Receive(m, Line{Text: []byte(row.line), Room: NewRoom(func() { freed++ })}) {
			t.Errorf("%s: the message is not handled", row.name)
		}
		want := 1
		if row.name == "held" {
			want = 0
		}
		if freed != want {
			t.Errorf("%s: the room was freed %d times, want %d", row.name, freed, want)
		}
		cancel(nil)
	}
}
