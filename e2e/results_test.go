package e2e

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// TestResultsStayBytes has the upstream answer with the given result, which must
// come back as it is, byte for byte.
func TestResultsStayBytes(t *testing.T) {
	t.Parallel()
	p := serve(t, map[string]any{"a": mcptest.Upstream(t)})
	p.initialize()
	for name, result := range map[string]string{
		"unknown content type": `{"content":[{"type":"hologram","depth":3,"nested":{"a":[1,2,{}]}}]}`,
		"unknown members":      `{"content":[],"more":[1],"z":null,"_x":{"y":true}}`,
		"big numbers":          `{"content":[{"type":"text","text":"x","n":9007199254740993}],"structuredContent":{"id":18446744073709551617,"f":1.0,"e":1E+2,"tiny":1e-400}}`,
		"isError":              `{"content":[{"type":"text","text":"it failed"}],"isError":true}`,
		"isError false":        `{"isError":false,"content":[{"type":"text","text":"fine"}]}`,
		"structuredContent":    `{"structuredContent":{"b":1,"a":{"c":[null]}},"content":[]}`,
		"_meta":                `{"_meta":{"a/b":1,"progressToken":5},"content":[]}`,
		"order and spaces":     `{ "structuredContent" : { "z":1 , "a":2 } ,"content":[ ]}`,
		"escapes":              `{"content":[{"type":"text","text":"\u00e9\/\ud83d\ude00 \u2028 <&>"}]}`,
		"a key twice":          `{"content":[],"a":1,"a":2}`,
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

func TestUpstreamsOwnError(t *testing.T) {
	t.Parallel()
	p := serve(t, map[string]any{"a": mcptest.Upstream(t)})
	p.initialize()
	want := `server "a" answered with error -32042: it did not work` + "\n" + `data: {"detail":9007199254740993}`
	if got := p.execError("a", "fail", "{}"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// large is what the tool large answers.
func large(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "a line of a large result, number %d\n", i)
	}
	return b.String()[:n]
}

func TestNoLimitNoCut(t *testing.T) {
	t.Parallel()
	config := map[string]any{"mcpServers": map[string]any{"a": mcptest.Upstream(t)}, "limits": map[string]any{"result_tokens": 0}}
	p := start(t, config, options{})
	p.initialize()
	const size = largeText
	if got := p.exec("a", "large", fmt.Sprintf(`{"bytes":%d}`, size)); got != large(size) {
		t.Errorf("%d bytes came back, or others than were sent", len(got))
	}
	pad := strings.Repeat("é\\n", size/10)
	if got := p.result("tools/call", execParams("a", "arguments", `{"pad":"`+pad+`"}`)); !strings.Contains(got, `\"pad\":\"`+strings.ReplaceAll(pad, `\`, `\\`)) {
		t.Errorf("arguments of %d bytes did not arrive", len(pad))
	}
}

var (
	cutNote      = regexp.MustCompile(`(?s)^(.*)\n…\[cut: ([0-9,]+) bytes, ~[0-9,]+ tokens in all; first ([0-9,]+) bytes shown\. Shape: (.+)\. Read on: exec\("mcpx","read_result",\{"id":"(r[0-9]+)","offset":([0-9]+)\}\); also limit, (.*)\]$`)
	readPosition = regexp.MustCompile(`(?s)^(.*)\n\[bytes ([0-9]+)-([0-9]+) of ([0-9]+); (?:next offset ([0-9]+)|end)\]$`)
)

// TestCutResultsCanBeReadToTheEnd puts the head and what read_result answers
// together: it must be the whole text.
func TestCutResultsCanBeReadToTheEnd(t *testing.T) {
	t.Parallel()
	p := serve(t, map[string]any{"a": mcptest.Upstream(t)})
	p.initialize()
	runes := strings.Repeat("日本語 ünïcödé 😀, ", 20_000)
	for _, c := range []struct {
		name, tool, arguments, want string
	}{
		{"lines", "large", `{"bytes":1000000}`, large(1_000_000)},
		{"runes", "echo", `{"text":` + quote(runes) + `}`, runes},
		{"one long word", "echo", `{"text":"` + strings.Repeat("x", 400_000) + `"}`, strings.Repeat("x", 400_000)},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer := p.exec("a", c.tool, c.arguments)
			note := cutNote.FindStringSubmatch(answer)
			if note == nil {
				t.Fatalf("no note at the end: …%s", answer[max(0, len(answer)-500):])
			}
			got, id, offset := note[1], note[5], note[6]
			if note[2] != grouped(len(c.want)) || note[3] != grouped(len(got)) || offset != strconv.Itoa(len(got)) {
				t.Errorf("the note is %q; want %d bytes in all and %d shown", answer[len(got):], len(c.want), len(got))
			}
			for reads := 0; offset != ""; reads++ {
				if reads > 200 {
					t.Fatal("reading does not end")
				}
				part := readPosition.FindStringSubmatch(p.exec("mcpx", "read_result", fmt.Sprintf(`{"id":%q,"offset":%s}`, id, offset)))
				if part == nil || part[2] != offset || part[4] != strconv.Itoa(len(c.want)) {
					t.Fatalf("a part at %s: %q", offset, part)
				}
				got += part[1]
				offset = part[5]
			}
			if got != c.want {
				t.Errorf("head and parts make %d bytes, want %d, or others", len(got), len(c.want))
			}
		})
	}
}

func grouped(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// TestReadResult reads a cut result in the other ways.
func TestReadResult(t *testing.T) {
	t.Parallel()
	p := serve(t, map[string]any{"a": mcptest.Upstream(t)})
	p.initialize()
	var items []string
	for i := range 20_000 {
		items = append(items, fmt.Sprintf(`{"id":%d,"name":"item %d"}`, 9007199254740993+i, i))
	}
	structured := `{"items":[` + strings.Join(items, ",") + `]}`
	answer := p.exec("a", "raw", `{"result":{"content":[],"structuredContent":`+structured+`}}`)
	if !strings.Contains(answer, "[cut: structuredContent, ") || !strings.Contains(answer, `{"id":"r1"`) || strings.Contains(answer, "item 19999") {
		t.Fatalf("the long structuredContent was answered with …%s", answer[max(0, len(answer)-500):])
	}
	for _, c := range []struct{ name, arguments, want string }{
		{"a pointer", `{"id":"r1","path":"/items/19999/id"}`, "9007199254760992\n[bytes 0-16 of 16; end]"},
		{"a range", `{"id":"r1","offset":2,"limit":5}`, fmt.Sprintf("items\n[bytes 2-7 of %d; next offset 7]", len(structured))},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := p.exec("mcpx", "read_result", c.arguments); got != c.want {
				t.Errorf("got %q, want %q", clip(got), c.want)
			}
		})
	}
	p.exec("a", "large", `{"bytes":1000000}`)
	if got := p.exec("mcpx", "read_result", `{"id":"r2","grep":"number 777$"}`); !strings.Contains(got, "778") || !strings.Contains(got, "a line of a large result, number 777") {
		t.Errorf("grep answers %q", clip(got))
	}
	for name, arguments := range map[string]string{
		"an unknown id": `{"id":"r99"}`, "past the end": `{"id":"r2","offset":1000001}`, "a bad pattern": `{"id":"r2","grep":"("}`,
		"a pointer to nothing": `{"id":"r1","path":"/none"}`, "no id": `{}`,
	} {
		if got := p.execError("mcpx", "read_result", arguments); got == "" {
			t.Errorf("%s: no text", name)
		}
	}
}
