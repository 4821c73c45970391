package rpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"mcpx/internal/rawjson"
)

// FuzzParse: a message that Parse takes has, by its exact keys, what encoding/json
// finds there, each once; what it refuses has a code of JSON-RPC; and a message
// written anew reads as the same.
func FuzzParse(f *testing.F) {
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"a/b","params":{"x":[1]}}`,
		`{"jsonrpc":"2.0","id":"x\"y","method":"m\u00e9\n"}`,
		`{"jsonrpc":"2.0","method":"m","params":null}`,
		`{"jsonrpc":"2.0","id":2,"result":{"a":1},"error":null}`,
		`{"id":2,"error":{"code":1,"message":"x","data":[]}}`,
		`{"id":null,"error":{}}`,
		`{"Method":"x","METHOD":"y","method":"m","ID":7,"id":8}`,
		`{"id":1,"id":2,"method":"m"}`,
		`{"id":1,"\u0069d":2,"method":"m"}`,
		`{"jsonrpc":"1.0","id":1,"method":"m"}`,
		`{"id":1e400,"method":"m"}`,
		`[]`, `{`, `{}`, `null`, ` `, `{"id":{},"method":5}`, "{\"method\":\"\xff\"}",
		strings.Repeat("[", 300),
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		m, err := Parse(line)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Code != CodeParse && e.Code != CodeInvalidRequest || e.Message == "" {
				t.Fatalf("Parse(%q): %v", line, err)
			}
			if (e.Code == CodeParse) != (!json.Valid(line) || errors.Is(rawjson.Check(line), rawjson.ErrDepth)) {
				t.Fatalf("Parse(%q): %v, encoding/json says valid: %v", line, err, json.Valid(line))
			}
			return
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(line, &members); err != nil {
			t.Fatalf("Parse takes %q, encoding/json does not: %v", line, err)
		}
		var method string
		_ = json.Unmarshal(members["method"], &method)
		if m.Method != method {
			t.Fatalf("Parse(%q): method %q, encoding/json has %q", line, m.Method, method)
		}
		for key, got := range map[string][]byte{"id": m.ID, "params": m.Params, "result": m.Result, "error": m.Error} {
			want := members[key]
			if key != "id" && key != "params" && got == nil && string(want) == "null" {
				continue // servers write null for what is absent
			}
			if !bytes.Equal(got, want) {
				t.Fatalf("Parse(%q): %s is %q, encoding/json has %q", line, key, got, want)
			}
		}
		if path := rawjson.DuplicateKey(line); len(path) == 1 && members[path[0]] != nil && strings.Contains(" jsonrpc id method params result error ", " "+path[0]+" ") {
			t.Fatalf("Parse takes %q, which gives %s twice", line, path)
		}
		again(t, line, m)
	})
}

// again writes a message and reads it back.
func again(t *testing.T, line []byte, m Message) {
	t.Helper()
	var written []byte
	switch {
	case m.IsRequest():
		written = AppendRequest(nil, m.ID, m.Method, m.Params)
	case m.IsNotification():
		written = AppendNotification(nil, m.Method, m.Params)
	case m.Error != nil:
		return // an error is written from its parts
	default:
		written = AppendResult(nil, m.ID, m.Result)
	}
	if m.Method != strings.ToValidUTF8(m.Method, "\ufffd") {
		return
	}
	read, err := Parse(written)
	if err != nil || read.Method != m.Method || !bytes.Equal(read.ID, m.ID) || !bytes.Equal(read.Params, m.Params) || !bytes.Equal(read.Result, m.Result) {
		t.Fatalf("%q was written as %q, which reads as %+v, %v", line, written, read, err)
	}
}

// FuzzReader: whatever comes, and in whatever pieces, a reader returns the lines
// that bytes.Split finds: those that are blank left out, those that are too long
// told of once each.
func FuzzReader(f *testing.F) {
	for _, text := range []string{"", "a\nb", "a\n\n \r\nb\n", "\xff\n", strings.Repeat("x", 100) + "\ny", strings.Repeat("x", 30)} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		const limit = 20
		var want []string
		for _, line := range bytes.Split(text, []byte("\n")) {
			switch trimmed := bytes.TrimSpace(line); {
			case len(line) > limit:
				want = append(want, ErrTooLong.Error())
			case len(trimmed) > 0:
				want = append(want, string(bytes.ToValidUTF8(trimmed, []byte("\ufffd"))))
			}
		}
		r := NewReader(bytes.NewReader(text), limit)
		var got []string
		for {
			line, err := r.Read()
			if errors.Is(err, ErrTooLong) {
				line, err = []byte(err.Error()), nil
			}
			if err != nil {
				break
			}
			got = append(got, string(line))
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Fatalf("read %q as %q, want %q", text, got, want)
		}
	})
}
