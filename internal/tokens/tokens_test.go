package tokens

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer"
)

func TestEstimateIsNearTheEncoder(t *testing.T) {
	encoder, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	for name, sample := range samples {
		t.Run(name, func(t *testing.T) {
			want, err := encoder.Count(sample.text)
			if err != nil {
				t.Fatal(err)
			}
			got := Estimate(sample.text)
			if off := float64(got)/float64(want) - 1; math.Abs(off) > sample.within {
				t.Errorf("estimated %d of %d tokens: %+.1f %%, want within %.0f %%", got, want, 100*off, 100*sample.within)
			}
		})
	}
}

func TestEstimate(t *testing.T) {
	for text, want := range map[string]int{
		"":                     0,
		"a":                    1,
		"hello":                1,
		"hello world":          2,
		"createIssueComment":   3,
		"1234567":              3,
		"\n\n":                 1,
		"        indented":     2,
		"----------------":     3,
		"unconstitutionally":   2,
		"价格":                   2,
		"\x80\x80\x80":         0,
		"https://example.com/": 6,
	} {
		if got := Estimate(text); got != want {
			t.Errorf("Estimate(%q) = %d, want %d", text, got, want)
		}
		if got := EstimateBytes([]byte(text)); got != want {
			t.Errorf("EstimateBytes(%q) = %d, want %d", text, got, want)
		}
	}
}

func TestEstimateDoesNotAllocate(t *testing.T) {
	text := strings.Repeat("a few words, ", 1000)
	raw := []byte(text)
	if n := testing.AllocsPerRun(10, func() { Estimate(text); EstimateBytes(raw); Cut(text, 100) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestCut(t *testing.T) {
	for _, test := range []struct {
		text   string
		budget int
		want   string
	}{
		{"", 0, ""},
		{"hello world", -1, ""},
		{"hello world", 0, ""},
		{"hello world", 1, "hello "},
		{"hello world", 2, "hello world"},
		{"价格表", 1, "价"},
		{"🙂🙂", 1, "🙂"},
	} {
		if got := test.text[:Cut(test.text, test.budget)]; got != test.want {
			t.Errorf("Cut(%q, %d) keeps %q, want %q", test.text, test.budget, got, test.want)
		}
	}
}

func FuzzEstimate(f *testing.F) {
	for _, sample := range samples {
		f.Add(sample.text, 20)
	}
	f.Add("a\xe4\xb8", 1)
	f.Fuzz(func(t *testing.T, text string, budget int) {
		whole := Estimate(text)
		if whole > len(text) {
			t.Errorf("%d tokens in %d bytes", whole, len(text))
		}
		n := Cut(text, budget)
		if n > 0 && n < len(text) && !utf8.RuneStart(text[n]) {
			t.Errorf("Cut at %d splits a rune of %q", n, text)
		}
		if got := Estimate(text[:n]); got > max(budget, 0) || got > whole {
			t.Errorf("the %d bytes cut to a budget of %d cost %d of %d", n, budget, got, whole)
		}
		if n < len(text) && Estimate(text[:n+1]) <= budget {
			t.Errorf("Cut at %d leaves room in a budget of %d", n, budget)
		}
	})
}

func BenchmarkEstimate(b *testing.B) {
	text := strings.Repeat(samples["tool list"].text, 100)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Estimate(text)
	}
}

var samples = map[string]struct {
	text   string
	within float64
}{
	"tool list": {`{"tools":[{"name":"create_issue","title":"Create issue","description":"Opens a new issue in a repository. ` +
		`Returns its number and address; fails when the repository is archived.","inputSchema":{"type":"object","properties":` +
		`{"owner":{"type":"string","description":"Account that owns the repository"},"repo":{"type":"string"},"labels":{"type":"array",` +
		`"items":{"type":"string","maxLength":50},"default":[]},"priority":{"enum":["low","normal","high"],"type":"string"}},` +
		`"required":["owner","repo"],"additionalProperties":false,"$schema":"http://json-schema.org/draft-07/schema#"},` +
		`"annotations":{"readOnlyHint":false,"destructiveHint":false,"idempotentHint":false,"openWorldHint":true}}]}`, 0.15},
	"indented schema": {`{
  "type": "object",
  "properties": {
    "startDate": {
      "type": "string",
      "format": "date-time",
      "description": "First day of the period, e.g. 2024-05-01T00:00:00Z"
    },
    "pageSize": {
      "type": "integer",
      "minimum": 1,
      "maximum": 1000
    }
  },
  "required": ["startDate"]
}`, 0.15},
	"listing": {`issues: 3 tools
create_issue(owner: string, repo: string, title: string, body?: string, labels?: string[], draft?: boolean = false): Open an issue
list_issues(owner: string, repo: string, state?: "open" | "closed" | "all" = "open", page?: integer /*>=1*/): List the issues of a repository
add_issue_comment(owner: string, repo: string, issue_number: integer, body: string): Add a comment to an issue`, 0.1},
	"coordinates": {`[[13.404953911,52.520006523],[-0.127758301,51.507350944],[2.352221925,48.856614118],[-74.005972814,40.712775361]]`, 0.1},
	"records": {`[{"id":418202,"sku":"TX-9931","price":1299.5,"stock":12,"active":true,"parent":null,"url":"https://shop.example/items/418202?ref=mail"},` +
		`{"id":418203,"sku":"TX-9932","price":89.95,"stock":0,"active":false,"parent":418202,"url":"https://shop.example/items/418203?ref=mail"},` +
		`{"id":418211,"sku":"ZZ-0004","price":7,"stock":3310,"active":true,"parent":null,"url":"https://shop.example/items/418211?ref=mail"}]`, 0.15},
	"escaped JSON": {`{"content":[{"type":"text","text":"{\n  \"name\": \"Berlin\",\n  \"country\": \"Germany\",\n  \"population\": 3755251,\n  ` +
		`\"districts\": [\n    \"Mitte\",\n    \"Pankow\",\n    \"Neukölln\"\n  ]\n}"}],"isError":false}`, 0.15},
	"prose": {"The harbour lay quiet when the first boats came in. Nobody had slept much, and the women on the quay counted the lamps " +
		"as they rounded the point, one after another, until the last of them was home. It would be years before anyone spoke of that " +
		"night again; when they did, they argued mostly about the weather.", 0.15},
	"code": {`func (s *server) handle(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "use POST", http.StatusMethodNotAllowed)
		return
	}
	for i := 0; i < len(s.routes); i++ {
		if s.routes[i].match(r.URL.Path) {
			s.routes[i].handler.ServeHTTP(w, r)
			return
		}
	}
	http.NotFound(w, r)
}
`, 0.2},
	"log": {`2025-03-02T11:04:17.219Z INFO [worker-3] request finished method=GET path=/v1/items status=200 duration=18ms
2025-03-02T11:04:17.731Z WARN [worker-1] retrying host=10.0.4.17:5432 attempt=2 error="connection refused"
`, 0.2},
	"ids": {`3f1b7c9e-52aa-4d0e-9b1f-0c7d3e8a6b21
9e107d9d372bb6826bd81d3542a419d6
q83vEjRWeJq83vASNFZ4mrzd7w0eXb5sT2kPzLmY7uHcWfRgNdVxAi4o=
`, 0.25},
	"Chinese":  {"今天下午三点,我们将在会议室讨论新产品的发布计划。请各部门提前准备好相关材料,并在会议开始前发送给项目经理。如有问题,请及时联系。", 0.25},
	"Japanese": {"昨日の夜、駅前の小さな食堂で友達と会いました。久しぶりだったので、終電の時間まで話し続けてしまいました。", 0.25},
	"Russian":  {"Вчера вечером мы долго гуляли по набережной и говорили о том, куда поехать летом. Решили, что лучше всего снять небольшой дом у озера.", 0.25},
	"German":   {"Der Zug hatte zwanzig Minuten Verspätung, und auf dem Bahnsteig wurde es langsam kälter. Niemand wusste, ob der Anschluss noch erreicht würde.", 0.25},
}
