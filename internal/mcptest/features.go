package mcptest

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// feature handles the methods that are not about tools: prompts, resources, templates,
// subscriptions, completion and logging. The flag -full enables them.
func (s *server) feature(m message) bool {
	if !s.full {
		return false
	}
	switch m.Method {
	case "prompts/list":
		s.result(m.ID, `{"prompts":[`+
			`{"name":"plain","description":"No arguments"},`+
			`{"name":"choice","arguments":[{"name":"style"}]},`+
			`{"name":"needs","title":"Needs one","arguments":[{"name":"context","required":true},{"name":"style"}],"x-extra":9007199254740993}`+s.more("prompts", `,{"name":"more_%d"}`)+`]}`)
	case "prompts/get":
		s.result(m.ID, `{"messages":[{"role":"user","content":{"type":"text","text":`+quote(withoutMeta(m.Params))+`}}],"x-kept":true}`)
	case "resources/list":
		s.result(m.ID, `{"resources":[{"uri":"test://one","name":"one","mimeType":"text/plain","size":12},{"uri":`+quote(s.ownURI())+`,"name":"own"}`+s.more("resources", `,{"uri":"more://%d","name":"more"}`)+`]}`)
	case "resources/templates/list":
		s.result(m.ID, `{"resourceTemplates":[{"uriTemplate":"item://{id}","name":"item"},{"uriTemplate":`+quote(s.ownURI()+"/{category}/{id}")+`,"name":"nested"}]}`)
	case "resources/read":
		s.read(m)
	case "resources/subscribe", "resources/unsubscribe":
		fmt.Fprintln(os.Stderr, m.Method, member(m.Params, "uri"))
		s.result(m.ID, "{}")
	case "completion/complete":
		s.result(m.ID, `{"completion":{"values":[`+quote(withoutMeta(m.Params))+`],"total":1,"hasMore":false}}`)
	case "logging/setLevel":
		fmt.Fprintln(os.Stderr, m.Method, member(m.Params, "level"))
		s.result(m.ID, "{}")
	default:
		return false
	}
	return true
}

// more returns the items that the tool change has added to a list.
func (s *server) more(list, item string) (items string) {
	for i := range s.added(list) {
		items += fmt.Sprintf(item, i)
	}
	return items
}

// ownURI returns a URI that no other server has.
func (s *server) ownURI() string { return "own://" + s.name }

func (s *server) read(m message) {
	uri := member(m.Params, "uri")
	if strings.Contains(uri, "missing") {
		s.fail(m.ID, -32002, "no such resource", `{"uri":`+quote(uri)+`}`)
		return
	}
	if size, ok := strings.CutPrefix(uri, "item://large-"); ok {
		n, _ := strconv.Atoi(size)
		s.result(m.ID, `{"contents":[{"uri":`+quote(uri)+`,"blob":"`+strings.Repeat("QUJD", n/4)+`"}]}`)
		return
	}
	s.result(m.ID, `{"contents":[{"uri":`+quote(uri)+`,"text":`+quote("this is "+uri+" of "+s.name)+`,"x":9007199254740993},{"uri":"other://part","blob":"AA=="}]}`)
}

// member returns a string member of an object.
func member(object json.RawMessage, key string) string {
	text, _ := decode[map[string]any](object)[key].(string)
	return text
}

// withoutMeta returns an object without its _meta, with sorted keys.
func withoutMeta(object json.RawMessage) string {
	o := decode[map[string]json.RawMessage](object)
	delete(o, "_meta")
	b, _ := json.Marshal(o)
	return string(b)
}

// reverseTools send requests or notifications to the client.
var reverseTools = []tool{
	{"ask", `"description":"Ask the client, and show what it answers","inputSchema":{"type":"object","properties":{"method":{"type":"string"},"params":{"type":"object"}},"required":["method"]}`, (*server).ask},
	{"ask_late", `"description":"Write FILE.begun, wait until FILE exists, even if the call is canceled meanwhile; then send a request to the client, and write its response to FILE.answer. Respond to the call at once with TEXT, or never without it","inputSchema":{"type":"object","properties":{"method":{"type":"string"},"file":{"type":"string"},"text":{"type":"string"}},"required":["method","file"]}`, (*server).askLate},
	{"say", `"description":"Send notifications, then answer","inputSchema":{"type":"object","properties":{"method":{"type":"string"},"params":{"type":"array"}},"required":["method","params"]}`, (*server).say},
	{"heard", `"description":"Notifications that came, by method","inputSchema":{"type":"object"}`, (*server).heard},
}

// ask sends a request to the client and returns the client's response as its result.
func (s *server) ask(c call) {
	id, answer := s.request(c.args.Method, c.args.Params)
	select {
	case reply := <-answer:
		s.text(c.ID, reply)
	case <-c.canceled:
		s.notify("notifications/cancelled", fmt.Sprintf(`{"requestId":%q,"reason":"the call was canceled"}`, id))
	}
}

// askLate continues a call that was canceled or answered, as some servers do.
func (s *server) askLate(c call) {
	file := c.args.File
	if c.args.Text != "" {
		s.text(c.ID, c.args.Text)
	}
	_ = os.WriteFile(file+".begun", nil, 0o600)
	for range 3000 {
		if _, err := os.Stat(file); err == nil {
			_, answer := s.request(c.args.Method, nil)
			_ = os.WriteFile(file+".answer", []byte(<-answer), 0o600)
			return
		}
		<-time.After(10 * time.Millisecond)
	}
}

// request sends a request to the client.
func (s *server) request(method string, params json.RawMessage) (id string, answer chan string) {
	if params == nil {
		params = json.RawMessage("{}")
	}
	s.mu.Lock()
	s.lastID++
	id = "ask-" + strconv.Itoa(s.lastID)
	answer = make(chan string, 1)
	s.answers[id] = answer
	s.mu.Unlock()
	s.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":%q,"params":%s}`, id, method, params))
	return id, answer
}

// handleResponse handles a response of the client.
func (s *server) handleResponse(line []byte) {
	m := decode[struct {
		ID            string
		Result, Error json.RawMessage
	}](line)
	s.mu.Lock()
	answer := s.answers[m.ID]
	delete(s.answers, m.ID)
	s.mu.Unlock()
	if answer == nil {
		fmt.Fprintln(os.Stderr, "answer to nothing:", string(line))
		return
	}
	text := string(m.Result)
	if m.Error != nil {
		text = "error " + string(m.Error)
	}
	answer <- text
}

// say sends one notification for each element of params.
func (s *server) say(c call) {
	all := decode[[]json.RawMessage](c.args.Params)
	for _, params := range all {
		s.notify(c.args.Method, string(params))
	}
	s.text(c.ID, fmt.Sprintf("said %d", len(all)))
}

// heard waits for a first notification and returns how many of each came.
func (s *server) heard(c call) {
	n := 0
	for range 500 {
		s.mu.Lock()
		n = s.notices[c.args.Method]
		s.mu.Unlock()
		if n > 0 {
			break
		}
		<-time.After(10 * time.Millisecond)
	}
	s.text(c.ID, strconv.Itoa(n))
}
