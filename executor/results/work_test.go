package results

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"mcpx/internal/rawjson"
	"mcpx/internal/selection"
	"mcpx/internal/work"
)

// tolerance is by how many bytes the memory may exceed a bound: Go allocates it in pages, and a
// shape needs some for any result.
const tolerance = 64 << 10

// repeated returns a text of about that many bytes.
func repeated(bytes int, start string, row func(i int) string, end string) string {
	var b strings.Builder
	b.WriteString(start)
	for i := 0; b.Len() < bytes; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(row(i))
	}
	return b.String() + end
}

// largeData are values of different kinds and about that many bytes.
func largeData(bytes int) map[string]string {
	issue := func(i int) string {
		return fmt.Sprintf(`{"id":%d,"title":"issue number %d of many","state":"open","user":{"login":"u%d"},"labels":["a","b"]}`, i, i, i%100)
	}
	return map[string]string{
		"rows":            repeated(bytes, `{"items":[`, issue, `]}`),
		"padded rows":     repeated(bytes, `{"items":[`, func(i int) string { return "\n    " + issue(i) }, `]}`),
		"digits":          repeated(bytes, `[`, func(int) string { return "1" }, `]`),
		"empty arrays":    repeated(bytes, `[`, func(int) string { return "[]" }, `]`),
		"one object":      repeated(bytes, `{`, func(i int) string { return fmt.Sprintf(`"%x":1`, i) }, `}`),
		"wide rows":       repeated(bytes, `[{`, func(i int) string { return fmt.Sprintf(`"%x":1`, i%40) + strings.Repeat(`},{"a":1`, i%40/39) }, `}]`),
		"a long string":   `{"text":"` + strings.Repeat("word, ", bytes/6) + `"}`,
		"a string of \\n": `{"text":"` + strings.Repeat(`\n`, bytes/2) + `"}`,
	}
}

// allocated returns how many bytes a function allocates.
func allocated(f func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// TestWeights: a result that is made ready for a client, and a tree, need no more memory than
// their work acquires.
func TestWeights(t *testing.T) {
	for name, data := range largeData(256 << 10) {
		for form, raw := range map[string]string{
			"text":       `{"content":[` + textItem(data) + `]}`,
			"structured": `{"structuredContent":` + data + `}`,
			"both":       `{"content":[` + textItem(data) + `],"structuredContent":` + data + `}`,
			"plain text": `{"content":[` + textItem("x"+data) + `]}`,
		} {
			s, raw := New(limits(10_000)), []byte(raw)
			var r *Result
			got := allocated(func() {
				r = opened(s, raw, nil)
				_ = r.Remember(Tool{"a", "b"})
				_, _ = r.Fit()
				r.Close()
			})
			if most := r.piece().Bytes; got > most+tolerance {
				t.Errorf("%s as %s: %d bytes for %d, which is more than %d", name, form, got, len(raw), most)
			}
		}
		got := allocated(func() { _, _ = rawjson.ParseContext(t.Context(), []byte(data)) }) - len(data) // the copy
		if most := rawjson.TreeBytes([]byte(data)); got > most+tolerance {
			t.Errorf("%s: a tree of %d bytes, which is more than %d", name, got, most)
		}
	}
}

// TestWorkIsBounded: many requests at once use no more than the budget, and end.
func TestWorkIsBounded(t *testing.T) {
	data := largeData(1 << 20)["rows"]
	o := limits(1000)
	o.Work = work.New(8 << 20)
	s := New(o)
	id := s.save("me", asKept(data)).id
	raw := []byte(`{"structuredContent":` + data + `}`)
	var wait sync.WaitGroup
	for i := range 50 {
		wait.Go(func() {
			client := "me"
			if i%2 == 0 {
				client = "you"
			}
			for _, do := range []func() error{
				func() error {
					_, err := s.Read(t.Context(), "me", Query{ID: id, Select: query("id limit 3")})
					return err
				},
				func() error {
					_, err := s.Resolve(t.Context(), "me", []*Reference{{Text: id + "/items/9/id"}}, 99)
					return err
				},
				func() error {
					r, err := s.Open(t.Context(), client, raw, query("count"))
					if err == nil {
						defer r.Close()
						_, err = r.Fit()
					}
					return err
				},
			}[i%3 : i%3+1] {
				if err := do(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	if most := o.Work.Peak(); most > 8<<20 || most < len(data) {
		t.Errorf("%d bytes of %d were in use", most, 8<<20)
	}
}

// TestReferencesShareATree: many references to one result parse it once.
func TestReferencesShareATree(t *testing.T) {
	data := largeData(1 << 20)["rows"]
	s := New(limits(1000))
	id, other := s.save("me", asKept(data)).id, s.save("me", asKept(`{"a":1}`)).id
	var references []*Reference
	for i := range 64 {
		references = append(references, &Reference{Text: fmt.Sprintf("%s/items/%d/id", id, i)})
		references = append(references, &Reference{Text: other + "/a"})
	}
	got := allocated(func() {
		if _, err := s.Resolve(t.Context(), "me", references, 1000); err != nil {
			t.Error(err)
		}
	})
	if most := rawjson.TreeBytes([]byte(data)) + len(data)/2; got > most {
		t.Errorf("%d bytes, want less than %d", got, most)
	}
	if got := string(references[126].Value) + string(references[127].Value); got != "631" {
		t.Errorf("the last values are %s", got)
	}
	if failed, err := s.Resolve(t.Context(), "me", references, 10); failed == nil || !errors.Is(err, ErrLong) {
		t.Errorf("too many bytes: %v", err)
	}
}

// ending is a context that ends after a number of calls of Err.
type ending struct {
	context.Context
	left, after atomic.Int64
}

func (e *ending) Err() error {
	if e.left.Add(-1) >= 0 {
		return nil
	}
	e.after.Add(1)
	return context.Canceled
}

// TestWorkStopsWhenCanceled: all work checks its context often, and stops soon after it ends.
func TestWorkStopsWhenCanceled(t *testing.T) {
	const never = 1 << 40
	data := largeData(256 << 10)
	s := New(limits(1000))
	rows, one, text := s.save("me", asKept(data["rows"])).id, s.save("me", asKept(data["one object"])).id, s.save("me", asKept(strings.Repeat("line\n", 1<<15))).id
	long := s.save("me", asKept(strings.Repeat("word, ", 1<<17))).id
	read := func(q Query) func(context.Context) error {
		return func(ctx context.Context) error { _, err := s.Read(ctx, "me", q); return err }
	}
	fit := func(raw string, q *selection.Query) func(context.Context) error {
		return func(ctx context.Context) error {
			r, err := s.Open(ctx, "me", []byte(raw), q)
			if err != nil {
				return err
			}
			defer r.Close()
			if err := r.Remember(Tool{"a", "b"}); err != nil {
				return err
			}
			_, err = r.Fit()
			return err
		}
	}
	for name, do := range map[string]func(context.Context) error{
		"select":             read(Query{ID: rows, Select: query("id, title where state = open")}),
		"select of nothing":  read(Query{ID: rows, Select: query("nothing, labels[].none")}),
		"select of an array": read(Query{ID: rows, Select: query("items[].id, items")}),
		"groups":             read(Query{ID: rows, Select: query("count, max id by title, id")}),
		"order":              read(Query{ID: rows, Select: query("id order by title desc")}),
		"no row matches":     read(Query{ID: rows, Select: query("id where state = shut")}),
		"captures":           read(Query{ID: text, Select: query("count by a from /(l)ine/ as a")}),
		"captures of a line": read(Query{ID: long, Select: query("/(word, )+x/ as a")}),
		"grep from the end":  read(Query{ID: text, Grep: "l.ne", Offset: -3}),
		"grep of names":      read(Query{ID: rows, Grep: "^titl"}),
		"matching lines": func(ctx context.Context) error {
			_, err := s.Resolve(ctx, "me", []*Reference{{Text: text, Part: &TextPart{Match: "l.ne"}}}, 1<<20)
			return err
		},
		"lines": func(ctx context.Context) error {
			_, err := s.Resolve(ctx, "me", []*Reference{{Text: text, Part: &TextPart{Lines: "5-"}}}, 1<<20)
			return err
		},
		"path":              read(Query{ID: rows, Path: "/items/*/user"}),
		"path in an object": read(Query{ID: one, Path: "/fff"}),
		"grep of values":    read(Query{ID: rows, Grep: "number .* 7"}),
		"grep of lines":     read(Query{ID: text, Grep: "l.nes"}),
		"grep of one line":  read(Query{ID: long, Grep: "(word, )+x"}),
		"references": func(ctx context.Context) error {
			_, err := s.Resolve(ctx, "me", []*Reference{{Text: rows, Select: query("id")}, {Text: rows + "/items/*/id"}}, 1<<20)
			return err
		},
		"fit":                 fit(`{"structuredContent":`+data["rows"]+`}`, nil),
		"fit of JSON as text": fit(`{"content":[`+textItem(data["rows"])+`]}`, nil),
		"fit of a text":       fit(`{"content":[`+textItem(strings.Repeat("line\n", 1<<15))+`]}`, nil),
		"select of a result":  fit(`{"structuredContent":`+data["rows"]+`}`, query("id")),
		"pattern of a result": fit(`{"structuredContent":`+data["rows"]+`}`, query("/number .* 7/")),
	} {
		t.Run(name, func(t *testing.T) {
			whole := &ending{Context: context.Background()}
			whole.left.Store(never)
			if err := do(whole); err != nil {
				t.Fatal(err)
			}
			looks := never - whole.left.Load()
			if looks < 15 {
				t.Errorf("the context was checked %d times", looks)
			}
			for part := range int64(3) {
				ctx := &ending{Context: context.Background()}
				ctx.left.Store(looks * part / 10)
				if err := do(ctx); !errors.Is(err, context.Canceled) {
					t.Errorf("canceled after %d of %d checks of the context: %v", looks*part/3, looks, err)
				}
				if after := ctx.after.Load(); after > 20 {
					t.Errorf("canceled after %d of %d checks of the context: %d more checks", looks*part/3, looks, after)
				}
			}
		})
	}
}
