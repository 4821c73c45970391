package e2e

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// TestResultsStayBytes: a result reaches the client byte for byte.
func TestResultsStayBytes(t *testing.T) {
	t.Parallel()
	p := serve(t, map[string]any{"a": mcptest.Upstream(t)})
	p.initialize()
	for name, result := range map[string]string{
		"unknown types and members": `{"content":[{"type":"hologram","depth":3,"nested":{"a":[1,2,{}]}}],"more":[1],"z":null,"_x":{"y":true},"_meta":{"a/b":1,"progressToken":5}}`,
		"numbers":                   `{"content":[{"type":"text","text":"x","n":9007199254740993}],"structuredContent":{"id":18446744073709551617,"f":1.0,"e":1E+2,"tiny":1e-400}}`,
		"an error":                  `{"content":[{"type":"text","text":"it failed"}],"isError":true}`,
		"order and spaces":          `{ "structuredContent" : { "z":1 , "a":2 } ,"isError":false,"content":[ ]}`,
		"escapes":                   `{"content":[{"type":"text","text":"\u00e9\/\ud83d\ude00 \u2028 <&>"}]}`,
		"a key twice":               `{"content":[],"a":1,"a":2}`,
		"every content type": `{"content":[{"type":"text","text":"t","annotations":{"audience":["user"],"priority":0.5}},{"type":"image","data":"aGk=","mimeType":"image/png"},` +
			`{"type":"audio","data":"aGk=","mimeType":"audio/wav"},{"type":"resource_link","uri":"file:///x","name":"x"},{"type":"resource","resource":{"uri":"file:///x","blob":"aGk="}}]}`,
		"no content":    `{}`,
		"a large image": `{"content":[{"type":"image","data":"` + strings.Repeat("QUJD", 300_000) + `","mimeType":"image/png"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			if got := p.result("tools/call", execParams("a", "raw", `{"result":`+quote(result)+`}`)); got != result {
				t.Errorf("got\n%s\nwant\n%s", clip(got), clip(result))
			}
		})
	}
}

// TestLargeContents is 8.2 of seed 001: in flat mode 10 MiB pass in both directions,
// through tools, prompts and resources, and nothing is cut.
func TestLargeContents(t *testing.T) {
	t.Parallel()
	const size = largeText
	p := start(t, flat(map[string]any{"one": mcptest.Upstream(t, "-full", "-name", "one")}), options{})
	p.initialize()
	if got := p.call("one__large", fmt.Sprintf(`{"bytes":%d}`, size)); got != large(size) {
		t.Errorf("tools/call: %d bytes came back, or others than were sent", len(got))
	}
	uri := fmt.Sprintf("item://large-%d", size)
	want := fmt.Sprintf(`{"contents":[{"uri":%q,"blob":"%s"}]}`, uri, strings.Repeat("QUJD", size/4))
	if got := p.result("resources/read", fmt.Sprintf(`{"uri":%q}`, uri)); got != want {
		t.Errorf("resources/read: %d bytes, want %d, or others", len(got), len(want))
	}
	style := strings.Repeat("ü", size/2)
	arguments := fmt.Sprintf(`{"arguments":{"style":"%s"},"name":"choice"}`, style)
	want = fmt.Sprintf(`{"messages":[{"role":"user","content":{"type":"text","text":%s}}],"x-kept":true}`, quote(arguments))
	if got := p.result("prompts/get", fmt.Sprintf(`{"name":"one__choice","arguments":{"style":"%s"}}`, style)); got != want {
		t.Errorf("prompts/get: %d bytes, want %d, or others", len(got), len(want))
	}
}

// large returns what the tool large answers.
func large(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "a line of a large result, number %d\n", i)
	}
	return b.String()[:n]
}

var (
	cutNote      = regexp.MustCompile(`(?s)^(.*)\n…\[cut: [0-9,]+ bytes, ~?[0-9,]+ tokens in all; first [0-9,]+ bytes shown\. Shape: .+\. Kept as (r[0-9]+): exec\("mcpx","read_result",\{"id":"r[0-9]+","offset":([0-9]+)\}\), or limit, .*\]$`)
	readPosition = regexp.MustCompile(`(?s)^(.*)\n\[bytes ([0-9]+)-([0-9]+) of ([0-9]+); (?:next offset ([0-9]+)|end)\]$`)
)

// TestCutResultsCanBeReadToTheEnd: the head of a long result and what read_result
// returns are together the whole text.
func TestCutResultsCanBeReadToTheEnd(t *testing.T) {
	t.Parallel()
	p := serve(t, map[string]any{"a": mcptest.Upstream(t)})
	p.initialize()
	want := strings.Repeat("日本語 ünïcödé 😀, ", 20_000)
	answer := p.exec("a", "echo", `{"text":`+quote(want)+`}`)
	note := cutNote.FindStringSubmatch(answer)
	if note == nil {
		t.Fatalf("no note at the end: …%s", answer[max(0, len(answer)-500):])
	}
	got, id, offset := note[1], note[2], note[3]
	for reads := 0; offset != ""; reads++ {
		if reads > 200 {
			t.Fatal("reading does not end")
		}
		part := readPosition.FindStringSubmatch(p.exec("mcpx", "read_result", fmt.Sprintf(`{"id":%q,"offset":%s}`, id, offset)))
		if part == nil || part[2] != offset || part[4] != strconv.Itoa(len(want)) {
			t.Fatalf("a part at %s: %q", offset, part)
		}
		got += part[1]
		offset = part[5]
	}
	if got != want {
		t.Errorf("head and parts make %d bytes, want %d, or others", len(got), len(want))
	}
	p.exec("a", "large", `{"bytes":1000000}`)
	if got := p.exec("mcpx", "read_result", `{"id":"r2","grep":"number 777$"}`); !strings.Contains(got, "a line of a large result, number 777") {
		t.Errorf("grep answers %q", clip(got))
	}
}

// TestSelectAndReferences: an agent selects fields of one server's result, and passes a
// part of it to another server without writing it.
func TestSelectAndReferences(t *testing.T) {
	t.Parallel()
	p := serve(t, map[string]any{"a": mcptest.Upstream(t), "b": mcptest.Upstream(t)})
	p.initialize()
	people := `{"people":[{"name":"Zoe","id":9007199254740993,"city":"Berlin"},{"name":"Al","id":2,"city":"Rome"},{"name":"Bo, jr","id":3,"city":"Berlin"}]}`
	call := `{"name":"exec","arguments":{"server_name":"a","tool_name":"raw","arguments":{"result":{"structuredContent":` + people + `}},"select":"name, id"}}`
	got := p.text(call, false)
	head, size, found := strings.Cut(got, "\nfull result: r1 (")
	if want := "[3]{name,id}:\nZoe,9007199254740993\nAl,2\n\"Bo, jr\",3"; head != want || !found || !strings.HasSuffix(size, " tokens)") {
		t.Errorf("select returns %q", got)
	}
	want := `{"ids":[9007199254740993,3],"first":"Zoe"}`
	if got := p.exec("b", "arguments", `{"ids":{"$r":"r1","select":"id where city = Berlin"},"first":{"$r":"r1/people/0/name"}}`); got != want {
		t.Errorf("references: got %s, want %s", got, want)
	}
	if got := p.execError("b", "arguments", `{"x":{"$r":"r1/persons"}}`); !strings.Contains(got, `arguments.x: reference "r1/persons": no "persons" here; there are people`) {
		t.Errorf("a reference that leads nowhere: %s", got)
	}
	if got := p.exec("mcpx", "read_result", `{"id":"r1","grep":"Bo"}`); got != "/people/2/name: Bo, jr\n[matches 1-1 of 1 in 9 values; end]" {
		t.Errorf("grep: %s", got)
	}
}
