package mcptest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// tool is one of the server's tools: its definition and its function.
type tool struct {
	name       string
	definition string // members in addition to the name
	run        func(s *server, m message, args json.RawMessage, cancelled chan struct{})
}

// tools has the tools of every server.
var tools = []tool{
	{"echo", `"description":"Say it again. A second sentence.","inputSchema":{"type":"object","properties":{"text":{"type":"string"},"times":{"type":"integer","minimum":1}},"required":["text"]}`, (*server).echo},
	{"arguments", `"description":"Show the arguments as they came","inputSchema":{"type":"object"}`, (*server).showArguments},
	{"params", `"description":"Show the whole params as they came","inputSchema":{"type":"object"}`, (*server).showParams},
	{"nested", `"description":"Take nested arguments","inputSchema":{"type":"object","properties":{"filter":{"type":"object","properties":{"tags":{"type":"array","items":{"type":"string"}}}},"ids":{"type":"array","items":{"type":"integer"}}},"required":["filter"],"additionalProperties":false}`, (*server).showArguments},
	{"sleep", `"description":"Answer after a while","inputSchema":{"type":"object","properties":{"ms":{"type":"integer"},"text":{"type":"string"}},"required":["ms"]}`, (*server).sleep},
	{"progress", `"description":"Report progress, then answer","inputSchema":{"type":"object","properties":{"steps":{"type":"integer"},"every_ms":{"type":"integer"}}}`, (*server).progress},
	{"crash", `"description":"Die during the call","inputSchema":{"type":"object","properties":{"status":{"type":"integer"},"stderr":{"type":"string"}}}`, (*server).crash},
	{"pid", `"description":"The server's process id","inputSchema":{"type":"object"}`, (*server).pid},
	{"env", `"description":"The server's environment","inputSchema":{"type":"object"}`, (*server).env},
	{"cwd", `"description":"The server's folder","inputSchema":{"type":"object"}`, (*server).cwd},
	{"spawn", `"description":"Start a process that stays, and say its id","inputSchema":{"type":"object","properties":{"detached":{"type":"boolean"},"bare":{"type":"boolean"}}}`, (*server).spawn},
	{"fail", `"description":"Answer with a JSON-RPC error","inputSchema":{"type":"object"}`, (*server).failCall},
	{"raw", `"description":"Answer with the given result","inputSchema":{"type":"object","properties":{"result":{}}}`, (*server).raw},
	{"large", `"description":"Answer with this many bytes of text","inputSchema":{"type":"object","properties":{"bytes":{"type":"integer"}}}`, (*server).large},
	{"change", `"description":"Add a tool, or a prompt or resource, and say so this many times","inputSchema":{"type":"object","properties":{"notices":{"type":"integer"},"list":{"enum":["tools","prompts","resources"]}}}`, (*server).change},
	{"lists", `"description":"How often the tools, or what a method lists, were listed","inputSchema":{"type":"object","properties":{"method":{"type":"string"}}}`, (*server).countLists},
}

// tools returns the tools of this server.
func (s *server) tools() []tool {
	all := slices.Concat(tools, reverseTools)
	if s.recordFile != "" {
		all = append(all, workTools...)
	}
	return all
}

func (s *server) listTools(params json.RawMessage) string {
	var all []string
	for _, t := range s.tools() {
		all = append(all, fmt.Sprintf(`{"name":%q,%s}`, t.name, t.definition))
	}
	if s.countCalls {
		all = append(all, `{"name":"calls","description":"How many calls have come, this one included","inputSchema":{"type":"object"}}`)
	}
	for i := range s.extraTools + s.added("tools") {
		all = append(all, fmt.Sprintf(`{"name":"extra_%d","description":"Extra tool number %d of many","inputSchema":{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer","default":10}},"required":["query"]}}`, i, i))
	}
	if s.toolsFile != "" {
		var more []json.RawMessage
		text, _ := os.ReadFile(s.toolsFile)
		_ = json.Unmarshal(text, &more)
		for _, m := range more {
			all = append(all, string(m))
		}
	}
	return s.page(all, params)
}

// page returns one page of a list, if the flags ask for pages. The cursor is the position.
func (s *server) page(all []string, params json.RawMessage) string {
	if s.pageSize == 0 {
		return `{"tools":[` + strings.Join(all, ",") + `]}`
	}
	var p struct {
		Cursor string `json:"cursor"`
	}
	_ = json.Unmarshal(params, &p)
	from, _ := strconv.Atoi(p.Cursor)
	to := min(from+s.pageSize, len(all))
	next := ""
	if to < len(all) {
		next = fmt.Sprintf(`,"nextCursor":"%d"`, to)
	}
	return `{"tools":[` + strings.Join(all[from:to], ",") + `]` + next + `}`
}

func (s *server) call(m message, cancelled chan struct{}) {
	var p struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	_ = json.Unmarshal(m.Params, &p)
	s.mu.Lock()
	s.calls++
	calls := s.calls
	s.mu.Unlock()
	if s.countCalls && p.Name == "calls" {
		s.text(m, strconv.Itoa(calls))
		return
	}
	for _, t := range s.tools() {
		if t.name == p.Name {
			t.run(s, m, p.Arguments, cancelled)
			return
		}
	}
	s.text(m, p.Name+" "+string(p.Arguments))
}

// text responds with one text.
func (s *server) text(m message, text string) {
	s.result(m.ID, `{"content":[{"type":"text","text":`+quote(text)+`}]}`)
}

// arguments decodes the arguments of a tool.
func arguments[T any](raw json.RawMessage) (a T) {
	_ = json.Unmarshal(raw, &a)
	return a
}

func (s *server) echo(m message, args json.RawMessage, _ chan struct{}) {
	a := arguments[struct {
		Text  string `json:"text"`
		Times int    `json:"times"`
	}](args)
	s.text(m, strings.Repeat(a.Text, max(a.Times, 1)))
}

func (s *server) showArguments(m message, args json.RawMessage, _ chan struct{}) {
	s.text(m, string(args))
}

func (s *server) showParams(m message, _ json.RawMessage, _ chan struct{}) {
	s.text(m, string(m.Params))
}

func (s *server) sleep(m message, args json.RawMessage, cancelled chan struct{}) {
	a := arguments[struct {
		MS   int    `json:"ms"`
		Text string `json:"text"`
	}](args)
	select {
	case <-time.After(time.Duration(a.MS) * time.Millisecond):
		s.text(m, a.Text)
	case <-cancelled:
	}
}

func (s *server) progress(m message, args json.RawMessage, _ chan struct{}) {
	a := arguments[struct {
		Steps   int `json:"steps"`
		EveryMS int `json:"every_ms"`
	}](args)
	p := arguments[struct {
		Meta struct {
			ProgressToken json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}](m.Params)
	for i := range a.Steps {
		<-time.After(time.Duration(a.EveryMS) * time.Millisecond)
		s.notify("notifications/progress", fmt.Sprintf(`{"progressToken":%s,"progress":%d,"total":%d}`, p.Meta.ProgressToken, i+1, a.Steps))
	}
	s.text(m, fmt.Sprintf("%d steps", a.Steps))
}

func (s *server) crash(_ message, args json.RawMessage, _ chan struct{}) {
	a := arguments[struct {
		Status int    `json:"status"`
		Stderr string `json:"stderr"`
	}](args)
	if a.Stderr != "" {
		fmt.Fprintln(os.Stderr, a.Stderr)
	}
	os.Exit(a.Status)
}

func (s *server) pid(m message, _ json.RawMessage, _ chan struct{}) {
	s.text(m, strconv.Itoa(os.Getpid()))
}

func (s *server) env(m message, _ json.RawMessage, _ chan struct{}) {
	s.text(m, strings.Join(os.Environ(), "\n"))
}

func (s *server) cwd(m message, _ json.RawMessage, _ chan struct{}) {
	dir, err := os.Getwd()
	s.text(m, fmt.Sprint(dir, err))
}

// spawn starts this program again as a server that ignores every signal to stop, on
// request in its own process session or with an empty environment.
func (s *server) spawn(m message, args json.RawMessage, _ chan struct{}) {
	a := arguments[struct {
		Detached bool `json:"detached"`
		Bare     bool `json:"bare"`
	}](args)
	self, _ := os.Executable()
	cmd := exec.Command(self, "-ignore-eof", "-ignore-term")
	if a.Detached {
		cmd.SysProcAttr = detached()
	}
	if a.Bare {
		cmd.Env = []string{variable + "=1"}
	}
	if err := cmd.Start(); err != nil {
		s.fail(m.ID, -32000, err.Error(), "")
		return
	}
	s.text(m, strconv.Itoa(cmd.Process.Pid))
}

func (s *server) failCall(m message, _ json.RawMessage, _ chan struct{}) {
	s.fail(m.ID, -32042, "it did not work", `{"detail":9007199254740993}`)
}

// raw responds with its argument, or with the JSON object in it.
func (s *server) raw(m message, args json.RawMessage, _ chan struct{}) {
	result := arguments[struct {
		Result json.RawMessage `json:"result"`
	}](args).Result
	var text string
	if json.Unmarshal(result, &text) == nil && strings.HasPrefix(text, "{") {
		result = json.RawMessage(text)
	}
	s.result(m.ID, string(result))
}

func (s *server) large(m message, args json.RawMessage, _ chan struct{}) {
	n := arguments[struct {
		Bytes int `json:"bytes"`
	}](args).Bytes
	const line = "a line of a large result, number "
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%s%d\n", line, i)
	}
	s.text(m, b.String()[:n])
}

// change adds an item to a list, and notifies the client.
func (s *server) change(m message, args json.RawMessage, _ chan struct{}) {
	a := arguments[struct {
		Notices int    `json:"notices"`
		List    string `json:"list"`
	}](args)
	if a.List == "" {
		a.List = "tools"
	}
	s.mu.Lock()
	s.extra[a.List]++
	s.mu.Unlock()
	if a.Notices > 0 { // at the same time: on a loaded machine they would be slow
		notice := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/%s/list_changed","params":{}}`, a.List)
		s.write(notice + strings.Repeat("\n"+notice, a.Notices-1))
	}
	s.text(m, "changed")
}

// added returns how many items the tool change has added to a list.
func (s *server) added(list string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.extra[list]
}

func (s *server) countLists(m message, args json.RawMessage, _ chan struct{}) {
	method := member(args, "method")
	if method == "" {
		method = "tools/list"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text(m, strconv.Itoa(s.lists[method]))
}
