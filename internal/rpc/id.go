package rpc

import (
	"strconv"
	"strings"

	"mcpx/internal/rawjson"
)

// id returns the ID of our request as it is written.
func (c *Conn) id(number int64) []byte {
	if c.prefix == "" {
		return strconv.AppendInt(nil, number, 10)
	}
	return append(strconv.AppendInt([]byte(`"`+c.prefix), number, 10), '"')
}

// number reads the ID of our request. Some peers write a number as a string or a
// float.
func (c *Conn) number(id []byte) (int64, bool) {
	text := strings.Trim(string(id), `"`)
	if c.prefix != "" {
		rest, ok := strings.CutPrefix(text, c.prefix)
		number, err := strconv.ParseInt(rest, 10, 64)
		return number, ok && err == nil
	}
	number, err := strconv.ParseFloat(text, 64)
	return int64(number), err == nil && float64(int64(number)) == number
}

// appendCall appends a request. Its progress token is its ID.
func (c *Conn) appendCall(b []byte, call *Call) []byte {
	id := c.id(call.ID)
	if call.Meta == nil {
		return AppendRequest(b, id, call.Method, call.Params)
	}
	b = append(appendID(b, id), `,"method":`...)
	b = rawjson.AppendString(b, call.Method)
	b = append(b, `,"params":{"_meta":{"progressToken":`...)
	b = append(b, id...)
	for key, value := range rawjson.Members(call.Meta) {
		if key != "progressToken" {
			b = rawjson.AppendMember(b, key, value)
		}
	}
	b = append(b, '}')
	if len(call.Params) > len("{}") {
		b = append(b, ',')
		b = append(b, call.Params[1:len(call.Params)-1]...)
	}
	return append(b, "}}"...)
}
