package mcptest

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// workTools has the additional tools of a server with the flag -record: one that records
// every call in a file before it does anything, and one that misbehaves.
var workTools = []tool{
	{"work", `"description":"Record the call, then do as it says","inputSchema":{"type":"object","properties":{"nonce":{"type":"string"},"ms":{"type":"integer"},"bytes":{"type":"integer"},"steps":{"type":"integer"},"how":{"enum":["text","rows","isError","error"]}},"required":["nonce"]}`, (*server).work},
	{"fault", `"description":"Misbehave","inputSchema":{"type":"object","properties":{"kind":{"type":"string"}},"required":["kind"]}`, (*server).fault},
}

// work waits, reports progress and responds as its arguments say.
func (s *server) work(c call) {
	w := decode[Work](c.raw)
	s.record(Event{Kind: Got, Subject: w.Nonce})
	for i := range max(w.Steps, 1) {
		select {
		case <-time.After(time.Duration(w.MS) * time.Millisecond / time.Duration(max(w.Steps, 1))):
		case <-c.canceled:
			return
		}
		if i < w.Steps {
			s.notify("notifications/progress", fmt.Sprintf(`{"progressToken":%s,"progress":%d,"message":%q}`, c.token, i+1, w.Nonce))
		}
	}
	line := resultLine(c.ID, w.Result())
	if w.How == "error" {
		line = errorLine(c.ID, WorkError, w.Nonce, "")
	}
	s.send(line, func() { s.record(Event{Kind: Answered, Subject: w.Nonce}) })
}

// Faults has the faults of the tool fault that a server survives, or dies of at once.
// The other faults never end.
var Faults = []string{"exit", "close stdin", "close stdout", "garbage", "endless line", "answer twice", "foreign ids", "log flood", "stderr flood"}

// fault misbehaves.
func (s *server) fault(c call) {
	s.record(Event{Kind: Fault, Subject: c.args.Kind})
	switch c.args.Kind {
	case "exit":
		os.Exit(3)
	case "close stdin":
		_ = os.Stdin.Close()
	case "close stdout":
		_ = os.Stdout.Close()
		return
	case "garbage":
		for _, line := range []string{"not a message", `{"jsonrpc":"2.0","id":`, "{}", "[]", "\x00\xff\xfe", `{"id":1,"id":2,"result":{}}`} {
			s.write(line)
		}
	case "endless line":
		s.out.Lock() // other writers wait forever
		for {
			if _, err := os.Stdout.WriteString(strings.Repeat("x", 1<<16)); err != nil {
				os.Exit(4)
			}
		}
	case "answer twice":
		s.text(c.ID, "the first answer")
	case "answer late":
		<-c.canceled
		s.text(c.ID, "too late")
		s.notify("notifications/message", `{"level":"info","data":"answered late"}`)
		return
	case "foreign ids":
		for _, id := range []string{"-1", "0", "999999999", `"x"`, "null", "1.5"} {
			s.result(json.RawMessage(id), `{"content":[{"type":"text","text":"an answer to nothing"}]}`)
		}
	case "deep answer":
		s.result(c.ID, `{"content":`+strings.Repeat("[", 300)+strings.Repeat("]", 300)+"}")
		return
	case "half an answer":
		_, _ = os.Stdout.WriteString(`{"jsonrpc":"2.0","id":` + string(c.ID) + `,"result":{"content":[{"type":"te`)
		os.Exit(7)
	case "deaf":
		s.mu.Lock()
		s.deaf = true
		s.mu.Unlock()
	case "endless notifications", "endless log messages", "endless progress", "endless requests", "endless stderr", "endless stray lines":
		s.flood(c)
	case "answers for others":
		for id := range 1000 {
			if strconv.Itoa(id) != string(c.ID) {
				s.result(json.RawMessage(strconv.Itoa(id)), `{"content":[{"type":"text","text":"an answer for another"}]}`)
			}
		}
	case "log flood":
		for i := range 2000 {
			s.notify("notifications/message", fmt.Sprintf(`{"level":"info","data":"message %d"}`, i))
		}
	case "stderr flood":
		for i := range 5000 {
			fmt.Fprintln(os.Stderr, "line", i, strings.Repeat("z", 200))
		}
	}
	s.text(c.ID, "done")
}

// flood repeats one message forever.
func (s *server) flood(c call) {
	for i := 0; ; i++ {
		switch c.args.Kind {
		case "endless notifications":
			s.notify("notifications/tools/list_changed", "{}")
			s.notify("notifications/unheard/of", `{"filler":"`+strings.Repeat("y", 1000)+`"}`)
			s.notify("notifications/resources/updated", `{"uri":"test://one"}`)
		case "endless log messages":
			s.notify("notifications/message", fmt.Sprintf(`{"level":"emergency","data":"%s %d"}`, strings.Repeat("m", 1000), i))
		case "endless progress":
			s.notify("notifications/progress", fmt.Sprintf(`{"progressToken":%s,"progress":%d}`, c.token, i))
		case "endless requests":
			s.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":"flood-%d","method":%q,"params":{}}`, i, []string{"ping", "roots/list", "no/such"}[i%3]))
		case "endless stderr":
			fmt.Fprintln(os.Stderr, "line", i, strings.Repeat("z", 1000))
		case "endless stray lines":
			s.write("Listening on port 8000")
		}
	}
}
