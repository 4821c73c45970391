package mcptest

import (
	"encoding/json"
	"fmt"
	"os"
)

// handle2026 is the server with the flag -only-2026: it supports only 2026-07-28, and
// refuses everything else. With the flag -both it leaves requests of earlier revisions to
// the caller. It reports whether it has responded.
func (s *server) handle2026(m message, canceled chan struct{}) bool {
	p := decode[struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}](m.Params)
	const prefix = "io.modelcontextprotocol/"
	if !s.only2026 && (!s.both || p.Meta[prefix+"protocolVersion"] == nil) {
		return false
	}
	switch {
	case m.Method == "initialize" || m.Method == "ping" || m.Method == "logging/setLevel" || m.Method == "resources/subscribe":
		s.fail(m.ID, -32601, m.Method+" was removed", "")
	case string(p.Meta[prefix+"protocolVersion"]) != `"2026-07-28"` || p.Meta[prefix+"clientCapabilities"] == nil || p.Meta[prefix+"clientInfo"] == nil:
		s.fail(m.ID, -32602, "the request does not say what it speaks", "")
	case m.Method == "server/discover":
		s.result(m.ID, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true}},"instructions":"speaks 2026-07-28"}`)
	case m.Method == "subscriptions/listen":
		fmt.Fprintln(os.Stderr, "listen", withoutMeta(m.Params))
		s.notify("notifications/subscriptions/acknowledged", fmt.Sprintf(`{"_meta":{"%ssubscriptionId":%s}}`, prefix, m.ID))
		<-canceled
	case m.Method == "tools/call" && member(m.Params, "name") == "ask":
		s.askWithInputRequired(m)
	default:
		return false
	}
	return true
}

// askWithInputRequired sends a request to the client as a result with input_required.
func (s *server) askWithInputRequired(m message) {
	p := decode[struct {
		Arguments      arguments
		RequestState   string
		InputResponses json.RawMessage
	}](m.Params)
	if p.RequestState == "" {
		request := fmt.Sprintf(`{"method":%q}`, p.Arguments.Method)
		if p.Arguments.Params != nil {
			request = fmt.Sprintf(`{"method":%q,"params":%s}`, p.Arguments.Method, p.Arguments.Params)
		}
		s.result(m.ID, `{"resultType":"input_required","inputRequests":{"one":`+request+`},"requestState":"state 1"}`)
		return
	}
	s.text(m.ID, p.RequestState+" "+string(p.InputResponses))
}
