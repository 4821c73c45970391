package rawjson

import (
	"bytes"
	"encoding/json"
)

// Encode returns a Go value as JSON. Unlike json.Marshal it leaves <, > and & readable. It
// panics if the type of the value has no JSON form.
func Encode(value any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		panic(err)
	}
	return bytes.TrimSpace(b.Bytes())
}
