package rpc

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	type want struct{ id, method, params, result, err string }
	for _, c := range []struct {
		name, line string
		want       want
		code       int
		text       string
	}{
		{name: "request", line: `{"jsonrpc":"2.0","id":1,"method":"a/b","params":{"x":[1]}}`, want: want{id: "1", method: "a/b", params: `{"x":[1]}`}},
		{name: "string id", line: `{"id":"x\"y","jsonrpc":"2.0","method":"m"}`, want: want{id: `"x\"y"`, method: "m"}},
		{name: "large id", line: `{"jsonrpc":"2.0","id":9007199254740993,"method":"m"}`, want: want{id: "9007199254740993", method: "m"}},
		{name: "notification", line: ` {"jsonrpc":"2.0","method":"m"} `, want: want{method: "m"}},
		{name: "result", line: `{"jsonrpc":"2.0","id":2,"result":{"a":1}}`, want: want{id: "2", result: `{"a":1}`}},
		{name: "error", line: `{"jsonrpc":"2.0","id":2,"error":{"code":1}}`, want: want{id: "2", err: `{"code":1}`}},
		{name: "error without id", line: `{"jsonrpc":"2.0","id":null,"error":{"code":1}}`, want: want{id: "null", err: `{"code":1}`}},
		{name: "result and no error", line: `{"jsonrpc":"2.0","id":2,"result":{},"error":null}`, want: want{id: "2", result: `{}`}},
		{name: "error and no result", line: `{"jsonrpc":"2.0","id":2,"result":null,"error":{"code":1}}`, want: want{id: "2", err: `{"code":1}`}},
		{name: "no version", line: `{"id":2,"method":"m"}`, want: want{id: "2", method: "m"}},
		{name: "unknown and case-variant keys", line: `{"jsonrpc":"2.0","id":2,"ID":3,"Method":"x","method":"m","more":1}`, want: want{id: "2", method: "m"}},
		{name: "escaped key", line: `{"jsonrpc":"2.0","\u0069d":2,"method":"m"}`, want: want{id: "2", method: "m"}},

		{name: "not JSON", line: `{"id":1,`, want: want{id: "1"}, code: CodeParse, text: "Parse error: not valid JSON"},
		{name: "too deep", line: strings.Repeat("[", 300), code: CodeParse, text: "Parse error: JSON nested too deep"},
		{name: "array", line: `[]`, code: CodeInvalidRequest, text: "Invalid request: a message is one JSON object"},
		{name: "id twice", line: `{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}`, want: want{id: "2"}, code: CodeInvalidRequest, text: `Invalid request: "id" is given twice`},
		{name: "version", line: `{"jsonrpc":"1.0","id":1,"method":"m"}`, want: want{id: "1"}, code: CodeInvalidRequest, text: `Invalid request: "jsonrpc" must be "2.0"`},
		{name: "null id", line: `{"jsonrpc":"2.0","id":null,"method":"m"}`, code: CodeInvalidRequest, text: `Invalid request: "id" must be a string or a number`},
		{name: "object id", line: `{"jsonrpc":"2.0","id":{},"method":"m"}`, code: CodeInvalidRequest, text: `Invalid request: "id" must be a string or a number`},
		{name: "no method", line: `{"jsonrpc":"2.0","id":1}`, want: want{id: "1"}, code: CodeInvalidRequest, text: `Invalid request: no "method"`},
		{name: "method of a wrong type", line: `{"jsonrpc":"2.0","id":1,"method":5}`, want: want{id: "1"}, code: CodeInvalidRequest, text: `Invalid request: "method" must be a string`},
		{name: "result and error", line: `{"jsonrpc":"2.0","id":1,"result":1,"error":{}}`, want: want{id: "1"}, code: CodeInvalidRequest, text: `Invalid request: no "method"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := Parse([]byte(c.line))
			if c.code == 0 && err != nil {
				t.Fatal(err)
			}
			var e *Error
			if c.code != 0 && (!errors.As(err, &e) || e.Code != c.code || e.Message != c.text) {
				t.Fatalf("error %v, want %d %s", err, c.code, c.text)
			}
			got := want{string(m.ID), m.Method, string(m.Params), string(m.Result), string(m.Error)}
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// TestParseStrict has messages that an upstream may send and a client may not.
func TestParseStrict(t *testing.T) {
	for line, id := range map[string]string{
		`{"id":2,"method":"m"}`:  "2",
		`{"method":"m"}`:         "",
		`{"id":"x","result":{}}`: `"x"`,
		`{"id":null,"error":{}}`: "",
	} {
		if _, err := Parse([]byte(line)); err != nil {
			t.Errorf("Parse(%s): %v", line, err)
		}
		m, err := ParseStrict([]byte(line))
		if !errors.Is(err, errVersion) || string(m.ID) != id || m.Method != "" {
			t.Errorf("ParseStrict(%s) = %+v, %v", line, m, err)
		}
	}
	if m, err := ParseStrict([]byte(`{"jsonrpc":"2.0","id":2,"method":"m"}`)); err != nil || m.Method != "m" {
		t.Errorf("a request: %+v, %v", m, err)
	}
}

func TestKinds(t *testing.T) {
	for line, want := range map[string][3]bool{
		`{"id":1,"method":"m"}`: {true, false, false},
		`{"method":"m"}`:        {false, true, false},
		`{"id":1,"result":{}}`:  {false, false, true},
	} {
		m, err := Parse([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		if got := [3]bool{m.IsRequest(), m.IsNotification(), m.IsResponse()}; got != want {
			t.Errorf("%s: request, notification, response = %v, want %v", line, got, want)
		}
	}
}

func TestAppend(t *testing.T) {
	data := &Error{Code: -32602, Message: `no "x"`, Data: []byte(`{"a":1}`)}
	for want, got := range map[string][]byte{
		`{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":1}}`:                               AppendRequest(nil, []byte("7"), "m", []byte(`{"a":1}`)),
		`{"jsonrpc":"2.0","method":"m"}`:                                                       AppendNotification(nil, "m", nil),
		`{"jsonrpc":"2.0","id":"a","result":{}}`:                                               AppendResult(nil, []byte(`"a"`), []byte(`{}`)),
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"gone"}}`:                 AppendError(nil, nil, Errorf(CodeMethodNotFound, "gone")),
		`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no \"x\"","data":{"a":1}}}`: AppendError(nil, []byte("1"), data),
		`{"jsonrpc":"2.0","id":8,"method":"café"}`:                                             AppendRequest(nil, []byte("8"), "café", nil),
	} {
		if string(got) != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if !json.Valid(got) {
			t.Errorf("%s is not JSON", got)
		}
	}
}

// TestResponseIn: it equals AppendResult, wherever in the memory the result is.
func TestResponseIn(t *testing.T) {
	const result = `{"content":[{"type":"text","text":"the result"}]}`
	for _, id := range [][]byte{nil, []byte("7"), []byte(`"an id that is longer than what came before the result"`)} {
		want := string(AppendResult(nil, id, []byte(result)))
		for before := range 100 {
			for _, after := range []int{0, 1, 20, 200} {
				memory := make([]byte, before+len(result), before+len(result)+after)
				copy(memory[before:], result)
				isRoom := cap(memory) > len(want) // with the end of the line
				got := ResponseIn(memory, id, memory[before:])
				if string(got) != want {
					t.Fatalf("%d bytes before the result and %d after: %s, want %s", before, after, got, want)
				}
				if isSame := &got[0] == &memory[0]; isSame != isRoom {
					t.Fatalf("%d bytes before the result and %d after: same memory %v, want %v", before, after, isSame, isRoom)
				}
				if cap(got) == len(got) {
					t.Fatal("no room for the end of the line")
				}
			}
		}
		if got := ResponseIn(nil, id, []byte(result)); string(got) != want {
			t.Fatalf("%s, want %s", got, want)
		}
	}
}

// TestLinesHaveRoom: what an upstream answers becomes mcpx's answer where it lies.
func TestLinesHaveRoom(t *testing.T) {
	for _, size := range []int{10, 1000, readSize, 100_000, 1_000_000} {
		line := AppendResult(nil, []byte("1"), []byte(`{"text":"`+strings.Repeat("x", size)+`"}`))
		r := NewReader(strings.NewReader(string(line)+"\n"), 2<<20)
		read, err := r.Read()
		if err != nil {
			t.Fatal(err)
		}
		m, err := Parse(read)
		if err != nil {
			t.Fatal(err)
		}
		if got := ResponseIn(read, []byte(`"id-of-20-characters"`), m.Result); &got[0] != &read[0] {
			t.Errorf("%d bytes were copied", len(line))
		}
	}
}

func TestParseError(t *testing.T) {
	for raw, want := range map[string]Error{
		`{"code":5,"message":"m","data":[1]}`: {Code: 5, Message: "m", Data: []byte(`[1]`)},
		`{"code":"x","message":7}`:            {Code: CodeInternal, Message: "unknown error"},
		`"just text"`:                         {Code: CodeInternal, Message: "unknown error"},
	} {
		got := ParseError([]byte(raw))
		if got.Code != want.Code || got.Message != want.Message || string(got.Data) != string(want.Data) {
			t.Errorf("%s: %+v, want %+v", raw, got, want)
		}
	}
	if text := Errorf(-5, "no %d", 3).Error(); text != "no 3 (-5)" {
		t.Errorf("Error() = %q", text)
	}
}
