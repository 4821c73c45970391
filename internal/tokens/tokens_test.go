package tokens

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

func TestCount(t *testing.T) {
	for text, want := range map[string]int{
		"":                           0,
		"a":                          1,
		"hello world":                2,
		"createIssueComment":         3,
		"1234567":                    3,
		`{"type":"object"}`:          5,
		"日本語":                        2,
		"<|endoftext|>":              7, // text, not the special token
		"\xff":                       1,
		strings.Repeat("=", 64):      1,
		strings.Repeat("=", 64*1000): 1000,
	} {
		if got := Count(text); got != want {
			t.Errorf("Count(%.40q) = %d, want %d", text, got, want)
		}
		if got := CountBytes([]byte(text)); got != want {
			t.Errorf("CountBytes(%.40q) = %d, want %d", text, got, want)
		}
	}
}

func TestCountIsThatOfTheEncoding(t *testing.T) {
	for name, text := range samples {
		t.Run(name, func(t *testing.T) {
			check(t, text)
			for i := 0; i < min(len(text), 2000); i += 17 { // starts inside runes and words, too
				check(t, text[i:min(len(text), i+60)])
			}
		})
	}
}

// TestCountOfRandomTexts joins parts that make the splitter look ahead and back, and
// letters that make long pieces.
func TestCountOfRandomTexts(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	join := func(parts []string, n int) string {
		var b strings.Builder
		for range n {
			b.WriteString(parts[random.IntN(len(parts))])
		}
		return b.String()
	}
	for range 500 {
		check(t, join(hardParts, 1+random.IntN(12)))
	}
	for range 5 {
		alphabet := []string{"a", "e", "n", "\u0301", "Ж", "の", "ا", "AB", "=", " ", "\xff", "t"}
		random.Shuffle(len(alphabet), func(i, j int) { alphabet[i], alphabet[j] = alphabet[j], alphabet[i] })
		check(t, join(alphabet[:1+random.IntN(4)], 200+random.IntN(3000)))
	}
}

// check compares all functions of this package with the reference, and with each other.
func check(t *testing.T, text string) {
	t.Helper()
	want := reference(t, text)
	if got := Count(text); got != want {
		t.Fatalf("%d tokens, want %d: %.200q", got, want, text)
	}
	if want > len(text) {
		t.Fatalf("%d tokens in %d bytes: %.200q", want, len(text), text)
	}
	for _, budget := range []int{-1, 0, 1, want / 2, want - 1, want, want + 1} {
		checkBudget(t, text, budget)
	}
}

// checkBudget checks the laws of Exceeds and Cut.
func checkBudget(t *testing.T, text string, budget int) {
	t.Helper()
	count := Count(text)
	if got := Exceeds(text, budget); got != (count > budget) {
		t.Fatalf("Exceeds says %v for %d of %d tokens: %.200q", got, count, budget, text)
	}
	n := Cut(text, budget)
	switch {
	case count <= budget && n < len(text):
		t.Fatalf("Cut keeps %d of %d bytes, but %d tokens fit in %d: %.200q", n, len(text), count, budget, text)
	case Count(text[:n]) > max(budget, 0):
		t.Fatalf("Cut keeps %d tokens of %d: %.200q", Count(text[:n]), budget, text)
	case !isBorder(text, n):
		t.Fatalf("Cut at %d splits a rune: %.200q", n, text)
	case n < len(text) && n < budget-utf8.UTFMax:
		t.Fatalf("Cut keeps %d bytes, less than the budget of %d: %.200q", n, budget, text)
	}
}

// isBorder reports whether a range over text reaches n.
func isBorder(text string, n int) bool {
	for i := range text {
		if i >= n {
			return i == n
		}
	}
	return n == len(text)
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
		{"hello world", 1, "hello"},
		{"hello world", 2, "hello world"},
		{"价格表", 1, "价格"},
		{"🙂🙂", 1, "🙂"},
		{"we don't", 2, "we don't"},
		{"unconstitutionally", 2, "unconstitution"},
		{"a   b", 2, "a  "},
		{"\x80\x80\x80\x80\x80", 1, "\x80\x80\x80\x80"},
	} {
		if got := test.text[:Cut(test.text, test.budget)]; got != test.want {
			t.Errorf("Cut(%q, %d) keeps %q, want %q", test.text, test.budget, got, test.want)
		}
	}
}

// TestCutUsesTheBudget checks that Cut leaves at most a few tokens of a budget unused.
func TestCutUsesTheBudget(t *testing.T) {
	for name, text := range samples {
		count := Count(text)
		for budget := 0; budget < count; budget += 1 + count/50 {
			if n := Cut(text, budget); Count(text[:n]) < budget-3 {
				t.Fatalf("%s: Cut keeps %d tokens of %d: %q", name, Count(text[:n]), budget, text[:n])
			}
		}
	}
}

// TestLongTexts counts long pieces, and cuts them. If time grew with the square of their
// length, or if a budget did not limit it, the test would not end.
func TestLongTexts(t *testing.T) {
	const size = 16 << 20
	for name, part := range map[string]string{
		"letters": "a", "capitals": "A", "spaces": " ", "line breaks": "\n", "signs": "=", "digits": "7", "Chinese": "价", "marks": "\u0301", "invalid": "\xff",
		"words": "some words, ", "contractions": "A's", "continuation bytes": "\x80",
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Repeat(part, size/len(part))
			if !Exceeds(text, 2000) {
				t.Error("16 MB have at most 2,000 tokens")
			}
			if n := Cut(text, 2000); n < 2000-utf8.UTFMax || n > 2000*longestToken || Count(text[:n]) > 2000 {
				t.Errorf("Cut keeps %d bytes with %d tokens", n, Count(text[:n]))
			}
			text = text[:32<<10]
			if Count(text) < len(text)/longestToken {
				t.Errorf("%d tokens", Count(text))
			}
		})
	}
}

func TestCountingDoesNotAllocate(t *testing.T) {
	text := strings.Repeat(samples["tool list"]+samples["Chinese"], 10)
	raw := []byte(text)
	if n := testing.AllocsPerRun(10, func() { Count(text); CountBytes(raw); Exceeds(text, 100); Cut(text, 100) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestClassOfEveryRune(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		want := other
		switch {
		case r == '\n' || r == '\r':
			want = newline
		case unicode.IsSpace(r):
			want = space
		case unicode.In(r, unicode.Lu, unicode.Lt):
			want = upper
		case unicode.Is(unicode.Ll, r):
			want = lower
		case unicode.In(r, unicode.Lm, unicode.Lo):
			want = caseless
		case unicode.Is(unicode.M, r):
			want = mark
		case unicode.Is(unicode.N, r):
			want = number
		}
		if got, _ := classAt(string(r), 0); got != want {
			t.Fatalf("the class of %U is %d, want %d", r, got, want)
		}
	}
}

func FuzzCount(f *testing.F) {
	for _, text := range samples {
		f.Add(text, 20)
	}
	for i := range hardParts {
		f.Add(strings.Join(hardParts[i:], ""), 3)
	}
	f.Add("a\xe4\xb8", 1)
	f.Add(strings.Repeat("a", 3000), 100)
	f.Add("x"+strings.Repeat("\u0301A", 300), 7)
	f.Fuzz(func(t *testing.T, text string, budget int) {
		check(t, text)
		checkBudget(t, text, budget)
	})
}

// BenchmarkCount measures the library, too, and the ratio of both.
func BenchmarkCount(b *testing.B) {
	for _, name := range []string{"tool list", "prose", "digits", "code", "ids", "Chinese", "Russian", "emoji"} {
		text := strings.Repeat(samples[name], 1+100_000/len(samples[name]))
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				Count(text)
			}
			own := b.Elapsed() / time.Duration(b.N)
			start := time.Now()
			for range 3 {
				_, _ = library.Count(text)
			}
			b.ReportMetric(float64(time.Since(start)/3)/float64(own), "x-library")
		})
	}
}

func BenchmarkLongPiece(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	letters := make([]byte, 100_000)
	for i := range letters {
		letters[i] = 'a' + byte(random.IntN(26))
	}
	for name, text := range map[string]string{"one-letter": strings.Repeat("a", 100_000), "letters": string(letters), "invalid": strings.Repeat("\xff", 100_000)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				Count(text)
			}
		})
	}
}

func BenchmarkCut(b *testing.B) {
	text := strings.Repeat(samples["tool list"], 64<<20/len(samples["tool list"]))
	for b.Loop() {
		Cut(text, 2000)
	}
}

// hardParts are texts at whose borders the splitter has to decide.
var hardParts = []string{
	" ", "  ", "\t", "\n", "\r\n", "\n\n  ", "\v", "\u0085", "\u00a0", "\u2003", "\u3000", "\u2028", "\u200b",
	"a", "Z", "word", "WORD", "Word", "wORD", "ß", "É", "ǅ", "ʰ", "ª", "中", "の", "\u0301", "\u20dd", "\u0e31", "ก",
	"'", "'s", "'S", "'t", "'re", "'RE", "'Re", "'ve", "'m", "'ll", "'LL", "'lL", "'d", "'ſ", "ſ", "'l", "'r", "'x", "’s",
	"1", "12", "1234", "²", "٣", "Ⅷ", "½", "一",
	"/", "//", "/\n", ".", "...", "!", "\"", "{\"", "\":", "\\", "\\n", "_", "-", "--", "=", "<|", "|>", "<|endoftext|>", "€", "→",
	"🙂", "👩‍👩‍👧", "🇩🇪", "❤️", "\ufe0f", "\ufffd", "\ue000", "\u0000", "\u007f",
	"\xff", "\x80", "\xe4", "\xe4\xb8", "\xed\xa0\x80", "\xf0\x9f\x99", "\xc3",
}

// samples are texts of many kinds.
var samples = map[string]string{
	"digits":       strings.Repeat("3.14159265358979323846264338327950288, 2718281828 -459045, 0,5772; ", 4),
	"hex":          "9e107d9d372bb6826bd81d3542a419d6 0xDEADBEEF 7F45 4c46 #ff00aa 00:1A:2b:3c:4D:5e sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
	"base64":       "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4//8/w38GIAXDIBKE0DHxgljNBAAO9TXL0Y4OHwAAAABJRU5ErkJggg==",
	"uuids":        "3f1b7c9e-52aa-4d0e-9b1f-0c7d3e8a6b21,00000000-0000-0000-0000-000000000000,{6BA7B810-9DAD-11D1-80B4-00C04FD430C8}",
	"emoji":        "👩‍👩‍👧‍👦 family 👍🏽 ok 🇩🇪🇫🇷 ❤️‍🔥 1️⃣ 🏴󠁧󠁢󠁥󠁮󠁧󠁿 🙂🙂🙂 🧑‍💻",
	"white space":  "a  b\t\tc \n d\n\n\n   e   \r\n\r\n\tf\u00a0\u00a0g\u2003 h\u3000i \t \n  ",
	"contractions": "I'm you're WE'VE they'd it's IT'S don't DON'T we'll WE'LL y'all'd've rock'n'roll 'tis O'Brien l'été He'S'S 's 'S '' 'll",
	"control":      "\x00\x01\x02\x1b[31mred\x1b[0m\x7f\u0080\u009f\ufeff",
	"invalid":      "abc\xff\xfe def\xc3( \xe4\xb8 \xf0\x9f\x99 \xed\xa0\x80x\x80\x80\x80!!\xff/\n",
	"mixed case":   "XMLHttpRequest iPhone ABCdef camelCaseWord SCREAMING_SNAKE ʰABʰC ÀÉÎõü ǅabc straßeSTRASSE",
	"French":       "L'été dernier, nous n'avons pas trouvé d'hôtel à Besançon ; c'est pourquoi l'on dormit « à la belle étoile ».",
	"Polish":       "Zażółć gęślą jaźń. W Szczebrzeszynie chrząszcz brzmi w trzcinie i Szczebrzeszyn z tego słynie.",
	"Turkish":      "İstanbul'un ışıkları Boğaz'ın üzerinde parlıyordu; IĞDIR'da ise kar yağıyordu.",
	"Vietnamese":   "Hôm qua chúng tôi đi chợ từ sáng sớm và mua rất nhiều trái cây tươi.",
	"Greek":        "Το καλοκαίρι πήγαμε στη θάλασσα. ΟΔΥΣΣΕΥΣ ΚΑΙ ΠΗΝΕΛΟΠΗ.",
	"Arabic":       "ذهبنا أمس إلى السوق واشترينا الكثير من الفواكه الطازجة. ١٢٣٤٥ مَدْرَسَةٌ",
	"Hebrew":       "אתמול הלכנו לשוק וקנינו הרבה פירות טריים. שָׁלוֹם",
	"Hindi":        "कल हम बाज़ार गए और बहुत सारे ताज़े फल खरीदे। १२३४५",
	"Tamil":        "நேற்று நாங்கள் சந்தைக்குச் சென்று நிறைய பழங்கள் வாங்கினோம்.",
	"Thai":         "เมื่อวานเราไปตลาดและซื้อผลไม้สดมากมาย ราคา ๑๒๓ บาท",
	"Korean":       "어제 우리는 시장에 가서 신선한 과일을 많이 샀습니다. 한국어",
	"Georgian":     "გუშინ ბაზარში წავედით და ბევრი ხილი ვიყიდეთ. ᲗᲑᲘᲚᲘᲡᲘ",
	"decomposed":   "e\u0301te\u0301 A\u030angstro\u0308m \u0301x \u0301X \u0301\u0301 1\u0301 .\u0301 ..\u0301",
	"long word":    strings.Repeat("donaudampfschifffahrtsgesellschaft", 30),
	"long run":     strings.Repeat("a", 1000) + strings.Repeat("=", 700) + strings.Repeat(" ", 900) + strings.Repeat("ab", 500) + strings.Repeat("\n", 600),
	"minified":     `!function(e,t){"object"==typeof exports&&"undefined"!=typeof module?module.exports=t():(e=e||self).x=t()}(this,function(){"use strict";var e=1e3,t=0x1f;return{a:e<<2|t>>>1}});`,
	"markdown":     "# Title\n\n* **bold** and `code`\n* [link](https://example.com/a_b?c=d&e=%20f#g)\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n```go\nfunc main() {}\n```\n",
	"tool list": `{"tools":[{"name":"create_issue","title":"Create issue","description":"Opens a new issue in a repository. ` +
		`Returns its number and address; fails when the repository is archived.","inputSchema":{"type":"object","properties":` +
		`{"owner":{"type":"string","description":"Account that owns the repository"},"repo":{"type":"string"},"labels":{"type":"array",` +
		`"items":{"type":"string","maxLength":50},"default":[]},"priority":{"enum":["low","normal","high"],"type":"string"}},` +
		`"required":["owner","repo"],"additionalProperties":false,"$schema":"http://json-schema.org/draft-07/schema#"},` +
		`"annotations":{"readOnlyHint":false,"destructiveHint":false,"idempotentHint":false,"openWorldHint":true}}]}`,
	"indented schema": `{
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
}`,
	"records": `[{"id":418202,"sku":"TX-9931","price":1299.5,"stock":12,"active":true,"parent":null,"url":"https://shop.example/items/418202?ref=mail"},` +
		`{"id":418203,"sku":"TX-9932","price":89.95,"stock":0,"active":false,"parent":418202,"url":"https://shop.example/items/418203?ref=mail"},` +
		`{"id":418211,"sku":"ZZ-0004","price":7,"stock":3310,"active":true,"parent":null,"url":"https://shop.example/items/418211?ref=mail"}]`,
	"escaped JSON": `{"content":[{"type":"text","text":"{\n  \"name\": \"Berlin\",\n  \"country\": \"Germany\",\n  \"population\": 3755251,\n  ` +
		`\"districts\": [\n    \"Mitte\",\n    \"Pankow\",\n    \"Neukölln\"\n  ]\n}"}],"isError":false}`,
	"prose": "The harbour lay quiet when the first boats came in. Nobody had slept much, and the women on the quay counted the lamps " +
		"as they rounded the point, one after another, until the last of them was home. It would be years before anyone spoke of that " +
		"night again; when they did, they argued mostly about the weather.",
	"code": `func (s *server) handle(w http.ResponseWriter, r *http.Request) {
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
`,
	"log": `2025-03-02T11:04:17.219Z INFO [worker-3] request finished method=GET path=/v1/items status=200 duration=18ms
2025-03-02T11:04:17.731Z WARN [worker-1] retrying host=10.0.4.17:5432 attempt=2 error="connection refused"
`,
	"ids": `3f1b7c9e-52aa-4d0e-9b1f-0c7d3e8a6b21
9e107d9d372bb6826bd81d3542a419d6
q83vEjRWeJq83vASNFZ4mrzd7w0eXb5sT2kPzLmY7uHcWfRgNdVxAi4o=
`,
	"Chinese":  "今天下午三点,我们将在会议室讨论新产品的发布计划。请各部门提前准备好相关材料,并在会议开始前发送给项目经理。如有问题,请及时联系。",
	"Japanese": "昨日の夜、駅前の小さな食堂で友達と会いました。久しぶりだったので、終電の時間まで話し続けてしまいました。",
	"Russian":  "Вчера вечером мы долго гуляли по набережной и говорили о том, куда поехать летом. Решили, что лучше всего снять небольшой дом у озера.",
	"German":   "Der Zug hatte zwanzig Minuten Verspätung, und auf dem Bahnsteig wurde es langsam kälter. Niemand wusste, ob der Anschluss noch erreicht würde.",
}

// TestShorten: a shortened text keeps to its budget and shows that it was cut.
func TestShorten(t *testing.T) {
	for _, text := range []string{"", "word", strings.Repeat("word ", 100), strings.Repeat("价", 100), strings.Repeat("\n ", 100), strings.Repeat("a", 1000), strings.Repeat("1.", 300)} {
		for budget := 3; budget < 120; budget++ {
			got := Shorten(text, budget)
			if n := Count(got); n > budget {
				t.Errorf("%d tokens for a budget of %d: %q", n, budget, got)
			}
			if got != text && !strings.HasSuffix(got, "…") || got != text && Count(text) <= budget {
				t.Errorf("budget %d: %q of %q", budget, got, text)
			}
		}
	}
}
