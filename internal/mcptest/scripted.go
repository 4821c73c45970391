package mcptest

import (
	"encoding/json"
	"fmt"
	"os"
)

// scripted sends the responses in the file of the flag -answers. The file is an object:
// a method, or a method and a name or URI, with the result or the error to send:
//
//	{"prompts/list": {"result": {…}}, "tools/call search": {"error": {…}}}
func (s *server) scripted(m message) bool {
	if s.answersFile == "" {
		return false
	}
	var answers map[string]struct{ Result, Error json.RawMessage }
	text, err := os.ReadFile(s.answersFile)
	if err == nil {
		err = json.Unmarshal(text, &answers)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "answers:", err)
		return false
	}
	for _, key := range []string{m.Method + " " + member(m.Params, "name"), m.Method + " " + member(m.Params, "uri"), m.Method} {
		a, ok := answers[key]
		switch {
		case !ok:
			continue
		case a.Error != nil:
			s.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":%s}`, m.ID, oneLine(a.Error)))
		default:
			s.result(m.ID, oneLine(a.Result))
		}
		return true
	}
	return false
}

// oneLine returns a value without the line breaks between its tokens.
func oneLine(value json.RawMessage) string {
	b, _ := json.Marshal(value)
	return string(b)
}
