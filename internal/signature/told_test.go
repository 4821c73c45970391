package signature

import (
	"testing"

	"mcpx/internal/schema"
)

// TestTold: the values and formats that only a description names are in the comment, by strict
// forms only.
func TestTold(t *testing.T) {
	for description, want := range map[string]string{
		"One of: a, b, c":                "a | b | c",
		"The method (one of GET, POST).": "GET | POST",
		"The state. One of the following values: open, closed or all. Default: all": "open | closed | all",
		"Can be: `GET` or `POST` and defaults to `POST`.":                           "GET | POST",
		"Can be: `inbound`, `outbound`, or `both`. The default is `both`.":          "inbound | outbound | both",
		"Must be 'asc' or 'desc'":                                                   "asc | desc",
		`Either "table" or "dot".`:                                                  "table | dot",
		"Allowed values: v1.0 | v2.0":                                               "v1.0 | v2.0",
		"Valid values are 'a' / 'b'":                                                "a | b",
		"New state (one of: acknowledged|resolved)":                                 "acknowledged | resolved",
		"When it starts, in ISO 8601 format":                                        "ISO 8601",
		"Start date (YYYY-MM-DD)":                                                   "YYYY-MM-DD",
		"The URL-encoded path of the project":                                       "URL-encoded",

		"":                             "",
		"Can be 'me' or a user ID":     "",
		"Can be 'a', 'b' or a user ID": "",
		"Must be 'a', 'b', etc.":       "",
		"One of a, b, …":               "",
		"Must be an absolute path.":    "",
		"Either this or sourcePath, but not both.":                           "",
		"One of insert_before, insert_after, or section should be specified": "",
		"one of the connect tools, or \"preconfigured\" to use it":           "",
		"Like 'a' or 'b'":     "",
		"Can be 'only'":       "",
		"One of them.":        "",
		"One of: x*/, b":      "",
		"YYYY-MM-DDTHH:MM:SS": "",
		"Must be 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' or 'b'": "",
	} {
		if got := toldBy(description); got != want {
			t.Errorf("%q: got %q, want %q", description, got, want)
		}
	}
	for property, want := range map[string]string{
		`"a":{"type":"string","description":"One of: x, y"}`:                             "a?: string /*x | y*/",
		`"a":{"anyOf":[{"type":"string"},{"type":"null"}],"description":"One of: x, y"}`: "a?: string /*x | y*/ | null",
		`"a":{"type":"string","format":"date","description":"One of: x, y"}`:             "a?: string /*date*/",
		`"a":{"type":"string","enum":["x"],"description":"One of: x, y"}`:                `a?: "x"`,
		`"a":{"type":["string","integer"],"description":"One of: x, y"}`:                 "a?: string | integer",
		`"a":{"type":"array","items":{"type":"string"},"description":"One of: x, y"}`:    "a?: string[]",
	} {
		if got := Of(schema.New([]byte(`{"type":"object","properties":{` + property + `}}`))); got != want {
			t.Errorf("%s: got %s, want %s", property, got, want)
		}
	}
}
