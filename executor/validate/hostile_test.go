package validate

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"mcpx/internal/schema"
)

func TestUnjudged(t *testing.T) {
	nested := func(n int) string { return strings.Repeat(`{"not":`, n) + `{}` + strings.Repeat(`}`, n) }
	for _, c := range []struct{ name, schema, want string }{
		{"no JSON", `{"type":`, `compile: not valid JSON`},
		{"no schema", `["a"]`, `compile: not a JSON Schema`},
		{"huge", `"` + strings.Repeat("a", 1<<20) + `"`, `compile: larger than 1 MB`},
		{"deep", nested(101), `compile: nested too deep`},
		{"very deep", nested(10_000), `compile: JSON nested too deep`},
		{"many", `{"enum":[` + strings.Repeat("1,", 20_000) + `1]}`, `compile: too many values`},
		{"large number", `{"minimum":1e999999}`, `compile: a number out of range`},
		{"lone surrogate", `{"properties":{"\ud800":{"type":"string"}}}`, `compile: half of a surrogate pair`},
		{"file", `{"$ref":"file:///etc/hostname"}`, `compile: reference "file:///etc/hostname" leads elsewhere`},
		{"URL", `{"$ref":"https://example.com/schema.json#/a"}`, `compile: reference "https://example.com/schema.json#/a" leads elsewhere`},
		{"relative", `{"$ref":"other.json"}`, `compile: reference "other.json" leads elsewhere`},
		{"no anchor", `{"$ref":"#a","$defs":{"a":{}}}`, `compile: reference "#a" names no anchor, or one of several`},
		{"two anchors", `{"$ref":"#a","$defs":{"a":{"$anchor":"a"},"b":{"$dynamicAnchor":"a"}}}`, `compile: reference "#a" names no anchor, or one of several`},
		{"anchor of draft 7", `{"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#a","$defs":{"a":{"$anchor":"a"}}}`, `compile: reference "#a" names no anchor, or one of several`},
		{"dynamic anchor of draft 2019", `{"$schema":"https://json-schema.org/draft/2019-09/schema","$ref":"#a","$defs":{"a":{"$dynamicAnchor":"a"}}}`, `compile: reference "#a" names no anchor, or one of several`},
		{"anchor in data", `{"$ref":"#a","enum":[{"$anchor":"a"}]}`, `compile: reference "#a" names no anchor, or one of several`},
		{"anchor in data and in a schema", `{"$ref":"#a","default":{"$anchor":"a"},"$defs":{"a":{"$anchor":"a"}}}`, `compile: reference "#a" names no anchor, or one of several`},
		{"anchor at an unknown keyword", `{"$ref":"#a","x-defs":{"a":{"$anchor":"a"}}}`, `compile: reference "#a" names no anchor, or one of several`},
		{"anchor of an odd form", `{"$ref":"#a b","$defs":{"a":{"$anchor":"a b"}}}`, `compile: reference "#a b" names no anchor, or one of several`},
		{"anchor below an inner id", `{"$ref":"#a","$defs":{"x":{"$id":"https://example.com/x","$defs":{"a":{"$anchor":"a"}}}}}`, `compile: reference "#a" names no anchor, or one of several`},
		{"anchor beside an inner id", `{"$ref":"#a","$defs":{"x":{"$id":"https://example.com/x","$anchor":"a"}}}`, `compile: reference "#a" names no anchor, or one of several`},
		{"anchor of the document, used below an inner id", `{"properties":{"p":{"$id":"https://example.com/x","$ref":"#a"}},"$defs":{"a":{"$anchor":"a"}}}`, `compile: references next to an inner $id`},
		{"pointer through an inner id", `{"$ref":"#/$defs/x/$defs/a","$defs":{"x":{"$id":"https://example.com/x","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"type":"string"}}},"b":{"type":"integer"}}}`, `compile: reference "#/$defs/x/$defs/a" leads through an inner $id`},
		{"nowhere", `{"$ref":"#/$defs/a"}`, `compile: reference "#/$defs/a" leads nowhere`},
		{"through a leaf", `{"$ref":"#/title/a","title":"b"}`, `compile: reference "#/title/a" leads nowhere`},
		{"past a list", `{"$ref":"#/allOf/1","allOf":[{}]}`, `compile: reference "#/allOf/1" leads nowhere`},
		{"no schema there", `{"$ref":"#/title","title":"b"}`, `compile: reference "#/title" leads nowhere`},
		{"malformed", `{"$ref":"#/%zz"}`, `compile: reference "#/%zz" is malformed`},
		{"inner id", `{"properties":{"a":{"$id":"b","$ref":"#/c"}},"c":{}}`, `compile: references next to an inner $id`},
		{"inner id of draft 4", `{"$schema":"http://json-schema.org/draft-04/schema#","allOf":[{"id":"b"},{"$ref":"#/c"}],"c":{}}`, `compile: references next to an inner $id`},
		{"dynamic to nowhere", `{"$dynamicRef":"#a","$schema":"https://json-schema.org/draft/2020-12/schema"}`, `compile: reference "#a" names no anchor, or one of several`},
		{"dynamic in draft 7", `{"$schema":"http://json-schema.org/draft-07/schema#","$dynamicRef":"#a","$defs":{"a":{"$dynamicAnchor":"a"}}}`, `compile: uses $dynamicRef`},
		{"dynamic in draft 2019", `{"$schema":"https://json-schema.org/draft/2019-09/schema","$dynamicRef":"#a","$defs":{"a":{"$anchor":"a"}}}`, `compile: uses $dynamicRef`},
		{"dynamic beside a reference", `{"$dynamicRef":"#a","$ref":"#/$defs/a","$defs":{"a":{"$dynamicAnchor":"a"}}}`, `compile: uses $dynamicRef`},
		{"dynamic with two resources", `{"$dynamicRef":"#a","$defs":{"a":{"$dynamicAnchor":"a"},"x":{"$id":"https://example.com/x"}}}`, `compile: uses $dynamicRef`},
		{"loop of anchors", `{"$ref":"#a","$defs":{"a":{"$anchor":"a","allOf":[{"$ref":"#a"}]}},"$schema":"https://json-schema.org/draft/2020-12/schema"}`, `compile: a reference loop`},
		{"loop of the root's anchor", `{"$anchor":"a","allOf":[{"$ref":"#a"}],"$schema":"https://json-schema.org/draft/2020-12/schema"}`, `compile: a reference loop`},
		{"recursive", `{"properties":{"a":{"$recursiveRef":"#"}}}`, `compile: uses $recursiveRef`},
		{"chain", chain(`{"$ref":"#/$defs/%d"}`, 200), `compile: more than 100 references in a row`},
		{"loop", `{"$ref":"#"}`, `compile: a reference loop`},
		{"loop of two", `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`, `compile: a reference loop`},
		{"loop below", `{"properties":{"p":{"$ref":"#/$defs/a"}},"$defs":{"a":{"$ref":"#/$defs/a"}}}`, `compile: a reference loop`},
		{"loop in allOf", `{"allOf":[{"$ref":"#"}]}`, `compile: a reference loop`},
		{"loop in anyOf", `{"anyOf":[{"type":"string"},{"$ref":"#"}]}`, `compile: a reference loop`},
		{"loop in oneOf", `{"oneOf":[{"$ref":"#"}]}`, `compile: a reference loop`},
		{"loop in not", `{"not":{"$ref":"#"}}`, `compile: a reference loop`},
		{"loop in if", `{"if":{"$ref":"#"}}`, `compile: a reference loop`},
		{"loop in then", `{"if":true,"then":{"$ref":"#"}}`, `compile: a reference loop`},
		{"loop in else", `{"if":true,"else":{"$ref":"#"}}`, `compile: a reference loop`},
		{"loop in dependencies", `{"dependencies":{"a":{"$ref":"#"}}}`, `compile: a reference loop`},
		{"loop in dependentSchemas", `{"dependentSchemas":{"a":{"$ref":"#"}}}`, `compile: a reference loop`},
	} {
		for _, schema := range []string{c.schema, strings.Replace(c.schema, "{", "{"+draft7Declared+",", 1)} {
			if schema != c.schema && (strings.Contains(c.name, "dependentSchemas") || strings.Contains(c.schema, "$schema") || strings.Contains(c.name, "inner id")) {
				continue // these keywords are of one draft
			}
			t.Run(c.name, func(t *testing.T) {
				s := newFor(schema)
				if got := s.Unjudged(); got != c.want {
					t.Errorf("unjudged: %q", got)
				}
				if problems := s.Check(context.Background(), []byte(`{"p":1}`)).Problems; problems != nil {
					t.Errorf("problems: %v", problems)
				}
			})
		}
	}
}

// chain is a schema whose n definitions each name the next.
func chain(format string, n int) string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/0","$defs":{`)
	for i := range n {
		fmt.Fprintf(&b, `"%d":`+format+`,`, i, i+1)
	}
	fmt.Fprintf(&b, `"%d":{"type":"string"}}}`, n)
	return b.String()
}

// TestManyReferences has references to every level of deep schemas. Each schema is
// read and compiled once, not once for every level above it.
func TestManyReferences(t *testing.T) {
	const towers, depth = 8, 90
	tower := strings.Repeat(`{"not":`, depth) + `{}` + strings.Repeat(`}`, depth)
	var members, refs []string
	for i := range towers {
		members = append(members, fmt.Sprintf(`"tower%d":%s`, i, tower))
		for level := range depth {
			refs = append(refs, fmt.Sprintf(`{"$ref":"#/tower%d%s"}`, i, strings.Repeat("/not", level)))
		}
	}
	s := schema.New([]byte(`{` + strings.Join(members, ",") + `,"anyOf":[` + strings.Join(refs, ",") + `]}`))
	root, err := reduce(s)
	if err != nil {
		t.Fatal(err)
	}
	written, err := json.Marshal((&document{root: root}).whole())
	if err != nil || len(written) > 20*towers*depth*len(`{"$ref":"#/$defs/0"}`) {
		t.Errorf("the rules take %d bytes, %v", len(written), err)
	}
	if problems := New(s).Check(context.Background(), []byte(`"x"`)).Problems; problems != nil {
		t.Errorf("problems: %v", problems)
	}
}

// TestNothingIsFetched goes past the guard, to the libraries' own loaders.
func TestNothingIsFetched(t *testing.T) {
	var hits atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		hits.Add(1)
		_, _ = fmt.Fprint(w, `{}`)
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "schema.json")
	if err := os.WriteFile(file, []byte(`{}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{server.URL + "/schema.json", "file://" + filepath.ToSlash(file)} {
		root := map[string]any{"$ref": url}
		if _, err := compileGojsonschema(root); err == nil {
			t.Errorf("gojsonschema loads %s", url)
		}
		if why := newFor(`{"$ref":"` + url + `"}`).Unjudged(); why == "" {
			t.Errorf("%s is followed", url)
		}
		if why := newFor(`{"$schema":"` + url + `"}`).Unjudged(); why != "" {
			t.Errorf("$schema %s: %s", url, why)
		}
	}
	if hits.Load() != 0 {
		t.Errorf("the server was asked %d times", hits.Load())
	}
}

// TestPanic has a check that panics: it costs that call its check.
func TestPanic(t *testing.T) {
	for _, schema := range []string{`{"type":"object"}`, `{"type":"object","uniqueItems":true}`} {
		s := newFor(schema)
		if why := s.Unjudged(); why != "" {
			t.Fatal(why)
		}
		real := s.judge.engine().accepts
		s.judge.engine().accepts = func(any) bool { panic("a bug") }
		if verdict := s.Check(context.Background(), []byte(`"no object"`)); verdict.Problems != nil || verdict.Unchecked != "check: panic: a bug" {
			t.Errorf("verdict: %v", verdict)
		}
		s.judge.engine().accepts = real
		if problems := s.Check(context.Background(), []byte(`"no object"`)).Problems; len(problems) != 1 {
			t.Errorf("the next call: %v", problems)
		}
	}
}

// TestPatternBudget has more patterns than fit: the rest is not judged, and no
// check is left to compile one.
func TestPatternBudget(t *testing.T) {
	for _, pattern := range []string{`^[a-z]{900}%d$`, `^\\p{L}%d$`} {
		var properties []string
		for i := range 200 {
			properties = append(properties, fmt.Sprintf(`"p%03d":{"pattern":"`+pattern+`"}`, i, i))
		}
		s := newFor(`{"properties":{` + strings.Join(properties, ",") + `}}`)
		if problems := s.Check(context.Background(), []byte(`{"p000":"no"}`)).Problems; len(problems) != 1 {
			t.Errorf("the first pattern: %v", problems)
		}
		if problems := s.Check(context.Background(), []byte(`{"p199":"no"}`)).Problems; problems != nil {
			t.Errorf("the last pattern: %v", problems)
		}
	}
}

// TestDisagreement has a library that refuses what explain finds nothing wrong
// with.
func TestDisagreement(t *testing.T) {
	s := newFor(`{"type":"object"}`)
	if why := s.Unjudged(); why != "" {
		t.Fatal(why)
	}
	s.judge.engine().accepts = func(any) bool { return false }
	if problems := s.Check(context.Background(), []byte(`{}`)).Problems; problems != nil {
		t.Errorf("problems: %v", problems)
	}
}

func TestConcurrent(t *testing.T) {
	for _, declared := range []string{"", draft7Declared + ","} {
		s := newFor(`{` + declared + `"properties":{"a":{"$ref":"#/$defs/s"},"b":{"uniqueItems":true}},"required":["a"],"$defs":{"s":{"type":"string"}}}`)
		good, bad := []byte(`{"a":"x","b":[1,2]}`), []byte(`{"b":[1,1]}`)
		var callers sync.WaitGroup
		for range 8 {
			callers.Go(func() {
				for range 50 {
					if problems := s.Check(context.Background(), good).Problems; problems != nil {
						t.Errorf("good: %v", problems)
					}
					if problems := s.Check(context.Background(), bad).Problems; len(problems) != 2 {
						t.Errorf("bad: %v", problems)
					}
				}
			})
		}
		callers.Wait()
		if why := s.Unjudged(); why != "" {
			t.Error(why)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	for name, declared := range map[string]string{"draft 7": draft7Declared + ",", "2020-12": ""} {
		b.Run(name, func(b *testing.B) {
			s := New(schema.New([]byte(`{` + declared + `"type":"object","properties":{"path":{"type":"string"},"tail":{"type":"integer"},"mode":{"enum":["r","w"]}},"required":["path"],"additionalProperties":false}`)))
			value := []byte(`{"path":"/tmp/a","tail":5,"mode":"r"}`)
			b.ReportAllocs()
			for b.Loop() {
				if s.Check(context.Background(), value).Problems != nil {
					b.Fatal("refused")
				}
			}
		})
	}
}
