package executor

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"mcpx/config"
	"mcpx/executor/validate"
	"mcpx/internal/rawjson"
	"mcpx/registry/lists"
)

// The tools that what is sent is tried on.
var repairTools = map[string]string{
	"read":   `{"type":"object","properties":{"path":{"type":"string"},"tail":{"type":"integer"}},"required":["path"]}`,
	"strict": `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"],"additionalProperties":false}`,
	"free":   `{"type":"object"}`,
	"none":   `{"type":"object","properties":{}}`,
	"unique": `{"type":"object","additionalProperties":{"uniqueItems":true},"not":{"maxProperties":1,"required":["\ufffd"]}}`,
	"opt":    `{"type":"object","properties":{"path":{"type":"string"}}}`,
	// Their parameters have the names of envelopes.
	"run":    `{"type":"object","properties":{"arguments":{"type":"object"}},"required":["arguments"]}`,
	"args":   `{"type":"object","properties":{"args":{"type":"array"},"input":{"type":"string"},"parameters":{},"params":{}}}`,
	"proxy":  `{"type":"object","properties":{"server_name":{"type":"string"},"tool_name":{"type":"string"},"arguments":{"type":"object"}},"required":["server_name","tool_name"]}`,
	"server": `{"type":"object","properties":{"server_name":{"type":"string"}},"required":["server_name"]}`,
	"dotted": `{"type":"object","properties":{"arguments.path":{"type":"string"}},"required":["arguments.path"]}`,
	"deep":   `{"type":"object","properties":{"filter":{"type":"object","properties":{"tags":{"type":"array","items":{"type":"string"}},"by":{"type":"array","items":{"type":"object","properties":{"n":{"type":"integer"}}}}}},"ids":{"type":"array","items":{"type":"integer"}},"text":{"type":"string"},"any":{},"both":{"type":["string","object"]},"n":{"type":"integer"}}}`,
}

const (
	needPath   = "error: arguments.path: required\n"
	signRead   = "read(path: string, tail?: integer)"
	partPath   = "read(path: string, …)"
	signStrict = "strict(path: string)"
	refused    = "an error, whatever it says"
)

func TestRepair(t *testing.T) {
	var definitions []string
	for name, schema := range repairTools {
		definitions = append(definitions, `{"name":"`+name+`","inputSchema":`+schema+`}`)
	}
	b := start(t, nil, newUpstream(t, "s", toolsFile(t, definitions...)...))
	for _, row := range []struct {
		name string
		exec string // the arguments of exec; @ stands for "server_name":"s"
		want string // what the upstream got, or the error
	}{
		{"right", `{@,"tool_name":"read","arguments":{"path":"a"}}`, `read {"path":"a"}`},
		{"right, byte for byte", `{@,"tool_name":"read","arguments": { "path" : "\u0061" , "tail":1e0,"big":9007199254740993} }`, `read { "path" : "\u0061" , "tail":1e0,"big":9007199254740993}`},
		{"keys that differ in lone surrogates", `{@,"tool_name":"read","arguments":{"path":"a","\ud800":1,"\ud801":2}}`, `read {"path":"a","\ud800":1,"\ud801":2}`},
		{"keys that differ in lone surrogates, flattened", `{@,"tool_name":"free","\ud800":1,"\ud801":2,"\ufffd":3}`, `free {"\ud800":1,"\ud801":2,"\ufffd":3}`},
		{"a lone surrogate twice", `{@,"tool_name":"free","arguments":{"\ud800":1,"\uD800":2}}`, "error: arguments[\"\ufffd\"]: given twice\nfree()"},
		{"strings that differ in lone surrogates", `{@,"tool_name":"unique","arguments":{"a":["\ud800","\ud801"]}}`, `unique {"a":["\ud800","\ud801"]}`},
		{"as many properties as keys", `{@,"tool_name":"unique","arguments":{"\ud800":1,"\ud801":2}}`, `unique {"\ud800":1,"\ud801":2}`},
		{"right and empty", `{@,"tool_name":"free","arguments":{}}`, `free {}`},
		{"absent", `{@,"tool_name":"free"}`, `free {}`},

		{"a JSON string", `{@,"tool_name":"read","arguments":"{\"path\": \"a\"}"}`, `read {"path": "a"}`},
		{"a JSON string with space around", `{@,"tool_name":"read","arguments":" \n{\"path\":\"a\"}\n"}`, `read {"path":"a"}`},
		{"an empty string", `{@,"tool_name":"free","arguments":""}`, `free {}`},
		{"a blank string", `{@,"tool_name":"free","arguments":"  "}`, `free {}`},
		{"the string null", `{@,"tool_name":"free","arguments":"null"}`, `free {}`},
		{"the string {}", `{@,"tool_name":"free","arguments":"{}"}`, `free {}`},
		{"null", `{@,"tool_name":"free","arguments":null}`, `free {}`},
		{"null where something is required", `{@,"tool_name":"read","arguments":null}`, needPath + partPath},

		{"flattened", `{@,"tool_name":"read","path":"a","tail":5}`, `read {"path":"a","tail":5}`},
		{"flattened before the names", `{"path":"a",@,"tool_name":"read"}`, `read {"path":"a"}`},
		{"flattened, arguments empty", `{@,"tool_name":"read","arguments":{},"path":"a"}`, `read {"path":"a"}`},
		{"flattened, arguments empty with a space", `{@,"tool_name":"read","arguments":{ },"path":"a"}`, `read {"path":"a"}`},
		{"flattened, arguments null", `{@,"tool_name":"read","arguments":null,"path":"a"}`, `read {"path":"a"}`},
		{"flattened, arguments an empty string", `{@,"tool_name":"read","arguments":"","path":"a"}`, `read {"path":"a"}`},
		{"flattened, arguments the string {}", `{@,"tool_name":"read","arguments":"{}","path":"a"}`, `read {"path":"a"}`},
		{"flattened, with one more that is not declared", `{@,"tool_name":"read","path":"a","mode":"r"}`, `read {"path":"a","mode":"r"}`},
		{"flattened, to a tool that declares nothing", `{@,"tool_name":"free","x":1}`, `free {"x":1}`},
		{"beside, but no parameter", `{@,"tool_name":"opt","reason":"I want to"}`, `opt {}`},
		{"beside arguments that are right", `{@,"tool_name":"read","arguments":{"path":"a"},"reason":"I want to"}`, `read {"path":"a"}`},

		{"dotted", `{@,"tool_name":"read","arguments.path":"a","arguments.tail":5}`, `read {"path":"a","tail":5}`},
		{"dotted, arguments empty", `{@,"tool_name":"read","arguments":{},"arguments.path":"a"}`, `read {"path":"a"}`},
		{"dotted and flattened", `{@,"tool_name":"read","arguments.path":"a","tail":5}`, `read {"path":"a","tail":5}`},

		{"args", `{@,"tool_name":"read","args":{"path":"a"}}`, `read {"path":"a"}`},
		{"parameters", `{@,"tool_name":"read","parameters":{"path":"a"}}`, `read {"path":"a"}`},
		{"params", `{@,"tool_name":"read","params":{"path":"a"}}`, `read {"path":"a"}`},
		{"input", `{@,"tool_name":"read","input":{"path":"a"}}`, `read {"path":"a"}`},
		{"input as a JSON string", `{@,"tool_name":"read","input":"{\"path\":\"a\"}"}`, `read {"path":"a"}`},
		{"args, arguments empty", `{@,"tool_name":"read","arguments":{},"args":{"path":"a"}}`, `read {"path":"a"}`},

		{"a doubled envelope", `{@,"tool_name":"read","arguments":{@,"tool_name":"read","arguments":{"path":"a"}}}`, `read {"path":"a"}`},
		{"a doubled envelope of arguments", `{@,"tool_name":"read","arguments":{"arguments":{"path":"a"}}}`, `read {"path":"a"}`},
		{"a doubled envelope, the inner a string", `{@,"tool_name":"read","arguments":{@,"tool_name":"read","arguments":"{\"path\":\"a\"}"}}`, `read {"path":"a"}`},
		{"a doubled envelope as a string", `{@,"tool_name":"read","arguments":"{\"tool_name\":\"read\",\"arguments\":{\"path\":\"a\"}}"}`, `read {"path":"a"}`},
		{"everything inside arguments", `{"arguments":{@,"tool_name":"read","arguments":{"path":"a"}}}`, `read {"path":"a"}`},
		{"everything inside arguments, a string", `{"arguments":"{\"server_name\":\"s\",\"tool_name\":\"read\",\"arguments\":{\"path\":\"a\"}}"}`, `read {"path":"a"}`},
		{"everything inside arguments, flattened", `{"arguments":{@,"tool_name":"read","path":"a"}}`, `read {"path":"a"}`},

		{"the server before the tool", `{"tool_name":"s.read","arguments":{"path":"a"}}`, `read {"path":"a"}`},

		{"an object as a string", `{@,"tool_name":"deep","arguments":{"filter":"{\"tags\":[\"a\"]}"}}`, `deep {"filter":{"tags":["a"]}}`},
		{"an array as a string", `{@,"tool_name":"deep","arguments":{"ids":"[1, 2]"}}`, `deep {"ids":[1, 2]}`},

		// What could mean two things stays as it is.
		{"arguments is a parameter", `{@,"tool_name":"run","arguments":{"arguments":{"path":"a"}}}`, `run {"arguments":{"path":"a"}}`},
		{"args is a parameter", `{@,"tool_name":"args","args":[1]}`, `args {"args":[1]}`},
		{"input is a parameter", `{@,"tool_name":"args","input":"x"}`, `args {"input":"x"}`},
		{"parameters is a parameter", `{@,"tool_name":"args","parameters":{"a":1}}`, `args {"parameters":{"a":1}}`},
		{"params is a parameter", `{@,"tool_name":"args","params":{"a":1}}`, `args {"params":{"a":1}}`},
		{"an envelope is what the tool wants", `{@,"tool_name":"proxy","arguments":{"server_name":"x","tool_name":"y","arguments":{"z":1}}}`, `proxy {"server_name":"x","tool_name":"y","arguments":{"z":1}}`},
		{"server_name is a parameter", `{@,"tool_name":"server","arguments":{"server_name":"x"}}`, `server {"server_name":"x"}`},
		{"a parameter with a dot", `{@,"tool_name":"dotted","arguments.path":"a"}`, `dotted {"arguments.path":"a"}`},
		{"an envelope with more in it", `{@,"tool_name":"free","arguments":{"arguments":{"a":1},"b":2}}`, `free {"arguments":{"a":1},"b":2}`},
		{"an envelope of another call", `{@,"tool_name":"read","arguments":{"server_name":"other","tool_name":"delete","arguments":{"path":"a"}}}`, refused},
		{"a tool that takes anything takes arguments", `{@,"tool_name":"free","arguments":{"arguments":{"a":1}}}`, `free {"arguments":{"a":1}}`},
		{"an envelope that holds no object", `{@,"tool_name":"free","arguments":{"arguments":5}}`, `free {"arguments":5}`},
		{"two aliases", `{@,"tool_name":"read","args":{"path":"a"},"input":{"path":"b"}}`, refused},
		{"an alias and a parameter", `{@,"tool_name":"read","path":"a","args":{"path":"b"}}`, refused},
		{"flattened twice", `{@,"tool_name":"read","path":"a","arguments.path":"b"}`, refused},
		{"a key twice", `{@,"tool_name":"read","arguments":{"path":"a","path":"b"}}`, "error: arguments.path: given twice\n" + partPath},
		{"a key twice, once escaped", `{@,"tool_name":"read","arguments":{"path":"a","p\u0061th":"b"}}`, "error: arguments.path: given twice\n" + partPath},
		{"a key twice, inside a JSON string", `{@,"tool_name":"read","arguments":"{\"path\":\"a\",\"path\":\"b\"}"}`, "error: arguments.path: given twice\n" + partPath},
		{"a key twice, under another name", `{@,"tool_name":"read","args":{"path":"a","path":"b"}}`, "error: arguments.path: given twice\n" + partPath},
		{"a key twice, deep inside", `{@,"tool_name":"free","arguments":{"a":[0,{"b":{"c":1,"c":2}}]}}`, "error: arguments.a[1].b.c: given twice\nfree()"},
		{"a key twice, in a string that is put right", `{@,"tool_name":"deep","arguments":{"filter":"{\"tags\":[],\"tags\":[\"a\"]}"}}`, "error: arguments.filter.tags: given twice\ndeep(filter?: {tags?: string[], by?: {n?: integer}[]}, …)"},
		{"the same key in two objects", `{@,"tool_name":"free","arguments":{"a":{"c":1},"b":{"c":2},"c":[{"c":1},{"c":1}]}}`, `free {"a":{"c":1},"b":{"c":2},"c":[{"c":1},{"c":1}]}`},
		{"two spellings of one key", `{@,"tool_name":"read","arguments":{"path":"a","PATH":"b"}}`, `read {"path":"a","PATH":"b"}`},
		{"an alias inside arguments", `{@,"tool_name":"strict","arguments":{"args":{"path":"a"}}}`, "error: arguments.path: required\narguments.args: unknown property; known: path\n" + signStrict},
		{"a parameter of another case", `{@,"tool_name":"read","Path":"a"}`, `error: arguments: "Path" is not a parameter of the tool; did you mean "path"?` + "\n" + signRead},
		{"a parameter beside arguments", `{@,"tool_name":"read","arguments":{"path":"a"},"tail":5}`, `error: arguments: "tail" is next to "arguments"; put it inside "arguments"` + "\n" + signRead},
		{"a misspelled parameter beside arguments", `{@,"tool_name":"read","arguments":{"path":"a"},"tial":5}`, `error: arguments: "tial" is next to "arguments"; put it inside "arguments"` + "\n" + signRead},
		{"an alias beside arguments", `{@,"tool_name":"read","arguments":{"path":"a"},"args":{"tail":5}}`, `error: arguments: "args" is next to "arguments"; put it inside "arguments"` + "\n" + signRead},

		// What is no object and spells none.
		{"an array", `{@,"tool_name":"read","arguments":["a"]}`, `error: arguments: expected object, got array ["a"]` + "\n" + signRead},
		{"a number", `{@,"tool_name":"read","arguments":5}`, "error: arguments: expected object, got number 5\n" + signRead},
		{"a boolean", `{@,"tool_name":"read","arguments":true}`, "error: arguments: expected object, got boolean true\n" + signRead},
		{"a word", `{@,"tool_name":"read","arguments":"a"}`, `error: arguments: expected object, got string "a"` + "\n" + signRead},
		{"broken JSON", `{@,"tool_name":"read","arguments":"{\"path\":"}`, `error: arguments: expected object, got string "{\"path\":"` + "\n" + signRead},
		{"a string of a string", `{@,"tool_name":"free","arguments":"\"{}\""}`, `error: arguments: expected object, got string "\"{}\""` + "\nfree()"},
		{"an alias that is no object", `{@,"tool_name":"read","args":["a"]}`, `error: arguments: expected object, got array ["a"]` + "\n" + signRead},
		{"a string too deep", `{@,"tool_name":"free","arguments":"` + strings.Repeat("[", 300) + `"}`, `error: arguments: expected object, got string "` + strings.Repeat("[", 40) + `…"` + "\nfree()"},
	} {
		got := b.exec(t, strings.ReplaceAll(row.exec, "@", `"server_name":"s"`))
		if row.want == refused && strings.HasPrefix(got, "error: ") {
			continue
		}
		if got != row.want {
			t.Errorf("%s: %s\n got %s\nwant %s", row.name, row.exec, got, row.want)
		}
	}
}

func TestStringsThatSpellObjectsOrArrays(t *testing.T) {
	e := idle(&config.Config{Profiles: make([]config.Profile, 1)})
	deep := tool(t, `{"name":"deep","inputSchema":`+repairTools["deep"]+`}`)
	for _, row := range []struct{ name, arguments, want string }{
		{"an object", `{"filter":"{\"tags\":[]}"}`, `{"filter":{"tags":[]}}`},
		{"with white space", `{"filter":" {\"tags\": [] }\n"}`, `{"filter":{"tags": [] }}`},
		{"an array", `{"ids":"[]"}`, `{"ids":[]}`},
		{"two of them", `{"filter":"{}","x":[ 1 ],"ids":"[1]"}`, `{"filter":{},"x":[ 1 ],"ids":[1]}`},
		{"an array in an object", `{"filter":{"tags":"[\"a\",\"b\"]"}}`, `{"filter":{"tags":["a","b"]}}`},
		{"an element", `{"filter":{"by":["{\"n\":1}",{"n":2}]}}`, `{"filter":{"by":[{"n":1},{"n":2}]}}`},
		{"the second element", `{"filter":{"by":[{"n":2},"{\"n\":1}"]}}`, `{"filter":{"by":[{"n":2},{"n":1}]}}`},
		{"an array of strings in a string", `{"filter":{"by":"[\"{\\\"n\\\":1}\"]"}}`, `{"filter":{"by":[{"n":1}]}}`},
		{"a string in a string", `{"filter":"{\"tags\":\"[\\\"a\\\"]\"}"}`, `{"filter":{"tags":["a"]}}`},
		{"seven of them", `{"filter":{"by":["{}","{}","{}","{}","{}","{}","{}"]}}`, `{"filter":{"by":[{},{},{},{},{},{},{}]}}`},
		{"big numbers inside", `{"filter":"{\"by\":[{\"n\":9007199254740993}]}"}`, `{"filter":{"by":[{"n":9007199254740993}]}}`},
		{"a string is wanted", `{"text":"{\"a\":1}"}`, `{"text":"{\"a\":1}"}`},
		{"anything is wanted", `{"any":"[1]"}`, `{"any":"[1]"}`},
		{"either is wanted", `{"both":"{\"a\":1}"}`, `{"both":"{\"a\":1}"}`},
		{"not declared", `{"more":"[1]"}`, `{"more":"[1]"}`},

		{"an array for an object", `{"filter":"[1]"}`, `arguments.filter: expected object, got string "[1]"`},
		{"an object for an array", `{"ids":"{}"}`, `arguments.ids: expected array, got string "{}"`},
		{"not JSON", `{"ids":"1,2"}`, `arguments.ids: expected array, got string "1,2"`},
		{"empty", `{"ids":""}`, `arguments.ids: expected array, got string ""`},
		{"what it spells does not fit", `{"ids":"[\"a\"]"}`, `arguments.ids: expected array, got string "[\"a\"]"`},
		{"another problem beside it", `{"ids":"[1]","n":"x"}`, "arguments.ids: expected array, got string \"[1]\"\narguments.n: expected integer, got string \"x\""},
	} {
		if got := sentOr(e.arguments(t.Context(), &Call{Arguments: []byte(row.arguments), mayWait: true}, e.builtin.upstream, deep)); got != row.want {
			t.Errorf("%s: %s\n got %s\nwant %s", row.name, row.arguments, got, row.want)
		}
	}
}

// TestScalars: a scalar of the wrong type is converted where the schema allows exactly
// one scalar type and the result is valid. Flat mode converts none.
func TestScalars(t *testing.T) {
	e := idle(&config.Config{Profiles: make([]config.Profile, 1)})
	scalars := tool(t, `{"name":"scalars","inputSchema":{"type":"object","properties":{
		"text":{"type":"string"},"code":{"type":"string","pattern":"^[0-9]{5}$"},"mode":{"type":"string","enum":["1","2"]},"texts":{"type":"array","items":{"type":"string"}},
		"n":{"type":"integer","maximum":100},"ratio":{"type":"number"},"on":{"type":"boolean"},"maybe":{"anyOf":[{"type":"integer"},{"type":"null"}]},
		"id":{"anyOf":[{"type":"string"},{"type":"integer"}]},"flag":{"type":["boolean","number"]},"page":{"type":["integer","number"]},"many":{"anyOf":[{"type":"string"},{"type":"array"}]},
		"both":{"$ref":"#/$defs/s","type":["string","null"]}},"$defs":{"s":{"type":"string"}}}}`)
	for _, row := range []struct{ name, arguments, want string }{
		{"a number for a string", `{"text": 42}`, `{"text": "42"}`},
		{"a long number keeps its digits", `{"text":12345678901234567890}`, `{"text":"12345678901234567890"}`},
		{"a fraction keeps its digits", `{"text":1.50}`, `{"text":"1.50"}`},
		{"an exponent keeps its digits", `{"text":-1E+2}`, `{"text":"-1E+2"}`},
		{"with a pattern", `{"code":10115}`, `{"code":"10115"}`},
		{"with an enum", `{"mode":2}`, `{"mode":"2"}`},
		{"elements", `{"texts":[1,"a",2.0]}`, `{"texts":["1","a","2.0"]}`},
		{"an array in a string", `{"texts":"[1]"}`, `{"texts":["1"]}`},
		{"a string or an array", `{"many":7}`, `{"many":"7"}`},
		{"two rules for one value", `{"both":7}`, `{"both":"7"}`},
		{"a string for an integer", `{"n":"42"}`, `{"n":42}`},
		{"a string for an integer, as a fraction", `{"n":"42.0"}`, `{"n":42.0}`},
		{"a string for a number", `{"ratio":"-1.50e3"}`, `{"ratio":-1.50e3}`},
		{"a string for an integer or a number", `{"page":"1.5"}`, `{"page":1.5}`},
		{"a string for an integer or null", `{"maybe":"5"}`, `{"maybe":5}`},
		{"a string for a boolean", `{"on":"false"}`, `{"on":false}`},
		{"several", `{"n":"1","on":"true","text":3,"more":"4"}`, `{"n":1,"on":true,"text":"3","more":"4"}`},
		{"right as it is", `{"id":"5"}`, `{"id":"5"}`},

		{"a string or an integer", `{"id":1.5}`, `arguments.id: expected string or integer, got number 1.5`},
		{"a boolean or a number", `{"flag":"true"}`, `arguments.flag: expected boolean or number, got string "true"`},
		{"does not match the pattern", `{"code":7}`, `arguments.code: expected string, got number 7`},
		{"not in the enum", `{"mode":3}`, `arguments.mode: expected string, got number 3`},
		{"over the maximum", `{"n":"101"}`, `arguments.n: expected integer, got string "101"`},
		{"a fraction for an integer", `{"n":"1.5"}`, `arguments.n: expected integer, got string "1.5"`},
		{"with white space", `{"n":" 1"}`, `arguments.n: expected integer, got string " 1"`},
		{"not a JSON number", `{"n":"01"}`, `arguments.n: expected integer, got string "01"`},
		{"a number with a unit", `{"ratio":"5px"}`, `arguments.ratio: expected number, got string "5px"`},
		{"a number out of range", `{"ratio":"1e400"}`, `arguments.ratio: expected number, got string "1e400"`},
		{"a word for a boolean", `{"on":"yes"}`, `arguments.on: expected boolean, got string "yes"`},
		{"a boolean in another case", `{"on":"True"}`, `arguments.on: expected boolean, got string "True"`},
		{"a number for a boolean", `{"on":1}`, `arguments.on: expected boolean, got number 1`},
		{"a boolean for a string", `{"text":true}`, `arguments.text: expected string, got boolean true`},
		{"null for a string", `{"text":null}`, `arguments.text: expected string, got null`},
		{"another problem beside it", `{"n":"1","on":"x"}`, "arguments.n: expected integer, got string \"1\"\narguments.on: expected boolean, got string \"x\""},
	} {
		call := Call{Arguments: []byte(row.arguments), mayWait: true}
		if got := sentOr(e.arguments(t.Context(), &call, e.builtin.upstream, scalars)); got != row.want {
			t.Errorf("%s: %s\n got %s\nwant %s", row.name, row.arguments, got, row.want)
		}
		call.isFlat = true
		if got := sentOr(e.arguments(t.Context(), &call, e.builtin.upstream, scalars)); got != row.arguments && !strings.HasPrefix(got, "arguments.") {
			t.Errorf("%s, flat: %s is sent as %s", row.name, row.arguments, got)
		}
	}
}

// sentOr returns the arguments that are sent, or else the problems.
func sentOr(sent []byte, err error) string {
	if err == nil {
		return string(sent)
	}
	lines := strings.Split(err.Error(), "\n")
	return strings.Join(lines[:len(lines)-1], "\n")
}

func TestParseExec(t *testing.T) {
	nested := func(n int, inner string) string {
		return strings.Repeat(`{"arguments":`, n) + inner + strings.Repeat(`}`, n)
	}
	for _, row := range []struct{ name, raw, server, tool, arguments string }{
		{"nothing", ``, "", "", ""},
		{"null", `null`, "", "", ""},
		{"empty", `{}`, "", "", ""},
		{"all", `{"server_name":"s","tool_name":"t","arguments":{"a":1}}`, "s", "t", `{"a":1}`},
		{"keys are exact", `{"Server_Name":"s","TOOL_NAME":"t","Arguments":{}}`, "", "", ""},
		{"escaped keys", `{"server\u005fname":"s"}`, "s", "", ""},
		{"the last of two", `{"server_name":"a","server_name":"b"}`, "b", "", ""},
		{"inside once", `{"arguments":{"server_name":"s","tool_name":"t","arguments":[]}}`, "s", "t", `[]`},
		{"inside without a tool", `{"arguments":{"server_name":"s"}}`, "", "", `{"server_name":"s"}`},
		{"inside deep", nested(200, `{"tool_name":"t"}`), "", "", nested(199, `{"tool_name":"t"}`)},
		{"a server alone", `{"server_name":"s","arguments":{"tool_name":"t"}}`, "s", "", `{"tool_name":"t"}`},
	} {
		c := ParseExec([]byte(row.raw))
		if c.Server != row.server || c.Tool != row.tool || string(c.Arguments) != row.arguments {
			t.Errorf("%s: ParseExec(%.80s) = %q %q %.80s, want %q %q %.80s", row.name, row.raw, c.Server, c.Tool, c.Arguments, row.server, row.tool, row.arguments)
		}
	}
}

// FuzzRepair: whatever the arguments of exec are, nothing panics; what is sent
// is one JSON object that gives no key twice; and arguments that fit the schema and are no envelope are
// sent byte for byte.
func FuzzRepair(f *testing.F) {
	for _, raw := range []string{
		``, `{}`, `null`, `[]`, `{"arguments":{"path":"a"}}`, `{"arguments":"{\"path\":1}"}`, `{"arguments":""}`, `{"path":"a","tail":1}`,
		`{"arguments.path":"a"}`, `{"args":{"path":"a"}}`, `{"arguments":{"arguments":{"path":"a"}}}`, `{"arguments":{"filter":"{\"tags\":\"[]\"}"}}`,
		`{"arguments":{"ids":"[1]","filter":{"by":["{}",1]}}}`, `{"arguments":{ },"input":"{}"}`, `{"a\u0000":1,"\ud800":"\udfff","arguments":null}`,
		`{"server_name":"x","tool_name":"y","arguments":{"tool_name":"z"}}`, `{"arguments":{"a":1,"\u0061":2}}`, `{"arguments":"{\"ids\":[],\"ids\":[{\"b\":1,\"b\":2}]}"}`,
	} {
		for i := range byte(len(repairTools)) {
			f.Add([]byte(raw), i)
		}
	}
	e := idle(&config.Config{Profiles: make([]config.Profile, 1)})
	var tools []*lists.Tool
	for name, schema := range repairTools {
		tools = append(tools, tool(f, `{"name":"`+name+`","inputSchema":`+schema+`}`))
	}
	f.Fuzz(func(t *testing.T, raw []byte, which byte) {
		if rawjson.Check(raw) != nil {
			return // a front never hands on what is not JSON
		}
		u := tools[int(which)%len(tools)]
		call := ParseExec(raw)
		call.mayWait = true
		sent, err := e.arguments(t.Context(), &call, e.builtin.upstream, u)
		if err != nil {
			if text := err.Error(); text == "" || strings.Count(text, "\n") > 5 {
				t.Fatalf("%s of %s: error %q", u.Name, raw, text)
			}
			return
		}
		var object map[string]json.RawMessage
		if err := json.Unmarshal(sent, &object); err != nil || object == nil {
			t.Fatalf("%s of %s: sent %s: %v", u.Name, raw, sent, err)
		}
		if path := rawjson.DuplicateKey(sent); path != nil {
			t.Fatalf("%s of %s: sent %s, which gives %q twice", u.Name, raw, sent, path)
		}
		if needsNone(t, call, u) && !bytes.Equal(sent, call.Arguments) {
			t.Fatalf("%s of %s: sent %s, want %s", u.Name, raw, sent, call.Arguments)
		}
	})
}

// needsNone reports whether a call's arguments are right as they are: an object
// that is not empty, fits, and has no member named like an envelope's.
func needsNone(t *testing.T, c Call, u *lists.Tool) bool {
	members := map[string]json.RawMessage{}
	if rawjson.Kind(c.Arguments) != '{' || json.Unmarshal(c.Arguments, &members) != nil || len(members) == 0 || members["arguments"] != nil {
		return false
	}
	return len(validatorOf(u).Check(t.Context(), c.Arguments).Problems) == 0
}

// TestRepairOfLongArguments: many values in long arguments are repaired in one pass.
func TestRepairOfLongArguments(t *testing.T) {
	s := tool(t, `{"name":"t","inputSchema":{"type":"object","properties":{"n":{"type":"array","items":{"type":"string"}}}}}`)
	long := strings.Repeat(`"x", `, 200_000)
	problems := []validate.Problem{{Path: []string{"n", "200001"}, Want: []string{"string"}}, {Path: []string{"n", "0"}, Want: []string{"string"}}}
	got, ok := valueRepair{validatorOf(s), meantValue}.round([]byte(`{"n": [1, `+long+`2]}`), problems)
	if want := `{"n": ["1", ` + long + `"2"]}`; !ok || string(got) != want {
		t.Errorf("%t, %.50s … %s", ok, got, got[max(0, len(got)-50):])
	}
}
