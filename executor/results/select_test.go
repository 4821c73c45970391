package results

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"mcpx/internal/tokens"
)

// rowsResult returns a result with n rows.
func rowsResult(n int) []byte {
	var rows []string
	for i := range n {
		rows = append(rows, fmt.Sprintf(`{"id":%d,"name":"n%d"}`, i, i))
	}
	return []byte(`{"content":[` + textItem("["+strings.Join(rows, ",")+"]") + `]}`)
}

// onlyText returns the texts of a result.
func onlyText(t *testing.T, result []byte) (text string) {
	t.Helper()
	var decoded struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(result, &decoded); err != nil {
		t.Fatal(err)
	}
	for _, item := range decoded.Content {
		text += item.Text
	}
	return text
}

// TestSelectKeepsToTheLimit: rows, notes and the handle together have no more tokens than
// a result may have.
func TestSelectKeepsToTheLimit(t *testing.T) {
	unknown := ""
	for i := range 20 {
		unknown += fmt.Sprintf(", unknown_field_%d", i)
	}
	for _, limit := range []int{400, 1000} {
		for _, fields := range []string{"*", "id, name", "id" + unknown, "name where id > 3" + "", "/n/", "/1/"} {
			s := New(limits(limit))
			got := onlyText(t, selected(s, rowsResult(2000), query(fields)))
			if n := tokens.Count(got); n > limit {
				t.Errorf("select %s within %d: %d tokens", fields, limit, n)
			}
			if !strings.Contains(got, "full result: r1 (") {
				t.Errorf("select %s within %d: no handle in %s", fields, limit, got)
			}
			read, err := s.Read(t.Context(), "me", Query{ID: "r1", Select: query(fields)})
			if n := tokens.Count(read); err != nil || n > limit {
				t.Errorf("read %s within %d: %d tokens, %v", fields, limit, n, err)
			}
		}
	}
}

// TestSelectionsAreCutLikeResults: a selection that is too long is cut to the head.
func TestSelectionsAreCutLikeResults(t *testing.T) {
	o := limits(1000)
	o.Head = 200
	for _, fields := range []string{"*", "id, name", "name order by id desc", "count by id", "/n/", "id, nmae"} {
		s := New(o)
		got := onlyText(t, selected(s, rowsResult(2000), query(fields)))
		if n := tokens.Count(got); n > 200+handleCost || n < 100 {
			t.Errorf("select %s: %d tokens: %s", fields, n, got[max(0, len(got)-200):])
		}
		if !strings.Contains(got, "full result: r1 (") {
			t.Errorf("select %s: no handle in %s", fields, got)
		}
		read, err := s.Read(t.Context(), "me", Query{ID: "r1", Select: query(fields)})
		if n := tokens.Count(read); err != nil || n > 200 {
			t.Errorf("read %s: %d tokens, %v", fields, n, err)
		}
	}
	object := `{"structuredContent":{"text":"` + strings.Repeat("word ", 3000) + `"}}`
	got := onlyText(t, selected(New(o), []byte(object), query("*")))
	if !strings.HasPrefix(got, `{"text":"word word`) || !strings.Contains(got, "…\ncut: 3,004 tokens in all; name fields, or use read_result with path\nfull result: r1 (") {
		t.Errorf("one object: %s", got)
	}
}

// TestFieldsOfAText: where a text has no fields, a select shows only its first lines.
func TestFieldsOfAText(t *testing.T) {
	text := ""
	for i := range 200 {
		text += fmt.Sprintf("line %d of a text\n", i+1)
	}
	result := []byte(`{"content":[` + textItem(text) + `,{"type":"image","data":"aGk=","mimeType":"image/png"}]}`)
	want := notJSON + "\nline 1 of a text\nline 2 of a text\nline 3 of a text\nline 4 of a text\nline 5 of a text\n[lines 1-5 of 200]\nfull result: r1 ("
	s := New(limits(10_000))
	got := selected(s, result, query("id, name"))
	if !strings.HasPrefix(onlyText(t, got), want) || !strings.Contains(string(got), "aGk=") {
		t.Errorf("got %s", got)
	}
	if short := onlyText(t, selected(s, []byte(`{"content":[`+textItem("one\ntwo")+`]}`), query("id"))); short != "one\ntwo"+notJSON {
		t.Errorf("a short text: %s", short)
	}
}

// TestSelectWithoutLimit: where results are not cut, a selection is not either.
func TestSelectWithoutLimit(t *testing.T) {
	for fields, last := range map[string]string{"*": "1999,n1999", "/n/": "/1999/name: n1999\n[matches 1-2000 of 2000 in 4,000 values; end]"} {
		got := onlyText(t, selected(New(limits(0)), rowsResult(2000), query(fields)))
		if !strings.HasSuffix(got, last) {
			t.Errorf("select %s ends in %q", fields, got[max(0, len(got)-200):])
		}
	}
}
