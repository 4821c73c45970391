package results

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"mcpx/internal/tokens"
)

var (
	long    = strings.Repeat("word ", 300)
	records = `{"items":[` + strings.Repeat(`{"id":1},`, 199) + `{"id":2}]}`
)

func textItem(s string) string { return `{"type":"text","text":` + quote(s) + `}` }

func TestCut(t *testing.T) {
	const (
		readLong    = `. Shape: 1 line. Kept as r1: exec("mcpx","read_result",{"id":"r1","offset":NEXT}), or limit, grep (RE2), select "/RE2/"; {"$r":"r1"} passes the whole text to another call, with "lines":"5-9" a part]`
		readRecords = `. Shape: items[200]{id}. Kept as r1: exec("mcpx","read_result",{"id":"r1","select":"id limit 20"}), or path (JSON Pointer, * = every), grep (RE2), offset NEXT; {"$r":"r1/…"} passes a part to another call]`
	)
	for _, test := range []struct{ name, result, want string }{
		{"everything around a text stays as it came",
			`{ "n":12345678901234567890, "content" : [ {"x":1.0,"type":"text","text":` + quote(long) + `,"_meta":{"a":1}} , {"type":"image","data":"aGk="} ],"isError":true,"_meta":{} }`,
			`{ "n":12345678901234567890, "content" : [ {"x":1.0,"type":"text","text":` + quote("HEAD"+readLong) + `,"_meta":{"a":1}} , {"type":"image","data":"aGk="} ],"isError":true,"_meta":{} }`},
		{"an embedded resource",
			`{"content":[{"type":"resource","resource":{"uri":"file:///a","text":` + quote(long) + `}}]}`,
			`{"content":[{"type":"resource","resource":{"uri":"file:///a","text":` + quote("HEAD"+readLong) + `}}]}`},
		{"texts after the one that is cut",
			`{"content":[` + textItem("short") + `,` + textItem(long) + `,{"type":"audio","data":""},` + textItem(long) + `,{"type":"resource","resource":{"uri":"a:b","text":"x"}}],"a":1}`,
			`{"content":[` + textItem("short") + `,` + textItem("HEAD"+strings.Replace(readLong, "1 line", "4 lines", 1)) + `,{"type":"audio","data":""}],"a":1}`},
		{"structuredContent alone",
			`{"structuredContent":` + records + `,"a":1}`,
			`{"a":1,"content":[` + textItem("HEAD"+readRecords) + `]}`},
		{"structuredContent before content",
			`{"structuredContent":` + records + `,"content":[ ]}`,
			`{"content":[ ` + textItem("HEAD"+readRecords) + `]}`},
		{"structuredContent beside a short text",
			`{"content":[` + textItem("200 items") + `],"structuredContent":` + records + `}`,
			`{"content":[` + textItem("200 items") + `,` + textItem("HEAD"+readRecords) + `]}`},
		{"structuredContent that repeats the text",
			`{"content":[` + textItem(records) + `],"structuredContent": ` + strings.ReplaceAll(records, ",", " , ") + `}`,
			`{"content":[` + textItem("HEAD"+readRecords) + `]}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := New(limits(100))
			s.Head = 50
			got := string(fitted(s, []byte(test.result)))
			if normalize(got) != test.want {
				t.Errorf("got  %s\nwant %s", normalize(got), test.want)
			}
			checkHead(t, got, 50)
		})
	}
}

// TestNoteIsBounded: the names in a note are short, and its example can be used as it is.
func TestNoteIsBounded(t *testing.T) {
	key := strings.Repeat("k", 5000)
	for name, test := range map[string]struct{ row, want string }{
		"long names":             {`{"` + key + `":1,"id":2,"` + key + `2":3}`, `{"id":"r1","select":"id limit 20"}`},
		"only long names":        {`{"` + key + `":1}`, `{"id":"r1","select":"field, field where field = value"}`},
		"names that need quotes": {`{"a b":1,"c,d":2,"e":3,"f":4,"g":5}`, `{"id":"r1","select":"e, f limit 20"}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(limits(100))
			got := string(fitted(s, []byte(`{"structuredContent":[`+strings.Repeat(test.row+",", 99)+test.row+`]}`)))
			checkHead(t, got, 100)
			if !strings.Contains(strings.ReplaceAll(got, `\"`, `"`), test.want) {
				t.Errorf("no %s in %.3000s", test.want, got)
			}
		})
	}
}

// normalize replaces the head of a cut text and the figures in its note.
func normalize(result string) string {
	start, rest, ok := strings.Cut(result, `\n…[cut: `)
	if !ok {
		return result
	}
	start = start[:strings.LastIndex(start, `"text":"`)+len(`"text":"`)]
	figures, rest, _ := strings.Cut(rest, " bytes shown")
	next := strings.ReplaceAll(figures[strings.LastIndexByte(figures, ' ')+1:], ",", "")
	return start + "HEAD" + strings.Replace(strings.Replace(rest, `"offset\":`+next, `"offset\":NEXT`, 1), "offset "+next, "offset NEXT", 1)
}

// checkHead checks that the texts of a result, without notes, have at most limit tokens.
func checkHead(t *testing.T, result string, limit int) {
	t.Helper()
	var decoded struct{ Content []struct{ Text string } }
	if err := json.Unmarshal([]byte(result), &decoded); err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, item := range decoded.Content {
		head, note, _ := strings.Cut(item.Text, "\n…[cut: ")
		if strings.HasPrefix(head, "[cut: ") || strings.HasPrefix(head, "[structuredContent left out") || strings.HasPrefix(head, "kept as r") {
			head, note = "", head
		}
		if len(note) > 1200 {
			t.Errorf("a note of %d bytes: %s", len(note), note)
		}
		shown += tokens.Count(head)
	}
	if shown > limit {
		t.Errorf("%d tokens are shown, want %d at most", shown, limit)
	}
}

func TestFitKeeps(t *testing.T) {
	rows := `{"items":[` + strings.Repeat(`{"id":"abc"},`, 80) + `{"id":2}]}`
	for _, test := range []struct{ name, result, want string }{
		{"a long text", `{"content":[ ` + textItem(long+long) + ` ], "x": 1.0}`,
			`{"content":[ ` + textItem(long+long) + ` ,` + textItem(`kept as r1; use {"$r": "r1", "lines": "5-9"} (or match, replace) or select "/RE2/"`) + `], "x": 1.0}`},
		{"long structuredContent", `{"structuredContent":` + rows + `}`,
			`{"structuredContent":` + rows + `,"content":[` + textItem(`kept as r1; use {"$r": "r1/…"} or select`) + `]}`},
		{"a text that structuredContent repeats is kept, and structuredContent left out",
			`{"content":[` + textItem(long+long) + `,` + textItem(rows) + `],"structuredContent":` + rows + `}`,
			`{"content":[` + textItem(long+long) + `,` + textItem(rows) + `,` + textItem("[structuredContent left out: the same JSON as the text; kept as r1]") + `]}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := New(limits(1200))
			got := string(fitted(s, []byte(test.result)))
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if _, err := s.load(context.Background(), "me", "r1"); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestIsSmall(t *testing.T) {
	for _, test := range []struct {
		limit, bytes int
		want         bool
	}{
		{10_000, leastKept, true},
		{10_000, leastKept + 1, false},
		{100, 101, false},
		{0, 1 << 20, true}, // nothing is kept
	} {
		if got := New(limits(test.limit)).IsSmall(make([]byte, test.bytes)); got != test.want {
			t.Errorf("%d bytes, limit %d: %t", test.bytes, test.limit, got)
		}
	}
}

// TestKeptResultsKeepToTheLimit: the text that is added to a kept result never makes it
// exceed the limit.
func TestKeptResultsKeepToTheLimit(t *testing.T) {
	for words := 400; words <= 600; words++ {
		got := fitted(New(limits(500)), []byte(`{"content":[`+textItem(strings.Repeat("word ", words))+`]}`))
		checkTotal(t, string(got), 500)
		data := `["` + strings.Repeat("word ", words) + `"]`
		got = fitted(New(limits(500)), []byte(`{"content":[`+textItem(data)+`],"structuredContent":`+data+`}`))
		if checkTotal(t, string(got), 500); strings.Contains(string(got), `"structuredContent":`) {
			t.Errorf("%d words are shown twice", words)
		}
	}
}

// TestFitWithALongHead: if the head may be as long as the limit, a result that structuredContent
// repeats is still shown once, within the limit.
func TestFitWithALongHead(t *testing.T) {
	for _, limit := range []int{1, 10, 39, 41, 80, 400, 1000} {
		for words := 1; words <= limit+1; words += max(1, limit/200) {
			data := `["` + strings.Repeat("word ", words) + `"]`
			s := New(limits(limit))
			s.Head = 2 * limit
			got := string(fitted(s, []byte(`{"content":[`+textItem(data)+`],"structuredContent":`+data+`}`)))
			checkHead(t, got, limit)
			isDouble := strings.Contains(got, `"structuredContent":`)
			if count := tokens.Count(data); isDouble && 2*count > limit || !isDouble && count < limit/2 {
				t.Errorf("limit %d, %d tokens, shown twice: %t", limit, count, isDouble)
			}
			if isDouble {
				continue
			}
			if checkTotal(t, got, limit); strings.Count(got, `{"type":"text"`) > 1 && !strings.Contains(got, "[structuredContent left out") {
				t.Errorf("limit %d, %d words: %s", limit, words, got)
			}
		}
	}
}

// checkTotal checks the tokens of all texts, without the note about a cut.
func checkTotal(t *testing.T, result string, limit int) {
	t.Helper()
	var decoded struct{ Content []struct{ Text string } }
	if err := json.Unmarshal([]byte(result), &decoded); err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, item := range decoded.Content {
		text, _, _ := strings.Cut(item.Text, "[cut: ")
		text = strings.TrimSuffix(text, "\n…")
		sum += tokens.Count(text)
	}
	if sum > limit {
		t.Errorf("%d tokens, want %d at most", sum, limit)
	}
}

func TestFitLeavesAlone(t *testing.T) {
	image := strings.Repeat("QUJD", 1000)
	for name, result := range map[string]string{
		"a short result":           `{"content":[{"type":"text","text":"a"}]}`,
		"a text within the limit":  `{"content":[{"type":"text","text":` + quote(long[:1000]) + `}]}`,
		"images and audio":         `{"content":[{"type":"image","data":"` + image + `"},{"type":"audio","data":"` + image + `"}]}`,
		"an embedded blob":         `{"content":[{"type":"resource","resource":{"uri":"a:b","blob":"` + image + `"}},{"type":"resource"}]}`,
		"items of unknown kinds":   `{"content":[{"type":"new","text":` + quote(long) + `},` + quote(long) + `,{"type":"text","text":[]}]}`,
		"unknown members":          `{"content":[],"more":` + quote(long) + `}`,
		"content that is no array": `{"content":` + quote(long) + `,"structuredContent":` + records + `}`,
		"what is no object":        `[` + quote(long) + `]`,
		"what is no JSON":          `{"content":` + long,
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(fitted(New(limits(300)), []byte(result))); got != result {
				t.Errorf("got %s", got)
			}
		})
	}
	t.Run("everything without a limit", func(t *testing.T) {
		result := `{"content":[{"type":"text","text":` + quote(long) + `}]}`
		if got := string(fitted(New(limits(0)), []byte(result))); got != result {
			t.Errorf("got %s", got)
		}
	})
}

// FuzzFit builds a result around hostile texts. Members other than texts keep their
// bytes, and neither the limit nor the head is exceeded.
func FuzzFit(f *testing.F) {
	f.Add(long, records, `{"a":1}`, 100, 50)
	f.Add("价格"+long, "", `[1,2]`, 7, 100)
	f.Add("\x00\"\\\xff"+long, long+"🙂", `12345678901234567890`, 1, 1)
	f.Add(strings.Repeat("8675309 ", 300), strings.Repeat("0x1F600,", 200), `{}`, 900, 100)
	f.Fuzz(func(t *testing.T, first, second, value string, limit, head int) {
		if !json.Valid([]byte(value)) {
			t.Skip()
		}
		before, after := `{"n":12345678901234567890,"k":`+value+`,"content":[{"type":"text","text":`, `],"isError":true}`
		result := before + quote(first) + `},{"type":"image","data":"aGk="},{"type":"text","text":` + quote(second) + `,"_meta":{"é":1.50}}` + after
		s := New(limits(limit))
		s.Head = head
		got := string(fitted(s, []byte(result)))

		if !json.Valid([]byte(got)) || !utf8.ValidString(got) && utf8.ValidString(result) {
			t.Fatalf("not JSON in UTF-8: %q", got)
		}
		if !strings.HasPrefix(got, before) || !strings.HasSuffix(got, after) || !strings.Contains(got, `,{"type":"image","data":"aGk="}`) {
			t.Errorf("members changed: %q", got)
		}
		if limit <= 0 || strings.Contains(first+second, "[cut: ") || strings.Contains(first+second, "kept as r") {
			return
		}
		if strings.Contains(got, "[cut: ") {
			limit = min(limit, max(head, 0))
		}
		checkHead(t, got, limit)
	})
}

// TestMembersGivenTwice: a result with a duplicate member is cut as well.
func TestMembersGivenTwice(t *testing.T) {
	long := strings.Repeat("x ", 5000)
	raw := `{"content":[{"type":"text","text":"` + long + `"}],"structuredContent":{"a":"` + long + `"},"structuredContent":{"b":"` + long + `"},"content":[]}`
	got := fitted(New(limits(1000)), []byte(raw))
	if !json.Valid(got) || len(got) > 10_000 {
		t.Errorf("%d bytes: %.300s", len(got), got)
	}
}

func TestAppendText(t *testing.T) {
	const block = `{"type":"text","text":"a \"b\""}`
	for _, row := range []struct{ name, result, want string }{
		{"after the last block", `{"content":[{"type":"text","text":"x"}],"isError":false}`, `{"content":[{"type":"text","text":"x"},` + block + `],"isError":false}`},
		{"into an empty content", `{"content":[ ]}`, `{"content":[ ` + block + `]}`},
		{"without content", `{"structuredContent":{"n":1.50}}`, `{"structuredContent":{"n":1.50},"content":[` + block + `]}`},
		{"an empty result", `{}`, `{"content":[` + block + `]}`},
		{"other bytes stay", "{ \"a\" : 9007199254740993,\n\"content\" : [ {\"type\":\"hologram\"}\t] , \"_meta\":{ } }",
			"{ \"a\" : 9007199254740993,\n\"content\" : [ {\"type\":\"hologram\"}\t," + block + "] , \"_meta\":{ } }"},
		{"a nested content is another", `{"structuredContent":{"content":[]},"content":[]}`, `{"structuredContent":{"content":[]},"content":[` + block + `]}`},
		{"content is not an array", `{"content":"x"}`, `{"content":"x"}`},
		{"not an object", `[1]`, `[1]`},
		{"nothing", ``, ``},
	} {
		if got := string(AppendText([]byte(row.result), `a "b"`)); got != row.want {
			t.Errorf("%s:\n got %s\nwant %s", row.name, got, row.want)
		}
	}
}
