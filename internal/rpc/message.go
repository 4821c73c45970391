// Package rpc reads and writes JSON-RPC 2.0 messages, and keeps track of the
// requests on a connection (Conn). One pass over a message finds the members of its
// envelope; their values stay bytes.
package rpc

import (
	"errors"
	"fmt"
	"strconv"

	"mcpx/internal/rawjson"
)

// Message is one request, notification or response. Its slices point into the text
// that it was parsed from.
type Message struct {
	ID     []byte // as the sender wrote it; nil if absent
	Method string
	Params []byte
	Result []byte
	Error  []byte
}

// IsRequest reports whether the message expects a response.
func (m *Message) IsRequest() bool { return m.Method != "" && m.ID != nil }

// IsNotification reports whether the message has a method and expects no response.
func (m *Message) IsNotification() bool { return m.Method != "" && m.ID == nil }

// IsResponse reports whether the message is a response.
func (m *Message) IsResponse() bool { return m.Method == "" }

// Error codes of JSON-RPC and, on the last line, of MCP.
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

// Text returns the text of an error for people: without the code if it is an *Error.
func Text(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Message
	}
	return err.Error()
}

// Errorf returns an error with a code.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// errVersion is returned for a message that is not JSON-RPC 2.0.
var errVersion = &Error{Code: CodeInvalidRequest, Message: `Invalid request: "jsonrpc" must be "2.0"`}

// Parse reads one message from an upstream. Keys are matched exactly, and a duplicate
// key in the envelope is an error, because two readers could use different values.
// "jsonrpc" may be absent: some upstreams leave it out. On failure Parse returns an
// *Error with the code for the response, and a message that has the ID, if it was read
// before the mistake.
func Parse(line []byte) (Message, error) {
	m, _, err := parse(line)
	return m, err
}

// ParseStrict is Parse for messages from clients, which must have "jsonrpc".
func ParseStrict(line []byte) (Message, error) {
	m, version, err := parse(line)
	if err == nil && version == nil {
		return m.onlyID(), errVersion
	}
	return m, err
}

func parse(line []byte) (m Message, version []byte, err error) {
	var method []byte
	var duplicate string
	err = rawjson.Object(line, func(key string, value []byte) bool {
		field := m.field(key, &version, &method)
		if field == nil {
			return true
		}
		if *field != nil {
			duplicate = key
		}
		*field = value
		return true
	})
	switch {
	case errors.Is(err, rawjson.ErrSyntax), errors.Is(err, rawjson.ErrDepth):
		return m.onlyID(), nil, &Error{Code: CodeParse, Message: "Parse error: " + err.Error()}
	case err != nil:
		return Message{}, nil, &Error{Code: CodeInvalidRequest, Message: "Invalid request: a message is one JSON object"}
	case duplicate != "":
		return m.onlyID(), nil, Errorf(CodeInvalidRequest, "Invalid request: %q is given twice", duplicate)
	case version != nil && string(version) != `"2.0"`:
		return m.onlyID(), version, errVersion
	}
	m, err = m.check(method)
	return m, version, err
}

// field returns where the value of an envelope key is stored, nil for other keys.
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

// check checks the types of the members and returns the message with its method.
func (m Message) check(method []byte) (Message, error) {
	if m.ID != nil && !validID(m.ID) {
		// A response to a message with an unreadable ID has the ID null.
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
	if rawjson.IsNull(m.Error) { // some servers send "error":null with a result
		m.Error = nil
	} else if rawjson.IsNull(m.Result) {
		m.Result = nil
	}
	if m.ID == nil || (m.Result == nil) == (m.Error == nil) {
		return m.onlyID(), &Error{Code: CodeInvalidRequest, Message: `Invalid request: no "method"`}
	}
	return m, nil
}

// onlyID returns a message with only the ID, or an empty message if the ID is invalid.
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

// ParseError reads an error object. Members that are missing or invalid get default
// values, so that a malformed error is still an error.
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

// AppendResult appends the response to the request with that ID.
func AppendResult(b, id, result []byte) []byte {
	b = append(appendHead(b, id), result...)
	return append(b, '}')
}

func appendHead(b, id []byte) []byte { return append(appendID(b, id), `,"result":`...) }

// EnvelopeBytes is the spare capacity of each line that Reader returns, and of other
// messages that are read. It suffices for ResponseIn: an envelope with an ID of usual
// length, and a newline.
const EnvelopeBytes = 64

// ResponseIn returns the same message as AppendResult, but builds it in the buffer
// memory, which then belongs to ResponseIn. The buffer may contain the result. If it is
// too small, ResponseIn recycles it and uses another.
func ResponseIn(memory, id, result []byte) []byte {
	if id == nil {
		id = []byte("null")
	}
	head := len(`{"jsonrpc":"2.0","id":,"result":`) + len(id)
	size := head + len(result) + len("}\n")
	if cap(memory) < size {
		response := AppendResult(Buffer(size), id, result)
		Recycle(memory)
		return response
	}
	copy(memory[head:size], result) // first, because the head may overwrite the result
	response := appendHead(memory[:0], id)
	return append(response[:head+len(result)], '}')
}

// AppendError appends an error response to the request with that ID. A nil ID is
// written as null.
func AppendError(b, id []byte, e *Error) []byte {
	b = append(appendID(b, id), `,"error":{"code":`...)
	b = strconv.AppendInt(b, int64(e.Code), 10)
	b = append(b, `,"message":`...)
	b = rawjson.AppendString(b, e.Message)
	if len(e.Data) > 0 {
		b = append(b, `,"data":`...)
		b = append(b, e.Data...)
	}
	return append(b, "}}"...)
}

func appendID(b, id []byte) []byte {
	if id == nil {
		id = []byte("null")
	}
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	return append(b, id...)
}
