package executor

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"mcpx/internal/rawjson"
	"mcpx/internal/schema"
)

// issueList is a result with rows, and one image.
const issueList = `{"content":[{"type":"text","text":"3 issues"},{"type":"image","data":"aGk=","mimeType":"image/png"}],` +
	`"structuredContent":{"total":3,"items":[{"id":12345678901234567890,"title":"A","user":{"login":"ann"}},{"id":2,"title":"B, b","user":{"login":"bob"}},{"id":3,"title":"C","user":{"login":"cy"}}]}}`

// call makes an exec call and returns the whole result, or the error after "error: ".
func (b *bench) call(t *testing.T, arguments string) string {
	t.Helper()
	c := ParseExec([]byte(arguments))
	c.Client = client("tester")
	result, err := b.Call(t.Context(), c)
	if err != nil {
		return "error: " + err.Error()
	}
	return string(result)
}

// raw returns the exec arguments of a call that the upstream answers with a result.
func raw(result, more string) string {
	return `{"server_name":"a","tool_name":"raw","arguments":{"result":` + result + `}` + more + `}`
}

func TestSelect(t *testing.T) {
	b := start(t, nil, newUpstream(t, "a"))
	image := `,{"type":"image","data":"aGk=","mimeType":"image/png"}]}`
	text := func(s string) string {
		return `{"content":[{"type":"text","text":` + string(rawjson.AppendString(nil, s)) + `}`
	}
	for _, test := range []struct{ name, result, more, want string }{
		{"fields, with images kept", issueList, `,"select":"id, title, user.login"`,
			text("[3]{id,title,user.login}:\n12345678901234567890,A,ann\n2,\"B, b\",bob\n3,C,cy\nfull result: r1 (HOW tokens)") + image},
		{"an array of fields", issueList, `,"select":["id","total"]`,
			text("{\"total\":3}\nnote: there is no \"id\"; fields: total, items\nfull result: r2 (HOW tokens)") + image},
		{"a field that is not there", issueList, `,"select":"titel limit 1"`,
			text("note: no row has \"titel\", did you mean \"title\"?; fields: id, title, user\nfull result: r3 (HOW tokens)") + image},
		{"the first text that is JSON", `{"content":[{"type":"text","text":"Found:"},{"type":"text","text":"[{\"a\":1.0}]"}]}`, `,"select":"a"`,
			text("[{\"a\":1.0}]\nfull result: r4 (HOW tokens)") + "]}"},
		{"the number of rows", issueList, `,"select":"count where id > 2"`, text("2\nfull result: r5 (HOW tokens)") + image},
		{"lines of a text", `{"content":[{"type":"text","text":"one\ntwo\nthree"}],"x":1}`, `,"select":"/^t/"`,
			text("2: two\n3: three\n[matches 1-2 of 2 in 3 lines; end]\nfull result: r6 (HOW tokens)") + `],"x":1}`},
		{"values of JSON", `{"structuredContent":{"a":["zoe","al"]}}`, `,"select":"/z/"`,
			text("/a/0: zoe\n[matches 1-1 of 1 in 2 values; end]\nfull result: r7 (HOW tokens)") + `]}`},
		{"a text without a pattern", `{"content":[{"type":"text","text":"plain"}]}`, `,"select":"a"`,
			text("plain") + `,{"type":"text","text":"note: select ignored, because the result is not JSON; /pattern/ selects the lines that match, /(\\d+) (\\S+)/ as a, b makes rows of them"}]}`},
		{"only an image", `{"content":[{"type":"image","data":"aGk=","mimeType":"image/png"}]}`, `,"select":"a"`,
			`{"content":[{"type":"image","data":"aGk=","mimeType":"image/png"},{"type":"text","text":"note: select ignored, because the result is not JSON; /pattern/ selects the lines that match, /(\\d+) (\\S+)/ as a, b makes rows of them"}]}`},
		{"an error is never selected from", `{"content":[{"type":"text","text":"{\"a\":1}"}],"isError":true}`, `,"select":"b"`, text(`{"a":1}`) + `],"isError":true}`},
		{"nothing to select from", `{"content":[]}`, `,"select":"b"`, `{"content":[]}`},
		{"an empty select", `{"content":[],"n":1.0}`, `,"select":" "`, `{"content":[],"n":1.0}`},
		{"select null", `{"content":[],"n":1.0}`, `,"select":null`, `{"content":[],"n":1.0}`},
	} {
		got := b.call(t, raw(test.result, test.more))
		if before, after, ok := strings.Cut(got, " tokens)"); ok {
			got = before[:strings.LastIndexByte(before, '(')+1] + "HOW tokens)" + after
		}
		if got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.name, got, test.want)
		}
	}
}

func TestSelectIsCheckedBeforeTheCall(t *testing.T) {
	b := start(t, nil, newUpstream(t, "a", "-count-calls"))
	for more, want := range map[string]string{
		`,"select":"id titel"`:       `error: select: at character 4: expected ",", "as", "by", "from", "where", "order by", "limit" or the end, found "titel"; select has FIELDS `,
		`,"select":5`:                "error: select: expected string, got number 5",
		`,"select":["id",5]`:         "error: select: expected string, got array",
		`,"select":"a","select":"b"`: `error: "select" is given twice`,
		`,"select":"/(/"`:            "error: select: at character 1: not an RE2 pattern",
	} {
		if got := b.call(t, raw(issueList, more)); !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %s, want %s", more, got, want)
		}
		if last := b.last(); last.Outcome != "invalid" {
			t.Errorf("%s: outcome %s", more, last.Outcome)
		}
	}
	if got := b.exec(t, `{"server_name":"a","tool_name":"calls"}`); got != "1" {
		t.Errorf("%s calls reached the upstream", got)
	}
}

// TestSelectAsAnArgument: a tool with a parameter of that name gets it, if all arguments
// are next to tool_name.
func TestSelectAsAnArgument(t *testing.T) {
	b := start(t, nil, newUpstream(t, "a", toolsFile(t, `{"name":"query","inputSchema":{"type":"object","properties":{"select":{"type":"string"},"from":{"type":"string"}}}}`)...))
	for arguments, want := range map[string]string{
		`"select":"a","from":"t"`:               `query {"select":"a","from":"t"}`,
		`"select":"a"`:                          `query {"select":"a"}`,
		`"arguments":{"select":"a"}`:            `query {"select":"a"}`,
		`"arguments":{"from":"t"},"select":"a"`: "query {\"from\":\"t\"}",
	} {
		got := b.call(t, `{"server_name":"a","tool_name":"query",`+arguments+`}`)
		if first, _ := rawjson.String(rawjson.Get(firstItem([]byte(got)), "text")); first != want {
			t.Errorf("%s: got %s, want %s", arguments, got, want)
		}
	}
}

func firstItem(result []byte) []byte {
	for item := range rawjson.Elements(rawjson.Get(result, "content")) {
		return item
	}
	return nil
}

func TestReferences(t *testing.T) {
	b := start(t, nil, newUpstream(t, "a", toolsFile(t,
		`{"name":"typed","inputSchema":{"type":"object","properties":{"o":{"type":"object"},"l":{"type":"array","items":{"type":"string"}},"s":{"type":["string","object"]}}}}`)...), newUpstream(t, "b", toolsFile(t,
		`{"name":"own","inputSchema":{"type":"object","properties":{"ref":{"$ref":"#/$defs/r"}},"$defs":{"r":{"properties":{"$r":{"type":"string"}}}}}}`)...))
	b.call(t, raw(issueList, `,"select":"count"`))
	b.call(t, raw(`{"content":[{"type":"text","text":"just \"text\"\n"}]}`, `,"select":"/x/"`))
	b.call(t, raw(`{"structuredContent":{"text":"{\"$r\":\"r1/total\"}"}}`, `,"select":"count"`))
	b.call(t, raw(`{"content":[{"type":"text","text":"one\ntwo\r\nthree\nfour"}]}`, `,"select":"/x/"`))
	b.call(t, raw(`{"structuredContent":[{"name":"bob"},{"name":"cy"}]}`, `,"select":"count"`))
	for _, test := range []struct{ name, tool, arguments, want string }{
		{"a value keeps its digits", "arguments", `{"x":[{"$r":"r1/items/0/id"}, 1.0]}`, `{"x":[12345678901234567890, 1.0]}`},
		{"every value", "arguments", `{"x":{"$r":"r1/items/*/user/login"}}`, `{"x":["ann","bob","cy"]}`},
		{"selected values", "arguments", `{"bcc":{"$r":"r1","select":"user.login where id < 100"}}`, `{"bcc":["bob","cy"]}`},
		{"selected objects", "arguments", `{"x":{"$r":"r1/items","select":"id, title limit 1"}}`, `{"x":[{"id":12345678901234567890,"title":"A"}]}`},
		{"a path with brackets", "arguments", `{"x":{"$r":"r1.items[1].title"}}`, `{"x":"B, b"}`},
		{"a text", "arguments", `{"x":{"$r":"r2"}}`, `{"x":"just \"text\"\n"}`},
		{"an escaped key", "arguments", `{"x":{"\u0024r":"r1/total"}}`, `{"x":3}`},
		{"the check sees the value", "echo", `{"text":{"$r":"r1/items/1/title"},"times":1}`, `B, b`},
		{"arguments as a string", "arguments", `"{\"x\":{\"$r\":\"r1/total\"}}"`, `{"x":3}`},
		{"an object as a string", "typed", `{"o":"{\"x\":{\"$r\":\"r1/total\"}}"}`, `typed {"o":{"x":3}}`},
		{"a reference as a string", "typed", `{"o":" {\"$r\":\"r1/items/0/user\"}"}`, `typed {"o":{"login":"ann"}}`},
		{"an array as a string", "typed", `{"l":"[{\"$r\":\"r1/items/0/title\"}]"}`, `typed {"l":["A"]}`},
		{"a string that may be a string", "typed", `{"s":"{\"$r\":\"r1/total\"}"}`, `typed {"s":"{\"$r\":\"r1/total\"}"}`},
		{"a value that looks like a reference is only a value", "typed", `{"o":{"$r":"r3/text"}}`, `typed {"o":{"$r":"r1/total"}}`},
		{"a key given twice", "arguments", `{"a":{"$r":"r1/total"},"b":{"$r":"r1/total"},"a":{"$r":"r1/items"}}`, `error: arguments.a: given twice`},
		{"a reference given twice", "arguments", `{"a":{"$r":"r1/total","$r":"r1/items"}}`, `error: arguments.a.$r: given twice`},
		{"not a reference: another member", "arguments", `{"x":{"$r":"r1","y":1}}`, `{"x":{"$r":"r1","y":1}}`},
		{"not a reference: not a string", "arguments", `{"x":{"$r":1}}`, `{"x":{"$r":1}}`},
		{"a wrong type is refused", "echo", `{"text":"x","times":{"$r":"r1/items/0/title"}}`, `error: arguments.times: expected integer, got string "A"`},
		{"a pointer that leads nowhere", "arguments", `{"a":{"b":[{"$r":"r1/itms/0"}]}}`, `error: arguments.a.b[0]: reference "r1/itms/0": no "itms" here; there are total, items`},
		{"an unknown handle", "arguments", `{"a":{"$r":"r9/x"}}`, `error: arguments.a: reference "r9/x": no result "r9": kept are r1, r2, r3, r4, r5; call the tool again for others`},
		{"an unknown field", "arguments", `{"a":{"$r":"r1","select":"login"}}`, `error: arguments.a: reference "r1": select: no row has "login"; fields: id, title, user`},
		{"a bad select", "arguments", `{"a":{"$r":"r1","select":"a b"}}`, `error: arguments.a: reference "r1": select: at character 3: expected `},
		{"a pattern", "arguments", `{"a":{"$r":"r2","select":"/T.xt/"}}`, `error: arguments.a: reference "r2": no line matches /T.xt/; the text has 1 line`},
		{"lines", "arguments", `{"a":{"$r":"r4","lines":"2-3"},"b":{"$r":"r4","lines":2},"c":{"$r":"r4","lines":"3-"}}`, `{"a":"two\u000d\nthree","b":"two","c":"three\nfour"}`},
		{"lines past the end", "arguments", `{"a":{"$r":"r4","lines":"3-9"}}`, `error: arguments.a: reference "r4": lines 3-9: the text has 4 lines`},
		{"bad lines", "arguments", `{"a":{"$r":"r4","lines":"x"}}`, `error: arguments.a: reference "r4": "lines" is "x"; use "5", "5-9" or "5-"`},
		{"matching lines", "arguments", `{"a":{"$r":"r4","match":"/^t/"},"b":{"$r":"r4","select":"/o$/"}}`, `{"a":"two\nthree","b":"two"}`},
		{"no matching lines", "arguments", `{"a":{"$r":"r4","match":"/x/"}}`, `error: arguments.a: reference "r4": no line matches /x/; the text has 4 lines`},
		{"a bad pattern", "arguments", `{"a":{"$r":"r4","match":"/(/"}}`, `error: arguments.a: reference "r4": not an RE2 pattern: `},
		{"an empty pattern", "arguments", `{"a":{"$r":"r4","match":""}}`, `error: arguments.a: reference "r4": "match" is a pattern like "/regex/"`},
		{"a text is replaced", "arguments", `{"a":{"$r":"r4","replace":["o","0",3]}}`, `{"a":"0ne\ntw0\u000d\nthree\nf0ur"}`},
		{"a text is replaced in lines", "arguments", `{"a":{"$r":"r4","lines":"1","replace":["one","1"]},"b":{"$r":"r4","match":"^f","replace":["f","F",1]}}`, `{"a":"1","b":"Four"}`},
		{"a text occurs more often", "arguments", `{"a":{"$r":"r4","replace":["o","0",1]}}`, `error: arguments.a: reference "r4": replace: "o" occurs 3 times, not 1`},
		{"a bad replacement", "arguments", `{"a":{"$r":"r4","replace":["o"]}}`, `error: arguments.a: reference "r4": "replace" is ["old", "new", N]: a text that occurs N times, and what replaces it`},
		{"lines and match", "arguments", `{"a":{"$r":"r4","lines":"1","match":"/x/"}}`, `error: arguments.a: reference "r4": "lines" and "match" cannot be combined`},
		{"lines and select", "arguments", `{"a":{"$r":"r4","lines":"1","select":"a"}}`, `error: arguments.a: reference "r4": select cannot be combined with lines, match and replace`},
		{"text of JSON", "arguments", `{"a":{"$r":"r1/items/1/title","replace":["B","b",1]},"b":{"$r":"r3","match":"/total/","replace":["total","x",1]}}`, `{"a":"b, b","b":"{\"text\":\"{\\\"$r\\\":\\\"r1/x\\\"}\"}"}`},
		{"captures", "arguments", `{"a":{"$r":"r4","select":"/^(t)(.*)/ as a, b where a = t"},"n":{"$r":"r4","select":"count from /o/ as o"}}`, `{"a":[{"a":"t","b":"wo"},{"a":"t","b":"hree"}],"n":3}`},
		{"fields of a text", "arguments", `{"a":{"$r":"r4","select":"a"}}`, `error: arguments.a: reference "r4": the result is not JSON and has no fields; use "lines", "match" or "replace", or select "a from /RE2/ as a"`},
		{"a sum", "arguments", `{"a":{"$r":"r1","select":"sum id where id < 100"}}`, `{"a":5}`},
		{"one value where a string is wanted", "typed", `{"l":[{"$r":"r1","select":"user.login where id = 2"}]}`, `typed {"l":["bob"]}`},
		{"one value where an integer is wanted", "echo", `{"text":{"$r":"r1","select":"title where id = 2"},"times":{"$r":"r1","select":"id where title = C"}}`, "B, bB, bB, b"},
		{"one value where an array is wanted", "typed", `{"l":{"$r":"r1","select":"user.login where id = 2"}}`, `typed {"l":["bob"]}`},
		{"values in another result", "arguments", `{"a":{"$r":"r1","select":"title where user.login in {\"$r\":\"r5\",\"select\":\"name\"}"}}`, `{"a":["B, b","C"]}`},
		{"values in an unknown result", "arguments", `{"a":{"$r":"r1","select":"title where id in {\"$r\":\"r9\"}"}}`, `error: arguments.a: reference "r1": reference "r9" in select: no result "r9": kept are r1, r2, r3, r4, r5; call the tool again for others`},
		{"a path into a text", "arguments", `{"a":{"$r":"r2/x"}}`, `error: arguments.a: reference "r2/x": r2 is not JSON; {"$r": "r2"} is its whole text`},
		{"too many", "arguments", `{"a":[` + strings.Repeat(`{"$r":"r1/total"},`, 64) + `{"$r":"r1/total"}]}`, `error: arguments.a[64]: reference "r1/total": a call may have 64 references at most`},
	} {
		got := b.exec(t, `{"server_name":"a","tool_name":"`+test.tool+`","arguments":`+test.arguments+`}`)
		isFailure := strings.HasPrefix(test.want, "error: ")
		if got != test.want && (!isFailure || !strings.HasPrefix(got, test.want)) {
			t.Errorf("%s:\n got %s\nwant %s", test.name, got, test.want)
		}
	}
	const own = `{"ref":{"$r":"r1/total"}}`
	if got := b.exec(t, `{"server_name":"b","tool_name":"own","arguments":`+own+`}`); got != "own "+own {
		t.Errorf("a declared $r: %s", got)
	}
	stranger := ParseExec([]byte(`{"server_name":"a","tool_name":"arguments","arguments":{"x":{"$r":"r1/total"}}}`))
	stranger.Client = client("stranger")
	if result, err := b.Call(t.Context(), stranger); err == nil || !strings.Contains(err.Error(), "none is kept") {
		t.Errorf("another client reads the result: %s, %v", result, err)
	}
}

func TestReferencesAreBounded(t *testing.T) {
	b := start(t, map[string]any{"result_tokens": 1000}, newUpstream(t, "a"))
	cut := b.exec(t, `{"server_name":"a","tool_name":"large","arguments":{"bytes":5000000}}`)
	if !strings.Contains(cut, "Kept as r1") {
		t.Fatalf("got %.200s", cut)
	}
	got := b.exec(t, `{"server_name":"a","tool_name":"arguments","arguments":{"a":{"$r":"r1"},"b":{"$r":"r1"}}}`)
	if want := `error: arguments.b: reference "r1": the references of a call may have 8 MiB at most`; got != want {
		t.Errorf("got %.200s, want %s", got, want)
	}
}

// TestResultsAreKept: a long result can be referred to, and says so.
func TestResultsAreKept(t *testing.T) {
	b := start(t, nil, newUpstream(t, "a"))
	var rows []string
	for i := range 100 {
		rows = append(rows, fmt.Sprintf(`{"id":%d,"name":"n%d"}`, i, i))
	}
	result := `{"structuredContent":[` + strings.Join(rows, ",") + `]}`
	want := strings.TrimSuffix(result, "}") + `,"content":[{"type":"text","text":"kept as r1; use {\"$r\": \"r1/…\"} or select"}]}`
	if got := b.call(t, raw(result, "")); got != want {
		t.Errorf("got %s", got)
	}
	if got := b.exec(t, `{"server_name":"a","tool_name":"arguments","arguments":{"x":{"$r":"r1/99/name"}}}`); got != `{"x":"n99"}` {
		t.Errorf("got %s", got)
	}
	got := b.exec(t, `{"server_name":"mcpx","tool_name":"read_result","arguments":{"id":"r1"},"select":"name where id >= 98"}`)
	if want := `[{"name":"n98"},{"name":"n99"}]` + "\n2 of 100 rows match"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// FuzzReference states the law of references: a call with a reference equals the same call
// with the value in its place.
func FuzzReference(f *testing.F) {
	f.Add(`{"a":[{"b":12345678901234567890}],"c":"x"}`, uint(3))
	f.Add(`[1.50,{"~/":{"":null}},"\ud800"]`, uint(4))
	s := tool(f, `{"name":"t","inputSchema":{"type":"object"}}`)
	f.Fuzz(func(t *testing.T, value string, place uint) {
		root, err := rawjson.Parse([]byte(value))
		if err != nil || !strings.ContainsAny(value[:1], "{[") || !utf8.ValidString(value) || rawjson.DuplicateKey([]byte(value)) != nil {
			t.Skip()
		}
		e := idle(parse(t, nil, map[string]any{"name": "a", "command": "x"}))
		c := &Call{Client: client("me"), Select: []byte(`"count"`), mayWait: true}
		if err := c.readSelect(s); err != nil {
			t.Fatal(err)
		}
		if _, err := e.fit(t.Context(), c, []byte(`{"structuredContent":`+value+`}`)); err != nil {
			t.Fatal(err)
		}
		n := root
		for range place % 5 {
			for _, child := range append(members(n), n.Elements()...) {
				n = child
			}
		}
		pointer := rawjson.NewLocator(root).Pointer(n)
		if strings.Contains(pointer, "*") {
			t.Skip()
		}
		r := resolver{input: s.Input}
		got, err := r.resolve(t.Context(), e.results, "me", []byte(`{"x": [`+reference("r1"+pointer)+`, 2]}`))
		if want := `{"x": [` + string(n.Raw()) + `, 2]}`; err != nil || string(got) != want {
			t.Errorf("%s of %s: %s, %v; want %s", pointer, value, got, err, want)
		}
	})
}

// TestSchemasAt finds the schemas of members whose names look like indexes.
func TestSchemasAt(t *testing.T) {
	s := schema.New([]byte(`{"properties":{"x":{"prefixItems":[{"title":"first"}],"items":{"title":"other"},"properties":{"7":{"title":"seven"}}}}}`))
	for step, want := range map[string]string{"0": "first", "1": "other", "-1": "other", "7": "seven", "name": "other"} {
		title, _ := schemasAt(s, []string{"x", step})[0].Get("title").String()
		if title != want {
			t.Errorf("%s: %s, want %s", step, title, want)
		}
	}
}

// A path that no schema describes has no schemas, however long it is.
func TestSchemasAtUnknownPath(t *testing.T) {
	path := slices.Repeat([]string{"a"}, 200)
	for name, text := range map[string]string{
		"nothing":        `{}`,
		"not a schema":   `[]`,
		"one level":      `{"properties":{"a":{"type":"object"}}}`,
		"every level":    `{"$ref":"#/$defs/x","$defs":{"x":{"additionalProperties":{"$ref":"#/$defs/x"},"items":{"$ref":"#/$defs/x"}}}}`,
		"several levels": `{"anyOf":[{"additionalProperties":{"type":"string"}},{"additionalProperties":{"type":"object"}}]}`,
	} {
		if found := schemasAt(schema.New([]byte(text)), path); len(found) > 10 {
			t.Errorf("%s: %d schemas", name, len(found))
		}
	}
}

func reference(text string) string {
	return `{"$r":` + string(rawjson.AppendString(nil, text)) + `}`
}

func members(n rawjson.Node) (list []rawjson.Node) {
	for _, m := range n.Members() {
		list = append(list, m)
	}
	return list
}
