package jsonrpc

import (
	"bytes"
	"unicode/utf8"
)

// UTF8 is a message as it came, in the same memory, if it is UTF-8. Else what is
// not is replaced: passed on, it could end the other side.
func UTF8(message []byte) []byte {
	if utf8.Valid(message) {
		return message
	}
	return bytes.ToValidUTF8(message, []byte("\ufffd"))
}
