package validate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/schema"
)

func TestNotes(t *testing.T) {
	const names = `"path":{"type":"string"},"tail":{"type":"integer"},"at":{"type":"string","format":"date"}`
	for _, c := range []struct {
		name, schema, value string
		want                []string
	}{
		{"a format that fits", `{"properties":{` + names + `}}`, `{"at":"2024-02-29"}`, nil},
		{"a format that does not fit", `{"properties":{` + names + `}}`, `{"at":"tomorrow"}`, []string{`arguments.at: expected date (YYYY-MM-DD), got "tomorrow"; sent as it is`}},
		{"inside", `{"properties":{"items":{"items":{"properties":{` + names + `}}}}}`, `{"items":[{"at":"2024-01-01"},{"at":""}]}`,
			[]string{`arguments.items[1].at: expected date (YYYY-MM-DD), got ""; sent as it is`}},
		{"by reference", `{"properties":{"a":{"$ref":"#/$defs/d"}},"$defs":{"d":{"type":"string","format":"uuid"}}}`, `{"a":"7"}`,
			[]string{`arguments.a: expected uuid (8-4-4-4-12 hex digits), got "7"; sent as it is`}},
		{"or null", `{"properties":{"a":{"anyOf":[{"type":"string","format":"email"},{"type":"null"}]}}}`, `{"a":"nobody"}`,
			[]string{`arguments.a: expected email (name@example.com), got "nobody"; sent as it is`}},
		{"nullable", `{"properties":{"a":{"type":"string","format":"time","nullable":true}}}`, `{"a":"noon"}`,
			[]string{`arguments.a: expected time (hh:mm:ssZ), got "noon"; sent as it is`}},
		{"one of two formats", `{"properties":{"a":{"anyOf":[{"type":"string","format":"date"},{"type":"string","format":"date-time"}]}}}`, `{"a":"2024-01-01T00:00:00Z"}`, nil},
		{"none of two formats", `{"properties":{"a":{"anyOf":[{"type":"string","format":"date"},{"type":"string","format":"date-time"}]}}}`, `{"a":"now"}`,
			[]string{`arguments.a: expected date (YYYY-MM-DD), got "now"; sent as it is`}},
		{"a word instead of the format", `{"properties":{"a":{"anyOf":[{"const":"now"},{"type":"string","format":"date"}]}}}`, `{"a":"now"}`, nil},
		{"not the word", `{"properties":{"a":{"anyOf":[{"const":"now"},{"type":"string","format":"date"}]}}}`, `{"a":"noww"}`,
			[]string{`arguments.a: expected date (YYYY-MM-DD), got "noww"; sent as it is`}},
		{"in the form that a const names", `{"oneOf":[{"properties":{"kind":{"const":"a"},"at":{"type":"string"}}},{"properties":{"kind":{"const":"b"},"at":{"type":"string","format":"date"}}}]}`,
			`{"kind":"b","at":"x"}`, []string{`arguments.at: expected date (YYYY-MM-DD), got "x"; sent as it is`}},
		{"other formats", `{"properties":{"a":{"type":"string","format":"ipv4"},"b":{"type":"string","format":"regex"},"c":{"type":"string","format":7}}}`, `{"a":"x","b":"(","c":"x"}`, nil},
		{"not a string", `{"properties":{"a":{"format":"date"}}}`, `{"a":7}`, nil},
		{"a long string", `{"properties":{"a":{"type":"string","format":"uri"}}}`, `{"a":"` + strings.Repeat("x", maxFormatBytes+1) + `"}`, nil},

		{"a name that is close", `{"properties":{` + names + `}}`, `{"paht":"a"}`, []string{`arguments.paht: unknown property, sent as it is; did you mean "path"?`}},
		{"a name in another case", `{"properties":{"file_name":{}},"additionalProperties":{"type":"string"}}`, `{"fileName":"a"}`,
			[]string{`arguments.fileName: unknown property, sent as it is; did you mean "file_name"?`}},
		{"close to one that is given", `{"properties":{` + names + `}}`, `{"path":"a","paht":"a"}`, nil},
		{"close to none", `{"properties":{` + names + `}}`, `{"recursive":true}`, nil},
		{"close, deep", `{"properties":{"filter":{"properties":{"label":{}}}}}`, `{"filter":{"lable":1}}`,
			[]string{`arguments.filter.lable: unknown property, sent as it is; did you mean "label"?`}},
		{"declared elsewhere", `{"allOf":[{"properties":{"start":{}}},{"$ref":"#/$defs/more"}],"$defs":{"more":{"properties":{"starts":{}}}}}`, `{"starts":1}`, nil},
		{"declared by a pattern", `{"properties":{"label":{}},"patternProperties":{"^lab":{}}}`, `{"labels":1}`, nil},
		{"no declared properties", `{"type":"object"}`, `{"paht":"a"}`, nil},
		{"both", `{"properties":{` + names + `}}`, `{"at":"x","paht":"a"}`, []string{
			`arguments.at: expected date (YYYY-MM-DD), got "x"; sent as it is`, `arguments.paht: unknown property, sent as it is; did you mean "path"?`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newFor(c.schema)
			verdict := s.Check(context.Background(), []byte(c.value))
			if verdict.Problems != nil {
				t.Fatalf("problems: %v", verdict.Problems)
			}
			var got []string
			for _, n := range verdict.Notes {
				got = append(got, n.String())
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(c.want, "\n\t"))
			}
			if quick := s.Accepts([]byte(c.value)); quick && c.want != nil {
				t.Error("accepted at a glance")
			}
		})
	}
}

func TestFormats(t *testing.T) {
	for name, texts := range map[string]struct{ fit, misfit []string }{
		"date": {[]string{"2024-02-29", "0001-01-01"}, []string{"", "2023-02-29", "2024-1-1", "01/02/2024", "2024-01-01T00:00:00Z", "today"}},
		"date-time": {[]string{"2024-01-01T12:00:00Z", "2024-01-01T12:00:00.123456+05:30", "2024-01-01t12:00:00z", "2024-01-01 12:00:00Z", "2024-01-01T12:00:00", "2024-01-01T12:00Z"},
			[]string{"", "2024-01-01", "12:00", "1704110400", "2024-13-01T00:00:00Z", "2024-01-01T25:00:00Z"}},
		"time":  {[]string{"12:00:00Z", "12:00:00.5+01:00", "12:00:00", "12:00"}, []string{"", "noon", "25:00:00Z", "2024-01-01T12:00:00Z", "12"}},
		"uri":   {[]string{"https://example.com/a?b#c", "mailto:a@example.com", "file:///tmp/a", "urn:isbn:1"}, []string{"", "example.com", "/tmp/a", "http://[::1", "://x"}},
		"email": {[]string{"a@example.com", "a.b+c@localhost"}, []string{"", "a", "@example.com", "A <a@example.com>", "a@b, c@d"}},
		"uuid":  {[]string{"123e4567-e89b-12d3-a456-426614174000", "123E4567-E89B-12D3-A456-426614174000"}, []string{"", "123e4567e89b12d3a456426614174000", "123e4567-e89b-12d3-a456-42661417400", "x23e4567-e89b-12d3-a456-426614174000"}},
	} {
		for _, text := range texts.fit {
			if !formats[name].accepts(text) {
				t.Errorf("%q is not a %s", text, name)
			}
		}
		for _, text := range texts.misfit {
			if formats[name].accepts(text) {
				t.Errorf("%q is a %s", text, name)
			}
		}
	}
}

// TestNotesAreBounded has schemas and values that would take very long.
func TestNotesAreBounded(t *testing.T) {
	var many []string
	for i := range 5000 {
		many = append(many, fmt.Sprintf(`"name%04dx":1`, i))
	}
	wide := `{` + strings.Join(many, ",") + `}`
	for name, c := range map[string]struct{ schema, value string }{
		"forms of forms": {chain(`{"anyOf":[{"$ref":"#/$defs/%[2]d"},{"$ref":"#/$defs/%[2]d"}],"format":"date"}`, 40), `"x"`},
		"many names":     {`{"properties":` + strings.ReplaceAll(strings.ReplaceAll(wide, "x\"", "y\""), ":1", ":{}") + `}`, wide},
		"many elements":  {`{"items":{"allOf":[{"format":"date"},{"format":"uri"}]}}`, `[` + strings.Repeat(`"x",`, 100_000) + `"x"]`},
	} {
		t.Run(name, func(t *testing.T) {
			root, err := reduce(schema.New([]byte(c.schema)))
			if err != nil {
				t.Fatal(err)
			}
			e := engine{rule: root}
			if notes := e.notes(decoded(t, c.value)); len(notes) > 2*maxFindings {
				t.Errorf("%d notes", len(notes))
			}
			var n noter
			n.misfits(root, decoded(t, c.value), nil)
			n.strayNames([]*rule{root}, decoded(t, c.value), nil)
			if n.steps < maxNoteSteps {
				t.Errorf("only %d steps", n.steps)
			}
		})
	}
}
