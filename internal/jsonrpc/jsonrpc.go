// Package jsonrpc has the envelope of JSON-RPC 2.0 messages as mcpx needs it:
// one pass finds its members, and everything inside them stays bytes.
package jsonrpc

import (
	"errors"
	"fmt"
	"strconv"

	"mcpx/internal/rawjson"
)

// Message is one request, notification or response. Its slices are parts of
// the text it was parsed from.
type Message struct {
	ID     []byte // as it was written; nil if absent
	Method string
	Params []byte
	Result []byte
	Error  []byte
}

// IsRequest reports whether the message wants an answer.
func (m *Message) IsRequest() bool { return m.Method != "" && m.ID != nil }

// IsNotification reports whether the message wants none.
func (m *Message) IsNotification() bool { return m.Method != "" && m.ID == nil }

// IsResponse reports whether the message is an answer.
func (m *Message) IsResponse() bool { return m.Method == "" }

// Codes of JSON-RPC and, below, of MCP.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
	CodeServer         = -32000
)

// Error is a JSON-RPC error object.
type Error struct {
	Code    int
	Message string
	Data    []byte // raw JSON; nil if there is none
}

func (e *Error) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

// Text is what an error says, without the code of an *Error: people need no codes.
func Text(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Message
	}
	return err.Error()
}

// Errorf makes an error with a code.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// errVersion refuses a message that is not of JSON-RPC 2.0.
var errVersion = &Error{Code: CodeInvalidRequest, Message: `Invalid request: "jsonrpc" must be "2.0"`}

// Parse reads one message of an upstream. Keys are matched exactly, and a key of
// the envelope given twice is refused: two readers of the same bytes must never
// disagree about what they say. A message without "jsonrpc" is taken: some
// upstreams leave it out. A returned *Error carries the code to answer with, and
// then the message has the id, if one was read before the mistake.
func Parse(line []byte) (Message, error) {
	m, _, err := parse(line)
	return m, err
}

// ParseStrict is Parse for the messages of clients, which must have "jsonrpc".
func ParseStrict(line []byte) (Message, error) {
	m, version, err := parse(line)
	if err == nil && version == nil {
		return m.onlyID(), errVersion
	}
	return m, err
}

func parse(line []byte) (m Message, version []byte, err error) {
	var method []byte
	var twice string
	err = rawjson.Object(line, func(key string, value []byte) bool {
		field := m.field(key, &version, &method)
		if field == nil {
			return true
		}
		if *field != nil {
			twice = key
		}
		*field = value
		return true
	})
	switch {
	case errors.Is(err, rawjson.ErrSyntax), errors.Is(err, rawjson.ErrDepth):
		return m.onlyID(), nil, &Error{Code: CodeParse, Message: "Parse error: " + err.Error()}
	case err != nil:
		return Message{}, nil, &Error{Code: CodeInvalidRequest, Message: "Invalid request: a message is one JSON object"}
	case twice != "":
		return m.onlyID(), nil, Errorf(CodeInvalidRequest, "Invalid request: %q is given twice", twice)
	case version != nil && string(version) != `"2.0"`:
		return m.onlyID(), version, errVersion
	}
	m, err = m.checked(method)
	return m, version, err
}

func (m *Message) field(key string, version, method *[]byte) *[]byte {
	switch key {
	case "jsonrpc":
		return version
	case "id":
		return &m.ID
	case "method":
		return method
	case "params":
		return &m.Params
	case "result":
		return &m.Result
	case "error":
		return &m.Error
	}
	return nil
}

// checked looks at the types of the members.
func (m Message) checked(method []byte) (Message, error) {
	if m.ID != nil && !validID(m.ID) {
		// A response to a message whose id could not be read carries null.
		if method != nil || m.Error == nil {
			m.ID = nil
			return m, &Error{Code: CodeInvalidRequest, Message: `Invalid request: "id" must be a string or a number`}
		}
	}
	if method != nil {
		name, ok := rawjson.View(method)
		if !ok || name == "" {
			return m.onlyID(), &Error{Code: CodeInvalidRequest, Message: `Invalid request: "method" must be a string`}
		}
		m.Method = name
		return m, nil
	}
	if rawjson.IsNull(m.Error) { // servers write "error":null beside a result
		m.Error = nil
	} else if rawjson.IsNull(m.Result) {
		m.Result = nil
	}
	if m.ID == nil || (m.Result == nil) == (m.Error == nil) {
		return m.onlyID(), &Error{Code: CodeInvalidRequest, Message: `Invalid request: no "method"`}
	}
	return m, nil
}

func (m *Message) onlyID() Message {
	if m.ID != nil && validID(m.ID) {
		return Message{ID: m.ID}
	}
	return Message{}
}

func validID(id []byte) bool {
	kind := rawjson.Kind(id)
	return kind == '"' || kind == '-' || kind >= '0' && kind <= '9'
}

// ParseError reads an error object; what is missing or odd in it is made up,
// so that a broken error is still an error.
func ParseError(raw []byte) *Error {
	e := &Error{Code: CodeInternal, Message: "unknown error"}
	for key, value := range rawjson.Members(raw) {
		switch key {
		case "code":
			if code, err := strconv.Atoi(string(value)); err == nil {
				e.Code = code
			}
		case "message":
			if text, ok := rawjson.String(value); ok {
				e.Message = text
			}
		case "data":
			e.Data = value
		}
	}
	return e
}

// AppendRequest appends a request.
func AppendRequest(b, id []byte, method string, params []byte) []byte {
	return appendCall(appendID(b, id), method, params)
}

// AppendNotification appends a notification.
func AppendNotification(b []byte, method string, params []byte) []byte {
	b = append(b, `{"jsonrpc":"2.0"`...)
	return appendCall(b, method, params)
}

func appendCall(b []byte, method string, params []byte) []byte {
	b = append(b, `,"method":`...)
	b = rawjson.AppendString(b, method)
	if len(params) > 0 {
		b = append(b, `,"params":`...)
		b = append(b, params...)
	}
	return append(b, '}')
}

// AppendResult appends the answer to the request with that id.
func AppendResult(b, id, result []byte) []byte {
	b = append(appendHead(b, id), result...)
	return append(b, '}')
}

func appendHead(b, id []byte) []byte { return append(appendID(b, id), `,"result":`...) }

// room is what a line has beyond its end, so that a result in it can become an
// answer: an envelope with an id of usual length, and the end of a line.
const room = 64

// AnswerIn is AppendResult in a memory that is AnswerIn's own, and that the result
// may lie in. One that is too small is left for another.
func AnswerIn(memory, id, result []byte) []byte {
	if id == nil {
		id = []byte("null")
	}
	head := len(`{"jsonrpc":"2.0","id":,"result":`) + len(id)
	size := head + len(result) + len("}\n")
	if cap(memory) < size {
		answer := AppendResult(Buffer(size), id, result)
		Recycle(memory)
		return answer
	}
	copy(memory[head:size], result) // before the head is written: it may be over the result
	answer := appendHead(memory[:0], id)
	return append(answer[:head+len(result)], '}')
}

// AppendError appends an error as the answer to the request with that id; a
// nil id is written as null.
func AppendError(b, id []byte, e *Error) []byte {
	b = append(appendID(b, id), `,"error":`...)
	return append(appendErrorObject(b, e), '}')
}

// appendErrorObject appends an error as the member of an answer.
func appendErrorObject(b []byte, e *Error) []byte {
	b = append(b, `{"code":`...)
	b = strconv.AppendInt(b, int64(e.Code), 10)
	b = append(b, `,"message":`...)
	b = rawjson.AppendString(b, e.Message)
	if len(e.Data) > 0 {
		b = append(b, `,"data":`...)
		b = append(b, e.Data...)
	}
	return append(b, '}')
}

func appendID(b, id []byte) []byte {
	if id == nil {
		id = []byte("null")
	}
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	return append(b, id...)
}
