package e2e

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

// The bounds of mcpx beside a hostile upstream, with messages of 1 MiB at most.
const (
	hostileCalls = 100             // to the other upstream
	hostileP99   = 3 * time.Second // of these, on a loaded machine; on an idle one it is a few milliseconds
	hostileMiB   = 100             // of memory
)

// hostile is an upstream that misbehaves, and what becomes of a call to it.
type hostile struct {
	name   string
	flags  []string
	keys   map[string]any // more keys of its config
	limits map[string]any // more limits of the config
	tool   string         // the tool that is called
	args   string
	list   bool   // it is inspected, not called
	want   string // a part of the result
	log    string // a part of the log
	well   bool   // the result is no error
}

func fault(kind string) string { return fmt.Sprintf(`{"kind":%q}`, kind) }

// hostiles returns all of them. Those that never end reach their timeout.
func hostiles(t *testing.T) []hostile {
	record := []string{"-record", t.TempDir() + "/record"}
	// Far enough apart that one cannot be mistaken for another on a machine that stalls.
	quick := map[string]any{"timeout": "2s", "max_timeout": "1m"}
	steady := map[string]any{"timeout": "4s", "max_timeout": "6s"}
	either := map[string]any{"timeout": "2s", "max_timeout": "4s"}
	const tooLong = `server "bad" stopped during the call: sent a message of more than 1048576 bytes (limits.message_bytes)`
	const silent = `server "bad": timed out: no answer and no progress within 2s (its "timeout"); the call was canceled`
	const tooSlow = `server "bad": timed out: no answer within 6s (its "max_timeout"); the call was canceled`
	repeated := answersFile(t, map[string]any{"tools/list": map[string]any{"result": map[string]any{"tools": []any{map[string]any{"name": "only"}}, "nextCursor": "same"}}})
	return []hostile{
		{name: "a message that is too long", tool: "large", args: `{"bytes":2000000}`, want: tooLong},
		{name: "an endless line", flags: record, tool: "fault", args: fault("endless line"), want: tooLong},
		{name: "an endless line at the start", flags: []string{"-long-line", "40000000"}, list: true, want: "sent a message of more than 1048576 bytes (limits.message_bytes)"},
		{name: "an answer nested too deep", flags: record, tool: "fault", args: fault("deep answer"), want: `the call to server "bad" failed: it answered with a message that is not JSON-RPC: Parse error: JSON nested too deep`},
		{name: "death in the middle of a line", flags: record, tool: "fault", args: fault("half an answer"), want: `server "bad" stopped during the call: exited with status 7; whether the call took effect is unknown`},
		{name: "lines that are no messages", flags: record, tool: "fault", args: fault("garbage"), want: "done", well: true, log: "they are skipped"},
		{name: "a byte order mark", flags: []string{"-stdout-start", "\ufeff"}, tool: "echo", args: `{"text":"x"}`, want: "x", well: true},
		{name: "two answers to one request", flags: record, tool: "fault", args: fault("answer twice"), want: "the first answer", well: true},
		{name: "answers to nothing", flags: record, tool: "fault", args: fault("foreign ids"), want: "done", well: true},
		{name: "answers for the calls of another", flags: record, tool: "fault", args: fault("answers for others"), want: "done", well: true},
		{name: "an upstream that never answers", flags: []string{"-silent", "tools/call"}, keys: quick, tool: "echo", args: `{"text":"x"}`, want: silent},
		{name: "endless notifications", flags: record, keys: quick, tool: "fault", args: fault("endless notifications"), want: silent},
		{name: "endless log messages", flags: record, keys: quick, tool: "fault", args: fault("endless log messages"), want: silent},
		{name: "endless requests", flags: record, keys: either, tool: "fault", args: fault("endless requests"), want: `server "bad": timed out: no answer`},
		{name: "endless stray lines", flags: record, keys: quick, tool: "fault", args: fault("endless stray lines"), want: silent, log: "such lines are skipped"},
		{name: "endless stderr", flags: record, keys: quick, tool: "fault", args: fault("endless stderr"), want: silent},
		{name: "endless progress", flags: record, keys: steady, tool: "fault", args: fault("endless progress"), want: tooSlow},
		{name: "too many tools", flags: []string{"-tools", "10500"}, limits: map[string]any{"message_bytes": 8 << 20}, list: true, want: "bad: 10,000 tools", well: true, log: "the list has more than 10000 items; the rest is left out"},
		{name: "too many pages", flags: []string{"-tools", "150", "-page-size", "1"}, list: true, want: "bad: 100 tools", well: true, log: "the list has more than 100 pages; the rest is left out"},
		{name: "a cursor again and again", flags: []string{"-answers", repeated}, list: true, want: "bad: 1 tool\n", well: true, log: "the upstream repeats a page cursor"},
	}
}

// besideOthers makes a test parallel, unless it keeps a processor busy and would slow
// others down.
func besideOthers(t *testing.T, name string) {
	if !strings.HasPrefix(name, "endless") {
		t.Parallel()
	}
}

// TestHostileUpstreams: whatever one upstream sends, mcpx stays small and calls to another
// one stay quick.
func TestHostileUpstreams(t *testing.T) {
	for _, c := range hostiles(t) {
		t.Run(c.name, func(t *testing.T) {
			besideOthers(t, c.name)
			bad := mcptest.Upstream(t, c.flags...)
			maps.Copy(bad, c.keys)
			c.run(t, bad)
		})
	}
}

// run makes the request to the bad upstream, checks calls to a good one meanwhile, and
// then the result of the request.
func (c hostile) run(t *testing.T, bad map[string]any) {
	t.Helper()
	limits := map[string]any{"message_bytes": 1 << 20, "unread_bytes": 1 << 20}
	maps.Copy(limits, c.limits)
	p := start(t, map[string]any{"mcpServers": map[string]any{"good": mcptest.Upstream(t), "bad": bad}, "limits": limits}, options{})
	p.initialize()
	p.exec("good", "pid", "")
	params := execParams("bad", c.tool, c.args)
	if c.list {
		params = inspectParams("bad", "")
	}
	id := p.nextID()
	p.send(id, "tools/call", params)
	p.staysWell("good")
	if got := textOf(t, string(p.answer(id).Result), !c.well); !strings.Contains(got, c.want) {
		t.Errorf("got\n%s\nwant\n%s", clip(got), c.want)
	}
	p.waitStderr(c.log)
}

// staysWell checks that calls to an upstream are quick and the memory of mcpx is small.
func (p *process) staysWell(server string) {
	p.t.Helper()
	var took []time.Duration
	for i := range hostileCalls {
		begin := time.Now()
		text := fmt.Sprint("call ", i)
		if got := p.exec(server, "echo", fmt.Sprintf(`{"text":%q}`, text)); got != text {
			p.t.Errorf("got %q, want %q", got, text)
		}
		took = append(took, time.Since(begin))
	}
	if race {
		return // the detector makes everything slow and large, even the test's own servers
	}
	slices.Sort(took)
	within(p.t, "a call to the other upstream, p99,", took[len(took)*99/100-1], hostileP99)
	p.staysSmall(hostileMiB)
}

// staysSmall checks the memory of mcpx, except with the race detector.
func (p *process) staysSmall(most int) {
	p.t.Helper()
	peak := p.peakMiB()
	p.t.Logf("mcpx took %d MiB", peak)
	if peak > most && !race {
		p.t.Errorf("mcpx took %d MiB, want %d at most", peak, most)
	}
}

var peakLine = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peakMiB returns the peak memory of mcpx, or 0 where that is not known.
func (p *process) peakMiB() int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	found := peakLine.FindSubmatch(text)
	if found == nil {
		return 0
	}
	kib, _ := strconv.Atoi(string(found[1]))
	return kib >> 10
}

// TestLateAnswerIsDropped: an answer to a call that has timed out is dropped, and the
// session goes on.
func TestLateAnswerIsDropped(t *testing.T) {
	t.Parallel()
	bad := mcptest.Upstream(t, "-record", t.TempDir()+"/record")
	bad["timeout"] = "2s"
	p := serve(t, map[string]any{"bad": bad})
	p.initialize()
	pid := p.exec("bad", "pid", "")
	if got, want := p.execError("bad", "fault", fault("answer late")), `server "bad": timed out: no answer and no progress within 2s (its "timeout"); the call was canceled`; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	p.waitReceived("notifications/message", 1) // sent after the late answer
	if got := p.exec("bad", "pid", ""); got != pid {
		t.Error("the late answer cost the session")
	}
}

// TestDeafUpstream: when an upstream no longer reads, calls that do not fit into its queue
// fail at once, and the others reach their timeout.
func TestDeafUpstream(t *testing.T) {
	t.Parallel()
	bad := mcptest.Upstream(t, "-record", t.TempDir()+"/record", "-ignore-eof", "-ignore-term")
	bad["timeout"] = "5s"
	p := start(t, map[string]any{"mcpServers": map[string]any{"good": mcptest.Upstream(t), "bad": bad}, "limits": map[string]any{"message_bytes": 1 << 20}}, options{})
	p.initialize()
	p.exec("good", "pid", "")
	pid, err := strconv.Atoi(p.exec("bad", "pid", ""))
	if err != nil {
		t.Fatal(err)
	}
	p.exec("bad", "fault", fault("deaf"))
	p.send(p.nextID(), "tools/call", execParams("bad", "pid", "")) // it may still read this one
	var ids []string
	text := strings.Repeat("t", 400_000)
	for range 8 {
		id := p.nextID()
		ids = append(ids, id)
		p.send(id, "tools/call", execParams("bad", "echo", fmt.Sprintf(`{"text":%q}`, text)))
	}
	p.staysWell("good")
	count := map[string]int{}
	for _, id := range ids {
		got, _, _ := strings.Cut(textOf(t, string(p.answer(id).Result), true), "\n")
		count[got]++
	}
	const full, slow = "the call was not sent: the server does not read its input", `server "bad": timed out: no answer and no progress within 5s (its "timeout"); the call was canceled`
	if count[full] < 3 || count[slow] < 2 || count[full]+count[slow] != len(ids) {
		t.Errorf("the calls ended with %v", count)
	}
	begin := time.Now()
	p.stop()
	p.waitEnd(stopTime)
	within(t, "the stop", time.Since(begin), stopTime)
	if mcptest.Alive(pid) {
		t.Error("the deaf upstream is still there")
	}
}

// TestFloodToADeafClient: notifications that a client does not read are not kept.
func TestFloodToADeafClient(t *testing.T) {
	for _, kind := range []string{"endless log messages", "endless progress", "endless requests"} {
		t.Run(kind, func(t *testing.T) {
			besideOthers(t, kind)
			bad := mcptest.Upstream(t, "-record", t.TempDir()+"/record")
			bad["timeout"], bad["max_timeout"] = "2s", "2s"
			p := start(t, map[string]any{"mcpServers": map[string]any{"bad": bad}, "limits": map[string]any{"message_bytes": 1 << 20, "unread_bytes": 1 << 20}}, options{deaf: true})
			p.wantCode = anyCode
			p.send("1", "initialize", `{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"e2e","version":"1"}}`)
			p.notify("notifications/initialized", "{}")
			p.send("2", "tools/call", `{"name":"exec","arguments":{"server_name":"bad","tool_name":"fault","arguments":`+fault(kind)+`},"_meta":{"progressToken":"x"}}`)
			p.waitStderr("tool=fault outcome=timeout")
			p.staysSmall(hostileMiB)
		})
	}
}
