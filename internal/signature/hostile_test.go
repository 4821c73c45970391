package signature_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"mcpx/internal/schema"
	"mcpx/internal/signature"
)

func TestOfHostile(t *testing.T) {
	runCases(t, []signatureCase{
		{"not JSON", `{"type":`, `…`},
		{"two values", `{} {}`, `…`},
		{"white space only", ` `, `…`},
		{"other values", `[{"type":"string"}]`, ``},
		{"line breaks in names", params(`"a\nb":{},"c\u2028d\u0085":{}`), `"a\u000ab"?: unknown, "c\u2028d\u0085"?: unknown`},
		{"quotes and backslashes in names", params(`"a\"b\\":{}`), `"a\"b\\"?: unknown`},
		{"bidi and zero width", params(`"a\u202eb":{"enum":["\u200b\ufeff\u2066"]},"x":{"type":"string","pattern":"\u200dx"}`),
			`"a\u202eb"?: "\u200b\ufeff\u2066", x?: string /*\u200dx*/`},
		{"beyond the basic plane", params(`"a":{"enum":["😀","\udb40\udc41"]}`), `a?: "😀" | "\udb40\udc41"`},
		{"invalid UTF-8", params("\"a\xff\xfeb\":{}"), `"a�b"?: unknown`},
		{"lone surrogates", params(`"\ud800":{}`), `"�"?: unknown`},
		{"an injected parameter", params(`"a?: string, b":{}`), `"a?: string, b"?: unknown`},
		{"keywords of wrong types",
			`{"properties":{"a":{"type":{},"enum":{},"anyOf":{},"allOf":"x","items":5,"properties":[],"required":{},"$ref":[],"default":null}},"required":[1,{},null]}`,
			`a?: object`},
		{"schemas of wrong types", params(`"a":5,"b":"x","c":null,"d":[]`), `a?: unknown, b?: unknown, c?: unknown, d?: unknown`},
		{"long names", params(`"` + strings.Repeat("x", 129) + `":{},"b":{},"` + strings.Repeat(`\u0001`, 30) + `":{}`), `b?: unknown, …`},
		{"long names in objects", params(`"o":{"properties":{"` + strings.Repeat("x", 129) + `":{},"b":{}},"additionalProperties":{"type":"string"}}`),
			`o?: {b?: unknown, …}`},
		{"long literals", params(`"a":{"enum":["` + strings.Repeat("x", 99) + `","y"]},"b":{"const":` + strings.Repeat("9", 99) + `}`),
			`a?: string | "y", b?: number`},
		{"an enum of many", params(`"a":{"enum":[` + numbers(17) + `]},"b":{"enum":[` + numbers(16) + `]},"c":{"enum":[null,` + numbers(500) + `]}`),
			`a?: 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 | 11 | 12 | …, ` +
				`b?: 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 | 11 | 12 | 13 | 14 | 15 | 16, ` +
				`c?: 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 | 11 | 12 | … | null`},
		{"an enum with one long array", params(`"a":{"const":[` + numbers(17) + `]}`), `a?: unknown[]`},
		{"a tuple of many", params(`"a":{"prefixItems":[` + strings.Repeat("true,", 16) + `true],"items":false,"minItems":20}`),
			`a?: unknown[] /*>=20 items*/`},
		{"a tuple of many types", params(`"a":{"prefixItems":[` + repeat(20, `{"const":%d}`) + `],"items":false}`),
			`a?: (0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 | 11 | …)[]`},
		{"deep objects", params(`"a":` + strings.Repeat(`{"properties":{"b":`, 9) + `{}` + strings.Repeat(`}}`, 9)),
			`a?: {b?: {b?: {b?: {b?: {b?: {…}}}}}}`},
		{"deep arrays", params(`"a":` + strings.Repeat(`{"items":`, 500) + `{}` + strings.Repeat(`}`, 500)),
			`a?: unknown` + strings.Repeat("[]", 64)},
	})
}

func numbers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d,", i+1)
	}
	return strings.TrimSuffix(b.String(), ",")
}

// repeat joins n properties made from a format with their number.
func repeat(n int, format string) string {
	all := make([]string, n)
	for i := range n {
		all[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(all, ",")
}

func TestOfTooMuch(t *testing.T) {
	flat := params(repeat(50, `"p%02d":{"type":"string"}`))
	const small = `{"properties":{"at":{"type":"string"}}}`
	for _, c := range []struct {
		name, schema string
		has          []string
	}{
		{"notes go first", params(repeat(50, `"p%02d":{"type":"string","format":"date-time"}`)),
			[]string{"p00?: string /*date-time*/, ", ", p49?: string"}},
		{"then what is large and deep", params(`"small":` + small + `,"large":` + params(`"in":`+flat+`,"small":`+small) + `,"more":` + flat),
			[]string{"small?: {at?: string}, large?: {in?: {…}, small?: {at?: string}}, more?: {p00?: string, p01?: string, "}},
		{"then optional properties", params(`"a":{"properties":{` + repeat(99, `"p%02d":{"type":"string"}`) + `},"required":["p98"]}`),
			[]string{"a?: {p00?: string, p01?: string, ", ", p98: string, …}"}},
		{"then types", params(`"a":{"properties":{` + repeat(99, `"p%02d":{"type":"string"}`) + `},"required":[` + repeat(99, `"p%02d"`) + `]}`),
			[]string{"a?: {…}"}},
		{"required parameters stay",
			`{"properties":{` + repeat(400, `"a%d":{"type":"string"}`) + `,"last":{"type":"string"}},"required":["last"]}`,
			[]string{"last: string, a0?: string, a1?: string"}},
		{"more required ones than fit", `{"properties":{` + repeat(400, `"a%d":{"type":"string"}`) + `},"required":[` + repeat(400, `"a%d"`) + `]}`,
			[]string{"a0: unknown, a1: unknown", ", …"}},
		{"many definitions", `{"properties":{` + repeat(100, `"a%[1]d":{"$ref":"#/$defs/D%[1]d"},"b%[1]d":{"$ref":"#/$defs/D%[1]d"}`) + `},"$defs":{` + repeat(100, `"D%d":{"properties":{"x":{}}}`) + `}}`,
			[]string{"a0?: {…}, b0?: {…}, ", ", …"}},
		{"a huge union", params(`"a":{"anyOf":[` + repeat(16, `{"properties":{"`+strings.Repeat("x", 100)+`%d":{}}}`) + `]}`), []string{"a?: {…}"}},
		{"too large", params(`"a":{"description":"` + strings.Repeat("x", 1<<20) + `"}`), []string{"…"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := signature.Of(schema.New([]byte(c.schema)))
			checkLaws(t, c.schema)
			for _, part := range c.has {
				if !strings.Contains(got, part) {
					t.Errorf("%q is missing from %s", part, got)
				}
			}
		})
	}
}

// What grows faster than its schema would not come to an end here.
func TestOfLarge(t *testing.T) {
	const n = 10000
	for name, schema := range map[string]string{
		"parameters":     params(repeat(n, `"a%d":{"type":"string"}`)),
		"required":       `{"required":[` + repeat(n, `"a%d"`) + `]}`,
		"definitions":    `{"properties":{` + repeat(n, `"a%[1]d":{"$ref":"#/$defs/D%[1]d"}`) + `},"$defs":{` + repeat(n, `"D%[1]d":{"$ref":"#/$defs/D0"}`) + `}}`,
		"a chain":        `{"properties":{"a":{"$ref":"#/$defs/D1"}},"$defs":{"D0":{}` + chain(n) + `}}`,
		"doubling":       `{"properties":{"a":{"$ref":"#/$defs/D1"}},"$defs":{"D0":{"type":"string"}` + doubling(60) + `}}`,
		"anyOf":          params(`"a":{"anyOf":[` + repeat(n, `{"properties":{"a%d":{}}}`) + `]}`),
		"allOf":          `{"allOf":[` + repeat(n, `{"properties":{"a%d":{}}}`) + `]}`,
		"nested objects": strings.Repeat(`{"properties":{"a":`, 3000) + `{}` + strings.Repeat(`}}`, 3000),
		"nested unions":  strings.Repeat(`{"anyOf":[{"type":"string"},{"items":`, 3000) + `{}` + strings.Repeat(`}]}`, 3000),
		"nested allOf":   strings.Repeat(`{"allOf":[{"enum":[1,2,3]},`, 3000) + `{}` + strings.Repeat(`]}`, 3000),
		"brackets":       strings.Repeat(`[`, 9000) + strings.Repeat(`]`, 9000),
	} {
		t.Run(name, func(t *testing.T) { checkLaws(t, schema) })
	}
}

func chain(n int) string {
	var b strings.Builder
	for i := 1; i < n; i++ {
		fmt.Fprintf(&b, `,"D%d":{"properties":{"x":{"$ref":"#/$defs/D%d"}}}`, i, i+1)
	}
	return b.String()
}

func doubling(n int) string {
	var b strings.Builder
	for i := 1; i < n; i++ {
		fmt.Fprintf(&b, `,"D%d":{"allOf":[{"$ref":"#/$defs/D%d"},{"$ref":"#/$defs/D%d"}]}`, i, i+1, i+1)
	}
	return b.String()
}

// TestOfShared has definitions that contain others several times, and these others again, and so on: written out, they
// would be endless.
func TestOfShared(t *testing.T) {
	const next = `{"$ref":"#/$defs/%[2]s"}`
	for _, form := range []struct{ name, whole, part string }{
		{"objects", `{"type":"object","properties":{%s}}`, `"p%[1]d":` + next},
		{"arrays", `{"anyOf":[%s]}`, `{"type":"array","maxItems":%[1]d,"items":` + next + `}`},
		{"arrays of objects", `{"type":"object","properties":{%s}}`, `"p%[1]d":{"type":"array","items":` + next + `}`},
	} {
		for _, size := range []struct{ levels, width int }{{60, 2}, {9, 40}} {
			definitions := shared("D", size.levels, size.width, form.whole, form.part) + "," + shared("E", size.levels, size.width, form.whole, form.part)
			for _, use := range []string{`{"$ref":"#/$defs/D1"}`, `{"anyOf":[{"$ref":"#/$defs/D1"},{"$ref":"#/$defs/E1"}]}`, `{"allOf":[{"$ref":"#/$defs/D1"},{"$ref":"#/$defs/E1"}]}`} {
				t.Run(fmt.Sprintf("%s, %d, %s", form.name, size.width, use[2:7]), func(t *testing.T) {
					checkLaws(t, `{"type":"object","properties":{"a":`+use+`,"x":`+use+`},"$defs":{`+definitions+`}}`)
				})
			}
		}
	}
}

// TestOfOptional: properties that are left out count as work too, wherever they are used. A hundred times as
// many uses of a large object may take at most twenty times as long.
func TestOfOptional(t *testing.T) {
	took := func(uses int) time.Duration {
		a := `{"type":"object","properties":{` + repeat(20_000, `"p%d":{}`) + `}}`
		b := `{"type":"object","properties":{` + repeat(uses, `"q%d":{"$ref":"#/$defs/A"}`) + `},"required":[` + repeat(uses, `"q%d"`) + `]}`
		text := `{"properties":{` + repeat(10, `"x%d":{"$ref":"#/$defs/B"}`) + `},"$defs":{"A":` + a + `,"B":` + b + `}}`
		best := time.Hour
		for range 3 { // the machine may be busy
			begin := time.Now()
			signature.Of(schema.New([]byte(text)))
			best = min(best, time.Since(begin))
		}
		return best
	}
	if few, many := took(1), took(100); many > 20*few {
		t.Errorf("a hundred times as many uses took %s instead of %s", many, few)
	}
}

// shared makes the definitions of a name, each of which has the next one width times.
func shared(name string, levels, width int, whole, part string) string {
	all := make([]string, levels+1)
	for i := range levels {
		parts := make([]string, width)
		for j := range parts {
			parts[j] = fmt.Sprintf(part, j, name+strconv.Itoa(i+2))
		}
		all[i] = fmt.Sprintf(`"%s%d":`, name, i+1) + fmt.Sprintf(whole, strings.Join(parts, ","))
	}
	all[levels] = fmt.Sprintf(`"%s%d":{"type":"string"}`, name, levels+1)
	return strings.Join(all, ",")
}

// checkLaws holds for every schema, and for what is none.
func checkLaws(t *testing.T, text string) {
	t.Helper()
	for _, f := range []struct {
		sign func(*schema.Schema) string
		most int
	}{
		{signature.Of, 2400}, {signature.Typed, 1200}, {signature.Required, 2400},
		{func(s *schema.Schema) string { return signature.Returns(s, 100) }, 100},
		{func(s *schema.Schema) string { return signature.Some(s, []string{"a", "x"}) }, 2400},
	} {
		got := f.sign(schema.New([]byte(text)))
		if len(got) > f.most {
			t.Errorf("%d bytes: %s", len(got), got)
		}
		if !utf8.ValidString(got) {
			t.Errorf("invalid UTF-8: %q", got)
		}
		if i := strings.IndexFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("a character that does not show: %q", got[i:])
		}
		if again := f.sign(schema.New([]byte(text))); again != got {
			t.Errorf("not the same again:\n%s\n%s", got, again)
		}
	}
}

func FuzzOf(f *testing.F) {
	for _, seed := range []string{
		`{"type":"object","properties":{"a":{"type":"string","enum":["x"]}},"required":["a"]}`,
		`{"properties":{"a":{"$ref":"#/$defs/A"},"b":{"$ref":"#"}},"$defs":{"A":{"allOf":[{"$ref":"#/$defs/A"},{"items":[{}]}]}}}`,
		`{"anyOf":[{"required":["a"]},{"additionalProperties":{"type":["null","array"],"prefixItems":[true],"minItems":1}}]}`,
		"{\"properties\":{\"\u202e\xff\":{\"pattern\":\"*/\\n\",\"type\":\"string\",\"default\":\"\u2028\"}}}",
	} {
		f.Add(seed)
	}
	f.Fuzz(checkLaws)
}

func BenchmarkOf(b *testing.B) {
	text := []byte(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{` +
		`"owner":{"type":"string","description":"The owner of the repository, which is a user or an organization."},` +
		`"repo":{"type":"string","description":"The name of the repository, without its owner."},` +
		`"state":{"type":"string","enum":["open","closed","all"],"default":"open","description":"Which issues to list."},` +
		`"labels":{"type":"array","items":{"type":"string"},"description":"Only issues that have all of these labels."},` +
		`"since":{"type":"string","format":"date-time","description":"Only issues that were updated at this time or later."},` +
		`"page":{"type":"integer","minimum":1,"description":"The page of the results to fetch.\nThe first one is 1."},` +
		`"assignee":{"anyOf":[{"type":"string"},{"type":"null"}],"default":null,"description":"A user name, or \"*\" for any."},` +
		`"sort":{"type":"object","properties":{"by":{"enum":["created","updated"]},"descending":{"type":"boolean"}},"required":["by"]}` +
		`},"required":["owner","repo"],"additionalProperties":false}`)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		signature.Of(schema.New(text))
	}
}
