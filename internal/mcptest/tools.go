package mcptest

import (
	"cmp"
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
	run        func(s *server, c call)
}

// call is a call of a tool.
type call struct {
	message
	args     arguments
	raw      json.RawMessage // the arguments as they came
	token    json.RawMessage // the progress token
	canceled chan struct{}
}

// arguments has the arguments of all tools.
type arguments struct {
	Text, Stderr, Method, List, Kind, File string
	Times, MS, Steps, Status, Bytes        int
	Notices                                int
	EveryMS                                int `json:"every_ms"`
	Detached, Bare                         bool
	Params, Result                         json.RawMessage
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
	{"raw", `"description":"Answer with the given result","inputSchema":{"type":"object","properties":{"result":{}}}`, (*server).respondRaw},
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
		text, _ := os.ReadFile(s.toolsFile)
		for _, m := range decode[[]json.RawMessage](text) {
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
	from, _ := strconv.Atoi(member(params, "cursor"))
	to := min(from+s.pageSize, len(all))
	next := ""
	if to < len(all) {
		next = fmt.Sprintf(`,"nextCursor":"%d"`, to)
	}
	return `{"tools":[` + strings.Join(all[from:to], ",") + `]` + next + `}`
}

func (s *server) call(m message, canceled chan struct{}) {
	p := decode[struct {
		Name      string
		Arguments json.RawMessage
		Meta      struct{ ProgressToken json.RawMessage } `json:"_meta"`
	}](m.Params)
	s.mu.Lock()
	s.calls++
	calls := s.calls
	s.mu.Unlock()
	if s.countCalls && p.Name == "calls" {
		s.text(m.ID, strconv.Itoa(calls))
		return
	}
	c := call{m, decode[arguments](p.Arguments), p.Arguments, p.Meta.ProgressToken, canceled}
	for _, t := range s.tools() {
		if t.name == p.Name {
			t.run(s, c)
			return
		}
	}
	s.text(m.ID, p.Name+" "+string(p.Arguments))
}

// text responds with one text.
func (s *server) text(id json.RawMessage, text string) {
	s.result(id, `{"content":[{"type":"text","text":`+quote(text)+`}]}`)
}

// decode reads JSON; what does not fit stays zero.
func decode[T any](raw json.RawMessage) (value T) {
	_ = json.Unmarshal(raw, &value)
	return value
}

func (s *server) echo(c call) { s.text(c.ID, strings.Repeat(c.args.Text, max(c.args.Times, 1))) }

func (s *server) showArguments(c call) { s.text(c.ID, string(c.raw)) }

func (s *server) showParams(c call) { s.text(c.ID, string(c.Params)) }

func (s *server) sleep(c call) {
	select {
	case <-time.After(time.Duration(c.args.MS) * time.Millisecond):
		s.text(c.ID, c.args.Text)
	case <-c.canceled:
	}
}

func (s *server) progress(c call) {
	for i := range c.args.Steps {
		<-time.After(time.Duration(c.args.EveryMS) * time.Millisecond)
		s.notify("notifications/progress", fmt.Sprintf(`{"progressToken":%s,"progress":%d,"total":%d}`, c.token, i+1, c.args.Steps))
	}
	s.text(c.ID, fmt.Sprintf("%d steps", c.args.Steps))
}

func (s *server) crash(c call) {
	if c.args.Stderr != "" {
		fmt.Fprintln(os.Stderr, c.args.Stderr)
	}
	os.Exit(c.args.Status)
}

func (s *server) pid(c call) { s.text(c.ID, strconv.Itoa(os.Getpid())) }

func (s *server) env(c call) { s.text(c.ID, strings.Join(os.Environ(), "\n")) }

func (s *server) cwd(c call) {
	dir, err := os.Getwd()
	s.text(c.ID, fmt.Sprint(dir, err))
}

// spawn starts this program again as a server that ignores every signal to stop, on
// request in its own process session or with an empty environment.
func (s *server) spawn(c call) {
	self, _ := os.Executable()
	cmd := exec.Command(self, "-ignore-eof", "-ignore-term")
	if c.args.Detached {
		cmd.SysProcAttr = detached()
	}
	if c.args.Bare {
		cmd.Env = []string{variable + "=1"}
	}
	if err := cmd.Start(); err != nil {
		s.fail(c.ID, -32000, err.Error(), "")
		return
	}
	s.text(c.ID, strconv.Itoa(cmd.Process.Pid))
}

func (s *server) failCall(c call) {
	s.fail(c.ID, -32042, "it did not work", `{"detail":9007199254740993}`)
}

// respondRaw responds with its argument, or with the JSON object in it.
func (s *server) respondRaw(c call) {
	result := string(c.args.Result)
	if text := decode[string](c.args.Result); strings.HasPrefix(text, "{") {
		result = text
	}
	s.result(c.ID, result)
}

func (s *server) large(c call) {
	var b strings.Builder
	for i := 0; b.Len() < c.args.Bytes; i++ {
		fmt.Fprintf(&b, "a line of a large result, number %d\n", i)
	}
	s.text(c.ID, b.String()[:c.args.Bytes])
}

// change adds an item to a list, and notifies the client.
func (s *server) change(c call) {
	list := cmp.Or(c.args.List, "tools")
	s.mu.Lock()
	s.extra[list]++
	s.mu.Unlock()
	if c.args.Notices > 0 { // at the same time: on a loaded machine they would be slow
		notice := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/%s/list_changed","params":{}}`, list)
		s.write(notice + strings.Repeat("\n"+notice, c.args.Notices-1))
	}
	s.text(c.ID, "changed")
}

// added returns how many items the tool change has added to a list.
func (s *server) added(list string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.extra[list]
}

func (s *server) countLists(c call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text(c.ID, strconv.Itoa(s.lists[cmp.Or(c.args.Method, "tools/list")]))
}
