package validate

import (
	"context"
	"testing"

	parsed "mcpx/internal/schema"
)

func TestQuick(t *testing.T) {
	const schema = `{"type":"object","additionalProperties":false,"required":["path"],"properties":{
		"path":{"type":"string","description":"where"},"count":{"type":"integer","minimum":1,"maximum":10},"ratio":{"type":"number"},
		"all":{"type":["boolean","null"]},"mode":{"type":"string","enum":["r","w"]},"tags":{"type":"array","items":{"type":"string"}},
		"any":{},"deep":{"type":"object"},"short":{"type":"string","maxLength":3}}}`
	for value, want := range map[string]bool{
		`{"path":"x"}`:                              true,
		`{"path":"x","count":3,"ratio":1.5e3}`:      true,
		`{"path":"x","all":null,"mode":"w"}`:        true,
		`{"path":"x","tags":["a","b"],"any":[1,2]}`: true,
		`{"path":"x","tags":[]}`:                    true,
		`{}`:                                        false,
		`{"path":1}`:                                false,
		`{"path":"x","path":"y"}`:                   false, // which one is meant?
		`{"path":"x","count":11}`:                   false,
		`{"path":"x","count":3.0}`:                  false, // valid, but that takes a closer look
		`{"path":"x","mode":"a"}`:                   false,
		`{"path":"x","tags":["a",1]}`:               false,
		`{"path":"x","any":[[1]]}`:                  false,
		`{"path":"x","deep":{}}`:                    false,
		`{"path":"x","short":"abc"}`:                false,
		`{"path":"x","other":1}`:                    false,
		`[]`:                                        false,
		`{"path":"x"`:                               false,
	} {
		s := newFor(schema)
		if s.Accepts([]byte(value)) {
			t.Errorf("%s is accepted before the schema is compiled", value)
		}
		s.Unjudged()
		if got := s.Accepts([]byte(value)); got != want {
			t.Errorf("%s: %t", value, got)
		}
	}
}

// FuzzQuick: what is accepted at a glance is accepted by the whole check, without notes.
func FuzzQuick(f *testing.F) {
	for _, c := range problemCases {
		f.Add([]byte(c.schema), []byte(c.value))
	}
	f.Add([]byte(`{"properties":{"a":{"type":"array","items":{"type":"integer","minimum":2}},"b":{"enum":["x",1]}}}`), []byte(`{"a":[2,3],"b":"x"}`))
	f.Add([]byte(`{"properties":{"at":{"type":"string","format":"date"},"to":{"type":"array","items":{"format":"email"}}}}`), []byte(`{"at":"2024-01-01","to":["a@b.c"]}`))
	f.Fuzz(func(t *testing.T, schema, value []byte) {
		s := New(parsed.New(schema))
		s.Unjudged()
		if !s.Accepts(value) {
			return
		}
		if verdict := s.Check(context.Background(), value); len(verdict.Problems)+len(verdict.Notes) > 0 {
			t.Errorf("%s accepts %s at a glance, but: %v", schema, value, verdict)
		}
	})
}

func BenchmarkAccepts(b *testing.B) {
	s := New(parsed.New([]byte(`{"type":"object","properties":{"message":{"type":"string"},"size":{"type":"integer","minimum":0},"mode":{"enum":["r","w"]}},"required":["message"]}`)))
	s.Unjudged()
	value := []byte(`{"message":"hello","size":5,"mode":"w"}`)
	b.Run("glance", func(b *testing.B) {
		for b.Loop() {
			if !s.Accepts(value) {
				b.Fatal("refused")
			}
		}
	})
	b.Run("whole", func(b *testing.B) {
		for b.Loop() {
			if len(s.Check(context.Background(), value).Problems) > 0 {
				b.Fatal("refused")
			}
		}
	})
}
