package results

import (
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

func TestFit(t *testing.T) {
	text := func(s string) string { return `{"type":"text","text":` + quote(s) + `}` }
	const (
		readLong    = `[cut: 1,500 bytes, ~309 tokens in all; first 485 bytes shown. Shape: 1 line. Read on: exec("mcpx","read_result",{"id":"r1","offset":485}); also limit, grep (RE2)]`
		readRecords = `1,811 bytes, ~889 tokens in all; first 206 bytes shown. Shape: items[200]{id}. Read on: exec("mcpx","read_result",{"id":"r1","offset":206}); also limit, path (JSON Pointer, * = every), grep (RE2)]`
		readSecond  = `1,811 bytes, ~889 tokens in all; none shown. Shape: items[200]{id}. Read on: exec("mcpx","read_result",{"id":"r2"}); also limit, path (JSON Pointer, * = every), grep (RE2)]`
	)
	cutLong := long[:485] + "\n…" + readLong

	for _, test := range []struct{ name, result, want string }{
		{"everything around a text stays as it came",
			`{ "n":12345678901234567890, "content" : [ {"x":1.0,"type":"text","text":` + quote(long) + `,"_meta":{"a":1}} , {"type":"image","data":"aGk="} ],"isError":true,"_meta":{} }`,
			`{ "n":12345678901234567890, "content" : [ {"x":1.0,"type":"text","text":` + quote(cutLong) + `,"_meta":{"a":1}} , {"type":"image","data":"aGk="} ],"isError":true,"_meta":{} }`},
		{"an embedded resource",
			`{"content":[{"type":"resource","resource":{"uri":"file:///a","text":` + quote(long) + `}}]}`,
			`{"content":[{"type":"resource","resource":{"uri":"file:///a","text":` + quote(cutLong) + `}}]}`},
		{"one text after the budget is used up",
			`{"content":[` + text(long) + `,` + text(records) + `]}`,
			`{"content":[` + text(cutLong) + `,` + text("[cut: "+readSecond) + `]}`},
		{"many texts after the budget is used up",
			`{"content":[` + text(long) + `,` + text(long) + `,{"type":"audio","data":""},` + text(long) +
				`,{"type":"resource","resource":{"uri":"a:b","text":` + quote(long) + `}},` + text(long) + `],"a":1}`,
			`{"content":[` + text(cutLong) + `,` + text(`[cut: 4 texts, 6,003 bytes, ~1,239 tokens in all; none shown. Shape: 4 lines. Read on: exec("mcpx","read_result",{"id":"r2"}); also limit, grep (RE2)]`) +
				`,{"type":"audio","data":""},{"type":"resource","resource":{"uri":"a:b","text":"[cut: in r2]"}}],"a":1}`},
		{"what is cheaper than a note stays",
			`{"content":[` + text(long) + `,` + text("short") + `]}`,
			`{"content":[` + text(cutLong) + `,` + text("short") + `]}`},
		{"structuredContent alone",
			`{"structuredContent":` + records + `,"a":1}`,
			`{"content":[` + text(records[:206]+"\n…[cut: structuredContent, "+readRecords) + `],"a":1}`},
		{"structuredContent before content",
			`{"structuredContent":` + records + `,"content":[ ]}`,
			`{"content":[` + text(records[:206]+"\n…[cut: structuredContent, "+readRecords) + ` ]}`},
		{"structuredContent beside another text",
			`{"content":[` + text(long) + `],"structuredContent":` + records + `}`,
			`{"content":[` + text(cutLong) + `,` + text("[cut: structuredContent, "+readSecond) + `]}`},
		{"structuredContent that repeats the text",
			`{"content":[` + text(records) + `],"structuredContent": ` + strings.ReplaceAll(records, ",", " , ") + `}`,
			`{"content":[` + text(records[:206]+"\n…[cut: "+readRecords) + `,` + text("[structuredContent left out: the same JSON as r1]") + `]}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := string(New(1000).Fit("me", []byte(test.result), 100)); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestFitKeepsAWholeTextThatStructuredContentRepeats(t *testing.T) {
	result := `{"content":[{"type":"text","text":` + quote(records) + `}],"structuredContent":` + records + `}`
	want := `{"content":[{"type":"text","text":` + quote(records) + `},{"type":"text","text":"[structuredContent left out: the same JSON as the text above]"}]}`
	if got := string(New(0).Fit("me", []byte(result), tokens.Estimate(records))); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestFitLeavesAlone(t *testing.T) {
	image := strings.Repeat("QUJD", 1000)
	for name, result := range map[string]string{
		"a result within the budget": `{"content":[{"type":"text","text":"a"}]}`,
		"a text just over it":        `{"content":[{"type":"text","text":` + quote(long[:700]) + `}]}`,
		"images and audio":           `{"content":[{"type":"image","data":"` + image + `"},{"type":"audio","data":"` + image + `"}]}`,
		"an embedded blob":           `{"content":[{"type":"resource","resource":{"uri":"a:b","blob":"` + image + `"}},{"type":"resource"}]}`,
		"items of unknown kinds":     `{"content":[{"type":"new","text":` + quote(long) + `},` + quote(long) + `,{"type":"text","text":[]}]}`,
		"unknown members":            `{"content":[],"more":` + quote(long) + `}`,
		"content that is no array":   `{"content":` + quote(long) + `,"structuredContent":` + records + `}`,
		"what is no object":          `[` + quote(long) + `]`,
		"what is no JSON":            `{"content":` + long,
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(New(0).Fit("me", []byte(result), 100)); got != result {
				t.Errorf("got %s", got)
			}
		})
	}
	t.Run("everything without a budget", func(t *testing.T) {
		result := `{"content":[{"type":"text","text":` + quote(long) + `}]}`
		if got := string(New(0).Fit("me", []byte(result), 0)); got != result {
			t.Errorf("got %s", got)
		}
	})
}

// FuzzFit builds a result around hostile texts.
func FuzzFit(f *testing.F) {
	f.Add(long, records, `{"a":1}`, 100)
	f.Add("价格"+long, "", `[1,2]`, 7)
	f.Add("\x00\"\\\xff"+long, long+"🙂", `12345678901234567890`, 1)
	f.Fuzz(func(t *testing.T, first, second, value string, budget int) {
		if !json.Valid([]byte(value)) {
			t.Skip()
		}
		before, after := `{"n":12345678901234567890,"k":`+value+`,"content":[{"type":"text","text":`, `,"_meta":{"é":1.50}}],"isError":true}`
		result := before + quote(first) + `},{"type":"image","data":"aGk="},{"type":"text","text":` + quote(second) + after
		s := New(budget)
		got := string(s.Fit("me", []byte(result), budget))

		if !json.Valid([]byte(got)) || !utf8.ValidString(got) && utf8.ValidString(result) {
			t.Fatalf("not JSON in UTF-8: %q", got)
		}
		if !strings.HasPrefix(got, before) || !strings.HasSuffix(got, after) || !strings.Contains(got, `,{"type":"image","data":"aGk="},`) {
			t.Errorf("members changed: %q", got)
		}
		var decoded struct{ Content []struct{ Text string } }
		if err := json.Unmarshal([]byte(got), &decoded); err != nil {
			t.Fatal(err)
		}
		cost := 0
		for _, item := range decoded.Content {
			cost += tokens.Estimate(item.Text)
		}
		if budget > 0 && cost > budget+noteCost+2*400 {
			t.Errorf("%d tokens for a budget of %d", cost, budget)
		}
	})
}

// TestMembersGivenTwice: a result in which a member stands twice is cut as well.
func TestMembersGivenTwice(t *testing.T) {
	long := strings.Repeat("x ", 5000)
	raw := `{"content":[{"type":"text","text":"` + long + `"}],"structuredContent":{"a":"` + long + `"},"structuredContent":{"b":"` + long + `"},"content":[]}`
	got := New(1000).Fit("me", []byte(raw), 1000)
	if !json.Valid(got) {
		t.Errorf("not JSON: %.300s", got)
	}
}
