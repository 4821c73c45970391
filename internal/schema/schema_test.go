package schema_test

import (
	"slices"
	"strings"
	"testing"

	"mcpx/internal/schema"
)

func TestResolve(t *testing.T) {
	const document = `{"$id":"https://example.com/root","$anchor":"top","title":"t","default":{"$anchor":"data"},"allOf":[{}],
		"$defs":{"a":{"$anchor":"x","type":"string"},"b":{"$dynamicAnchor":"y"},"c":{"$anchor":"z"},"d":{"$anchor":"z"},"e/f g":true,
			"odd":{"$anchor":"a b"},"inner":{"$id":"https://example.com/inner","$anchor":"far","$defs":{"g":{"$anchor":"farther"}}}}}`
	s := schema.New([]byte(document))
	for reference, want := range map[string]string{
		"#":                        document,
		"#top":                     document,
		"#/$defs/a":                `{"$anchor":"x","type":"string"}`,
		"#x":                       `{"$anchor":"x","type":"string"}`,
		"#%78":                     `{"$anchor":"x","type":"string"}`,
		"#y":                       `{"$dynamicAnchor":"y"}`,
		"#/$defs/e~1f%20g":         `true`,
		"#/allOf/0":                `{}`,
		"#z":                       "names no anchor, or one of several",
		"#none":                    "names no anchor, or one of several",
		"#data":                    "names no anchor, or one of several",
		"#a b":                     "names no anchor, or one of several",
		"#far":                     "names no anchor, or one of several",
		"#farther":                 "names no anchor, or one of several",
		"#/$defs/inner/$defs/g":    "leads through an inner $id",
		"#/$defs/none":             "leads nowhere",
		"#/title":                  "leads nowhere",
		"#/title/x":                "leads nowhere",
		"#/allOf/1":                "leads nowhere",
		"#/allOf/x":                "leads nowhere",
		"#/%zz":                    "is malformed",
		"https://example.com":      "leads elsewhere",
		"https://example.com/root": "leads elsewhere",
	} {
		found, err := s.Resolve(reference)
		got := string(found.Raw())
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s is %s, want %s", reference, got, want)
		}
	}
}

func TestDraft(t *testing.T) {
	for dialect, want := range map[string]schema.Draft{
		"http://json-schema.org/draft-04/schema#":      schema.Draft4,
		"http://json-schema.org/draft-06/schema":       schema.Draft6,
		"https://json-schema.org/draft-07/schema#":     schema.Draft7,
		"https://json-schema.org/draft/2019-09/schema": schema.Draft2019,
		"https://json-schema.org/draft/2020-12/schema": schema.Draft2020,
		"https://example.com/own":                      schema.Draft2020,
		"":                                             schema.Draft2020,
	} {
		if got := schema.New([]byte(`{"$schema":"` + dialect + `"}`)).Draft(); got != want {
			t.Errorf("%s is %d", dialect, got)
		}
	}
}

func TestReferences(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
		ok   bool
	}{
		{`{"$ref":"#/a","x":[{"$dynamicRef":"#b"}],"$ref2":"c","default":{"$ref":"d"},"enum":[{"$ref":1}]}`, []string{"#/a", "#b", "d"}, true},
		{`{"$id":"https://example.com/a","$ref":"#"}`, []string{"#"}, true},
		{`{"a":{"$id":"#old"},"b":{"$id":{}},"$ref":"#"}`, []string{"#"}, true},
		{`{"a":{"$id":"b"},"$ref":"#"}`, []string{"#"}, false},
		{`not JSON`, nil, true},
	} {
		if got, ok := schema.New([]byte(c.text)).References(); !slices.Equal(got, c.want) || ok != c.ok {
			t.Errorf("%s: %v, %v", c.text, got, ok)
		}
	}
}

func TestRoot(t *testing.T) {
	for text, want := range map[string]string{
		``: `true`, ` null `: `true`, ` {"a": 1} `: `{"a": 1}`, "\"\xff\xfe\"": `"�"`,
		`{"a"`: "not valid JSON", `"` + strings.Repeat("a", schema.MaxBytes) + `"`: "larger than 1 MB",
	} {
		root, err := schema.New([]byte(text)).Root()
		got := string(root.Raw())
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%.20q: %s", text, got)
		}
	}
}

func TestTypes(t *testing.T) {
	for text, want := range map[string][]string{
		`{"type":"string"}`:              {"string"},
		`{"type":["integer","null"]}`:    {"integer", "null"},
		`{"type":"int"}`:                 nil,
		`{"type":["string","int"]}`:      nil,
		`{"type":[{"type":"string"}]}`:   nil,
		`{"type":{"type":"string"}}`:     nil,
		`{"properties":{"type":"null"}}`: nil,
	} {
		root, _ := schema.New([]byte(text)).Root()
		if got := schema.Types(root.Get("type")); !slices.Equal(got, want) {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestItems(t *testing.T) {
	for _, c := range []struct{ text, first, others string }{
		{`{"items":{"a":1},"prefixItems":[1,2]}`, "1 2", `{"a":1}`},
		{`{"items":[1,2],"additionalItems":false,"prefixItems":[3]}`, "1 2", "false"},
		{`{"items":true}`, "", "true"},
		{`{"additionalItems":true}`, "", ""},
	} {
		root, _ := schema.New([]byte(c.text)).Root()
		first, others := schema.Items(root)
		var texts []string
		for _, n := range first {
			texts = append(texts, string(n.Raw()))
		}
		if got := strings.Join(texts, " "); got != c.first || string(others.Raw()) != c.others {
			t.Errorf("%s: %s and %s", c.text, got, others.Raw())
		}
	}
}

func TestStrings(t *testing.T) {
	root, _ := schema.New([]byte(`["a",1,"\u0062",null]`)).Root()
	if got := schema.Strings(root); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("%q", got)
	}
}

func TestAlternatives(t *testing.T) {
	for text, want := range map[string]int{
		`{"type":"string"}`: 1,
		`{"anyOf":[{"type":"string"},{"oneOf":[{},{}]}],"allOf":[{}]}`:                     6,
		`{"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"$ref":"#/$defs/a"},{"$ref":"#"}]}}}`: 4,
		`{"$dynamicRef":"#x","$defs":{"a":{"$dynamicAnchor":"x"}}}`:                        2,
		`{"$ref":"#/nowhere"}`:                              1,
		`{"anyOf":[` + strings.Repeat(`{},`, 5000) + `{}]}`: 5002,
	} {
		s := schema.New([]byte(text))
		root, err := s.Root()
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Alternatives(root); len(got) != want {
			t.Errorf("%.80s: %d schemas, want %d", text, len(got), want)
		}
	}
}
