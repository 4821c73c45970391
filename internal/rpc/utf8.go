package rpc

import (
	"bytes"
	"unicode/utf8"
)

// UTF8 returns a message with invalid UTF-8 replaced, since that could crash the
// receiver. A valid message is returned as it is.
func UTF8(message []byte) []byte {
	if utf8.Valid(message) {
		return message
	}
	return bytes.ToValidUTF8(message, []byte("\ufffd"))
}
